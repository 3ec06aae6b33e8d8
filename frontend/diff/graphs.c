/* Compares recipes and graphs. Nodes are paired by the name of their first result, or, where they
 * have none, by their op and what they take. */
#include "frontend/diff/diff.h"
#include "ir/base/text.h"
#include "ir/recipe/recipe.h"
#include "ir/text/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static const char *node_text(Arena *arena, const Node *node) {
  TextDraft draft;
  node_print(node, text_draft(&draft));
  const char *text = text_take(&draft, arena);
  text += strspn(text, " ");
  return arena_strdup(arena, text, strcspn(text, "\n"));
}

static const char *field_text(Arena *arena, const Recipe *recipe, const RecipeField *field) {
  const char *at = (const char *)recipe + field->offset;
  TextDraft draft;
  if (field->kind == RECIPE_FLOAT && !recipe_is_set((const double *)at))
    return NULL;
  recipe_print_field(recipe, field, text_draft(&draft));
  return text_take(&draft, arena);
}

enum { MOST_NUMBERS = 8 }; /* of a list that are shown */

static const char *attr_text(Arena *arena, const Attr *attr) {
  char number[FLOAT_TEXT];
  if (!attr)
    return NULL;
  switch (attr_info[attr->key].kind) {
  case ATTR_INT:
    return arena_printf(arena, "%" PRId64, attr->i);
  case ATTR_FLOAT:
    return arena_printf(arena, "%s", float_text(attr->f, number));
  case ATTR_STR:
    return attr->s;
  case ATTR_INTS:
  case ATTR_FLOATS:
    break;
  }
  const char *list = "[";
  for (int i = 0; i < attr->n && i < MOST_NUMBERS; i++)
    list = attr_info[attr->key].kind == ATTR_INTS
               ? arena_printf(arena, "%s%s%" PRId64, list, i ? "," : "", attr->ints[i])
               : arena_printf(arena, "%s%s%s", list, i ? "," : "",
                              float_text(attr->floats[i], number));
  return arena_printf(arena, "%s%s]", list, attr->n > MOST_NUMBERS ? ",..." : "");
}

static bool attr_same(const Attr *a, const Attr *b) {
  if (!a || !b)
    return a == b;
  switch (attr_info[a->key].kind) {
  case ATTR_INT:
    return a->i == b->i;
  case ATTR_FLOAT:
    return !memcmp(&a->f, &b->f, sizeof a->f);
  case ATTR_STR:
    return !strcmp(a->s, b->s);
  case ATTR_INTS:
    return a->n == b->n && !memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints);
  case ATTR_FLOATS:
    return a->n == b->n && !memcmp(a->floats, b->floats, (size_t)a->n * sizeof *a->floats);
  }
  BUG("attribute of unknown kind");
}

/* ---- pairs of nodes ---- */

/* The name of a node's first result; for one without, its op and its operand or name. */
static const char *node_key(Arena *arena, const Node *node) {
  if (node->n_results)
    return arena_printf(arena, "%%%s", node->result[0]->name);
  return arena_printf(arena, "%s %s", op_info[node->op].name,
                      attr_str(node, ATTR_NAME, node->n_args ? node->arg[0]->name : ""));
}

/* The layer of a node; that of a variable is the layer that reads it first. */
static const char *node_layer(const Node *node) {
  if (node->loc.name)
    return node->loc.name;
  for (int i = 0; node->n_results && i < node->result[0]->n_uses; i++)
    if (node->result[0]->use[i].node->loc.name)
      return node->result[0]->use[i].node->loc.name;
  return "";
}

typedef struct Entry {
  const char *key;
  const Node *node;
  int other; /* the position of its pair; -1: there is none */
} Entry;

static int by_key(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order ? order : (x->node->order > y->node->order) - (x->node->order < y->node->order);
}

/* The nodes of a graph by key. */
static Entry *entries_of(Arena *arena, const Graph *graph) {
  Entry *entry = arena_alloc(arena, (size_t)graph->n_nodes * sizeof *entry);
  for (int i = 0; i < graph->n_nodes; i++)
    entry[i] = (Entry){node_key(arena, graph->node[i]), graph->node[i], -1};
  qsort(entry, (size_t)graph->n_nodes, sizeof *entry, by_key);
  return entry;
}

/* ---- nodes ---- */

static const char *args_text(Arena *arena, const Node *node) {
  const char *text = "";
  for (int i = 0; i < node->n_args; i++)
    text = arena_printf(arena, "%s%s%%%s", text, i ? ", " : "", node->arg[i]->name);
  return text;
}

static const char *result_type(Arena *arena, const Value *value) {
  const char *layout = value->layout == LAYOUT_LOGICAL ? "" : layout_name[value->layout];
  return arena_printf(arena, "%s%s%s", type_text(arena, value->type), *layout ? "@" : "", layout);
}

/* Does an operand have another type than that of the other node? */
static bool follows(const Node *a, const Node *b) {
  for (int i = 0; i < a->n_args && i < b->n_args; i++)
    if (!type_equal(a->arg[i]->type, b->arg[i]->type))
      return true;
  return false;
}

/* Attributes by which passes say where a value lies and when it is computed. */
static bool is_place(AttrKey key) {
  return key == ATTR_STAGE || key == ATTR_KERNEL || key == ATTR_AT || key == ATTR_LIVE ||
         key == ATTR_WORKSPACE || key == ATTR_BUCKET;
}

typedef struct Pair {
  const Node *a, *b;
  Difference base; /* all but topic, what and values */
} Pair;

static void add(const Pair *pair, Topic topic, const char *what, const char *a, const char *b,
                DifferenceList *list) {
  Difference difference = pair->base;
  difference.topic = topic;
  difference.what = what;
  difference.a = a;
  difference.b = b;
  differ(list, difference);
}

/* Compares the attributes. Returns whether any of those that say places differ. */
static bool compare_attrs(const Pair *pair, DifferenceList *list) {
  bool moved = false;
  for (int key = 0; key < ATTR_END; key++) {
    const Attr *a = attr_find(pair->a, (AttrKey)key), *b = attr_find(pair->b, (AttrKey)key);
    if (attr_info[key].note || attr_same(a, b))
      continue;
    if (is_place((AttrKey)key)) {
      moved = true;
      continue;
    }
    const char *x = attr_text(list->arena, a), *y = attr_text(list->arena, b);
    if (x && y && !strcmp(x, y)) /* they differ in numbers that are not shown */
      y = arena_printf(list->arena, "%s with other numbers", y);
    add(pair, key == ATTR_COMPUTE || key == ATTR_TF32 ? TOPIC_PRECISION : TOPIC_GRAPH,
        attr_info[key].text, x, y, list);
  }
  return moved;
}

static void compare_results(const Pair *pair, DifferenceList *list) {
  Arena *arena = list->arena;
  const Node *a = pair->a, *b = pair->b;
  for (int i = 0; i < a->n_results && i < b->n_results; i++) {
    const Value *x = a->result[i], *y = b->result[i];
    bool dims = !type_equal(type_with(x->type, y->type.dtype), y->type) || x->layout != y->layout;
    if (dims && follows(a, b))
      list->following++;
    else if (dims)
      add(pair, TOPIC_GRAPH, "type", result_type(arena, x), result_type(arena, y), list);
    else
      add(pair, TOPIC_PRECISION, "type", result_type(arena, x), result_type(arena, y), list);
  }
}

static bool compare_nodes(const Pair *pair, DifferenceList *list) {
  Arena *arena = list->arena;
  const Node *a = pair->a, *b = pair->b;
  add(pair, TOPIC_GRAPH, "op", op_info[a->op].name, op_info[b->op].name, list);
  add(pair, TOPIC_GRAPH, "operands", args_text(arena, a), args_text(arena, b), list);
  add(pair, TOPIC_GRAPH, "layer", a->loc.name ? a->loc.name : "", b->loc.name ? b->loc.name : "",
      list);
  if (a->n_results != b->n_results)
    add(pair, TOPIC_GRAPH, "results", arena_printf(arena, "%d", a->n_results),
        arena_printf(arena, "%d", b->n_results), list);
  bool moved = compare_attrs(pair, list);
  compare_results(pair, list);
  return moved;
}

/* Pairs the nodes of both graphs, and compares them in the order of graph b; those that only a has
 * come first. */
static void compare_graphs(const Graph *a, const Graph *b, DifferenceList *list) {
  Arena *arena = list->arena;
  Entry *x = entries_of(arena, a), *y = entries_of(arena, b);
  const Node **old = arena_alloc(arena, (size_t)b->n_nodes * sizeof *old);
  const char **key = arena_alloc(arena, (size_t)b->n_nodes * sizeof *key);
  bool *gone = arena_alloc(arena, (size_t)a->n_nodes * sizeof *gone);
  const char *where = arena_printf(arena, "@%s", b->name);
  int moved = 0;
  for (int i = 0, j = 0; i < a->n_nodes || j < b->n_nodes;) {
    int order = i == a->n_nodes ? 1 : j == b->n_nodes ? -1 : strcmp(x[i].key, y[j].key);
    if (order < 0)
      gone[x[i].node->order] = true;
    if (order >= 0)
      key[y[j].node->order] = y[j].key;
    if (order == 0)
      old[y[j].node->order] = x[i].node;
    i += order <= 0;
    j += order >= 0;
  }
  for (int i = 0; i < a->n_nodes; i++)
    if (gone[i])
      differ(list,
             (Difference){TOPIC_GRAPH, where, node_layer(a->node[i]), node_key(arena, a->node[i]),
                          "node", node_text(arena, a->node[i]), NULL});
  for (int i = 0; i < b->n_nodes; i++) {
    Pair pair = {
        old[i], b->node[i], {.where = where, .layer = node_layer(b->node[i]), .name = key[i]}};
    if (pair.a)
      moved += compare_nodes(&pair, list);
    else
      add(&pair, TOPIC_GRAPH, "node", NULL, node_text(arena, b->node[i]), list);
  }
  if (moved)
    differ(list, (Difference){TOPIC_MEMORY, where, "", "places", "", NULL,
                              arena_printf(arena, "%d nodes lie or run elsewhere", moved)});
  differ(list, (Difference){TOPIC_GRAPH, where, "", "stage", "", stage_name[a->stage],
                            stage_name[b->stage]});
  differ_numbers(list, (Difference){TOPIC_MEMORY, where, "", "arena_bytes", ""}, a->arena_bytes,
                 b->arena_bytes);
}

/* Numbers the nodes and lists the uses of values, as node_layer and by_key need it. */
static void index_module(const Module *module) {
  for (int g = 0; g < module->n_graphs; g++) {
    Graph *graph = module->graph[g];
    graph_index_uses(graph);
    for (int i = 0; i < graph->n_nodes; i++)
      graph->node[i]->order = i;
  }
}

void compare_modules(const Side *side_a, const Side *side_b, DifferenceList *list) {
  const Module *a = side_a->module, *b = side_b->module;
  Arena *arena = list->arena;
  index_module(a);
  index_module(b);
  for (int i = 0; i < RECIPE_COUNT; i++)
    differ(list, (Difference){TOPIC_MAKING, "recipe", "", recipe_field[i].field, "",
                              field_text(arena, a->recipe, &recipe_field[i]),
                              field_text(arena, b->recipe, &recipe_field[i])});
  for (int g = 0; g < a->n_graphs; g++)
    if (!module_find(b, a->graph[g]->name))
      differ(list,
             (Difference){TOPIC_GRAPH, "", "", arena_printf(arena, "@%s", a->graph[g]->name),
                          "graph", arena_printf(arena, "%d nodes", a->graph[g]->n_nodes), NULL});
  for (int g = 0; g < b->n_graphs; g++) {
    const Graph *graph = b->graph[g], *old = module_find(a, graph->name);
    if (old)
      compare_graphs(old, graph, list);
    else
      differ(list, (Difference){TOPIC_GRAPH, "", "", arena_printf(arena, "@%s", graph->name),
                                "graph", NULL, arena_printf(arena, "%d nodes", graph->n_nodes)});
  }
  differ_numbers(list, (Difference){TOPIC_MEMORY, "", "", "state_bytes", ""}, a->state_bytes,
                 b->state_bytes);
}
