#include "runtime/core/result.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/state/init.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  bool variable; /* false: an output of the graph that trains */
  size_t field;
  double otherwise;
} rows[] = {
    {amprt_name_loss, false, offsetof(AmprtResult, loss), (double)NAN},
    {amprt_name_accuracy, false, offsetof(AmprtResult, accuracy), (double)NAN},
    {amprt_name_learning_rate, false, offsetof(AmprtResult, learning_rate), (double)NAN},
    {amprt_name_gradient_norm, false, offsetof(AmprtResult, gradient_norm), (double)NAN},
    {amprt_name_l2_loss, false, offsetof(AmprtResult, l2_loss), (double)NAN},
    {amprt_name_finite, false, offsetof(AmprtResult, finite), 1},
    {amprt_name_stop_votes, false, offsetof(AmprtResult, stop_votes), 0},
    {amprt_name_loss_scale, true, offsetof(AmprtResult, loss_scale), 0},
    {amprt_name_global_step, true, offsetof(AmprtResult, step), -1},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct Place { /* where a scalar lies */
  AmprtBlock block;
  AmprtDType dtype;
  uint64_t at;
} Place;

/* Returns false if the program does not have this scalar. */
static bool find_place(const AmprtMachine *machine, int row, Place *place) {
  const AmprtGraph *graph = machine->train;
  const AmprtPort *port = amprt_port_find(graph->output, graph->n_outputs, rows[row].name);
  const AmprtVariable *variable = amprt_variable_find(machine->program, rows[row].name);
  if (rows[row].variable && variable)
    *place = (Place){AMPRT_STATE, (AmprtDType)variable->dtype, variable->at};
  else if (!rows[row].variable && port)
    *place = (Place){port->in_state ? AMPRT_STATE : AMPRT_ARENA, (AmprtDType)port->dtype, port->at};
  else
    return false;
  return true;
}

static void set_row(AmprtResult *result, int row, double value) {
  memcpy((char *)result + rows[row].field, &value, sizeof value);
}

void amprt_result_read(const AmprtMachine *machine, AmprtResult *result) {
  Place place;
  for (int i = 0; i < N_ROWS; i++)
    set_row(result, i,
            find_place(machine, i, &place)
                ? amprt_scalar(place.dtype, amprt_machine_pull(machine, place.block, place.at,
                                                               amprt_dtype_size(place.dtype)))
                : rows[i].otherwise);
}

void amprt_result_watch(const AmprtMachine *machine) {
  AmprtBlock block[N_ROWS];
  uint64_t at[N_ROWS];
  uint32_t bytes[N_ROWS];
  int n = 0;
  Place place;
  for (int i = 0; i < N_ROWS; i++)
    if (find_place(machine, i, &place)) {
      block[n] = place.block;
      at[n] = place.at;
      bytes[n++] = (uint32_t)amprt_dtype_size(place.dtype);
    }
  machine->program->device->watch((int)(machine->train - machine->program->graph), block, at, bytes,
                                  n);
}

void amprt_result_collect(const AmprtMachine *machine, AmprtResult *result) {
  unsigned char kept[AMPRT_MAX_WATCHED][8] = {0};
  int n = 0;
  Place place;
  machine->program->device->collect(kept);
  for (int i = 0; i < N_ROWS; i++)
    set_row(result, i,
            find_place(machine, i, &place) ? amprt_scalar(place.dtype, kept[n++])
                                           : rows[i].otherwise);
}
