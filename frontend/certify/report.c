/* Prints the certificate: a table with a line per layer, and JSON with an object per tensor. */
#include "codegen/program/json_text.h"
#include "frontend/certify/certify.h"
#include "ir/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The largest errors of a layer's tensors. */
typedef struct Line {
  const char *layer;
  DType dtype; /* the narrowest type of the layer */
  bool has[ROLE_COUNT];
  Error model[ROLE_COUNT];
  Drift sharp, blurred; /* code: tensors without and with 16-bit roundings inside the kernel */
  int bounds;           /* tensors that have one */
  Bound bound;
} Line;

typedef struct Lines {
  Line *at;
  int n, cap;
} Lines;

static const char *layer_of(const Finding *f) {
  return f->layer ? f->layer : "(no layer)";
}

static Line *line_of(Arena *arena, Lines *lines, const char *layer) {
  for (int i = 0; i < lines->n; i++)
    if (strcmp(lines->at[i].layer, layer) == 0)
      return &lines->at[i];
  arena_push(arena, lines->at, lines->n, lines->cap, (Line){.layer = layer});
  return &lines->at[lines->n - 1];
}

static void line_add(Line *line, const Finding *f) {
  DType dtype = f->value->type.dtype;
  if (dtype_info[dtype].low)
    line->dtype = dtype;
  if (f->has_model) {
    line->has[f->role] = true;
    error_add(&line->model[f->role], &f->model);
  }
  drift_add(f->blurred ? &line->blurred : &line->sharp, &f->code);
  bound_add(&line->bound, &f->bound);
  line->bounds += f->has_bound;
}

static Lines lines_of(Arena *arena, const Certificate *certificate) {
  Lines lines = {0};
  for (int i = 0; i < certificate->n; i++)
    line_add(line_of(arena, &lines, layer_of(&certificate->at[i])), &certificate->at[i]);
  return lines;
}

static Line worst_of(const Lines *lines) {
  Line worst = {.layer = "worst"};
  for (int i = 0; i < lines->n; i++) {
    const Line *line = &lines->at[i];
    for (int r = 0; r < ROLE_COUNT; r++) {
      worst.has[r] |= line->has[r];
      error_add(&worst.model[r], &line->model[r]);
    }
    if (dtype_info[line->dtype].low)
      worst.dtype = line->dtype;
    drift_add(&worst.sharp, &line->sharp);
    drift_add(&worst.blurred, &line->blurred);
    bound_add(&worst.bound, &line->bound);
    worst.bounds += line->bounds;
  }
  return worst;
}

/* ---- for people ---- */

enum { NAME_WIDTH = 28 };

static void print_error(bool has, const Error *e, FILE *out) {
  if (has)
    fprintf(out, "  %8.2g %8.2g %9.3g", e->norm, e->worst, e->ulp);
  else
    fprintf(out, "  %8s %8s %9s", "", "", "");
}

static void print_line(const Line *line, FILE *out) {
  size_t n = strlen(line->layer);
  const char *from = n > NAME_WIDTH ? line->layer + n - NAME_WIDTH : line->layer;
  fprintf(out, "%-*s %-4s", NAME_WIDTH, from, dtype_info[line->dtype].name);
  print_error(line->has[ROLE_FORWARD], &line->model[ROLE_FORWARD], out);
  print_error(line->has[ROLE_GRADIENT], &line->model[ROLE_GRADIENT], out);
  int64_t all = line->sharp.n + line->blurred.n, other = line->sharp.other + line->blurred.other;
  double share = all ? 100 * (double)other / (double)all : 0;
  fprintf(out, "  %7.3g %6.3g %6.2f%%\n", line->sharp.ulp, line->blurred.steps, share);
}

static void print_head(Arena *arena, const Certificate *certificate, const CertificateHead *head,
                       FILE *out) {
  fprintf(out, "certificate of %s, %s: one step of %" PRId64 " random images, seed %" PRId64 "\n",
          head->model, head->dtype, head->batch, head->seed);
  if (head->batch != head->own_batch)
    fprintf(out, "(compiled again for this batch; the program's own has %" PRId64 ")\n",
            head->own_batch);
  if (head->scale != head->own_scale)
    fprintf(out, "(loss scale %g: gradients overflow at the program's first, %g)\n", head->scale,
            head->own_scale);
  if (certificate->skipped)
    fputs("the gradients were not finite: the step was skipped, and updates are not certified\n",
          out);
  fprintf(out, "%-*s %-4s  %-27s  %-27s  %s\n", NAME_WIDTH, "", "", "forward / exact f32 model",
          "gradient / exact f32 model", "code / same roundings");
  const char *ulp = arena_printf(arena, "%s ulp", dtype_info[certificate->unit].name);
  fprintf(out, "%-*s %-4s  %8s %8s %9s  %8s %8s %9s  %7s %6s %7s\n", NAME_WIDTH, "layer", "type",
          "norm", "worst", ulp, "norm", "worst", ulp, "f32 ulp", "steps", "differ");
}

void certificate_print(const Certificate *certificate, const CertificateHead *head, FILE *to) {
  Arena *arena = arena_new();
  TextDraft draft;
  FILE *out = text_draft(&draft);
  Lines lines = lines_of(arena, certificate);
  Line worst = worst_of(&lines);
  print_head(arena, certificate, head, out);
  for (int i = 0; i < lines.n; i++)
    print_line(&lines.at[i], out);
  print_line(&worst, out);
  int64_t lost = worst.model[ROLE_FORWARD].lost + worst.model[ROLE_GRADIENT].lost;
  if (lost)
    fprintf(out, "%" PRId64 " numbers are Inf or NaN that are finite in the exact model\n", lost);
  if (worst.bounds)
    fprintf(out,
            "%d tensors were computed by Winograd's method: at most %.3g f32 ulp by its bound, of "
            "which %.2g was used\n",
            worst.bounds, worst.bound.ulp, worst.bound.used);
  text_finish(&draft, to);
  arena_free(arena);
}

/* ---- for tools ---- */

/* JSON has no infinity. */
static json_t *number(double x) {
  return isfinite(x) ? json_real(x) : json_string("inf");
}

static json_t *error_json(const Error *e) {
  json_t *json = json_object();
  json_object_set_new(json, "norm", number(e->norm));
  json_object_set_new(json, "worst", number(e->worst));
  json_object_set_new(json, "ulp", number(e->ulp));
  json_object_set_new(json, "lost", json_integer(e->lost));
  return json;
}

static json_t *drift_json(const Drift *d, bool blurred) {
  json_t *json = json_object();
  json_object_set_new(json, "f32_ulp", number(d->ulp));
  json_object_set_new(json, "steps", number(d->steps));
  json_object_set_new(json, "differ", json_integer(d->other));
  json_object_set_new(json, "rounds_inside", json_boolean(blurred));
  return json;
}

static json_t *bound_json(const Bound *b) {
  json_t *json = json_object();
  json_object_set_new(json, "f32_ulp", number(b->ulp));
  json_object_set_new(json, "used", number(b->used));
  return json;
}

static json_t *finding_json(Arena *arena, const Finding *f) {
  json_t *json = json_object();
  json_object_set_new(json, "name", json_text(arena, f->value->name));
  json_object_set_new(json, "op", json_string(op_info[f->value->node->op].name));
  json_object_set_new(json, "layer", json_text(arena, layer_of(f)));
  json_object_set_new(json, "role", json_string(role_name[f->role]));
  json_object_set_new(json, "type", json_string(dtype_info[f->value->type.dtype].name));
  json_object_set_new(json, "elements", json_integer(f->stored->n));
  if (f->has_model)
    json_object_set_new(json, "model", error_json(&f->model));
  json_object_set_new(json, "code", drift_json(&f->code, f->blurred));
  if (f->has_bound)
    json_object_set_new(json, "bound", bound_json(&f->bound));
  return json;
}

static json_t *line_json(const Line *line) {
  json_t *json = json_object();
  for (int r = 0; r < ROLE_UPDATE; r++)
    if (line->has[r])
      json_object_set_new(json, role_name[r], error_json(&line->model[r]));
  json_object_set_new(json, "f32_ulp", number(line->sharp.ulp));
  json_object_set_new(json, "steps", number(line->blurred.steps));
  json_object_set_new(json, "differ", json_integer(line->sharp.other + line->blurred.other));
  json_object_set_new(json, "elements", json_integer(line->sharp.n + line->blurred.n));
  if (line->bounds)
    json_object_set_new(json, "bound", bound_json(&line->bound));
  return json;
}

void certificate_json(Arena *arena, const Certificate *certificate, const CertificateHead *head,
                      FILE *out) {
  Lines lines = lines_of(arena, certificate);
  Line worst = worst_of(&lines);
  json_t *json = json_object(), *tensors = json_array();
  json_object_set_new(json, "model", json_text(arena, head->model));
  json_object_set_new(json, "dtype", json_string(head->dtype));
  json_object_set_new(json, "batch", json_integer(head->batch));
  json_object_set_new(json, "own_batch", json_integer(head->own_batch));
  json_object_set_new(json, "seed", json_integer(head->seed));
  json_object_set_new(json, "loss_scale", number(head->scale));
  json_object_set_new(json, "own_loss_scale", number(head->own_scale));
  json_object_set_new(json, "unit", json_string(dtype_info[certificate->unit].name));
  json_object_set_new(json, "skipped", json_boolean(certificate->skipped));
  if (!isnan(head->max_error))
    json_object_set_new(json, "max_error", json_real(head->max_error));
  json_object_set_new(json, "worst", line_json(&worst));
  for (int i = 0; i < certificate->n; i++)
    json_array_append_new(tensors, finding_json(arena, &certificate->at[i]));
  json_object_set_new(json, "tensors", tensors);
  json_dumpf(json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
  fputc('\n', out);
  json_decref(json);
}
