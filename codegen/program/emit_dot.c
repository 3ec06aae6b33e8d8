/* The module for `dot -Tsvg`: a cluster per graph, within it one per kernel; state is drawn as
 * boxes with round corners, main ops filled. */
#include "codegen/codegen.h"

static void text_write(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fputc('\\', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
}

static void write_node(const Graph *graph, int g, const Node *node, FILE *out) {
  static const char *const style[] = {
      [GEN_STATE] = "rounded", [GEN_CONST] = "rounded", [GEN_CONV] = "filled",
      [GEN_MATMUL] = "filled", [GEN_POOL] = "filled",   [GEN_OPT] = "solid"};
  const char *look = style[op_info[node->op].gen];
  fprintf(out, "    g%dn%d [shape=box, style=\"%s\", label=\"%s", g, node->order,
          look ? look : "solid", op_info[node->op].name);
  for (int i = 0; i < node->n_results; i++) {
    fputs("\\n%", out);
    text_write(out, node->result[i]->name);
    fputc(' ', out);
    text_write(out, type_text(graph->arena, node->result[i]->type));
  }
  fputs("\"];\n", out);
}

static void write_edges(int g, const Node *node, FILE *out) {
  for (int i = 0; i < node->n_args; i++)
    fprintf(out, "    g%dn%d -> g%dn%d;\n", g, node->arg[i]->node->order, g, node->order);
}

/* Nodes of one kernel stand side by side, apart from nodes without code between them. */
static void write_graph(const Graph *graph, int g, FILE *out) {
  fprintf(out, "  subgraph cluster_g%d {\n    label=\"@", g);
  text_write(out, graph->name);
  fputs("\";\n", out);
  int open = -1;
  for (int i = 0; i < graph->n_nodes; i++) {
    const Node *node = graph->node[i];
    int kernel = kernel_of(node);
    if (kernel != open && kernel >= 0 && open >= 0)
      fputs("    }\n", out);
    if (kernel != open && kernel >= 0)
      fprintf(out, "    subgraph cluster_g%dk%d { label=\"kernel %d\";\n", g, kernel, kernel);
    if (kernel >= 0)
      open = kernel;
    if (kernel >= 0)
      write_node(graph, g, node, out);
  }
  if (open >= 0)
    fputs("    }\n", out);
  for (int i = 0; i < graph->n_nodes; i++)
    if (kernel_of(graph->node[i]) < 0)
      write_node(graph, g, graph->node[i], out);
  for (int i = 0; i < graph->n_nodes; i++)
    write_edges(g, graph->node[i], out);
  fputs("  }\n", out);
}

void emit_dot(const Module *module, FILE *out) {
  fputs("digraph ampcc {\n", out);
  for (int i = 0; i < module->n_graphs; i++)
    write_graph(module->graph[i], i, out);
  fputs("}\n", out);
}
