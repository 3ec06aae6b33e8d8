#include "runtime/core/machine.h"

#include "runtime/base/clock.h"
#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/state/init.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

int64_t amprt_parts(const AmprtProgram *program) {
  return program->parts > 1 ? program->parts : 1;
}

static AmprtBlock port_block(const AmprtPort *port) {
  return port->in_state ? AMPRT_STATE : AMPRT_ARENA;
}

static uint64_t port_bytes(const AmprtPort *port) {
  return (uint64_t)amprt_port_elements(port) * amprt_dtype_size((AmprtDType)port->dtype);
}

static unsigned char *host_at(const AmprtMachine *machine, AmprtBlock block, uint64_t at) {
  return (block == AMPRT_STATE ? machine->run.state : machine->run.arena) + at;
}

const void *amprt_machine_pull(const AmprtMachine *machine, AmprtBlock block, uint64_t at,
                               uint64_t bytes) {
  unsigned char *to = host_at(machine, block, at);
  if (machine->program->device)
    machine->program->device->read(block, at, to, bytes);
  return to;
}

void amprt_machine_push(const AmprtMachine *machine, AmprtBlock block, uint64_t at,
                        uint64_t bytes) {
  if (machine->program->device)
    machine->program->device->write(block, at, host_at(machine, block, at), bytes);
}

const void *amprt_machine_pull_state(const AmprtMachine *machine) {
  return amprt_machine_pull(machine, AMPRT_STATE, 0, machine->program->state_bytes);
}

void amprt_machine_push_state(const AmprtMachine *machine) {
  amprt_machine_push(machine, AMPRT_STATE, 0, machine->program->state_bytes);
}

AmprtStatus amprt_machine_check(const AmprtMachine *machine, AmprtError *error) {
  const AmprtDevice *device = machine->program->device;
  const char *text = device ? device->error() : NULL;
  return text ? amprt_fail(error, AMPRT_ENV, "%s", text) : AMPRT_OK;
}

const void *amprt_port_at(const AmprtMachine *machine, const AmprtPort *port) {
  return amprt_machine_pull(machine, port_block(port), port->at, port_bytes(port));
}

const void *amprt_variable_at(const AmprtMachine *machine, const AmprtVariable *variable) {
  return amprt_machine_pull(machine, AMPRT_STATE, variable->at, amprt_variable_bytes(variable));
}

const void *amprt_value_at(const AmprtMachine *machine, const AmprtValue *value) {
  return amprt_machine_pull(machine, AMPRT_ARENA, value->at,
                            value->elements * amprt_dtype_size((AmprtDType)value->dtype));
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

static void fill_first(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  (void)port;
  *(uint8_t *)to = inputs->first_part;
}

static void fill_factor(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  amprt_from_f32(port->dtype, &inputs->shard_factor, to, 1);
}

static void fill_vote(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  amprt_from_f32(port->dtype, &inputs->stop_vote, to, 1);
}

static void fill_mix(void *to, const AmprtPort *port, const AmprtInputs *inputs) {
  amprt_mix_fill(&inputs->batch->mix, port->dim[0], port->dim[1], port->dim[2], to);
}

static int64_t pixels(const AmprtProgram *program) {
  return program->batch_size * program->height * program->width * program->channels;
}
static bool fits_image(const AmprtProgram *program, const AmprtPort *port) {
  return amprt_port_elements(port) == pixels(program);
}
static bool fits_label(const AmprtProgram *program, const AmprtPort *port) {
  return amprt_port_elements(port) == program->batch_size && port->dtype == AMPRT_I32;
}
static bool fits_schedule(const AmprtProgram *program, const AmprtPort *port) {
  (void)program;
  return port->dtype == AMPRT_F32;
}
static bool fits_number(const AmprtProgram *program, const AmprtPort *port) {
  (void)program;
  return amprt_port_elements(port) == 1;
}
static bool fits_first(const AmprtProgram *program, const AmprtPort *port) {
  return fits_number(program, port) && port->dtype == AMPRT_BOOL;
}
static bool fits_mix(const AmprtProgram *program, const AmprtPort *port) {
  return port->rank == 3 && port->dtype == AMPRT_F32 &&
         amprt_port_elements(port) * program->batch_size == pixels(program);
}

/* What an input of each name is filled with, and whether it fits an input's shape and type. */
typedef struct Filler {
  const char *name;
  void (*fill)(void *to, const AmprtPort *port, const AmprtInputs *inputs);
  bool (*fits)(const AmprtProgram *program, const AmprtPort *port);
} Filler;
static const Filler filler[] = {{amprt_name_image, fill_image, fits_image},
                                {amprt_name_label, fill_label, fits_label},
                                {amprt_name_schedule, fill_schedule, fits_schedule},
                                {amprt_name_bn_momentum, fill_momentum, fits_number},
                                {amprt_name_first_part, fill_first, fits_first},
                                {amprt_name_mix, fill_mix, fits_mix},
                                {amprt_name_shard_factor, fill_factor, fits_number},
                                {amprt_name_stop_vote, fill_vote, fits_number}};
enum { N_FILLERS = sizeof filler / sizeof *filler };

/* NULL if there is none. */
static const Filler *filler_of(const AmprtPort *port) {
  for (int i = 0; i < N_FILLERS; i++)
    if (!strcmp(filler[i].name, port->name))
      return &filler[i];
  return NULL;
}

/* Fills the port in host memory, and returns its place. */
static const void *fill(const AmprtMachine *machine, const AmprtPort *port,
                        const AmprtInputs *inputs) {
  void *to = host_at(machine, port_block(port), port->at);
  const Filler *found = filler_of(port);
  if (found)
    found->fill(to, port, inputs);
  return to;
}

static AmprtStatus check_name(const AmprtPort *port, AmprtError *error) {
  return filler_of(port)
             ? AMPRT_OK
             : amprt_fail(error, AMPRT_ENV,
                          "this program cannot run: its input `%s` is given nothing, as images go "
                          "to `%s` and labels to `%s`",
                          port->name, amprt_name_image, amprt_name_label);
}

static AmprtStatus check_input(const AmprtProgram *program, const AmprtGraph *graph, int i,
                               AmprtError *error) {
  const AmprtPort *port = &graph->input[i];
  return filler_of(port)->fits(program, port) && i < N_FILLERS
             ? AMPRT_OK
             : amprt_fail(error, AMPRT_ENV,
                          "this program cannot run: its input `%s` is of a shape or type that no "
                          "data has",
                          port->name);
}

/* Buckets lie side by side, whole lines each; they are whole before a kernel reads them. */
static AmprtStatus check_buckets(const AmprtGraph *graph, AmprtError *error) {
  for (int i = 0; i < graph->n_buckets; i++) {
    const AmprtBucket *b = &graph->bucket[i];
    uint64_t end = b->at + b->elements * sizeof(float);
    bool last = i + 1 == graph->n_buckets;
    if (b->at % 64 || b->elements % 16 || b->ready >= b->reader || b->ready >= graph->n_local ||
        end > graph->arena_bytes || (!last && (b[1].at != end || b[1].ready < b->ready)))
      return amprt_fail(error, AMPRT_ENV,
                        "this program is damaged: bucket %d of @%s; compile it again", i,
                        graph->name);
  }
  return AMPRT_OK;
}

static AmprtStatus check(const AmprtProgram *program, AmprtError *error) {
  if (program->abi != AMPRT_ABI)
    return amprt_fail(error, AMPRT_ENV,
                      "this program has plan format %u, its runtime %d; compile it "
                      "again",
                      program->abi, AMPRT_ABI);
  AmprtStatus status = AMPRT_OK;
  for (int g = 0; g < program->n_graphs && !status; g++)
    for (int i = 0; i < program->graph[g].n_inputs && !status; i++)
      status = check_name(&program->graph[g].input[i], error);
  if (!status && !program->batch_size)
    status = amprt_fail(error, AMPRT_ENV, "this program cannot run: it has no input `%s`",
                        amprt_name_image);
  for (int g = 0; g < program->n_graphs && !status; g++) {
    for (int i = 0; i < program->graph[g].n_inputs && !status; i++)
      status = check_input(program, &program->graph[g], i, error);
    if (!status)
      status = check_buckets(&program->graph[g], error);
  }
  if (!status && amprt_parts(program) > 1 && !amprt_graph_find(program, "accumulate"))
    status = amprt_fail(error, AMPRT_ENV, "this program is damaged: no graph `accumulate`");
  return status;
}

enum { PAGE = 4096, PIECE = 4 << 20 };

/* At least one page, so that a block is never empty. */
static size_t block_size(uint64_t bytes) {
  return ((size_t)bytes / PAGE + 1) * PAGE;
}

/* Allocates a zeroed block, which takes no memory before it is touched. */
static AmprtStatus make_block(unsigned char **out, uint64_t bytes, const char *what,
                              AmprtError *error) {
  size_t size = block_size(bytes);
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *out = p == MAP_FAILED ? NULL : p;
  return *out ? AMPRT_OK : amprt_fail_memory(error, size, what);
}

typedef struct Touched {
  unsigned char *at; /* the block whose pages are being made */
  size_t size;
  /* over all blocks and threads: how many pieces were made, and the time that they took together */
  _Atomic uint64_t pieces, nanoseconds;
  atomic_bool small; /* large pages were too slow and are no longer asked for */
} Touched;

/* If the pieces so far took longer than large pages may, asks for small ones from now on. */
static void judge_pages(Touched *t, double seconds) {
  enum { EACH = 1000000, SLACK = 8000000 }; /* nanoseconds; small pages take 600,000 a piece */
  uint64_t took = (uint64_t)(1e9 * seconds), all = atomic_fetch_add(&t->nanoseconds, took) + took;
  uint64_t allowed = (atomic_fetch_add(&t->pieces, 1) + 1) * EACH + SLACK;
  if (all > allowed && !atomic_exchange(&t->small, true))
    madvise(t->at, t->size, MADV_NOHUGEPAGE);
}

static void touch_piece(const AmprtRun *run, const void *args, int64_t piece) {
  Touched *t = (Touched *)(uintptr_t)args;
  size_t at = (size_t)piece * PIECE, left = t->size - at;
  double start = amprt_seconds();
  (void)run;
#ifdef MADV_POPULATE_WRITE
  madvise(t->at + at, left < PIECE ? left : PIECE, MADV_POPULATE_WRITE);
#else
  (void)left;
#endif
  judge_pages(t, amprt_seconds() - start);
}

static void touch_block(const AmprtMachine *machine, Touched *t, unsigned char *block,
                        uint64_t bytes) {
  t->at = block;
  t->size = block_size(bytes);
  if (!t->small)
    madvise(t->at, t->size, MADV_HUGEPAGE);
  machine->run.threads->loop((int64_t)((t->size + PIECE - 1) / PIECE), touch_piece, NULL, t);
}

/* Has the system make the pages of the blocks, on all threads: several times faster than a fault
 * for each page in the first step, to which it is left where the system cannot. With large pages a
 * step of ResNet-50 takes 1 to 4 % less. They are made faster than small ones, but in virtual
 * machines whose host has taken back free memory they may cost a second, and are given up then. */
static void touch_blocks(const AmprtMachine *machine) {
  Touched t = {0};
  if (!machine->borrows)
    touch_block(machine, &t, machine->run.arena, machine->arena_bytes);
  touch_block(machine, &t, machine->run.state, machine->program->state_bytes);
}

static void free_block(unsigned char *block, uint64_t bytes) {
  if (block)
    munmap(block, block_size(bytes));
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

/* Where train_dp trains, graph 0 runs a bad step again (watch.h). */
uint64_t amprt_machine_arena(const AmprtProgram *program, const AmprtGraph *train) {
  const AmprtGraph *dp = amprt_graph_find(program, "train_dp");
  uint64_t most = 0;
  for (int i = 0; i < program->n_graphs; i++) {
    const AmprtGraph *graph = &program->graph[i];
    if (graph->arena_bytes > most && (graph != dp || graph == train))
      most = graph->arena_bytes;
  }
  return most;
}

static AmprtStatus open_target(AmprtMachine *machine, const AmprtOptions *options,
                               const AmprtRanks *ranks, AmprtError *error) {
  const AmprtProgram *program = machine->program;
  const AmprtDevice *device = program->device;
  char text[512] = "";
  machine->opened = true;
  if (program->threads && program->threads->open((int)options->threads, text, sizeof text))
    return amprt_fail(error, AMPRT_ENV, "%s", text);
  if (options->pin_threads && !program->threads)
    return amprt_fail(error, AMPRT_ENV, "--pin-threads: kernels run on a GPU");
  if (options->pin_threads && program->threads->pin(text, sizeof text))
    return amprt_fail(error, AMPRT_ENV, "--pin-threads: %s", text);
  if (program->threads)
    touch_blocks(machine);
  if (device) {
    device->open(program, program->state_bytes, machine->arena_bytes, options->strict_plans, ranks);
    return amprt_machine_check(machine, error);
  }
  if (program->open && program->open(&machine->run, text, sizeof text))
    return amprt_fail(error, AMPRT_ENV, "%s", *text ? text : "the target failed to open");
  return AMPRT_OK;
}

/* Libraries crash or abort when an allocation fails: oneDNN as it writes code, libgomp as it starts
 * threads, libgcc as a thread ends. So what they may need, 64 MiB and the stack of every thread, is
 * tried here once, where a lack of it can be reported. */
static AmprtStatus check_room(const AmprtOptions *options, AmprtError *error) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  size_t threads =
      (size_t)(options->threads ? options->threads : processors) + (size_t)options->data_threads;
  size_t size = (64 + 8 * threads) << 20;
  void *room =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return amprt_fail_memory(error, size, "the libraries and their threads");
  munmap(room, size);
  return AMPRT_OK;
}

AmprtStatus amprt_machine_open(AmprtMachine *machine, const AmprtProgram *program,
                               const AmprtOptions *options, const AmprtMachinePlan *plan,
                               AmprtError *error) {
  const AmprtGraph *train =
      plan->shards ? amprt_graph_find(program, "train_dp") : &program->graph[0];
  *machine = (AmprtMachine){
      .program = program, .train = train, .arena_bytes = amprt_machine_arena(program, train)};
  machine->run.threads = program->threads;
  machine->run.constant = program->constant;
  AmprtStatus status = check(program, error);
  if (!status)
    status = make_block(&machine->run.state, program->state_bytes, "the state", error);
  machine->borrows = plan->arena != NULL;
  machine->run.arena = plan->arena;
  if (!status && !plan->arena)
    status = make_block(&machine->run.arena, machine->arena_bytes, "the arena", error);
  if (!status && options->profile)
    status = make_profile(machine, error);
  if (!status && program->open)
    status = check_room(options, error);
  return status ? status : open_target(machine, options, plan->ranks, error);
}

void amprt_machine_close(AmprtMachine *machine) {
  const AmprtProgram *program = machine->program;
  if (!program)
    return;
  if (machine->opened && program->device)
    program->device->close();
  else if (machine->opened && program->close)
    program->close();
  if (machine->opened && program->threads)
    program->threads->close();
  for (int i = 0; machine->seconds && i < program->n_graphs; i++)
    free(machine->seconds[i]);
  free(machine->seconds);
  free(machine->runs);
  if (!machine->borrows)
    free_block(machine->run.arena, machine->arena_bytes);
  free_block(machine->run.state, program->state_bytes);
  *machine = (AmprtMachine){0};
}

static void count_run(AmprtMachine *machine, const AmprtGraph *graph) {
  if (machine->runs)
    machine->runs[graph - machine->program->graph]++;
}

void amprt_machine_fill(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs) {
  count_run(machine, graph);
  for (int i = 0; i < graph->n_inputs; i++) {
    const AmprtPort *port = &graph->input[i];
    fill(machine, port, inputs);
    amprt_machine_push(machine, port_block(port), port->at, port_bytes(port));
  }
}

/* Runs kernels between which no hook is called. */
static void run_some(AmprtMachine *machine, const AmprtGraph *graph, int first, int past) {
  const AmprtDevice *device = machine->program->device;
  int g = (int)(graph - machine->program->graph);
  double *seconds = machine->seconds ? machine->seconds[g] : NULL;
  if (device) {
    device->kernels(g, first, past, seconds ? seconds + first : NULL);
    return;
  }
  for (int i = first; i < past; i++) {
    double before = seconds ? amprt_seconds() : 0;
    graph->run[i](&machine->run, graph->kernel[i].args);
    if (seconds)
      seconds[i] += amprt_seconds() - before;
  }
}

void amprt_machine_kernels(AmprtMachine *machine, const AmprtGraph *graph, int first, int past,
                           const AmprtHook *hook, int n_hooks) {
  int some = n_hooks ? 1 : past - first;
  for (int i = first; i < past; i += some) {
    run_some(machine, graph, i, i + some);
    for (int h = 0; h < n_hooks; h++)
      hook[h].after(hook[h].context, i);
  }
}

/* Has the last start already brought this fixed batch to the device? */
static bool is_there(const AmprtMachine *machine, const AmprtGraph *graph, const AmprtPort *port,
                     const AmprtBatch *batch) {
  bool of_batch = !strcmp(port->name, amprt_name_image) || !strcmp(port->name, amprt_name_label);
  return of_batch && batch->fixed && machine->last == graph && machine->last_image == batch->image;
}

bool amprt_machine_takes_pixels(const AmprtMachine *machine) {
  const AmprtProgram *program = machine->program;
  for (int g = 0; g < program->n_graphs; g++) {
    const AmprtGraph *graph = &program->graph[g];
    const AmprtPort *image = amprt_port_find(graph->input, graph->n_inputs, amprt_name_image);
    if (image && !image->pixels)
      return false;
  }
  return program->device && !machine->seconds;
}

/* What the device is given for a port. Images are passed as they are where types allow, which saves
 * a copy of up to 150 MB. */
static AmprtInput input_of(const AmprtMachine *machine, const AmprtGraph *graph,
                           const AmprtPort *port, const AmprtInputs *inputs) {
  const AmprtBatch *batch = inputs->batch;
  bool is_image = !strcmp(port->name, amprt_name_image);
  if (is_there(machine, graph, port, batch))
    return (AmprtInput){0};
  if (is_image && !batch->image)
    return (AmprtInput){batch->pixel, batch->scaling};
  if (is_image && port->dtype == AMPRT_F32)
    return (AmprtInput){.data = batch->image};
  return (AmprtInput){.data = fill(machine, port, inputs)};
}

void amprt_machine_start(AmprtMachine *machine, const AmprtGraph *graph,
                         const AmprtInputs *inputs) {
  AmprtInput from[N_FILLERS];
  const AmprtBatch *batch = inputs->batch;
  count_run(machine, graph);
  for (int i = 0; i < graph->n_inputs; i++)
    from[i] = input_of(machine, graph, &graph->input[i], inputs);
  machine->last = graph;
  machine->last_image = batch->fixed ? batch->image : NULL;
  machine->program->device->start((int)(graph - machine->program->graph), from);
}

void amprt_machine_run(AmprtMachine *machine, const AmprtGraph *graph, const AmprtInputs *inputs) {
  if (machine->program->device && !machine->seconds) {
    amprt_machine_start(machine, graph, inputs);
    return;
  }
  amprt_machine_fill(machine, graph, inputs);
  amprt_machine_kernels(machine, graph, 0, graph->n_kernels, NULL, 0);
}

double amprt_machine_scalar(const AmprtMachine *machine, const AmprtGraph *graph, const char *name,
                            double otherwise) {
  const AmprtPort *port = amprt_port_find(graph->output, graph->n_outputs, name);
  return port ? amprt_scalar((AmprtDType)port->dtype, amprt_port_at(machine, port)) : otherwise;
}

double amprt_machine_variable(const AmprtMachine *machine, const char *name, double otherwise) {
  const AmprtVariable *variable = amprt_variable_find(machine->program, name);
  return variable ? amprt_scalar((AmprtDType)variable->dtype, amprt_variable_at(machine, variable))
                  : otherwise;
}
