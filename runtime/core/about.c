/* The flags that print something and stop. */
#include "runtime/core/parts.h"
#include "runtime/state/init.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int64_t amprt_count_parameters(const AmprtProgram *program) {
  int64_t n = 0;
  for (int i = 0; i < program->n_variables; i++)
    if (program->variable[i].kind == AMPRT_PARAM)
      n += amprt_variable_elements(&program->variable[i]);
  return n;
}

static void print_program(const AmprtProgram *program) {
  uint64_t arena = 0;
  for (int i = 0; i < program->n_graphs; i++)
    if (program->graph[i].arena_bytes > arena)
      arena = program->graph[i].arena_bytes;
  amprt_print(
      stdout,
      "model        %s\nfingerprint  %s\nmade by      %s\ntarget       %s\nprecision    %s\n"
      "input        %" PRId64 " images of %" PRId64 "x%" PRId64 "x%" PRId64 ", %" PRId64
      " classes\nparameters   %" PRId64 "\nmemory       %.1f MiB of state, %.1f MiB of arena\n",
      program->model, program->fingerprint, program->version, program->target, program->dtype,
      program->batch_size, program->height, program->width, program->channels, program->n_classes,
      amprt_count_parameters(program), (double)program->state_bytes / (1 << 20),
      (double)arena / (1 << 20));
  for (int i = 0; i < program->n_graphs; i++)
    amprt_print(stdout, "graph        @%s, %d kernels\n", program->graph[i].name,
                program->graph[i].n_kernels);
}

static AmprtStatus print_packed(const AmprtPacked *packed, AmprtError *error) {
  uLongf size = packed->text_size;
  if (!packed->bytes)
    return amprt_fail(error, AMPRT_ENV, "this program was made without that text");
  if (!size) {
    amprt_print(stdout, "%.*s", (int)packed->size, packed->bytes);
    return AMPRT_OK;
  }
  char *text = malloc(size + 1);
  if (!text)
    return amprt_fail_memory(error, size + 1, "a text");
  bool good = uncompress((Bytef *)text, &size, (const Bytef *)packed->bytes, packed->size) == Z_OK;
  text[good ? size : 0] = '\0';
  amprt_print(stdout, "%s", text);
  free(text);
  return good ? AMPRT_OK
              : amprt_fail(error, AMPRT_ENV,
                           "this program is damaged: a text that it has compressed");
}

static AmprtStatus print_manifest(const AmprtPart *part, int n_parts, AmprtError *error) {
  AmprtStatus status = print_packed(&part->program->manifest, error);
  for (int i = 0; i < n_parts && !status; i++) {
    status = print_packed(&part[i].program->part_manifest, error);
    amprt_print(stdout, i < n_parts - 1 ? ",\n" : "\n]}\n");
  }
  return status;
}

static void print_about(const AmprtProgram *program, const AmprtPart *part, int n_parts) {
  print_program(program);
  for (int i = 0; i < n_parts; i++) {
    char why[512] = "";
    bool fits = !part[i].fits || !part[i].fits(why, sizeof why);
    const char *(*describe)(void) = part[i].program->describe;
    if (fits && describe) /* describe() tells of the part that was tried last */
      snprintf(why, sizeof why, "%s", describe());
    amprt_print(stdout, "%-12s %s\n", n_parts > 1 ? part[i].name : "runs on",
                fits && !*why ? "runs here" : why);
  }
}

AmprtStatus amprt_info(const AmprtProgram *program, const AmprtPart *part, int n_parts,
                       const AmprtOptions *options, const char *name, bool *asked,
                       AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  *asked = true;
  errno = 0;
  if (options->help || options->helpfull || options->helpshort)
    amprt_options_help(program, options, name, stdout);
  else if (options->version)
    amprt_print(stdout, "%s\n", program->version);
  else if (options->about)
    print_about(program, part, n_parts);
  else if (options->manifest)
    status = print_manifest(part, n_parts, error);
  else if (options->dump_ir)
    status = print_packed(&part->program->ir, error);
  else if (options->print_memory_plan)
    status = print_packed(&program->memory_plan, error);
  else if (options->print_precision)
    status = print_packed(&program->precision, error);
  else
    *asked = false;
  if (!status && *asked && (fflush(stdout) || ferror(stdout)))
    return amprt_fail(error, AMPRT_ENV, "cannot write to standard output: %s",
                      errno ? strerror(errno) : "it is closed");
  return status;
}
