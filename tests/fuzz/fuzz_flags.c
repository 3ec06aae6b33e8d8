/* Reads any bytes as a flag file, and its lines as a command line: the flags are accepted, or one
 * line says why they are not. */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/flags/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64 };

static const AmprtVariable scale = {"loss_scale", AMPRT_F32, .kind = AMPRT_SCALE,
                                    .init_arg = {128}};
static const AmprtSetting recipe[] = {{"train-epochs", "182"}, {"lr-schedule", "piecewise"}};
static const AmprtSetting made[] = {
    {"batch-size", "128"}, {"optimizer", "momentum"}, {"weight-decay", "0.0002"}};
static const AmprtSetting given[] = {{"dtype", "fp16"}, {"no-fuse", "true"}};
static const AmprtProgram program = {.model = "cifar_resnet20",
                                     .dtype = "fp16",
                                     .target = "cpu",
                                     .variable = &scale,
                                     .n_variables = 1,
                                     .recipe = recipe,
                                     .n_recipe = 2,
                                     .made = made,
                                     .n_made = 3,
                                     .given = given,
                                     .n_given = 2};

static void check(int argc, char **argv) {
  AmprtOptions options;
  AmprtError error = {0};
  AmprtStatus status = amprt_options_parse(&options, &program, argc, argv, &error);
  if (status && (!*error.text || strpbrk(error.text, "\n\r\x1b")))
    abort(); /* the message is not one plain line */
  if (!status &&
      (options.data_threads < 0 || options.data_threads > 64 || !(options.train_epochs >= 0)))
    abort(); /* a value that no flag takes */
  amprt_options_free(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char name[64], *argv[MOST_ARGUMENTS + 2] = {(char *)"program", name};
  int fd = memfd_create("flags", 0), argc = 1;
  char *text = malloc(size + 1);
  if (fd < 0 || !text || (size && write(fd, data, size) != (ssize_t)size))
    abort();
  snprintf(name, sizeof name, "--flagfile=/proc/self/fd/%d", fd);
  check(2, argv);
  close(fd);
  if (size)
    memcpy(text, data, size);
  text[size] = '\0';
  for (char *line = strtok(text, "\n"); line && argc < MOST_ARGUMENTS; line = strtok(NULL, "\n"))
    argv[argc++] = line;
  argv[argc] = NULL;
  check(argc, argv);
  free(text);
  return 0;
}
