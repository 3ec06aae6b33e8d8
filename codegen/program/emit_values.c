/* What a graph stores, as a table of the runtime: the values that it can look at after each kernel
 * to find the first that is not finite. A kernel keeps most of what it computes to itself, so each
 * row also says which ops of its kernel can have spoiled the value. */
#include "codegen/program/emit.h"

#include <string.h>

typedef struct NodeList {
  const Node **node;
  int n, cap;
} NodeList;

/* Does the op make finite results of finite operands? */
static bool stays_finite(const Node *node) {
  if (node->op == OP_CAST) {
    DType from = node->arg[0]->type.dtype, to = node->result[0]->type.dtype;
    return from == to || to == DT_F64 || (to == DT_F32 && dtype_info[from].low);
  }
  return op_info[node->op].flags & OPF_FINITE;
}

static bool is_internal(const Value *value, int kernel) {
  const int64_t *at = attr_ints(value->node, ATTR_AT, value->node->n_results);
  return at && at[value->index] == AT_INTERNAL && kernel_of(value->node) == kernel;
}

/* The node, and those of its kernel that it reads from without memory between: operands first. */
static void list_makers(Arena *arena, const Node *node, NodeList *list) {
  for (int i = 0; i < list->n; i++)
    if (list->node[i] == node)
      return;
  for (int i = 0; i < node->n_args; i++) {
    const Value *from = value_storage(node->arg[i]);
    if (is_internal(from, kernel_of(node)))
      list_makers(arena, from->node, list);
  }
  arena_push(arena, list->node, list->n, list->cap, node);
}

/* "affine of bn1 or add of block1"; NULL if there is nobody but the node itself. */
static const char *makers_text(Arena *arena, const Node *node) {
  NodeList list = {0};
  const char *text = NULL;
  bool others = false;
  list_makers(arena, node, &list);
  for (int i = 0; i < list.n; i++) {
    const Node *maker = list.node[i];
    if (stays_finite(maker))
      continue;
    others |= maker != node;
    const char *layer = maker->loc.name ? maker->loc.name : maker->result[0]->name;
    text = arena_printf(arena, "%s%s%s of %s", text ? text : "", text ? " or " : "",
                        op_info[maker->op].name, layer);
  }
  return others ? text : NULL;
}

static void write_value(const Value *value, int64_t at, int kernel, const char *makers, FILE *out) {
  fputs("  {", out);
  cstring_write(out, value->name);
  fputs(", ", out);
  cstring_write(out, op_info[value->node->op].name);
  fputs(", ", out);
  cstring_write(out, value->node->loc.name ? value->node->loc.name : "");
  fputs(", ", out);
  if (makers)
    cstring_write(out, makers);
  else
    fputs("NULL", out);
  fprintf(out, ", %lld, %lld, %d, %s},\n", (long long)at, (long long)type_count(value->type),
          kernel, cdtype_name(value->type.dtype));
}

/* C has no empty tables: see emit_tables.c. */
static int write_values(Arena *arena, const GraphCode *code, FILE *out) {
  int n = 0;
  for (int k = 0; k < code->kernels.n; k++)
    for (int i = 0; i < code->kernels.kernel[k].n_nodes; i++) {
      const Node *node = code->kernels.kernel[k].node[i];
      const int64_t *at = attr_ints(node, ATTR_AT, node->n_results);
      for (int r = 0; r < node->n_results; r++)
        if (at && at[r] >= 0 && dtype_info[node->result[r]->type.dtype].is_float) {
          write_value(node->result[r], at[r], k, makers_text(arena, node), out);
          n++;
        }
    }
  return n;
}

/* Statistics do not count: training does not read them. */
static int first_update(const GraphCode *code) {
  for (int k = 0; k < code->kernels.n; k++)
    for (int i = 0; i < code->kernels.kernel[k].n_nodes; i++) {
      const Node *node = code->kernels.kernel[k].node[i];
      if (node->op == OP_UPDATE && strcmp(attr_str(node->arg[0]->node, ATTR_KIND, ""), "stat") != 0)
        return k;
    }
  return code->kernels.n;
}

void emit_values(Arena *arena, const GraphCode *code, bool all, FILE *out) {
  fprintf(out, "static const AmprtValue values_%s[] = {\n", code->ident);
  int n = all ? write_values(arena, code, out) : 0;
  fprintf(out, "  {0}};\n\nenum { n_values_%s = %d, first_update_%s = %d };\n\n", code->ident, n,
          code->ident, first_update(code));
}
