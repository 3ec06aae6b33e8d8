/* Reads any bytes as a checkpoint: --resume and --init-from must accept them, or refuse them and
 * leave the state as it was. Checksums are corrected first, so that the fuzzer also reaches the
 * code that runs after they were tested. */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/state/ckpt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { STATE = 128 };

static const AmprtVariable variables[] = {
    {"w", AMPRT_F32, 4, AMPRT_PARAM, AMPRT_ZEROS, {2, 1, 2, 2}, 0, .layer = "fc"},
    {"w.m", AMPRT_F32, 4, AMPRT_SLOT, AMPRT_ZEROS, {2, 1, 2, 2}, 32, "w"},
    {"s", AMPRT_F32, 0, AMPRT_STAT, AMPRT_ZEROS, .at = 64},
    {"global_step", AMPRT_I64, 0, AMPRT_COUNTER, AMPRT_ZEROS, .at = 72},
    {"loss_scale", AMPRT_F32, 0, AMPRT_SCALE, AMPRT_ZEROS, .at = 80},
    {"w.f16", AMPRT_F16, 4, AMPRT_COPY, AMPRT_ZEROS, {2, 1, 2, 2}, 96, "w"},
};
static const AmprtProgram program = {.abi = AMPRT_ABI,
                                     .model = "m",
                                     .version = "v",
                                     .dtype = "fp16",
                                     .fingerprint = "f",
                                     .variable = variables,
                                     .n_variables = 6,
                                     .n_classes = 2,
                                     .head = "fc",
                                     .state_bytes = STATE};

static void repair_checksum(unsigned char *data, size_t size) {
  static const char key[] = "\"crc32\":\"";
  uint64_t header;
  if (size < 8)
    return;
  memcpy(&header, data, 8);
  if (header > size - 8)
    return;
  for (size_t i = 8; i + sizeof key + 8 < 8 + header; i++)
    if (!memcmp(data + i, key, sizeof key - 1)) {
      char sum[16];
      snprintf(sum, sizeof sum, "%08lx",
               crc32_z(crc32_z(0, NULL, 0), data + 8 + header, size - 8 - header));
      memcpy(data + i + sizeof key - 1, sum, 8);
      return;
    }
}

static int make_file(const uint8_t *bytes, size_t size) {
  unsigned char *data = malloc(size + 1);
  int fd = memfd_create("fuzz", 0);
  if (!data || fd < 0)
    abort();
  if (size)
    memcpy(data, bytes, size);
  repair_checksum(data, size);
  if (write(fd, data, size) != (ssize_t)size)
    abort();
  free(data);
  return fd;
}

/* fit -1: --resume */
static void check(int fit, const char *path) {
  _Alignas(64) unsigned char state[STATE], before[STATE];
  AmprtMachine machine = {.program = &program, .run = {.state = state}};
  static const AmprtMade made = {.field = {{"batch-size", "8"}, {"optimizer", "sgd"}}, .n = 2};
  AmprtResumed resumed = {{0}};
  AmprtText notes = {0};
  AmprtError error = {0};
  memset(state, 0x3c, sizeof state);
  memcpy(before, state, sizeof state);
  AmprtStatus status = fit < 0
                           ? amprt_ckpt_resume(path, &machine, &made, true, &resumed, &error)
                           : amprt_ckpt_init_from(path, &machine, (AmprtFit)fit, &notes, &error);
  if (status && memcmp(state, before, sizeof state))
    abort(); /* a refused file has changed something */
  if (status && (!*error.text || strchr(error.text, '\n')))
    abort(); /* the message is not one line */
  if (!status && resumed.progress.step < 0)
    abort();
  amprt_text_free(&resumed.notes);
  amprt_text_free(&resumed.changed);
  amprt_text_free(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  int fd = make_file(data, size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  for (int fit = -1; fit <= AMPRT_FIT_STRICT; fit++)
    check(fit, path);
  close(fd);
  return 0;
}
