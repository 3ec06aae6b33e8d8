#include "frontend/diff/diff.h"

#include <inttypes.h>
#include <string.h>

const char *const topic_name[TOPIC_COUNT] = {
    [TOPIC_MAKING] = "made from", [TOPIC_GRAPH] = "graph",   [TOPIC_PRECISION] = "precision",
    [TOPIC_KERNELS] = "kernels",  [TOPIC_MEMORY] = "memory", [TOPIC_SIZES] = "sizes",
};

void differ(DifferenceList *list, Difference difference) {
  const char *a = difference.a, *b = difference.b;
  if (a == b || (a && b && !strcmp(a, b)))
    return;
  arena_push(list->arena, list->at, list->n, list->cap, difference);
}

void differ_numbers(DifferenceList *list, Difference difference, int64_t a, int64_t b) {
  if (a == b)
    return;
  difference.a = arena_printf(list->arena, "%" PRId64, a);
  difference.b =
      a ? arena_printf(list->arena, "%" PRId64 " (%+.2f %%)", b, 100 * ((double)b / (double)a - 1))
        : arena_printf(list->arena, "%" PRId64, b);
  differ(list, difference);
}

static const char *kind_text(const Side *side) {
  return side->program ? "program" : "model";
}

/* The name of a node is left out where the layer is called the same, or the text of the node
 * follows. */
static void print_one(const Difference *d, FILE *out) {
  bool whole = !strcmp(d->what, "node");
  const char *bare = *d->name == '%' ? d->name + 1 : d->name;
  const char *parts[] = {d->where, d->layer, whole || !strcmp(d->layer, bare) ? "" : d->name,
                         whole ? "" : d->what};
  fputs(" ", out);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (*parts[i])
      fprintf(out, " %s", parts[i]);
  if (!d->a)
    fprintf(out, ": + %s\n", d->b);
  else if (!d->b)
    fprintf(out, ": - %s\n", d->a);
  else
    fprintf(out, ": %s -> %s\n", *d->a ? d->a : "(none)", *d->b ? d->b : "(none)");
}

void report_text(const Side *a, const Side *b, const DifferenceList *list, int most, FILE *out) {
  if (!list->n) {
    fprintf(out, "same%s\n",
            !a->program != !b->program ? " graph and recipe, which is all that a model has" : "");
    return;
  }
  for (int topic = 0; topic < TOPIC_COUNT; topic++) {
    int n = 0;
    for (int i = 0; i < list->n; i++) {
      if (list->at[i].topic != (Topic)topic)
        continue;
      if (!n++)
        fprintf(out, "%s\n", topic_name[topic]);
      if (!most || n <= most)
        print_one(&list->at[i], out);
    }
    if (most && n > most)
      fprintf(out, "  and %d more, which --all shows\n", n - most);
    if (topic == TOPIC_GRAPH && list->following)
      fprintf(out, "  %d results have other shapes only because their operands have\n",
              list->following);
  }
}

/* A text as JSON; bytes that are no UTF-8, which only names may hold, become `?`. */
static json_t *text_json(Arena *arena, const char *text) {
  json_t *json = text ? json_string(text) : json_null();
  if (json)
    return json;
  char *clean = arena_strdup(arena, text, strlen(text));
  for (char *at = clean; *at; at++)
    if ((unsigned char)*at >= 0x80)
      *at = '?';
  return json_string(clean);
}

void report_json(const Side *a, const Side *b, const DifferenceList *list, FILE *out) {
  Arena *arena = list->arena;
  json_t *json = json_object(), *all = json_array();
  const Side *const side[] = {a, b};
  static const char *const name[] = {"a", "b"};
  for (int i = 0; i < 2; i++)
    json_object_set_new(json, name[i],
                        json_pack("{s:o,s:s,s:I}", "file", text_json(arena, side[i]->path), "kind",
                                  kind_text(side[i]), "bytes", (json_int_t)side[i]->size));
  for (int i = 0; i < list->n; i++) {
    const Difference *d = &list->at[i];
    json_t *one = json_object();
    json_object_set_new(one, "topic", json_string(topic_name[d->topic]));
    json_object_set_new(one, "change",
                        json_string(!d->a   ? "added"
                                    : !d->b ? "removed"
                                            : "changed"));
    json_object_set_new(one, "where", text_json(arena, d->where));
    json_object_set_new(one, "layer", text_json(arena, d->layer));
    json_object_set_new(one, "name", text_json(arena, d->name));
    json_object_set_new(one, "what", text_json(arena, d->what));
    json_object_set_new(one, "a", text_json(arena, d->a));
    json_object_set_new(one, "b", text_json(arena, d->b));
    json_array_append_new(all, one);
  }
  json_object_set_new(json, "same", json_boolean(!list->n));
  json_object_set_new(json, "following", json_integer(list->following));
  json_object_set_new(json, "differences", all);
  CHECK(json_dumpf(json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) == 0 || ferror(out),
        "the differences do not fit into JSON");
  fputc('\n', out);
  json_decref(json);
}
