#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/runtime/harness.h"

#include "tests/runtime/toy.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char scratch[256], caught[1 << 16];
bool on_device;

int scratch_setup(void **state) {
  /* one that is ignored, as nohup and a shell's `&` leave it to their children, would stay so */
  const int stops[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
    signal(stops[i], SIG_DFL);
  (void)state;
  snprintf(scratch, sizeof scratch, "/tmp/amprt-test-XXXXXX");
  return mkdtemp(scratch) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where) {
  (void)info, (void)type, (void)where;
  return remove(path);
}

int scratch_teardown(void **state) {
  (void)state;
  return nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *in_scratch(const char *name) {
  static char path[8][512];
  static int next;
  next = (next + 1) % 8;
  snprintf(path[next], sizeof path[next], "%s/%s", scratch, name);
  return path[next];
}

void write_bytes(const char *path, const void *data, size_t size) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(data, 1, size, out), size);
  fclose(out);
}

AmprtBytes read_bytes(const char *path) {
  AmprtBytes bytes = {0};
  AmprtError error;
  if (amprt_read_file(path, 1 << 24, &bytes, &error))
    fail_msg("%s", error.text);
  return bytes;
}

void assert_same_file(const char *a, const char *b) {
  AmprtBytes x = read_bytes(a), y = read_bytes(b);
  assert_int_equal(x.size, y.size);
  assert_memory_equal(x.data, y.data, x.size);
  free(x.data);
  free(y.data);
}

static int redirect(int fd, int to) {
  int saved = dup(fd);
  dup2(to, fd);
  return saved;
}

static void restore(int fd, int saved) {
  dup2(saved, fd);
  close(saved);
}

/* "a $/b" -> {"toy", "a", "/tmp/.../b"} */
static int split(const char *line, char *text, size_t size, char **argv, int most) {
  size_t n = 0;
  int argc = 1;
  argv[0] = (char *)"toy";
  for (const char *c = line; *c && n + sizeof scratch < size; c++)
    n += *c == '$' ? (size_t)sprintf(text + n, "%s", scratch) : (text[n] = *c, (size_t)1);
  text[n] = '\0';
  for (char *word = strtok(text, " "); word && argc < most; word = strtok(NULL, " "))
    argv[argc++] = word;
  return argc;
}

int run_parts(const AmprtPart *part, int n_parts, const char *line) {
  char text[4096], *argv[64];
  int argc = split(line, text, sizeof text, argv, 64);
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(stdout);
  fflush(stderr);
  int out = redirect(1, fileno(file)), err = redirect(2, fileno(file));
  int status = amprt_main(part, n_parts, argc, argv);
  fflush(stdout);
  restore(1, out);
  restore(2, err);
  rewind(file);
  caught[fread(caught, 1, sizeof caught - 1, file)] = '\0';
  fclose(file);
  return status;
}

int run_program(const AmprtProgram *program, const char *line) {
  AmprtProgram copy = *program;
  const AmprtPart part = {"cpu", &copy, NULL};
  if (on_device)
    copy.device = &test_device;
  return run_parts(&part, 1, line);
}

void assert_said(const char *text) {
  if (!strstr(caught, text))
    fail_msg("expected `%s` in:\n%s", text, caught);
}

AmprtStatus open_data(AmprtData *data, const AmprtProgram *program, const char *dataset,
                      const char *dir, AmprtError *error) {
  static AmprtOptions options;
  char *argv[] = {(char *)"toy", NULL};
  assert_int_equal(amprt_options_parse(&options, program, 1, argv, error), 0);
  options.dataset = dataset;
  options.data_dir = dir;
  return amprt_data_open(data, program, &options, error);
}

AmprtFeedPlan toy_plan(const AmprtDataset *set) {
  return (AmprtFeedPlan){.set = set,
                         .example.image = {TOY_SIDE, TOY_SIDE, 1},
                         .batch_size = TOY_BATCH,
                         .seed = 3,
                         .purpose = "train",
                         .shuffle = true,
                         .end = UINT64_MAX,
                         .threads = 1};
}

int toy_setup(void **state) {
  if (scratch_setup(state))
    return -1;
  toy_write_data(scratch, 203, 50);
  toy_signal_at = 0;
  return 0;
}

void run_status(const AmprtProgram *program, const char *line, int want) {
  int status = run_program(program, line);
  if (status != want)
    fail_msg("%s: status %d, not %d\n%s", line, status, want, caught);
}

void run_good(const AmprtProgram *program, const char *line) {
  run_status(program, line, 0);
}

void run_bad(const AmprtProgram *program, const char *line, int want, const char *says) {
  run_status(program, line, want);
  assert_said(says);
}

AmprtTensors load_tensors(const char *name) {
  AmprtTensors in = {0};
  AmprtError error;
  if (amprt_tensors_read(in_scratch(name), &in, &error))
    fail_msg("%s", error.text);
  return in;
}

float first_float(const AmprtTensors *file, const char *name) {
  const AmprtTensor *tensor = amprt_tensors_find(file, name);
  float x;
  if (!tensor)
    fail_msg("no tensor %s", name);
  memcpy(&x, tensor->data, sizeof x);
  return x;
}

int count_log(const char *name, const char *text) {
  AmprtBytes log = read_bytes(in_scratch(name));
  int n = 0;
  log.data[log.size] = '\0';
  for (char *line = strtok((char *)log.data, "\n"); line; line = strtok(NULL, "\n")) {
    assert_true(line[0] == '{' && line[strlen(line) - 1] == '}');
    assert_null(strstr(line, ":nan"));
    assert_null(strstr(line, ":-nan"));
    assert_null(strstr(line, ":inf"));
    assert_null(strstr(line, ":-inf"));
    n += strstr(line, text) != NULL;
  }
  free(log.data);
  return n;
}
