/* --tune: a device times its choices; nothing is trained. */
#include "runtime/base/file.h"
#include "runtime/core/train.h"

#include <stdlib.h>
#include <string.h>

static AmprtStatus write_text(const char *path, const char *text, AmprtError *error) {
  AmprtWriter writer;
  AmprtStatus status = amprt_write_begin(&writer, path, error);
  if (status)
    return status;
  AmprtError later;
  status = text ? amprt_write(&writer, text, strlen(text), error) : AMPRT_OK;
  AmprtStatus ended = amprt_write_end(&writer, text && !status, status ? &later : error);
  return status ? status : ended;
}

AmprtStatus amprt_tune(AmprtSession *session, const char *path, AmprtError *error) {
  const AmprtDevice *device = session->program->device;
  if (!device || !device->tune)
    return amprt_fail(error, AMPRT_USAGE,
                      "--tune: part %s has nothing to choose among; --device=cuda asks for a GPU's",
                      session->program->target);
  /* fails now if the file cannot be written, and not after minutes of timing */
  AmprtStatus status = write_text(path, NULL, error);
  if (!status)
    status = amprt_machine_open(&session->machine, session->program, &session->options,
                                &(AmprtMachinePlan){0}, error);
  if (status)
    return status;
  char *text = device->tune(session->options.quiet);
  status = amprt_machine_check(&session->machine, error);
  if (!status)
    status = write_text(path, text, error);
  free(text);
  return status;
}
