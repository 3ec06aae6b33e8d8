#include "runtime/watch/dump_values.h"

#include "runtime/base/convert.h"
#include "runtime/state/init.h"

#include <stdlib.h>
#include <string.h>

AmprtStatus amprt_values_open(AmprtValueDump *dump, const AmprtMachine *machine,
                              const AmprtGraph *graph, AmprtError *error) {
  *dump = (AmprtValueDump){.machine = machine, .graph = graph};
  size_t room = (size_t)graph->n_values + 2 * (size_t)machine->program->n_variables + 1;
  dump->tensor = calloc(room, sizeof *dump->tensor);
  return dump->tensor ? AMPRT_OK : amprt_fail_memory(error, 0, "the step's tensors");
}

void amprt_values_close(AmprtValueDump *dump) {
  for (int i = 0; i < dump->n; i++) {
    free((void *)(uintptr_t)dump->tensor[i].name);
    free((void *)(uintptr_t)dump->tensor[i].data);
  }
  free(dump->tensor);
  *dump = (AmprtValueDump){0};
}

/* Copies a tensor under the name "prefix:name", or "name" where the prefix is "". */
static void keep(AmprtValueDump *dump, const char *prefix, const char *name, AmprtDType dtype,
                 int rank, const int64_t *dim, const void *from) {
  size_t size = amprt_dtype_size(dtype);
  for (int i = 0; i < rank; i++)
    size *= (size_t)dim[i];
  size_t room = strlen(prefix) + strlen(name) + 2;
  char *text = malloc(room);
  void *data = malloc(size + 1);
  if (!text || !data) {
    free(text);
    free(data);
    dump->failed = true;
    return;
  }
  snprintf(text, room, "%s%s%s", prefix, *prefix ? ":" : "", name);
  memcpy(data, from, size);
  dump->tensor[dump->n++] = (AmprtTensorOut){text, dtype, rank, dim, data, false};
}

void amprt_values_state(AmprtValueDump *dump, const char *prefix) {
  const AmprtProgram *program = dump->machine->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    keep(dump, prefix, v->name, v->dtype, v->rank, v->dim, amprt_variable_at(dump->machine, v));
  }
}

void amprt_values_input(AmprtValueDump *dump, const char *name) {
  const AmprtPort *port = amprt_port_find(dump->graph->input, dump->graph->n_inputs, name);
  if (port)
    keep(dump, "", name, port->dtype, port->rank, port->dim, amprt_port_at(dump->machine, port));
}

void amprt_values_after(void *context, int kernel) {
  AmprtValueDump *dump = context;
  for (int i = 0; i < dump->graph->n_values; i++) {
    const AmprtValue *value = &dump->graph->value[i];
    if (value->kernel == kernel)
      keep(dump, "value", value->name, value->dtype, 1, (const int64_t *)&value->elements,
           amprt_value_at(dump->machine, value));
  }
}
