#include "runtime/core/ranks.h"

#include "runtime/base/names.h"
#include "runtime/core/stop.h"
#include "runtime/state/init.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

AmprtStatus amprt_ranks_open(AmprtSession *session, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  const AmprtGroupOptions how = {options->mpi_library, options->connect_timeout,
                                 options->comm_timeout};
  AmprtStatus status = amprt_group_open(&session->group, &how, error);
  if (status || !session->group)
    return status;
  const AmprtGroupInfo *info = amprt_group_info(session->group);
  session->rank = info->rank;
  session->size = info->size;
  amprt_log_rank(&session->log, info->rank);
  return AMPRT_OK;
}

void amprt_ranks_close(AmprtSession *session, bool failed) {
  amprt_group_close(session->group, failed);
  session->group = NULL;
}

void *amprt_ranks_gather(AmprtSession *session, const void *mine, size_t bytes, AmprtError *error) {
  void *all = malloc((size_t)session->size * bytes + 1);
  if (!all)
    amprt_fail_memory(error, (size_t)session->size * bytes, "what other processes tell");
  else if (amprt_group_gather(session->group, mine, all, bytes, error))
    free(all), all = NULL;
  return all;
}

/* ---- threads ---- */

static void warn_of_binding(AmprtSession *session, const AmprtGroupCores *cores, int threads) {
  int online = (int)sysconf(_SC_NPROCESSORS_ONLN);
  int local = amprt_group_info(session->group)->local_size;
  if (2 * cores->together <= online || (threads == 1 && online >= 2 * local))
    amprt_warn(&session->log,
               "the launcher lets the %d processes of this machine use %d of its %d processors, %d "
               "each: mpirun --bind-to none lets them use all",
               local, cores->together, online, threads);
}

AmprtStatus amprt_ranks_threads(AmprtSession *session, AmprtError *error) {
  AmprtOptions *options = &session->options;
  if (!session->group || session->program->device || (options->threads && !options->pin_threads))
    return AMPRT_OK;
  AmprtGroupCores cores = amprt_group_cores(session->group);
  int local = amprt_group_info(session->group)->local_size;
  if (options->pin_threads && !cores.apart && local > 1)
    return amprt_fail(error, AMPRT_ENV,
                      "--pin-threads: the %d processes of this machine share processors; let the "
                      "launcher bind each to its own first",
                      local);
  if (options->threads)
    return AMPRT_OK;
  int mine = cores.apart ? cores.mine : cores.together / local;
  mine = mine < 1 ? 1 : mine < cores.mine ? mine : cores.mine;
  int *all = amprt_ranks_gather(session, &mine, sizeof mine, error), least = mine;
  if (!all)
    return error->status;
  for (int r = 0; r < session->size; r++)
    least = all[r] < least ? all[r] : least;
  free(all);
  options->threads = least;
  if (!session->rank)
    warn_of_binding(session, &cores, least);
  return AMPRT_OK;
}

/* ---- memory and device ---- */

AmprtStatus amprt_ranks_arena(AmprtSession *session, unsigned char **arena, AmprtError *error) {
  const AmprtProgram *program = session->program;
  *arena = NULL;
  if (!session->group || program->device || session->shards.n < 2)
    return AMPRT_OK;
  const AmprtGraph *graph = amprt_graph_find(program, "train_dp");
  uint64_t at, bytes = amprt_buckets_bytes(graph, &at);
  return amprt_group_arena(session->group, amprt_machine_arena(program, graph), at, bytes, arena,
                           error);
}

static AmprtOrder order_of(const char *word) {
  return !strcmp(word, "placement") ? AMPRT_ORDER_PLACEMENT
         : !strcmp(word, "run")     ? AMPRT_ORDER_RUN
                                    : AMPRT_ORDER_ANY;
}

/* AMPRT_ONE_RANK in the environment lets a process that is alone sum over itself, with all that
 * several do: for a machine with one GPU (tests/gpu). */
static AmprtStatus sum_over_itself(AmprtSession *session, AmprtError *error) {
  const AmprtDevice *device = session->program->device;
  if (!getenv("AMPRT_ONE_RANK") || !device || !device->make_id ||
      !amprt_graph_find(session->program, "train_dp"))
    return AMPRT_OK;
  if (device->make_id(session->id))
    return amprt_fail(error, AMPRT_ENV, "%s", device->error());
  session->others = (AmprtRanks){.size = 1,
                                 .order = order_of(session->options.deterministic),
                                 .id = session->id,
                                 .timeout = session->options.connect_timeout};
  return AMPRT_OK;
}

AmprtStatus amprt_ranks_device(AmprtSession *session, AmprtError *error) {
  const AmprtDevice *device = session->program->device;
  unsigned char id[AMPRT_ID_BYTES] = {0}, *all;
  AmprtStatus status = AMPRT_OK;
  if (!session->group)
    return sum_over_itself(session, error);
  if (!device || session->shards.n < 2)
    return AMPRT_OK;
  if (!device->make_id)
    status = amprt_fail(error, AMPRT_USAGE,
                        "device %s cannot train with other processes; --device=cpu can",
                        session->program->target);
  else if (!session->rank && device->make_id(id))
    status = amprt_fail(error, AMPRT_ENV, "%s",
                        device->error() ? device->error() : "the device cannot be shared");
  status = amprt_ranks_agree(session, status, error);
  if (status)
    return status;
  all = amprt_ranks_gather(session, id, sizeof id, error);
  if (!all)
    return error->status;
  memcpy(session->id, all, sizeof session->id);
  free(all);
  session->others = (AmprtRanks){session->rank,
                                 session->size,
                                 amprt_group_info(session->group)->local_rank,
                                 order_of(session->options.deterministic),
                                 session->id,
                                 session->options.connect_timeout};
  return AMPRT_OK;
}

/* ---- agreeing ---- */

AmprtStatus amprt_ranks_agree(AmprtSession *session, AmprtStatus status, AmprtError *error) {
  if (!session->group)
    return status;
  int32_t mine = status;
  AmprtError own;
  int32_t *all = amprt_ranks_gather(session, &mine, sizeof mine, &own);
  if (!all && !status)
    *error = own;
  if (!all)
    return status ? status : own.status;
  int first = 0;
  while (first < session->size && !all[first])
    first++;
  if (first < session->size) {
    session->agreed = true;
    status = (AmprtStatus)all[first];
    if (first != session->rank)
      *error = (AmprtError){.status = status};
  }
  free(all);
  return status;
}

AmprtStatus amprt_ranks_stopped(AmprtSession *session, AmprtError *error) {
  int32_t mine = amprt_stop_signal();
  if (!session->group) {
    session->stopped = mine;
    return AMPRT_OK;
  }
  int32_t *all = amprt_ranks_gather(session, &mine, sizeof mine, error);
  if (!all)
    return error->status;
  for (int r = 0; r < session->size && !session->stopped; r++)
    session->stopped = all[r];
  free(all);
  return AMPRT_OK;
}

/* ---- comparing ---- */

/* What must be the same on all ranks; the rows of `differs` in this order. */
typedef struct Card {
  uint32_t program, flags, data, state;
  int64_t step;
  uint64_t examples;
} Card;

static uLong add_bytes(uLong crc, const void *data, size_t n) {
  return crc32_z(crc, data, n);
}

static uLong add_text(uLong crc, const char *text) {
  return add_bytes(crc, text, strlen(text) + 1);
}

static uint32_t sum_program(const AmprtSession *session) {
  const AmprtProgram *program = session->program;
  uLong crc = add_text(crc32_z(0, NULL, 0), program->fingerprint);
  crc = add_text(crc, program->version);
  crc = add_text(crc, program->dtype);
  crc = add_bytes(crc, &program->batch_size, sizeof program->batch_size);
  crc = add_bytes(crc, &session->shards.n, sizeof session->shards.n);
  for (int i = 0; i < session->made.n; i++) {
    crc = add_text(crc, session->made.field[i].key);
    crc = add_text(crc, session->made.field[i].value);
  }
  return (uint32_t)crc;
}

/* Flags that may differ, as machines do. */
static bool is_local(const char *flag) {
  static const char *const local[] = {"data-dir", "data-threads", "mpi-library", "threads",
                                      "quiet",    "verbose",      "device",      "flagfile"};
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (!strcmp(flag, local[i]))
      return true;
  return false;
}

static uLong add_option(uLong crc, const AmprtOption *option, const void *at) {
  const AmprtFloats *list = at;
  switch (option->kind) {
  case AMPRT_OPT_BOOL:
    return add_bytes(crc, at, sizeof(AmprtOptBOOL));
  case AMPRT_OPT_INT:
    return add_bytes(crc, at, sizeof(AmprtOptINT));
  case AMPRT_OPT_FLOAT:
    return add_bytes(crc, at, sizeof(AmprtOptFLOAT));
  case AMPRT_OPT_STR:
    return add_text(crc, *(const AmprtOptSTR *)at);
  case AMPRT_OPT_FLOATS:
    return add_bytes(crc, list->v, (size_t)list->n * sizeof *list->v);
  }
  return crc;
}

static uint32_t sum_flags(const AmprtOptions *options) {
  uLong crc = crc32_z(0, NULL, 0);
  for (int i = 0; i < amprt_n_options; i++)
    if (amprt_option[i].flag && !is_local(amprt_option[i].flag))
      crc = add_option(crc, &amprt_option[i], (const char *)options + amprt_option[i].offset);
  return (uint32_t)crc;
}

/* The number of records, and three of them, so that this costs nothing. */
static uLong add_set(uLong crc, const AmprtDataset *set) {
  const int64_t some[] = {0, set->n / 2, set->n - 1};
  AmprtRoom room = {0};
  crc = add_bytes(crc, &set->n, sizeof set->n);
  crc = add_bytes(crc, &set->classes, sizeof set->classes);
  for (int i = 0; i < 3 && set->reader && set->n; i++) {
    AmprtRecord record = {0};
    AmprtError ignored;
    if (set->reader->fetch(set, some[i], &room, &record, &ignored))
      continue; /* the feed will say so */
    crc = add_bytes(crc, record.data, record.size);
    crc = add_bytes(crc, &record.label, sizeof record.label);
  }
  free(room.data);
  return crc;
}

static uint32_t sum_data(const AmprtData *data) {
  return (uint32_t)add_set(add_set(crc32_z(0, NULL, 0), &data->train), &data->test);
}

static uint32_t sum_state(const AmprtMachine *machine) {
  const AmprtProgram *program = machine->program;
  uLong crc = crc32_z(0, NULL, 0);
  amprt_machine_pull_state(machine);
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (amprt_variable_is_saved(v))
      crc = add_bytes(crc, machine->run.state + v->at, (size_t)amprt_variable_bytes(v));
  }
  return (uint32_t)crc;
}

/* In what the two differ, for an error: NULL if in nothing. */
static const char *difference(const Card *a, const Card *b) {
  const struct {
    bool differs;
    const char *text;
  } row[] = {
      {a->program != b->program, "runs another program, recipe or number of shards than rank 0"},
      {a->flags != b->flags, "was given other flags than rank 0"},
      {a->data != b->data, "reads other training or test data than rank 0"},
      {a->step != b->step || a->examples != b->examples,
       "is at another step than rank 0: all must see the same model folder"},
      {a->state != b->state, "has another state than rank 0, after the same program and data: its "
                             "processor is of another "
                             "kind, or its memory is broken"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    if (row[i].differs)
      return row[i].text;
  return NULL;
}

AmprtStatus amprt_ranks_compare(AmprtSession *session, bool start, AmprtError *error) {
  if (!session->group)
    return AMPRT_OK;
  Card mine = {.program = start ? sum_program(session) : 0,
               .flags = start ? sum_flags(&session->options) : 0,
               .data = start ? sum_data(&session->data) : 0,
               .state = sum_state(&session->machine),
               .step = session->progress.step,
               .examples = session->progress.examples};
  AmprtStatus status = amprt_machine_check(&session->machine, error);
  if (status)
    return status;
  Card *all = amprt_ranks_gather(session, &mine, sizeof mine, error);
  if (!all)
    return error->status;
  for (int r = 1; r < session->size && !status; r++) {
    const char *what = difference(&all[r], &all[0]);
    if (!what)
      continue;
    session->agreed = true;
    status = amprt_fail(error, AMPRT_INPUT, "step %" PRId64 ": rank %d %s", session->progress.step,
                        r, what);
    if (session->rank)
      *error = (AmprtError){.status = status};
  }
  free(all);
  return status;
}
