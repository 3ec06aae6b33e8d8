#include "passes/memory/memory_report.h"

#include "ir/base/text.h"
#include "passes/memory/pack.h"

#include <inttypes.h>
#include <string.h>

typedef struct Sums {
  Block *block; /* for the lower bound */
  int n_blocks;
  int n_values;
  int64_t bytes;
} Sums;

static void print_row(FILE *out, const char *name, const SrcLoc *loc, int64_t bytes, int64_t at,
                      const int64_t *live) {
  fprintf(out, "%-32s %-24s %12" PRId64 " %12" PRId64 "", name, loc->name ? loc->name : "-", bytes,
          at);
  if (live)
    fprintf(out, "  %" PRId64 "..%" PRId64, live[0], live[1]);
  fputc('\n', out);
}

static void add(Sums *sums, int64_t bytes, int64_t at, const int64_t *live) {
  /* A value that is written over an operand that dies takes no room beside that operand. */
  for (int i = 0; i < sums->n_blocks; i++) {
    Block *block = &sums->block[i];
    if (block->at == at && block->bytes == bytes && block->last == live[0] &&
        block->first < live[0])
      block->last--;
  }
  sums->bytes += bytes;
  sums->n_values++;
  sums->block[sums->n_blocks++] =
      (Block){.bytes = bytes, .at = at, .first = (int)live[0], .last = (int)live[1]};
}

static void print_results(const Node *node, Sums *sums, FILE *out) {
  const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
  const int64_t *live = attr_ints(node, ATTR_LIVE, 2 * node->n_results);
  for (int r = 0; at && live && r < node->n_results; r++) {
    if (at[r] < 0)
      continue;
    int64_t bytes = type_bytes(node->result[r]->type);
    print_row(out, node->result[r]->name, &node->loc, bytes, at[r], live + 2 * r);
    add(sums, bytes, at[r], live + 2 * r);
  }
}

static void print_workspace(const Node *node, Sums *sums, FILE *out) {
  const int64_t *space = attr_ints(node, ATTR_WORKSPACE, 2);
  if (!space)
    return;
  int64_t kernel = attr_int(node, ATTR_KERNEL, 0), live[2] = {kernel, kernel};
  print_row(out, "(workspace)", &node->loc, space[1], space[0], live);
  add(sums, space[1], space[0], live);
}

/* Images that arrive as bytes and are converted on the device: these bytes lie beside the arena,
 * since they are copied while the step before still runs. */
static void print_pixels(const Graph *graph, const Node *node, FILE *out) {
  if (node->op != OP_INPUT || !attr_int(node, ATTR_PIXELS, 0))
    return;
  TensorType type = node->result[0]->type;
  fprintf(out,
          "@%s: %%%s arrives beside the arena, as %" PRId64 " bytes of pixels and %" PRId64
          " numbers that say what they mean\n",
          graph->name, node->result[0]->name, type_count(type), 2 * type.dim[0] * type.dim[3]);
}

static void print_graph(const Graph *graph, Arena *arena, FILE *out) {
  size_t n = (size_t)graph->n_nodes * (MAX_RESULTS + 1) + 1;
  Sums sums = {.block = arena_alloc(arena, n * sizeof *sums.block)};
  fprintf(out, "@%s: the arena\n%-32s %-24s %12s %12s  %s\n", graph->name, "value", "layer",
          "bytes", "at", "live");
  for (int i = 0; i < graph->n_nodes; i++) {
    print_workspace(graph->node[i], &sums, out);
    if (graph->node[i]->op != OP_VARIABLE)
      print_results(graph->node[i], &sums, out);
  }
  for (int i = 0; i < graph->n_nodes; i++)
    print_pixels(graph, graph->node[i], out);
  fprintf(out,
          "@%s: peak %" PRId64 " bytes; %d buffers have %" PRId64
          " bytes together; at most %" PRId64 " bytes are alive at once\n\n",
          graph->name, graph->arena_bytes, sums.n_values, sums.bytes,
          pack_lower_bound(arena, sums.block, sums.n_blocks));
}

static void print_state(const Module *module, FILE *out) {
  int count = 0;
  fprintf(out, "state\n%-32s %-24s %12s %12s\n", "variable", "kind", "bytes", "at");
  for (int g = 0; g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const Node *node = module->graph[g]->node[i];
      const int64_t *at = attr_ints(node, ATTR_AT, 1);
      bool known = false;
      for (int h = 0; h < g && node->op == OP_VARIABLE; h++)
        known |= graph_find(module->graph[h], node->result[0]->name) != NULL;
      if (node->op != OP_VARIABLE || known || !at)
        continue;
      SrcLoc kind = {.name = attr_str(node, ATTR_KIND, "")};
      print_row(out, node->result[0]->name, &kind, type_bytes(node->result[0]->type), *at, NULL);
      count++;
    }
  fprintf(out, "state: %d variables in %" PRId64 " bytes\n", count, module->state_bytes);
}

int64_t module_arena_bytes(const Module *module) {
  int64_t most = 0;
  for (int g = 0; g < module->n_graphs; g++)
    if (module->graph[g]->arena_bytes > most && strcmp(module->graph[g]->name, "train_dp"))
      most = module->graph[g]->arena_bytes;
  return most;
}

/* The graphs share one arena. */
void memory_report(const Module *module, FILE *to) {
  Arena *arena = arena_new();
  TextDraft draft;
  FILE *out = text_draft(&draft);
  int64_t most = module_arena_bytes(module);
  for (int g = 0; g < module->n_graphs; g++)
    print_graph(module->graph[g], arena, out);
  print_state(module, out);
  fprintf(out, "memory: %" PRId64 " bytes = arena %" PRId64 " + state %" PRId64 "\n",
          most + module->state_bytes, most, module->state_bytes);
  text_finish(&draft, to);
  arena_free(arena);
}
