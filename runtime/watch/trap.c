/* --trap and --reproduce: saves a bad step in a file, and runs it again. */
#include "runtime/base/names.h"
#include "runtime/core/train.h"
#include "runtime/state/safetensors.h"
#include "runtime/watch/finite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

AmprtStatus amprt_reproducer_save(const AmprtSession *session, const AmprtBatch *batch,
                                  char path[AMPRT_PATH], AmprtError *error) {
  const char *dir = session->dir.path;
  char name[64];
  snprintf(name, sizeof name, "nonfinite-%" PRId64 ".safetensors", session->progress.step);
  if (session->group)
    snprintf(name, sizeof name, "nonfinite-%" PRId64 ".rank-%d.safetensors", session->progress.step,
             session->rank);
  AmprtStatus status = amprt_path(path, *dir ? dir : ".", name, error);
  return status ? status
                : amprt_ckpt_save(path, &session->machine, &session->progress, &session->made,
                                  batch, error);
}

static AmprtStatus fail_batch(const char *path, const char *name, AmprtError *error) {
  return amprt_fail(error, AMPRT_INPUT,
                    "%s: has no `%s` of this program's size; --trap=first-nonfinite writes such "
                    "files",
                    path, name);
}

/* Reads `image` and `label` of the file, which the caller frees, and how they are mixed. */
static AmprtStatus read_batch(const AmprtProgram *program, const char *path, float **image,
                              int32_t **label, AmprtMix *mix, AmprtError *error) {
  AmprtTensors file = {0};
  int64_t n = program->batch_size,
          pixels = n * program->height * program->width * program->channels;
  AmprtStatus status = amprt_tensors_read(path, &file, error);
  if (status)
    return status;
  const AmprtTensor *from = amprt_tensors_find(&file, amprt_name_image),
                    *labels = amprt_tensors_find(&file, amprt_name_label),
                    *mixed = amprt_tensors_find(&file, amprt_name_mix);
  if (!from || !from->known || from->dtype != AMPRT_F32 || from->elements != pixels)
    status = fail_batch(path, amprt_name_image, error);
  else if (!labels || !labels->known || labels->dtype != AMPRT_I32 || labels->elements != n)
    status = fail_batch(path, amprt_name_label, error);
  if (!status && mixed && mixed->known && mixed->dtype == AMPRT_F64 &&
      mixed->elements == AMPRT_MIX_NUMBERS) {
    double number[AMPRT_MIX_NUMBERS];
    memcpy(number, mixed->data, sizeof number);
    *mix = amprt_mix_of(number);
  }
  if (!status && (!(*image = malloc(from->size + 1)) || !(*label = malloc(labels->size + 1))))
    status = amprt_fail_memory(error, from->size, "a batch");
  if (!status) {
    memcpy(*image, from->data, from->size);
    memcpy(*label, labels->data, labels->size);
  }
  for (int64_t i = 0; i < n && !status; i++)
    if ((*label)[i] < 0 || (*label)[i] >= program->n_classes)
      status = fail_batch(path, amprt_name_label, error);
  amprt_tensors_free(&file);
  return status;
}

/* Runs the step and reports its first result that is not finite. */
static AmprtStatus search(AmprtSession *session, const AmprtBatch *batch, AmprtError *error) {
  const AmprtGraph *graph = &session->program->graph[0];
  AmprtInputs inputs = {batch, session->schedule, (float)session->program->bn_momentum};
  AmprtFinding finding = {0};
  AmprtText text = {0};
  AmprtKept kept;
  AmprtStatus status = amprt_kept_open(&kept, session->program, AMPRT_KEEP_ALL, error);
  if (status)
    return status;
  amprt_kept_take(&kept, &session->machine);
  bool found =
      amprt_find(&session->machine, graph, graph->n_kernels, &inputs, &kept, NULL, 0, &finding);
  amprt_finding_text(&finding, &text);
  if (amprt_machine_check(&session->machine, error))
    status = error->status;
  else if (!found || text.failed)
    status = amprt_fail_memory(error, text.room, "a copy of the state");
  else if (finding.found)
    status = amprt_fail(error, AMPRT_INPUT, "step %" PRId64 ", first not finite: %s",
                        session->progress.step, text.data);
  else
    amprt_say(&session->log, "step %" PRId64 ": every result is finite", session->progress.step);
  amprt_text_free(&text);
  amprt_kept_close(&kept);
  return status;
}

AmprtStatus amprt_reproduce(AmprtSession *session, const char *path, AmprtError *error) {
  const char *dump = session->options.dump_step;
  float *image = NULL;
  int32_t *label = NULL;
  AmprtMix mix = {0};
  AmprtStatus status = read_batch(session->program, path, &image, &label, &mix, error);
  AmprtBatch batch = {image, label, session->program->batch_size, .mix = mix};
  if (!status && *dump)
    status = amprt_dump_step(session, dump, &batch, error);
  else if (!status)
    status = search(session, &batch, error);
  free(image);
  free(label);
  return status;
}
