#include "runtime/watch/finite.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/state/init.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void tally_some(AmprtTally *tally, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double size = fabs((double)x[i]);
    tally->nan += isnan(x[i]) != 0; /* isinf(-Inf) may be -1 */
    tally->inf += isinf(x[i]) != 0;
    if (isfinite(x[i]) && size > tally->largest)
      tally->largest = size;
  }
}

AmprtTally amprt_tally(AmprtDType dtype, const void *at, int64_t n) {
  enum { SOME = 512 };
  AmprtTally tally = {.elements = n};
  float room[SOME];
  size_t size = amprt_dtype_size(dtype);
  for (size_t i = 0; i < (size_t)n; i += SOME) {
    size_t some = (size_t)n - i < SOME ? (size_t)n - i : SOME;
    amprt_to_f32(dtype, (const unsigned char *)at + i * size, room, some);
    tally_some(&tally, room, some);
  }
  return tally;
}

/* The finding that a place would be, with nothing in its tally. */
static AmprtFinding finding_of(const AmprtProgram *program, const AmprtGraph *graph, int place) {
  if (place == AMPRT_FOUND_IMAGE) {
    const AmprtPort *image = amprt_port_find(graph->input, graph->n_inputs, amprt_name_image);
    return (AmprtFinding){.op = "input",
                          .value = amprt_name_image,
                          .layer = "",
                          .dtype = image ? (AmprtDType)image->dtype : AMPRT_F32,
                          .place = place};
  }
  if (place <= AMPRT_FOUND_VARIABLE) {
    const AmprtVariable *v = &program->variable[AMPRT_FOUND_VARIABLE - place];
    return (AmprtFinding){.op = "variable",
                          .value = v->name,
                          .layer = v->layer ? v->layer : "",
                          .dtype = (AmprtDType)v->dtype,
                          .place = place};
  }
  const AmprtValue *v = &graph->value[place];
  return (AmprtFinding){.op = v->op,
                        .value = v->name,
                        .layer = v->layer,
                        .makers = v->makers,
                        .dtype = (AmprtDType)v->dtype,
                        .place = place};
}

AmprtFinding amprt_finding_at(const AmprtProgram *program, const AmprtGraph *graph, int place,
                              const AmprtTally *tally) {
  AmprtFinding finding = finding_of(program, graph, place);
  finding.found = true;
  finding.tally = *tally;
  return finding;
}

/* Are n floats finite? Inf and NaN, and no others, have all bits of their exponents set. */
static bool some_finite(AmprtDType dtype, const void *data, int n) {
  const uint64_t *wide = data, all = UINT64_C(0x7ff) << 52;
  const uint32_t *word = data;
  const uint16_t *half = data, ones = dtype == AMPRT_F16 ? 0x7c00 : 0x7f80;
  int wild = 0;
  if (dtype == AMPRT_F64)
    for (int i = 0; i < n; i++)
      wild |= (wide[i] & all) == all;
  else if (dtype == AMPRT_F32)
    for (int i = 0; i < n; i++)
      wild |= (word[i] & 0x7f800000) == 0x7f800000;
  else
    for (int i = 0; i < n; i++)
      wild |= (half[i] & ones) == ones;
  return !wild;
}

static bool all_finite(AmprtDType dtype, const void *data, int64_t n) {
  enum { SOME = 256 }; /* a number that the compiler knows, so that it makes vectors */
  const unsigned char *at = data;
  const size_t bytes = SOME * amprt_dtype_size(dtype);
  bool good = true;
  for (; good && n >= SOME; n -= SOME, at += bytes)
    good = some_finite(dtype, at, SOME);
  return good && some_finite(dtype, at, (int)n);
}

/* Examines a value, unless one that is not finite has been found already. Only that one is counted
 * element by element, as to count all would take longer than the step itself. */
static void look(AmprtFinding *finding, AmprtFinding at, const void *data, int64_t n) {
  if (finding->found || !amprt_dtype_is_float(at.dtype) || all_finite(at.dtype, data, n))
    return;
  at.tally = amprt_tally(at.dtype, data, n);
  at.found = true;
  *finding = at;
}

/* Examines what the step began with: images, parameters, and their low-precision copies, which can
 * overflow where the parameters do not. Optimizer slots and statistics do not enter gradients. */
static void look_at_start(const AmprtMachine *machine, const AmprtGraph *graph,
                          AmprtFinding *finding) {
  const AmprtProgram *program = machine->program;
  const AmprtPort *image = amprt_port_find(graph->input, graph->n_inputs, amprt_name_image);
  if (image)
    look(finding, finding_of(program, graph, AMPRT_FOUND_IMAGE), amprt_port_at(machine, image),
         amprt_port_elements(image));
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (v->kind == AMPRT_PARAM || v->kind == AMPRT_COPY)
      look(finding, finding_of(program, graph, AMPRT_FOUND_VARIABLE - i),
           amprt_variable_at(machine, v), amprt_variable_elements(v));
  }
}

typedef struct Search {
  const AmprtMachine *machine;
  const AmprtGraph *graph;
  int next; /* index of the next value */
  AmprtFinding *finding;
} Search;

static void look_after(void *context, int kernel) {
  Search *search = context;
  const AmprtGraph *graph = search->graph;
  for (; search->next < graph->n_values && graph->value[search->next].kernel == kernel;
       search->next++) {
    const AmprtValue *v = &graph->value[search->next];
    look(search->finding, finding_of(search->machine->program, graph, search->next),
         amprt_value_at(search->machine, v), (int64_t)v->elements);
  }
}

static bool is_kept(const AmprtKept *kept, const AmprtVariable *variable) {
  return kept->kinds >> variable->kind & 1;
}

AmprtStatus amprt_kept_open(AmprtKept *kept, const AmprtProgram *program, unsigned kinds,
                            AmprtError *error) {
  size_t size = 1;
  *kept = (AmprtKept){.kinds = kinds};
  for (int i = 0; i < program->n_variables; i++)
    size += is_kept(kept, &program->variable[i]) ? amprt_variable_bytes(&program->variable[i]) : 0;
  kept->bytes = malloc(size);
  return kept->bytes ? AMPRT_OK : amprt_fail_memory(error, size, "a copy of the state");
}

void amprt_kept_close(AmprtKept *kept) {
  free(kept->bytes);
  kept->bytes = NULL;
}

void amprt_kept_take(const AmprtKept *kept, const AmprtMachine *machine) {
  const AmprtVariable *v = machine->program->variable;
  unsigned char *to = kept->bytes;
  for (int i = 0; i < machine->program->n_variables; i++)
    if (is_kept(kept, &v[i])) {
      memcpy(to, amprt_variable_at(machine, &v[i]), amprt_variable_bytes(&v[i]));
      to += amprt_variable_bytes(&v[i]);
    }
}

void amprt_kept_put_back(const AmprtKept *kept, AmprtMachine *machine) {
  const AmprtVariable *v = machine->program->variable;
  const unsigned char *from = kept->bytes;
  for (int i = 0; i < machine->program->n_variables; i++)
    if (is_kept(kept, &v[i])) {
      memcpy(machine->run.state + v[i].at, from, amprt_variable_bytes(&v[i]));
      amprt_machine_push(machine, AMPRT_STATE, v[i].at, amprt_variable_bytes(&v[i]));
      from += amprt_variable_bytes(&v[i]);
    }
}

enum { MOST_HOOKS = 4 };

bool amprt_find(AmprtMachine *machine, const AmprtGraph *graph, int past, const AmprtInputs *inputs,
                const AmprtKept *kept, const AmprtHook *hook, int n_hooks, AmprtFinding *finding) {
  Search search = {machine, graph, 0, finding};
  AmprtHook all[MOST_HOOKS];
  AmprtKept now;
  AmprtError error = {0};
  unsigned changed = past > graph->first_update ? AMPRT_KEEP_ALL : AMPRT_KEEP_STATS;
  *finding = (AmprtFinding){0};
  if (n_hooks >= MOST_HOOKS ||
      amprt_kept_open(&now, machine->program, changed | kept->kinds, &error))
    return false;
  for (int i = 0; i < n_hooks; i++)
    all[i] = hook[i];
  all[n_hooks] = (AmprtHook){look_after, &search};
  double **seconds = machine->seconds;
  int64_t *runs = machine->runs;
  machine->seconds = NULL; /* not counted in the profile */
  machine->runs = NULL;
  amprt_kept_take(&now, machine);
  amprt_kept_put_back(kept, machine);
  amprt_machine_fill(machine, graph, inputs);
  look_at_start(machine, graph, finding);
  amprt_machine_kernels(machine, graph, 0, past, all, n_hooks + 1);
  amprt_kept_put_back(&now, machine);
  machine->seconds = seconds;
  machine->runs = runs;
  amprt_kept_close(&now);
  return true;
}

bool amprt_state_is_finite(const AmprtMachine *machine, AmprtFinding *finding) {
  const AmprtProgram *program = machine->program;
  *finding = (AmprtFinding){0};
  for (int i = 0; i < program->n_variables && !finding->found; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (amprt_variable_is_saved(v))
      look(finding, finding_of(program, NULL, AMPRT_FOUND_VARIABLE - i),
           amprt_variable_at(machine, v), amprt_variable_elements(v));
  }
  return !finding->found;
}

void amprt_finding_text(const AmprtFinding *finding, AmprtText *text) {
  const AmprtTally *tally = &finding->tally;
  if (!finding->found)
    return;
  amprt_text_shown(text, finding->value); /* names come from the model and are not trusted */
  amprt_text_add(text, " (%s", finding->op);
  if (*finding->layer && strcmp(finding->layer, finding->value)) {
    amprt_text_add(text, " of layer ");
    amprt_text_shown(text, finding->layer);
  }
  amprt_text_add(
      text, "), %s: %" PRId64 " Inf, %" PRId64 " NaN of %" PRId64 " elements, largest finite %g",
      amprt_dtype_name(finding->dtype), tally->inf, tally->nan, tally->elements, tally->largest);
  if (finding->makers) {
    amprt_text_add(text, "; made in one kernel by ");
    amprt_text_shown(text, finding->makers);
  }
}
