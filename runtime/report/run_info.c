/* benchmark_run.log: the model, the data, the machine and the parameters of a run, under the names
 * that the official programs give them. */
#include "runtime/report/logger.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void key(AmprtText *out, const char *name) {
  amprt_text_add(out, "%s\"%s\": ", out->data[out->size - 1] == '{' ? "" : ", ", name);
}

static void string(AmprtText *out, const char *name, const char *value) {
  key(out, name);
  amprt_text_string(out, value);
}

/* The text behind "NAME :" in a file of /proc; "" if it is not there. */
static void proc_field(const char *path, const char *name, char *out, size_t size) {
  char line[512];
  FILE *file = fopen(path, "re");
  size_t n = strlen(name);
  *out = '\0';
  while (file && !*out && fgets(line, sizeof line, file)) {
    char *at = line + n + strspn(line + n, " \t");
    if (strncmp(line, name, n) != 0 || *at != ':')
      continue;
    at += 1 + strspn(at + 1, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
  }
  if (file)
    fclose(file);
}

static void add_memory(AmprtText *out, const char *name, const char *field) {
  char kilobytes[64];
  proc_field("/proc/meminfo", field, kilobytes, sizeof kilobytes);
  key(out, name);
  amprt_text_add(out, "%lld", 1024 * strtoll(kilobytes, NULL, 10));
}

static void add_machine(const AmprtProgram *program, AmprtText *out) {
  char processor[256], mhz[64];
  proc_field("/proc/cpuinfo", "model name", processor, sizeof processor);
  proc_field("/proc/cpuinfo", "cpu MHz", mhz, sizeof mhz);
  key(out, "machine_config");
  amprt_text_add(out, "{\"cpu_info\": {\"num_cores\": %ld", sysconf(_SC_NPROCESSORS_ONLN));
  string(out, "cpu_info", processor);
  key(out, "mhz_per_cpu");
  amprt_text_double(out, strtod(mhz, NULL));
  amprt_text_add(out, "}, \"gpu_info\": {\"count\": %d", program->device != NULL);
  if (program->device && program->describe)
    string(out, "model", program->describe());
  amprt_text_add(out, "}");
  add_memory(out, "memory_total", "MemTotal");
  add_memory(out, "memory_available", "MemAvailable");
  amprt_text_add(out, "}");
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the environment variables TF_..., sorted, so that whoever compares runs sees what was set
 * for the official programs. */
static void add_environment(AmprtText *out) {
  const char *found[64];
  size_t n = 0;
  for (char **e = environ; *e && n < sizeof found / sizeof *found; e++)
    if (!strncmp(*e, "TF_", 3) && strchr(*e, '='))
      found[n++] = *e;
  qsort(found, n, sizeof *found, by_name);
  key(out, "tensorflow_environment_variables");
  amprt_text_add(out, "[");
  for (size_t i = 0; i < n; i++) {
    char name[128];
    const char *value = strchr(found[i], '=') + 1;
    snprintf(name, sizeof name, "%.*s", (int)(value - found[i] - 1), found[i]);
    amprt_text_add(out, "%s{", i ? ", " : "");
    string(out, "name", name);
    string(out, "value", value);
    amprt_text_add(out, "}");
  }
  amprt_text_add(out, "]");
}

static void add_parameter(AmprtText *out, const char *name) {
  amprt_text_add(out, "%s{\"name\": \"%s\"", out->data[out->size - 1] == '[' ? "" : ", ", name);
}

static void add_integer(AmprtText *out, const char *name, int64_t value) {
  add_parameter(out, name);
  amprt_text_add(out, ", \"long_value\": %" PRId64 "}", value);
}

static void add_string(AmprtText *out, const char *name, const char *value) {
  add_parameter(out, name);
  string(out, "string_value", value);
  amprt_text_add(out, "}");
}

/* Writes the parameters sorted by name, each as a value of its own type. The size and the version
 * of a ResNet come from the name of its model, such as resnet50 or cifar_resnet20_v2. */
static void add_parameters(const AmprtSession *session, AmprtText *out) {
  const char *resnet = strstr(session->program->model, "resnet");
  double epochs = session->options.train_epochs;
  int digits = resnet ? (int)strspn(resnet + 6, "0123456789") : 0;
  char size[16];
  snprintf(size, sizeof size, "%.*s", digits, digits ? resnet + 6 : "");
  key(out, "run_parameters");
  amprt_text_add(out, "[");
  add_integer(out, "batch_size", amprt_step_examples(session));
  add_string(out, "dtype", session->program->dtype);
  add_integer(out, "num_workers", 1);
  if (digits) {
    add_string(out, "resnet_size", size);
    add_string(out, "resnet_version", strncmp(resnet + 6 + digits, "_v2", 3) ? "1" : "2");
  }
  add_parameter(out, "synthetic_data");
  amprt_text_add(out, ", \"bool_value\": \"%s\"}", session->data.synthetic ? "True" : "False");
  if (epochs == floor(epochs)) {
    add_integer(out, "train_epochs", (int64_t)epochs);
  } else {
    add_parameter(out, "train_epochs");
    amprt_text_add(out, ", \"float_value\": ");
    amprt_text_double(out, epochs);
    amprt_text_add(out, "}");
  }
  amprt_text_add(out, "]");
}

/* As the official programs call it; random images stand for ImageNet where no set is named. */
static void add_dataset(const AmprtSession *session, AmprtText *out) {
  static const char *const official[][2] = {{"imagenet", "ImageNet"}, {"cifar10", "CIFAR-10"}};
  const char *name = session->options.dataset;
  char text[128];
  if (session->data.synthetic && (!*name || !strcmp(name, "synthetic")))
    name = "imagenet";
  for (size_t i = 0; i < sizeof official / sizeof *official; i++)
    name = strcmp(name, official[i][0]) ? name : official[i][1];
  snprintf(text, sizeof text, "%s%s", name, session->data.synthetic ? "-synthetic" : "");
  key(out, "dataset");
  amprt_text_add(out, "{");
  string(out, "name", text);
  amprt_text_add(out, "}");
}

void amprt_run_info(const AmprtSession *session, const char *date, const char *status,
                    AmprtText *out) {
  const AmprtProgram *program = session->program;
  const AmprtOptions *options = &session->options;
  amprt_text_add(out, "{");
  if (out->failed)
    return;
  string(out, "model_name", program->model);
  add_dataset(session, out);
  add_machine(program, out);
  key(out, "test_id");
  if (*options->benchmark_test_id)
    amprt_text_string(out, options->benchmark_test_id);
  else
    amprt_text_add(out, "null");
  string(out, "run_date", date);
  key(out, "tensorflow_version");
  amprt_text_add(out, "{");
  string(out, "version", program->version);
  string(out, "git_hash", program->fingerprint);
  amprt_text_add(out, "}");
  add_environment(out);
  add_parameters(session, out);
  string(out, "test_environment", "local");
  string(out, "run_status", status);
  amprt_text_add(out, "}");
}
