/* What a graph sums over shards, as a table of the runtime. The memory plan has put the members of
 * each bucket side by side and numbered the buckets. */
#include "codegen/program/emit.h"

typedef struct Bucket {
  int64_t at, past; /* bytes */
  int made, read;   /* the last kernel that makes a member; the first that reads a sum */
} Bucket;

static int list_buckets(const Graph *graph, int n_kernels, int64_t align, Bucket *list) {
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    if (node->op != OP_ALL_REDUCE)
      continue;
    const Value *value = value_storage(node->arg[0]);
    int64_t at = value_at(value), past = (at + type_bytes(value->type) + align - 1) / align * align;
    int b = (int)attr_int(node, ATTR_BUCKET, 0), made = kernel_of(value->node);
    for (; n <= b; n++)
      list[n] = (Bucket){.at = INT64_MAX, .made = -1, .read = n_kernels};
    list[b].at = at < list[b].at ? at : list[b].at;
    list[b].past = past > list[b].past ? past : list[b].past;
    list[b].made = made > list[b].made ? made : list[b].made;
  }
  return n;
}

/* Sets the first reader of each bucket; returns the first kernel behind `whole` that reads a sum or
 * updates a variable. */
static int find_readers(const GraphCode *code, int whole, Bucket *list) {
  int late = code->kernels.n;
  for (int k = code->kernels.n - 1; k >= 0; k--)
    for (int i = 0; i < code->kernels.kernel[k].n_nodes; i++) {
      const Node *node = code->kernels.kernel[k].node[i];
      for (int a = node->op == OP_UPDATE; a < node->n_args; a++)
        for (const Value *value = node->arg[a]; op_info[value->node->op].gen == GEN_VIEW;
             value = value->node->arg[0])
          if (value->node->op == OP_ALL_REDUCE) {
            list[attr_int(value->node, ATTR_BUCKET, 0)].read = k;
            late = k > whole ? k : late;
          }
      late = node->op == OP_UPDATE ? k : late;
    }
  return late;
}

bool *bucket_waits(Arena *arena, const GraphCode *code) {
  size_t n = (size_t)code->kernels.n + 1;
  bool *waits = arena_alloc(arena, n);
  Bucket *list = arena_alloc(arena, ((size_t)code->graph->n_nodes + 1) * sizeof *list);
  int n_buckets = list_buckets(code->graph, code->kernels.n, 1, list);
  if (n_buckets)
    find_readers(code, list[n_buckets - 1].made, list);
  for (int b = 0; b < n_buckets; b++)
    waits[list[b].read] = true;
  return waits;
}

void emit_buckets(const ProgramCode *program, const GraphCode *code, FILE *out) {
  Arena *arena = program->arena;
  Text rows = {arena};
  Bucket *list = arena_alloc(arena, ((size_t)code->graph->n_nodes + 1) * sizeof *list);
  int n = list_buckets(code->graph, code->kernels.n, program->emit.target->align, list);
  int late = n ? find_readers(code, list[n - 1].made, list) : 0;
  for (int b = 0; b < n; b++)
    text_fill(&rows, "{$AT, $ELEMENTS, $MADE, $READ},\n",
              holes({"AT", .number = list[b].at},
                    {"ELEMENTS", .number = (list[b].past - list[b].at) / 4},
                    {"MADE", .number = list[b].made}, {"READ", .number = list[b].read}));
  file_fill(out, arena,
            "static const AmprtBucket buckets_$G[] = {\n"
            "  $ROWS\n"
            "  {0}};\n"
            "\n"
            "enum { n_buckets_$G = $N, n_local_$G = $LATE };\n"
            "\n",
            holes({"G", code->ident}, {"ROWS", text_get(&rows)}, {"N", .number = n},
                  {"LATE", .number = late}));
}
