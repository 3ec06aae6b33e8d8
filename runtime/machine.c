#include "runtime/machine.h"

#include "runtime/clock.h"
#include "runtime/convert.h"
#include "runtime/init.h"

#include <stdlib.h>
#include <string.h>

const AmprtGraph *amprt_graph_find(const AmprtProgram *program, const char *name) {
  for (int i = 0; i < program->n_graphs; i++)
    if (!strcmp(program->graph[i].name, name))
      return &program->graph[i];
  return NULL;
}

const AmprtPort *amprt_port_find(const AmprtPort *port, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (!strcmp(port[i].name, name))
      return &port[i];
  return NULL;
}

int64_t amprt_port_elements(const AmprtPort *port) {
  int64_t n = 1;
  for (int i = 0; i < port->rank; i++)
    n *= port->dim[i];
  return n;
}

static void *port_at(const AmprtMachine *machine, const AmprtPort *port) {
  return (port->in_state ? machine->run.state : machine->run.arena) + port->at;
}

const void *amprt_port_at(const AmprtMachine *machine, const AmprtPort *port) {
  return port_at(machine, port);
}

static void fill_image(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  amprt_from_f32(port->dtype, inputs->batch->image, to, (size_t)amprt_port_elements(port));
}

static void fill_label(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  memcpy(to, inputs->batch->label, (size_t)amprt_port_elements(port) * sizeof(int32_t));
}

static void fill_schedule(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  memcpy(to, inputs->schedule, (size_t)amprt_port_elements(port) * sizeof(float));
}

static void fill_momentum(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  amprt_from_f32(port->dtype, &inputs->bn_momentum, to, 1);
}

static const struct {
  const char *name;
  void (*fill)(void *to, const AmprtPort *port, const AmprtInputs *inputs);
} filler[] = {{"image", fill_image},
              {"label", fill_label},
              {"schedule", fill_schedule},
              {"bn_momentum", fill_momentum}};

static void fill(const AmprtMachine *machine, const AmprtPort *port, const AmprtInputs *inputs) {
  for (size_t i = 0; i < sizeof filler / sizeof *filler; i++)
    if (!strcmp(filler[i].name, port->name))
      filler[i].fill(port_at(machine, port), port, inputs);
}

static AmprtStatus check_input(const AmprtProgram *program, const AmprtPort *port,
                               AmprtError *error) {
  int64_t pixels = program->batch_size * program->height * program->width * program->channels;
  int64_t n = amprt_port_elements(port);
  bool good =
      (!strcmp(port->name, "image") && n == pixels) ||
      (!strcmp(port->name, "label") && n == program->batch_size && port->dtype == AMPRT_I32) ||
      (!strcmp(port->name, "schedule") && port->dtype == AMPRT_F32) ||
      (!strcmp(port->name, "bn_momentum") && n == 1);
  return good ? AMPRT_OK
              : amprt_fail(error, AMPRT_ENV,
                           "this program is damaged: input `%s`; compile it again", port->name);
}

static AmprtStatus check(const AmprtProgram *program, AmprtError *error) {
  if (program->abi != AMPRT_ABI)
    return amprt_fail(error, AMPRT_ENV,
                      "this program has plan format %u, its runtime %d; compile it "
                      "again",
                      program->abi, AMPRT_ABI);
  AmprtStatus status = AMPRT_OK;
  for (int g = 0; g < program->n_graphs; g++)
    for (int i = 0; i < program->graph[g].n_inputs && !status; i++)
      status = check_input(program, &program->graph[g].input[i], error);
  return status;
}

/* A zeroed block of 64-byte lines; a little more than asked, so that it is never empty. */
static AmprtStatus make_block(unsigned char **out, uint64_t bytes, const char *what,
                              AmprtError *error) {
  size_t size = ((size_t)bytes / 64 + 1) * 64;
  *out = aligned_alloc(64, size);
  if (!*out)
    return amprt_fail_memory(error, size, what);
  memset(*out, 0, size);
  return AMPRT_OK;
}

static AmprtStatus make_profile(AmprtMachine *machine, AmprtError *error) {
  const AmprtProgram *program = machine->program;
  machine->runs = calloc((size_t)program->n_graphs + 1, sizeof *machine->runs);
  machine->seconds = calloc((size_t)program->n_graphs + 1, sizeof *machine->seconds);
  bool good = machine->runs && machine->seconds;
  for (int i = 0; i < program->n_graphs && good; i++)
    good = (machine->seconds[i] =
                calloc((size_t)program->graph[i].n_kernels + 1, sizeof(double))) != NULL;
  return good ? AMPRT_OK : amprt_fail_memory(error, 0, "the profile");
}

AmprtStatus amprt_machine_open(AmprtMachine *machine, const AmprtProgram *program,
                               const AmprtOptions *options, AmprtError *error) {
  char text[512] = "";
  uint64_t arena = 0;
  *machine = (AmprtMachine){.program = program};
  for (int i = 0; i < program->n_graphs; i++)
    if (program->graph[i].arena_bytes > arena)
      arena = program->graph[i].arena_bytes;
  AmprtStatus status = check(program, error);
  if (!status)
    status = make_block(&machine->run.state, program->state_bytes, "the state", error);
  if (!status)
    status = make_block(&machine->run.arena, arena, "the arena", error);
  if (!status && options->profile)
    status = make_profile(machine, error);
  if (!status && program->set_threads)
    program->set_threads((int)options->threads);
  machine->opened = !status;
  if (!status && program->open && program->open(&machine->run, text, sizeof text))
    status = amprt_fail(error, AMPRT_ENV, "%s", *text ? text : "the target failed to open");
  return status;
}

void amprt_machine_close(AmprtMachine *machine) {
  if (machine->opened && machine->program->close)
    machine->program->close();
  for (int i = 0; machine->seconds && i < machine->program->n_graphs; i++)
    free(machine->seconds[i]);
  free(machine->seconds);
  free(machine->runs);
  free(machine->run.arena);
  free(machine->run.state);
  *machine = (AmprtMachine){0};
}

void amprt_machine_fill(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs) {
  if (machine->runs)
    machine->runs[graph - machine->program->graph]++;
  for (int i = 0; i < graph->n_inputs; i++)
    fill(machine, &graph->input[i], inputs);
}

static void run_timed(AmprtMachine *machine, const AmprtGraph *graph, int kernel) {
  double before = amprt_seconds();
  graph->kernel[kernel].run(&machine->run, graph->kernel[kernel].args);
  machine->seconds[graph - machine->program->graph][kernel] += amprt_seconds() - before;
}

void amprt_machine_kernels(AmprtMachine *machine, const AmprtGraph *graph, int first, int past,
                           const AmprtHook *hook, int n_hooks) {
  for (int i = first; i < past; i++) {
    if (machine->seconds)
      run_timed(machine, graph, i);
    else
      graph->kernel[i].run(&machine->run, graph->kernel[i].args);
    for (int h = 0; h < n_hooks; h++)
      hook[h].after(hook[h].context, i);
  }
}

void amprt_machine_run(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs) {
  amprt_machine_fill(machine, graph, inputs);
  amprt_machine_kernels(machine, graph, 0, graph->n_kernels, NULL, 0);
}

static double scalar_of(AmprtDType dtype, const void *at) {
  int64_t whole;
  float value;
  if (dtype == AMPRT_I64)
    return memcpy(&whole, at, sizeof whole), (double)whole;
  amprt_to_f32(dtype, at, &value, 1);
  return value;
}

double amprt_machine_scalar(const AmprtMachine *machine, const AmprtGraph *graph, const char *name,
                            double otherwise) {
  const AmprtPort *port = amprt_port_find(graph->output, graph->n_outputs, name);
  return port ? scalar_of(port->dtype, port_at(machine, port)) : otherwise;
}

double amprt_machine_variable(const AmprtMachine *machine, const char *name, double otherwise) {
  const AmprtVariable *variable = amprt_variable_find(machine->program, name);
  return variable ? scalar_of(variable->dtype, machine->run.state + variable->at) : otherwise;
}

int64_t amprt_machine_step(const AmprtMachine *machine) {
  return (int64_t)amprt_machine_variable(machine, "global_step", -1);
}
