#define _GNU_SOURCE /* affinity masks */
#include "runtime/parallel/group.h"

#include "runtime/base/clock.h"
#include "runtime/parallel/launch.h"
#include "runtime/parallel/messages.h"
#include "runtime/parallel/mpi.h"
#include "runtime/parallel/rendezvous.h"
#include "runtime/parallel/tree.h"
#include "runtime/parallel/watchdog.h"
#include "runtime/parallel/window.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const double warn_after = 60; /* seconds of a wait */

/* What a bucket waits for. Each rank goes through these in this order. */
typedef enum Stage {
  IDLE,
  MEETING,    /* the others of this machine */
  QUEUED,     /* its turn to travel */
  TRAVELLING, /* the other machines */
  PARTING     /* the others of this machine, to write their slices of the sum */
} Stage;

typedef struct Sum {
  Stage stage;
  uint32_t turn; /* how often this bucket was started */
  uint64_t at, elements;
  AmprtTravel *travel;
} Sum;

struct AmprtGroup {
  AmprtGroupInfo info;
  char transport[192];
  const AmprtLauncher *launcher;
  AmprtMpi mpi; /* of launchers that meet by MPI; else star */
  AmprtStar *star;
  AmprtWatchdog *watchdog;
  double comm_timeout;
  int *machine; /* of each rank: the lowest rank on its machine */
  int *missing; /* room for ranks */
  AmprtGroupCores cores;

  unsigned char *arena;
  size_t arena_bytes;
  AmprtPlace place;
  AmprtWindow *window; /* NULL unless place.block > 1 */
  AmprtMessages messages;
  Sum sum[AMPRT_MAX_BUCKETS];
  int queue[AMPRT_MAX_BUCKETS]; /* those that are not idle, oldest first */
  int n_queue;
  AmprtError failure; /* of something that could not return it */
  double waited;
};

/* ---- waiting ---- */

/* Ranks may outnumber processors, so a wait gives its processor away; after two milliseconds
 * without news it sleeps a little between looks. */
typedef struct Pace {
  double since, looked;
} Pace;

static void rest(Pace *pace, bool moved, double now) {
  if (moved || pace->since == 0)
    pace->since = now;
  if (now - pace->since < 0.002) {
    sched_yield();
  } else {
    struct timespec nap = {.tv_nsec = 50000};
    nanosleep(&nap, NULL);
  }
}

/* True ten times a second. */
static bool time_to_look(Pace *pace, double now) {
  if (now - pace->looked < 0.1)
    return false;
  pace->looked = now;
  return true;
}

/* ---- gathers ---- */

static AmprtStatus gather(AmprtGroup *g, const char *what, const void *mine, void *all,
                          size_t bytes, AmprtError *error) {
  enum { PIECE = 64 << 20 }; /* all ranks' pieces together are about this at most */
  AmprtStatus status = AMPRT_OK;
  amprt_watchdog_begin(g->watchdog, what, g->comm_timeout);
  if (g->star) {
    status = amprt_star_gather(g->star, mine, all, bytes, g->watchdog, error);
  } else {
    size_t most = PIECE / (size_t)g->info.size + 1;
    for (size_t at = 0; at < bytes && !status; at += most) {
      AmprtGather *piece;
      size_t n = bytes - at < most ? bytes - at : most;
      status = amprt_gather_begin(&piece, &g->mpi, g->info.rank, g->info.size,
                                  (const char *)mine + at, n, error);
      if (status)
        break;
      Pace pace = {0};
      while (!amprt_gather_poll(piece)) {
        double now = amprt_seconds();
        rest(&pace, false, now);
        if (time_to_look(&pace, now)) {
          bool behind;
          int missing = amprt_gather_missing(piece, g->missing, &behind);
          amprt_watchdog_missing(g->watchdog, g->missing, missing, behind);
        }
      }
      amprt_gather_end(piece, (unsigned char *)all + at, bytes);
    }
  }
  amprt_watchdog_end(g->watchdog);
  return status;
}

AmprtStatus amprt_group_gather(AmprtGroup *g, const void *mine, void *all, size_t bytes,
                               AmprtError *error) {
  return gather(g, "an exchange", mine, all, bytes, error);
}

/* ---- who is where ---- */

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text; text++)
    hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash * 31;
}

/* Equal for processes that see each other's /proc: same kernel, same host name, same namespace of
 * process numbers. */
static uint64_t machine_word(void) {
  char text[256] = "";
  uint64_t hash = 0xcbf29ce484222325u;
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file && fgets(text, sizeof text, file))
    hash = hash_text(hash, text);
  if (file)
    fclose(file);
  if (!gethostname(text, sizeof text - 1))
    hash = hash_text(hash, text);
  ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  return hash_text(hash, text);
}

/* What every process tells of itself. */
typedef struct Card {
  uint64_t machine;
  unsigned char processors[1024]; /* a bit each */
} Card;

static void count_cores(AmprtGroup *g, const Card *card) {
  const Card *mine = &card[g->info.rank];
  AmprtGroupCores cores = {.apart = true};
  for (size_t i = 0; i < sizeof mine->processors; i++) {
    unsigned together = 0, others = 0, own = mine->processors[i];
    for (int r = 0; r < g->info.size; r++)
      if (card[r].machine == mine->machine) {
        together |= card[r].processors[i];
        others |= r == g->info.rank ? 0 : card[r].processors[i];
      }
    cores.mine += __builtin_popcount(own);
    cores.together += __builtin_popcount(together);
    cores.apart = cores.apart && !(own & others);
  }
  g->cores = cores;
}

static AmprtStatus find_machines(AmprtGroup *g, AmprtError *error) {
  AmprtGroupInfo *info = &g->info;
  size_t bytes = (size_t)info->size * sizeof(Card);
  Card mine = {.machine = machine_word()}, *all = malloc(bytes);
  if (!all)
    return amprt_fail_memory(error, bytes, "what other processes tell");
  cpu_set_t *set = CPU_ALLOC(8 * sizeof mine.processors);
  if (set && !sched_getaffinity(0, sizeof mine.processors, set))
    for (size_t i = 0; i < 8 * sizeof mine.processors; i++)
      if (CPU_ISSET_S(i, sizeof mine.processors, set))
        mine.processors[i / 8] |= (unsigned char)(1u << i % 8);
  if (set)
    CPU_FREE(set);
  AmprtStatus status = gather(g, "the start", &mine, all, sizeof mine, error);
  for (int r = 0; r < info->size && !status; r++) {
    int lowest = r;
    if (r && all[r].machine == all[r - 1].machine)
      lowest = g->machine[r - 1];
    else
      for (int q = 0; q < r && lowest == r; q++)
        if (all[q].machine == all[r].machine)
          lowest = q;
    g->machine[r] = lowest;
    info->machines += lowest == r;
  }
  for (int r = 0; r < info->size && !status; r++)
    if (g->machine[r] == g->machine[info->rank]) {
      info->local_size++;
      info->local_rank += r < info->rank;
    }
  if (!status)
    count_cores(g, all);
  free(all);
  return status;
}

/* ---- open ---- */

static AmprtStatus open_mpi(AmprtGroup *g, const AmprtLaunch *launch,
                            const AmprtGroupOptions *options, AmprtError *error) {
  const AmprtLauncher *launcher = launch->launcher;
  AmprtStatus status = amprt_mpi_open(&g->mpi, options->mpi_library, launcher->library, error);
  if (status) {
    char more[256];
    snprintf(more, sizeof more, "; %s has started %d processes (%s)", launcher->name, launch->size,
             launcher->size);
    amprt_fail_more(error, more);
    return status;
  }
  int level = 0, size = 0;
  amprt_watchdog_begin(g->watchdog, "the start of MPI", options->connect_timeout);
  g->mpi.Init_thread(NULL, NULL, (int)g->mpi.thread_funneled, &level);
  amprt_watchdog_end(g->watchdog);
  g->mpi.Comm_size(g->mpi.comm_world, &size);
  g->mpi.Comm_rank(g->mpi.comm_world, &g->info.rank);
  if (size != launch->size) {
    amprt_fail(error, AMPRT_ENV,
               "%s has started %d processes (%s), but %s (%s) counts %d: launcher and library do "
               "not belong together; %s, or name another library by --mpi-library=FILE",
               launcher->name, launch->size, launcher->size, g->mpi.version, g->mpi.file, size,
               launcher->instead);
    g->mpi.Finalize();
    return AMPRT_ENV;
  }
  if (level < g->mpi.thread_funneled)
    return amprt_fail(error, AMPRT_ENV, "%s (%s) does not allow programs with threads",
                      g->mpi.version, g->mpi.file);
  snprintf(g->transport, sizeof g->transport, "mpi: %s", g->mpi.version);
  return AMPRT_OK;
}

static void free_group(AmprtGroup *g) {
  amprt_watchdog_close(g->watchdog);
  amprt_messages_close(&g->messages);
  amprt_window_close(g->window);
  if (g->arena)
    munmap(g->arena, g->arena_bytes);
  free(g->machine), free(g->missing);
  free(g);
}

AmprtStatus amprt_group_open(AmprtGroup **group, const AmprtGroupOptions *options,
                             AmprtError *error) {
  AmprtLaunch launch;
  *group = NULL;
  AmprtStatus status = amprt_launch_read(&launch, error);
  if (status || !launch.launcher)
    return status;
  AmprtGroup *g = calloc(1, sizeof *g);
  if (!g || !(g->machine = calloc((size_t)launch.size, sizeof *g->machine)) ||
      !(g->missing = calloc((size_t)launch.size, sizeof *g->missing))) {
    if (g)
      free_group(g);
    return amprt_fail_memory(error, (size_t)launch.size * 8, "the other processes");
  }
  g->info = (AmprtGroupInfo){.rank = launch.rank, .size = launch.size, .transport = g->transport};
  g->launcher = launch.launcher;
  g->comm_timeout = options->comm_timeout;
  status = amprt_watchdog_open(&g->watchdog, launch.rank, launch.size, warn_after, error);
  if (!status && launch.launcher->meeting == AMPRT_MEET_MPI) {
    status = open_mpi(g, &launch, options, error);
  } else if (!status) {
    snprintf(g->transport, sizeof g->transport, "tcp");
    status = amprt_star_open(&g->star, amprt_star_where(launch.host, launch.port), launch.rank,
                             launch.size, options->connect_timeout, error);
  }
  if (!status)
    status = find_machines(g, error);
  if (status) {
    amprt_star_close(g->star);
    free_group(g);
    return status;
  }
  *group = g;
  return AMPRT_OK;
}

const AmprtGroupInfo *amprt_group_info(const AmprtGroup *g) {
  return &g->info;
}

AmprtGroupCores amprt_group_cores(const AmprtGroup *g) {
  return g->cores;
}

/* ---- the arena ---- */

/* Do all ranks share memory with the others of their machine? Sets *shared alike on all. */
static AmprtStatus share(AmprtGroup *g, uint64_t at, uint64_t bytes, bool *shared, char *why,
                         size_t size, AmprtError *error) {
  AmprtPlace place = g->place;
  AmprtWindowCard mine, *card = calloc((size_t)place.size, sizeof *card);
  unsigned char *well = calloc((size_t)place.size, 1);
  AmprtError trouble = {.text = "another rank of this machine could not"};
  AmprtStatus status = AMPRT_OK;
  if (!card || !well)
    status = amprt_fail_memory(error, (size_t)place.size * sizeof *card, "shared memory");
  if (!status) {
    amprt_window_open(&g->window, g->arena, at, bytes, &mine, &trouble);
    status = gather(g, "the start", &mine, card, sizeof mine, error);
  }
  if (!status) {
    int first = place.rank / place.block * place.block;
    unsigned char joined =
        mine.word && !amprt_window_join(g->window, card + first, first, place.block,
                                        place.rank - first, &trouble);
    status = gather(g, "the start", &joined, well, 1, error);
  }
  *shared = !status;
  for (int r = 0; r < place.size && !status; r++)
    *shared = *shared && well[r];
  if (!*shared) {
    snprintf(why, size, "%s", trouble.text);
    amprt_window_close(g->window);
    g->window = NULL;
  }
  free(card), free(well);
  return status;
}

AmprtStatus amprt_group_arena(AmprtGroup *g, uint64_t bytes, uint64_t shared_at,
                              uint64_t shared_bytes, unsigned char **arena, AmprtError *error) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  char why[256] = "";
  bool shared = false;
  AmprtStatus status = AMPRT_OK;
  g->arena_bytes = (bytes / page + 1) * page;
  void *map =
      mmap(NULL, g->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return amprt_fail_memory(error, g->arena_bytes, "the arena");
  g->arena = map;
  int block = amprt_place_block(g->machine, g->info.size);
  g->place = (AmprtPlace){g->info.rank, g->info.size, block};
  if (block > 1)
    status = share(g, shared_at, shared_bytes, &shared, why, sizeof why, error);
  if (status)
    return status;
  if (!shared)
    g->place.block = 1;
  int machines = amprt_place_machines(g->place);
  if (g->star && machines > 1)
    return amprt_fail(error, AMPRT_ENV,
                      "%s has started processes %s, which need MPI to add their gradients: start "
                      "the program with mpirun or srun%s%s",
                      g->launcher->name,
                      g->info.machines > 1 ? "on several machines"
                                           : "that cannot share their memory",
                      *why ? "; " : "", why);
  if (machines > 1)
    status = amprt_messages_open(&g->messages, &g->mpi, g->place, error);
  size_t n = strlen(g->transport);
  snprintf(g->transport + n, sizeof g->transport - n, "%s",
           machines == 1 ? ", shared memory"
           : g->place.block == 1
               ? (block > 1 ? ", messages, as memory cannot be shared" : ", messages")
               : ", shared memory inside machines, messages between them");
  *arena = g->arena;
  return status;
}

/* ---- sums ---- */

static float *bucket_data(const AmprtGroup *g, const Sum *sum) {
  return (float *)(void *)(g->arena + sum->at);
}

/* Goes on with one sum as far as that is possible now. `first`: all older ones travel or have
 * travelled; ranks must begin to travel in the same order, lest each waits for another bucket. */
static bool advance(AmprtGroup *g, int bucket, bool first) {
  Sum *sum = &g->sum[bucket];
  bool moved = false, messages = amprt_place_machines(g->place) > 1;
  AmprtSlice slice = amprt_place_slice(g->place, sum->elements);
  if (sum->stage == MEETING && amprt_window_all(g->window, AMPRT_READY, bucket, sum->turn)) {
    amprt_window_sum(g->window, sum->at, slice, !messages);
    sum->stage = messages ? QUEUED : PARTING;
    if (!messages)
      amprt_window_tell(g->window, AMPRT_SUMMED, bucket, sum->turn);
    moved = true;
  }
  if (sum->stage == QUEUED && first) {
    if (!g->failure.status)
      amprt_messages_begin(&g->messages, &sum->travel, bucket, bucket_data(g, sum), sum->elements,
                           &g->failure);
    if (sum->travel)
      sum->stage = TRAVELLING, moved = true;
  }
  if (sum->stage == TRAVELLING && amprt_messages_poll(&g->messages, sum->travel, &moved)) {
    sum->travel = NULL;
    sum->stage = g->window ? PARTING : IDLE;
    if (g->window) {
      amprt_window_spread(g->window, sum->at, slice);
      amprt_window_tell(g->window, AMPRT_SUMMED, bucket, sum->turn);
    }
    moved = true;
  }
  if (sum->stage == PARTING && amprt_window_all(g->window, AMPRT_SUMMED, bucket, sum->turn))
    sum->stage = IDLE, moved = true;
  return moved;
}

static bool advance_all(AmprtGroup *g) {
  bool moved = false, first = true;
  int kept = 0;
  for (int i = 0; i < g->n_queue; i++) {
    int bucket = g->queue[i];
    moved |= advance(g, bucket, first);
    Stage stage = g->sum[bucket].stage;
    first = first && stage != MEETING && stage != QUEUED;
    if (stage != IDLE)
      g->queue[kept++] = bucket;
  }
  g->n_queue = kept;
  return moved;
}

void amprt_group_start(AmprtGroup *g, int bucket, uint64_t at, uint64_t elements) {
  Sum *sum = &g->sum[bucket];
  if (!g->failure.status && (!g->arena || sum->stage != IDLE))
    amprt_fail(&g->failure, AMPRT_ENV, "bucket %d was started %s", bucket,
               g->arena ? "before its last sum had come" : "without an arena");
  if (g->failure.status)
    return;
  *sum = (Sum){.turn = sum->turn + 1, .at = at, .elements = elements};
  sum->stage = g->window ? MEETING : QUEUED;
  if (g->window)
    amprt_window_tell(g->window, AMPRT_READY, bucket, sum->turn);
  g->queue[g->n_queue++] = bucket;
  advance_all(g);
}

void amprt_group_poll(AmprtGroup *g) {
  if (g->n_queue)
    advance_all(g);
}

static int missing_ranks(AmprtGroup *g, int bucket, bool *behind) {
  const Sum *sum = &g->sum[bucket];
  *behind = false;
  switch (sum->stage) {
  case MEETING:
    return amprt_window_missing(g->window, AMPRT_READY, bucket, sum->turn, g->missing);
  case TRAVELLING:
    return amprt_messages_missing(&g->messages, sum->travel, g->missing, behind);
  case PARTING:
    return amprt_window_missing(g->window, AMPRT_SUMMED, bucket, sum->turn, g->missing);
  default:
    return 0;
  }
}

AmprtStatus amprt_group_wait(AmprtGroup *g, int bucket, AmprtError *error) {
  AmprtStatus status = AMPRT_OK;
  advance_all(g);
  if (g->sum[bucket].stage != IDLE && !g->failure.status) {
    char what[32];
    snprintf(what, sizeof what, "bucket %d", bucket);
    double began = amprt_seconds(), now = began;
    Pace pace = {0};
    amprt_watchdog_begin(g->watchdog, what, g->comm_timeout);
    while (g->sum[bucket].stage != IDLE && !g->failure.status && !status) {
      rest(&pace, advance_all(g), now);
      now = amprt_seconds();
      if (!time_to_look(&pace, now))
        continue;
      bool behind;
      int rank, n = missing_ranks(g, g->queue[0], &behind);
      amprt_watchdog_missing(g->watchdog, g->missing, n, behind);
      if (g->star && amprt_star_broken(g->star, &rank))
        status =
            amprt_fail(error, AMPRT_ENV, "rank %d has ended, bucket %d waits for it", rank, bucket);
    }
    amprt_watchdog_end(g->watchdog);
    g->waited += now - began;
  }
  if (g->failure.status && !status) {
    *error = g->failure;
    status = error->status;
  }
  return status;
}

void amprt_group_watch_begin(AmprtGroup *g, const char *what) {
  amprt_watchdog_begin(g->watchdog, what, g->comm_timeout);
}

void amprt_group_watch_end(AmprtGroup *g) {
  amprt_watchdog_end(g->watchdog);
}

double amprt_group_waited(const AmprtGroup *g) {
  return g->waited;
}

/* ---- close ---- */

static void nap(void) {
  struct timespec fifth = {.tv_nsec = 200000000};
  nanosleep(&fifth, NULL);
}

void amprt_group_close(AmprtGroup *g, bool failed) {
  if (!g)
    return;
  bool mpi = !g->star;
  unsigned char mine = 0, *all = malloc((size_t)g->info.size);
  AmprtError error;
  if (!failed && all && gather(g, "the end of the run", &mine, all, 1, &error))
    failed = true; /* only with TCP: another one has ended with an error, and says so itself */
  free(all);
  if (mpi && failed) {
    /* Abort ends this process, too, and some launchers (MPICH's) then throw away what ranks have
     * printed and they have not yet read: such as why all of this ends. */
    fflush(NULL);
    nap();
    g->mpi.Abort(g->mpi.comm_world, AMPRT_ENV);
  } else if (mpi) {
    /* MPICH before 4.2 over UCX: a rank that still polls when another one has already disconnected
     * waits for it in Finalize for ever (pmodels/mpich, pull request 6596). After this nap all
     * ranks have left the gather above. */
    if (g->mpi.kind == AMPRT_MPI_MPICH && g->info.machines > 1)
      nap();
    amprt_watchdog_begin(g->watchdog, "the end of MPI", g->comm_timeout);
    g->mpi.Finalize();
    amprt_watchdog_end(g->watchdog);
  }
  amprt_star_close(g->star);
  free_group(g);
}
