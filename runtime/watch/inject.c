#include "runtime/watch/inject.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/state/init.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An entry of --inject. Its target is the image, a variable or a value. */
struct AmprtInjection {
  int64_t batch;
  float bad;
  uint64_t element;
  bool image;
  const AmprtVariable *variable;
  const AmprtValue *value, *first_value; /* of the graph that trains, of graph 0 */
  float held; /* the parameter's element before; its copies are made of it */
};

typedef struct Entry {
  char kind[8], name[512];
} Entry;

static const struct {
  const char *name;
  float value;
} kinds[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};

/* Splits an entry like "inf@3:conv1[17]"; the element is in brackets at the very end. */
static bool cut(const char *text, size_t n, Entry *entry, AmprtInjection *injection) {
  const char *at = memchr(text, '@', n),
             *colon = at ? memchr(at, ':', n - (size_t)(at - text)) : NULL;
  char *end;
  if (!colon || (size_t)(at - text) >= sizeof entry->kind)
    return false;
  snprintf(entry->kind, sizeof entry->kind, "%.*s", (int)(at - text), text);
  errno = 0;
  injection->batch = strtoll(at + 1, &end, 10);
  size_t length = n - (size_t)(colon + 1 - text);
  if (end != colon || end == at + 1 || errno || injection->batch < 0 || !length ||
      length >= sizeof entry->name)
    return false;
  snprintf(entry->name, sizeof entry->name, "%.*s", (int)length, colon + 1);
  char *open = strrchr(entry->name, '[');
  if (!open || entry->name[length - 1] != ']')
    return true;
  injection->element = strtoull(open + 1, &end, 10);
  *open = '\0';
  return open[1] >= '0' && open[1] <= '9' && *end == ']' && !errno;
}

static bool set_kind(const char *name, AmprtInjection *injection) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, name)) {
      injection->bad = kinds[i].value;
      return true;
    }
  return false;
}

static const AmprtValue *find_value(const AmprtGraph *graph, const char *name) {
  for (int i = 0; i < graph->n_values; i++)
    if (!strcmp(graph->value[i].name, name))
      return &graph->value[i];
  return NULL;
}

/* Finds the target. Returns how many elements it has; 0 if the program has none of that name. */
static uint64_t set_target(const AmprtMachine *machine, const char *name,
                           AmprtInjection *injection) {
  const AmprtProgram *program = machine->program;
  const AmprtVariable *variable = amprt_variable_find(program, name);
  injection->image = !strcmp(name, amprt_name_image);
  if (injection->image)
    return (uint64_t)(program->batch_size * program->height * program->width * program->channels);
  if (variable && variable->kind == AMPRT_PARAM && variable->dtype == AMPRT_F32) {
    injection->variable = variable;
    return (uint64_t)amprt_variable_elements(variable);
  }
  injection->value = find_value(machine->train, name);
  injection->first_value = find_value(&program->graph[0], name);
  return injection->value && injection->first_value ? injection->value->elements : 0;
}

static AmprtStatus parse_one(const AmprtMachine *machine, const char *text, size_t n,
                             AmprtInjection *injection, AmprtError *error) {
  Entry entry;
  if (!cut(text, n, &entry, injection) || !set_kind(entry.kind, injection))
    return amprt_fail(
        error, AMPRT_USAGE,
        "--inject: `%.*s` is not inf@BATCH:NAME, -inf@... or nan@..., with or without "
        "[ELEMENT]",
        n < 80 ? (int)n : 80, text);
  uint64_t elements = set_target(machine, entry.name, injection);
  if (!elements)
    return amprt_fail(error, AMPRT_USAGE, "--inject: `%.200s` is neither image nor a parameter%s",
                      entry.name,
                      machine->train->n_values ? " nor a stored result of the step"
                                               : "; a step of several shards takes no results");
  if (injection->element >= elements)
    return amprt_fail(error, AMPRT_USAGE, "--inject: `%.200s` has %llu elements", entry.name,
                      (unsigned long long)elements);
  return AMPRT_OK;
}

static size_t image_bytes(const AmprtProgram *program) {
  return (size_t)(program->batch_size * program->height * program->width * program->channels) *
         sizeof(float);
}

AmprtStatus amprt_inject_open(AmprtInject *inject, AmprtMachine *machine, const char *text,
                              AmprtError *error) {
  size_t room = 0;
  bool images = false;
  *inject = (AmprtInject){.machine = machine};
  for (const char *c = text; *c; c++)
    room += *c == ',';
  if (!*text)
    return AMPRT_OK;
  inject->entry = calloc(room + 1, sizeof *inject->entry);
  if (!inject->entry)
    return amprt_fail_memory(error, room * sizeof *inject->entry, "--inject");
  for (size_t n; *text; text += n + (text[n] == ',')) {
    n = strcspn(text, ",");
    AmprtInjection *entry = &inject->entry[inject->n++];
    AmprtStatus status = parse_one(machine, text, n, entry, error);
    if (status)
      return status;
    images |= entry->image;
  }
  if (images && !(inject->image = malloc(image_bytes(machine->program))))
    return amprt_fail_memory(error, image_bytes(machine->program), "--inject");
  return AMPRT_OK;
}

void amprt_inject_close(AmprtInject *inject) {
  free(inject->entry);
  free(inject->image);
  *inject = (AmprtInject){0};
}

static void put(const AmprtMachine *machine, AmprtBlock block, uint64_t at, AmprtDType dtype,
                uint64_t element, float x) {
  size_t size = amprt_dtype_size(dtype);
  at += element * size;
  amprt_from_f32(dtype, &x, (block == AMPRT_STATE ? machine->run.state : machine->run.arena) + at,
                 1);
  amprt_machine_push(machine, block, at, size);
}

/* Sets one element of a parameter and of its copies. */
static void put_variable(const AmprtMachine *machine, const AmprtInjection *entry, float x) {
  const AmprtProgram *program = machine->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (v == entry->variable || (v->kind == AMPRT_COPY && !strcmp(v->of, entry->variable->name)))
      put(machine, AMPRT_STATE, v->at, (AmprtDType)v->dtype, entry->element, x);
  }
}

const AmprtBatch *amprt_inject_begin(AmprtInject *inject, int64_t number, const AmprtBatch *batch) {
  const AmprtMachine *machine = inject->machine;
  inject->batch = number;
  for (int i = 0; i < inject->n; i++) {
    AmprtInjection *entry = &inject->entry[i];
    if (entry->batch != number)
      continue;
    if (entry->image && batch != &inject->own) {
      memcpy(inject->image, batch->image, image_bytes(machine->program));
      inject->own = *batch;
      inject->own.image = inject->image;
      batch = &inject->own;
    }
    if (entry->image)
      inject->image[entry->element] = entry->bad;
    if (entry->variable) {
      uint64_t at = entry->variable->at + entry->element * sizeof(float);
      memcpy(&entry->held, amprt_machine_pull(machine, AMPRT_STATE, at, sizeof(float)),
             sizeof(float));
      put_variable(machine, entry, entry->bad);
    }
  }
  return batch;
}

void amprt_inject_after(void *context, int kernel) {
  const AmprtInject *inject = context;
  for (int i = 0; i < inject->n; i++) {
    const AmprtInjection *entry = &inject->entry[i];
    const AmprtValue *value = inject->again ? entry->first_value : entry->value;
    if (value && entry->batch == inject->batch && value->kernel == kernel)
      put(inject->machine, AMPRT_ARENA, value->at, (AmprtDType)value->dtype, entry->element,
          entry->bad);
  }
}

/* Backwards, because two entries may have the same element. */
void amprt_inject_end(AmprtInject *inject) {
  for (int i = inject->n - 1; i >= 0; i--)
    if (inject->entry[i].variable && inject->entry[i].batch == inject->batch)
      put_variable(inject->machine, &inject->entry[i], inject->entry[i].held);
  inject->batch = -1;
}
