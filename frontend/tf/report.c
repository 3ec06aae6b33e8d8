#include "frontend/tf/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* Decodes the UTF-8 character at *at, which is valid since the file was checked when it was read.
 */
static unsigned character(const char **at) {
  const unsigned char *c = (const unsigned char *)*at;
  int n = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
  unsigned code = n == 1 ? *c : *c & (0xffu >> (n + 1));
  for (int i = 1; i < n; i++)
    code = code << 6 | (c[i] & 0x3fu);
  *at += n;
  return code;
}

static void quoted_print(const char *text, FILE *out) {
  static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
  fputc('"', out);
  while (*text) {
    unsigned code = character(&text);
    const char *escape = code < 0x80 ? strchr(from, (int)code) : NULL;
    if (escape)
      fprintf(out, "\\%c", to[escape - from]);
    else if (code >= 0x10000)
      fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
    else if (code < 0x20 || code >= 0x7f)
      fprintf(out, "\\u%04x", code);
    else
      fputc((int)code, out);
  }
  fputc('"', out);
}

/* Prints `"key": ` on a new line, after a comma unless it is the first key. */
static void key_print(const char *key, int depth, bool first, FILE *out) {
  fprintf(out, "%s\n%*s", first ? "" : ",", depth, "");
  quoted_print(key, out);
  fputs(": ", out);
}

static void texts_print(const char **text, int n, FILE *out) {
  fputc('[', out);
  for (int i = 0; i < n; i++) {
    fputs(i ? ", " : "", out);
    quoted_print(text[i], out);
  }
  fputc(']', out);
}

/* ---- converted nodes ---- */

typedef struct ByName {
  const char *name;
  int index;
} ByName;

static int compare_names(const void *a, const void *b) {
  return strcmp(((const ByName *)a)->name, ((const ByName *)b)->name);
}

static void sort_names(ByName *at, int n) {
  if (n > 0)
    qsort(at, (size_t)n, sizeof *at, compare_names);
}

/* Lists the type attributes of the node that have a changed vertex, sorted by name. */
static int changed_attrs(const TfGraph *graph, const TfRewrite *rewrite, const TfNode *node,
                         ByName *out) {
  int n = 0;
  for (int v = node->first_vertex; v < node->first_vertex + node->n_vertices; v++) {
    int attr = graph->vertex[v].attr;
    if (rewrite->changed[v] && (n == 0 || out[n - 1].index != attr))
      out[n++] = (ByName){node->op->attr[attr].name, attr};
  }
  sort_names(out, n);
  return n;
}

static void print_types(const TfGraph *graph, const TfNode *node, const ByName *attr, FILE *out) {
  const Tensorflow__AttrValue *value = tf_attr(node->def, attr->name);
  if (!node->op->attr[attr->index].list) {
    quoted_print(tf_type_name(graph->arena, (int)value->type), out);
    return;
  }
  const char **name = arena_alloc(graph->arena, (value->list->n_type + 1) * sizeof *name);
  for (size_t i = 0; i < value->list->n_type; i++)
    name[i] = tf_type_name(graph->arena, (int)value->list->type[i]);
  texts_print(name, (int)value->list->n_type, out);
}

/* If one type changed, it is printed on the node's line. */
static void print_node(const TfGraph *graph, const TfNode *node, const ByName *attr, int n,
                       FILE *out) {
  bool inlined = n == 1 && !node->op->attr[attr->index].list;
  fputc('{', out);
  for (int i = 0; i < n; i++) {
    if (inlined)
      fprintf(out, "\"%s\": ", attr[i].name);
    else
      key_print(attr[i].name, 3, i == 0, out);
    print_types(graph, node, &attr[i], out);
  }
  fputs(inlined ? "}" : "\n  }", out);
}

static void print_converted(const TfGraph *graph, const TfRewrite *rewrite, FILE *out) {
  ByName *node = arena_alloc(graph->arena, ((size_t)graph->n_nodes + 1) * sizeof *node);
  int n = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    node[n++] = (ByName){graph->node[i].def->name, i};
  sort_names(node, n);
  bool first = true;
  for (int i = 0; i < n; i++) {
    const TfNode *at = &graph->node[node[i].index];
    ByName *attr = arena_alloc(graph->arena, ((size_t)at->n_vertices + 1) * sizeof *attr);
    int n_changed = rewrite ? changed_attrs(graph, rewrite, at, attr) : 0;
    if (n_changed == 0)
      continue;
    key_print(node[i].name, 2, first, out);
    print_node(graph, at, attr, n_changed, out);
    first = false;
  }
  fputs(first ? "}" : "\n }", out);
}

/* Renamed nodes in the order of the file. If there is only one, it stays on its line. */
static void print_renamed(const TfGraph *graph, FILE *out) {
  int n = 0, done = 0;
  for (int i = 0; i < graph->n_nodes; i++)
    n += graph->node[i].old_op != NULL;
  for (int i = 0; i < graph->n_nodes; i++) {
    const TfNode *node = &graph->node[i];
    if (!node->old_op)
      continue;
    if (n > 1)
      key_print(node->def->name, 2, done == 0, out);
    else
      quoted_print(node->def->name, out), fputs(": ", out);
    quoted_print(node->def->op, out);
    done++;
  }
  fputs(n > 1 ? "\n }" : "}", out);
}

/* ---- casts ---- */

typedef struct Consumer {
  int cast;
  const char *text; /* "node:input" */
} Consumer;

static int compare_consumers(const void *a, const void *b) {
  const Consumer *x = a, *y = b;
  int by_cast = (x->cast > y->cast) - (x->cast < y->cast);
  return by_cast ? by_cast : strcmp(x->text, y->text);
}

/* Lists all inputs that read a cast, sorted; sets *out_n to their number. */
static Consumer *consumers(const TfGraph *graph, int *out_n) {
  Consumer *at = NULL;
  int n = 0, cap = 0, port;
  for (size_t m = 0; m < graph->def->n_node; m++) {
    const Tensorflow__NodeDef *def = graph->def->node[m];
    int input = 0;
    for (size_t i = 0; i < def->n_input; i++) {
      if (*def->input[i] == '^')
        continue;
      size_t length = tf_input_split(def->input[i], &port);
      int source = tf_graph_find(graph, def->input[i], length);
      if (source >= graph->n_nodes) {
        Consumer made = {source, arena_printf(graph->arena, "%s:%d", def->name, input)};
        arena_push(graph->arena, at, n, cap, made);
      }
      input++;
    }
  }
  if (n > 0)
    qsort(at, (size_t)n, sizeof *at, compare_consumers);
  *out_n = n;
  return at;
}

/* The index of the first consumer of this cast or of a later one. */
static int first_consumer(const Consumer *consumer, int n, int cast) {
  int low = 0;
  while (low < n) {
    int middle = low + (n - low) / 2;
    if (consumer[middle].cast < cast)
      low = middle + 1;
    else
      n = middle;
  }
  return low;
}

static void print_cast(const TfGraph *graph, int cast, const Consumer *consumer, int n, FILE *out) {
  const Tensorflow__NodeDef *def = graph->def->node[cast];
  int port, first = first_consumer(consumer, n, cast), end = first_consumer(consumer, n, cast + 1);
  size_t length = tf_input_split(def->input[0], &port);
  const char **text = arena_alloc(graph->arena, ((size_t)(end - first) + 1) * sizeof *text);
  for (int i = first; i < end; i++)
    text[i - first] = consumer[i].text;
  fputs("\n  {", out);
  key_print("name", 3, true, out);
  quoted_print(def->name, out);
  key_print("src", 3, false, out);
  quoted_print(arena_printf(graph->arena, "%.*s:%d", (int)length, def->input[0], port), out);
  key_print("to", 3, false, out);
  quoted_print(tf_type_name(graph->arena, (int)tf_attr(def, "DstT")->type), out);
  key_print("consumers", 3, false, out);
  texts_print(text, end - first, out);
  fputs("\n  }", out);
}

static void print_casts(const TfGraph *graph, FILE *out) {
  int first = graph->n_nodes, n = (int)graph->def->n_node - first, n_consumers;
  const Consumer *consumer = consumers(graph, &n_consumers);
  ByName *cast = arena_alloc(graph->arena, ((size_t)n + 1) * sizeof *cast);
  for (int i = 0; i < n; i++)
    cast[i] = (ByName){graph->def->node[first + i]->name, first + i};
  sort_names(cast, n);
  for (int i = 0; i < n; i++) {
    fputs(i ? "," : "", out);
    print_cast(graph, cast[i].index, consumer, n_consumers, out);
  }
  fputs(n ? "\n ]" : "]", out);
}

void tf_report(const TfGraph *graph, const TfRewrite *rewrite, const char *log, FILE *out) {
  fputc('{', out);
  key_print("log", 1, true, out);
  quoted_print(log, out);
  key_print("converted", 1, false, out);
  fputc('{', out);
  print_converted(graph, rewrite, out);
  key_print("renamed", 1, false, out);
  fputc('{', out);
  print_renamed(graph, out);
  key_print("casts", 1, false, out);
  fputc('[', out);
  print_casts(graph, out);
  fputs("\n}\n", out);
}
