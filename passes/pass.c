/* What surrounds every pass: the choice of graphs, the sweep, verification, dumps, timing, and the
 * text of a reproducer. */
#include "passes/pass.h"

#include "ir/base/clock.h"
#include "ir/base/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const PassInfo pass_info[] = {
#define PASS(id, flag, scope, from, to, summary)                                                   \
  {flag, pass_##id, PASS_##scope, STAGE_##from, STAGE_##to, summary},
#include "passes/passes.def"
};
enum { N_PASSES = (int)(sizeof pass_info / sizeof pass_info[0]) };
const int n_passes = N_PASSES;

/* Global, since the handler of SIGABRT can reach nothing else. The compiler runs one pass at a
 * time. */
static double seconds[N_PASSES];
static PassTrail trail;

void compile_options_default(CompileOptions *options) {
  *options = (CompileOptions){
      .dtype = DT_F32,
      .loss_scale = LOSS_SCALE_AUTO,
      .scale_init = 0x1p15,
      .scale_growth = 2,
      .scale_backoff = 0.5,
      .scale_min = 1,
      .scale_max = INFINITY,
      .scale_interval = 2000,
      .fuse_level = FUSE_MAINS,
      .bucket_bytes = 8 << 20,
  };
}

const PassInfo *pass_find(const char *flag, size_t len) {
  for (int i = 0; i < n_passes; i++)
    if (strlen(pass_info[i].flag) == len && memcmp(pass_info[i].flag, flag, len) == 0)
      return &pass_info[i];
  return NULL;
}

const char *pass_list_unknown(const char *list, size_t *len) {
  const char *item;
  while (list_next(&list, &item, len))
    if (!pass_find(item, *len))
      return item;
  return NULL;
}

const PassTrail *pass_trail(void) {
  return trail.flag ? &trail : NULL;
}

void pass_trail_begin(const Module *module) {
  size_t size;
  FILE *out = open_memstream(&trail.text, &size);
  CHECK(out, "out of memory");
  module_print(module, out);
  fclose(out);
}

void pass_trail_end(void) {
  free(trail.text);
  trail = (PassTrail){0};
}

static void follow(const PassInfo *pass, Arena *arena) {
  trail.flag = pass->flag;
  bool is_first = !trail.text || !trail.begun;
  trail.begun = is_first ? pass->flag : arena_printf(arena, "%s,%s", trail.begun, pass->flag);
}

/* Does the comma list contain `flag`, or is it "all"? */
static bool is_listed(const char *list, const char *flag) {
  return list && (strcmp(list, "all") == 0 || list_has(list, flag));
}

static bool is_for(const PassInfo *pass, const Graph *graph) {
  if (pass->scope == PASS_TRAIN && strcmp(graph->name, "train") != 0)
    return false;
  return pass->from <= graph->stage && graph->stage <= pass->to;
}

static void dump(const PassTrace *trace, const char *when, const char *flag, const Module *module) {
  fprintf(trace->out, "// %s %s\n", when, flag);
  module_print(module, trace->out);
}

/* Adds the pass to those that ran, unless it was the last one. */
static void note_ran(const PassInfo *pass, PassContext *context) {
  const char *last = context->ran ? strrchr(context->ran, ',') : NULL;
  if (!context->ran || strcmp(last ? last + 1 : context->ran, pass->flag))
    context->ran = arena_printf(context->module->arena, "%s%s%s", context->ran ? context->ran : "",
                                context->ran ? "," : "", pass->flag);
}

/* Runs the pass on each graph that it is for, except those that it adds itself. It may leave out
 * the graph that it runs on. */
static bool run_graphs(const PassInfo *pass, PassContext *context) {
  Module *module = context->module;
  bool changed = false;
  int n = module->n_graphs, errors = context->diag->n_errors;
  for (int i = 0; i < n && context->diag->n_errors == errors;) {
    Graph *graph = module->graph[i];
    if (is_for(pass, graph)) {
      note_ran(pass, context);
      changed |= pass->run(context, graph);
    }
    bool stays = i < module->n_graphs && module->graph[i] == graph;
    i += stays;
    n -= !stays;
  }
  if (context->diag->n_errors != errors)
    return changed; /* a pass that reports may leave its graph half done */
  for (int i = 0; i < module->n_graphs; i++)
    graph_sweep(module->graph[i]);
  module_verify(module, pass->flag);
  return changed;
}

bool pass_run(const PassInfo *pass, PassContext *context, const PassTrace *trace) {
  if (trace && is_listed(trace->print_before, pass->flag))
    dump(trace, "before", pass->flag, context->module);
  follow(pass, context->module->arena);
  double start = clock_seconds();
  bool changed = run_graphs(pass, context);
  seconds[pass - pass_info] += clock_seconds() - start;
  trail.flag = NULL;
  arena_free(context->scratch);
  context->scratch = arena_new();
  if (changed && trace && is_listed(trace->print_after, pass->flag))
    dump(trace, "after", pass->flag, context->module);
  return changed;
}

void pass_time_report(FILE *out) {
  double sum = 0;
  for (int i = 0; i < n_passes; i++) {
    fprintf(out, "%9.4f s  %s\n", seconds[i], pass_info[i].flag);
    sum += seconds[i];
  }
  fprintf(out, "%9.4f s  all passes\n", sum);
}
