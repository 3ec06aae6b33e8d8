/* Compares what two programs say of their making and of their parts. A manifest may be anything
 * that is JSON, as it comes from a file. */
#include "frontend/diff/diff.h"

#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

static const char *string_of(const json_t *json, const char *key) {
  const char *text = json_string_value(json_object_get(json, key));
  return text ? text : "";
}

/* A value as text: a string as it is, others as JSON; NULL if there is none. */
static const char *value_text(Arena *arena, const json_t *value) {
  if (!value || json_is_string(value))
    return json_string_value(value);
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
  CHECK(text, "out of memory");
  const char *copy = arena_strdup(arena, text, strlen(text));
  free(text);
  return copy;
}

static void compare_member(const json_t *a, const json_t *b, const char *key, Difference base,
                           DifferenceList *list) {
  const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
  base.name = key;
  if (json_is_integer(x) && json_is_integer(y)) {
    differ_numbers(list, base, json_integer_value(x), json_integer_value(y));
    return;
  }
  base.a = value_text(list->arena, x);
  base.b = value_text(list->arena, y);
  differ(list, base);
}

/* Compares all members of two objects. */
static void compare_objects(json_t *a, json_t *b, Difference base, DifferenceList *list) {
  const char *key;
  json_t *value;
  json_object_foreach(a, key, value) compare_member(a, b, key, base, list);
  json_object_foreach(b, key, value) {
    if (!json_object_get(a, key))
      compare_member(a, b, key, base, list);
  }
}

/* ---- lists ---- */

/* Something of a list that is compared as a set: kernels of a layer, flags, plans. */
typedef struct Item {
  const char *key, *value; /* equal keys are compared with each other */
  int side;
} Item;

typedef struct ItemList {
  Arena *arena;
  Item *at;
  int n, cap;
} ItemList;

static void item_add(ItemList *items, const char *key, const char *value, int side) {
  Item item = {key ? key : "", value ? value : "", side};
  arena_push(items->arena, items->at, items->n, items->cap, item);
}

static int by_key(const void *a, const void *b) {
  const Item *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  order = order ? order : x->side - y->side;
  return order ? order : strcmp(x->value, y->value);
}

/* The values that only one side has of the items at first..past-1, which are sorted, with commas
 * between; NULL if there are none. */
static const char *only_in(Arena *arena, const Item *item, int first, int past, int side) {
  const char *text = NULL;
  int other = first;
  for (int i = first; i < past; i++) {
    if (item[i].side != side)
      continue;
    bool found = false;
    int n = 0, same = 0;
    for (int k = first; k <= i; k++) /* the how manyth of its kind is it? */
      n += item[k].side == side && !strcmp(item[k].value, item[i].value);
    for (other = first; other < past && !found; other++)
      found = item[other].side != side && !strcmp(item[other].value, item[i].value) && ++same == n;
    if (!found)
      text = arena_printf(arena, "%s%s%s", text ? text : "", text ? ", " : "", item[i].value);
  }
  return text;
}

/* Adds a difference for each key whose values are not the same on both sides. `layers`: the keys
 * are layers. */
static void compare_items(ItemList *items, Difference base, bool layers, DifferenceList *list) {
  if (items->n)
    qsort(items->at, (size_t)items->n, sizeof *items->at, by_key);
  for (int first = 0, past; first < items->n; first = past) {
    for (past = first; past < items->n && !strcmp(items->at[past].key, items->at[first].key);)
      past++;
    *(layers ? &base.layer : &base.name) = items->at[first].key;
    base.a = only_in(list->arena, items->at, first, past, 0);
    base.b = only_in(list->arena, items->at, first, past, 1);
    differ(list, base);
  }
}

/* ---- precision ---- */

/* Adds the lines of --print-precision: the type of an op by its layer and name. The reason, which
 * names other ops, stands from column 55 on. */
static void add_precision(ItemList *items, const char *text, int side) {
  enum { TYPE_WIDTH = 6, KEY_WIDTH = 48 };
  while (text && *text && *text != '@') {
    size_t length = strcspn(text, "\n");
    if (length > TYPE_WIDTH + KEY_WIDTH) {
      const char *key = text + TYPE_WIDTH;
      const char *layer = key + strcspn(key, " ");
      size_t n = KEY_WIDTH;
      while (n && key[n - 1] == ' ')
        n--;
      layer += strspn(layer, " ");
      item_add(items,
               layer >= key + n ? arena_strdup(items->arena, key, n)
                                : arena_printf(items->arena, "%.*s %.*s", (int)(key + n - layer),
                                               layer, (int)strcspn(key, " "), key),
               arena_strdup(items->arena, text, strcspn(text, " ")), side);
    }
    text += length + (text[length] == '\n');
  }
}

/* "78 bf16, 7 f32": how many ops have each type; all f32 where there is nothing to choose. */
static const char *types_text(const ItemList *items, int side) {
  const char *text = NULL;
  for (int i = 0; i < items->n; i++) {
    const char *type = items->at[i].value;
    int n = 0;
    bool first = items->at[i].side == side;
    for (int k = 0; k < items->n && first; k++) {
      bool same = items->at[k].side == side && !strcmp(items->at[k].value, type);
      first = !same || k >= i;
      n += same;
    }
    if (first)
      text = arena_printf(items->arena, "%s%s%d %s", text ? text : "", text ? ", " : "", n, type);
  }
  return text ? text : "all f32";
}

/* Compares the types of ops. A program in fp32 names none. */
static void compare_types(Arena *arena, const char *a, const char *b, const char *target,
                          DifferenceList *list) {
  ItemList types = {arena};
  add_precision(&types, a, 0);
  int n = types.n;
  add_precision(&types, b, 1);
  Difference difference = {TOPIC_PRECISION, target, "", "", ""};
  if (n && n < types.n) {
    compare_items(&types, difference, false, list);
    return;
  }
  difference.name = "ops";
  difference.a = types_text(&types, 0);
  difference.b = types_text(&types, 1);
  differ(list, difference);
}

/* ---- parts ---- */

static json_t *find_named(json_t *list, const char *key, const char *name) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    if (!strcmp(string_of(item, key), name))
      return item;
  }
  return NULL;
}

static void add_kernels(ItemList *items, json_t *graph, int side) {
  size_t i;
  json_t *pair;
  json_array_foreach(json_object_get(graph, "kernels"), i, pair)
      item_add(items, json_string_value(json_array_get(pair, 1)),
               json_string_value(json_array_get(pair, 0)), side);
}

static void add_plans(ItemList *items, json_t *part, int side) {
  size_t i;
  json_t *plan;
  json_array_foreach(json_object_get(part, "plans"), i, plan)
      item_add(items, string_of(plan, "key"),
               arena_printf(items->arena, "engine %lld with %lld bytes of workspace%s",
                            (long long)json_integer_value(json_object_get(plan, "engine")),
                            (long long)json_integer_value(json_object_get(plan, "workspace_bytes")),
                            json_is_true(json_object_get(plan, "tuned")) ? ", tuned" : ""),
               side);
}

static void compare_graph(json_t *a, json_t *b, const char *where, DifferenceList *list) {
  ItemList kernels = {list->arena};
  compare_member(a, b, "arena_bytes", (Difference){TOPIC_MEMORY, where, "", "", ""}, list);
  compare_objects(
      json_object_get(a, "casts"), json_object_get(b, "casts"),
      (Difference){TOPIC_PRECISION, arena_printf(list->arena, "%s casts", where), "", "", ""},
      list);
  add_kernels(&kernels, a, 0);
  add_kernels(&kernels, b, 1);
  compare_items(&kernels, (Difference){TOPIC_KERNELS, where, "", "", ""}, true, list);
}

static void compare_part(json_t *a, json_t *b, const char *target, DifferenceList *list) {
  Difference making = {TOPIC_MAKING, target, "", "", ""},
             kernels = {TOPIC_KERNELS, target, "", "", ""},
             memory = {TOPIC_MEMORY, target, "", "", ""};
  ItemList plans = {list->arena};
  compare_member(a, b, "passes", making, list);
  compare_member(a, b, "library", making, list);
  compare_member(a, b, "cpu", making, list);
  compare_objects(json_object_get(a, "toolkit"), json_object_get(b, "toolkit"), making, list);
  compare_member(a, b, "state_bytes", memory, list);
  compare_member(a, b, "arena_bytes", memory, list);
  compare_member(a, b, "kernel_text_sha256", kernels, list);
  add_plans(&plans, a, 0);
  add_plans(&plans, b, 1);
  compare_items(&plans, kernels, false, list);
  size_t i;
  json_t *graph, *graphs_a = json_object_get(a, "graphs"), *graphs_b = json_object_get(b, "graphs");
  json_array_foreach(graphs_a, i, graph) {
    const char *name = string_of(graph, "name");
    const char *where = arena_printf(list->arena, "%s @%s", target, name);
    json_t *other = find_named(graphs_b, "name", name);
    if (other)
      compare_graph(graph, other, where, list);
    else
      differ(list,
             (Difference){TOPIC_KERNELS, where, "", "graph", "", "a graph of the part", NULL});
  }
  json_array_foreach(graphs_b, i, graph) {
    const char *name = string_of(graph, "name");
    if (!find_named(graphs_a, "name", name))
      differ(list, (Difference){TOPIC_KERNELS, arena_printf(list->arena, "%s @%s", target, name),
                                "", "graph", "", NULL, "a graph of the part"});
  }
}

/* The position of a part, or -1. */
static int part_find(const Program *program, const char *target) {
  for (int i = 0; i < program->n_parts; i++)
    if (!strcmp(program->target[i], target))
      return i;
  return -1;
}

static void compare_parts(const Program *a, const Program *b, DifferenceList *list) {
  json_t *parts_a = json_object_get(a->manifest, "parts"),
         *parts_b = json_object_get(b->manifest, "parts");
  for (int i = 0; i < a->n_parts; i++)
    if (part_find(b, a->target[i]) < 0)
      differ(list, (Difference){TOPIC_MAKING, "", "", "part", "", a->target[i], NULL});
  for (int i = 0; i < b->n_parts; i++) {
    const char *target = b->target[i];
    int old = part_find(a, target);
    if (old < 0) {
      differ(list, (Difference){TOPIC_MAKING, "", "", "part", "", NULL, target});
      continue;
    }
    compare_types(list->arena, a->precision[old], b->precision[i], target, list);
    compare_part(json_array_get(parts_a, (size_t)old), json_array_get(parts_b, (size_t)i), target,
                 list);
  }
}

/* ---- programs ---- */

static void add_strings(ItemList *items, json_t *array, int side) {
  size_t i;
  json_t *item;
  json_array_foreach(array, i, item) {
    const char *text = json_string_value(item), *equals = text ? strchr(text, '=') : NULL;
    if (equals)
      item_add(items, arena_strdup(items->arena, text, (size_t)(equals - text)), equals + 1, side);
  }
}

static void add_files(ItemList *items, json_t *array, int side) {
  size_t i;
  json_t *file;
  json_array_foreach(array, i, file)
      item_add(items, string_of(file, "what"),
               arena_printf(items->arena, "%s (SHA-256 %.12s...)", string_of(file, "name"),
                            string_of(file, "sha256")),
               side);
}

void compare_programs(const Side *a, const Side *b, DifferenceList *list) {
  const Program *x = a->program, *y = b->program;
  json_t *old = x->manifest, *new = y->manifest;
  static const char *const member[] = {"dtype", "ampcc", "cc", "libc"};
  Difference making = {TOPIC_MAKING, "", "", "", ""}, sizes = {TOPIC_SIZES, "", "", "", ""};
  ItemList flags = {list->arena}, files = {list->arena};
  int before = list->n;
  for (size_t i = 0; i < sizeof member / sizeof *member; i++)
    compare_member(old, new, member[i], making, list);
  making.where = "libraries";
  compare_objects(json_object_get(old, "libraries"), json_object_get(new, "libraries"), making,
                  list);
  making.where = "flags";
  add_strings(&flags, json_object_get(old, "flags"), 0);
  add_strings(&flags, json_object_get(new, "flags"), 1);
  compare_items(&flags, making, false, list);
  making.where = "files";
  add_files(&files, json_object_get(old, "inputs"), 0);
  add_files(&files, json_object_get(new, "inputs"), 1);
  compare_items(&files, making, false, list);
  compare_parts(x, y, list);
  sizes.name = "file";
  differ_numbers(list, sizes, (int64_t)a->size, (int64_t)b->size);
  sizes.name = "code";
  differ_numbers(list, sizes, x->code_bytes, y->code_bytes);
  sizes.name = "data";
  differ_numbers(list, sizes, x->data_bytes, y->data_bytes);
  if (list->n == before && (a->size != b->size || memcmp(a->bytes, b->bytes, a->size)))
    differ(list, (Difference){TOPIC_SIZES, "", "", "bytes", "", NULL,
                              "the files differ in what no manifest says"});
}
