/* libnccl.so.2 between processes of one machine. Ranks share a file: for each of them two places,
 * in turns, for what it has given to a sum or an exchange. Two are enough, as nobody can begin the
 * next but one before all have ended this one.
 *
 * A call is queued in its stream. When the stream gets to it, the rank leaves a note of what it
 * wants and a copy of its numbers; once all have done that, and want the same, everybody computes
 * its own result. Meanwhile the stream waits, and other streams go on. If the numbers in memory are
 * not what they were in the beginning, somebody has written to them too early, and that is said. */
#include "fake.h"
#include "runtime/cuda/nccl_api.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NCCL(result, name, arguments) result name arguments;
#define NCCL_VALUE(type, name, number)
#include "runtime/cuda/nccl_api.def"

enum {
  MOST_RANKS = 16,
  PLACES = 2,
  MOST_BYTES = 32 << 20,
  MOST_PIECES = 2 * MOST_RANKS,
  CHUNK = 64, /* elements that a ring adds in one order */
};

typedef enum Kind { SUM, GATHER, EXCHANGE } Kind;

typedef struct Piece { /* of an exchange; `at`: in the copies of the sender */
  int peer, type;
  size_t count, at;
} Piece;

typedef struct Note { /* what a rank gives */
  _Atomic uint64_t number;
  Kind kind;
  int type, n_sends;
  size_t count;
  Piece send[MOST_PIECES];
} Note;

typedef struct Shared {
  atomic_int present[MOST_RANKS];
  char device[MOST_RANKS][64];
  atomic_int broken; /* 1 + the rank that failed first */
  unsigned seed;
  Note note[MOST_RANKS][PLACES];
} Shared;

typedef struct Transfer { /* of this rank, in an exchange */
  Piece piece;
  const void *from; /* NULL: it is received */
  void *to;
} Transfer;

typedef struct Call { /* what a stream gets to */
  ncclComm_t comm;
  Kind kind;
  int type;
  size_t count;
  const void *from;
  void *to;
  int n;
  Transfer transfer[2 * MOST_PIECES];
  uint64_t number; /* 0: not begun */
} Call;

struct ncclComm {
  Shared *shared;
  unsigned char *copies; /* [ranks][PLACES][MOST_BYTES], of all ranks */
  size_t map_bytes;
  char path[80];
  int rank, size;
  uint64_t n_begun;
  int asked;           /* answers that still say that something is in progress */
  ncclResult_t status; /* of a failure of its own */
  bool aborted, connected;
  int n_direct, n_captured, n_run;
  char error[300];
};

/* An aborted communicator may still be named by queued work, so none is ever freed. */
static struct ncclComm pool[8];
static int n_pool, n_groups;
static Call group; /* the exchange that ncclGroupEnd will queue */
static FakeStream *group_stream;
static char last_error[300];

static ncclResult_t complain(ncclComm_t comm, ncclResult_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static ncclResult_t complain(ncclComm_t comm, ncclResult_t status, const char *fmt, ...) {
  char *to = comm ? comm->error : last_error;
  va_list args;
  va_start(args, fmt);
  vsnprintf(to, sizeof last_error, fmt, args);
  va_end(args);
  fprintf(stderr, "fake NCCL: %s\n", to);
  if (comm)
    comm->status = status;
  return status;
}

#define BEGIN FAKE_FAILS(ncclResult_t, ncclInternalError)

/* ---- meeting ---- */

ncclResult_t ncclGetVersion(int *version) {
  BEGIN;
  *version = (int)fake_number("FAKE_NCCL_VERSION", 22809);
  return ncclSuccess;
}

static size_t map_size(int ranks) {
  return sizeof(Shared) + (size_t)ranks * PLACES * MOST_BYTES;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  BEGIN;
  static int n;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "/dev/shm/fake-nccl-%d-%d-%ld", (int)getpid(), n++,
           t.tv_nsec);
  int file = open(id->internal, O_RDWR | O_CREAT | O_EXCL, 0600);
  Shared *shared = file < 0 || ftruncate(file, (off_t)map_size(MOST_RANKS))
                       ? MAP_FAILED
                       : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED)
    return complain(NULL, ncclSystemError, "cannot make %s", id->internal);
  shared->seed = (unsigned)t.tv_nsec;
  munmap(shared, sizeof *shared);
  close(file);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  BEGIN;
  ncclComm_t comm = &pool[n_pool++ % 8];
  const char *seen = getenv("CUDA_VISIBLE_DEVICES"), *device = getenv("FAKE_CUDA_DEVICE");
  *comm = (struct ncclComm){.rank = rank, .size = ranks, .asked = 2, .map_bytes = map_size(ranks)};
  if (config->magic != nccl_config_magic || config->size < sizeof(NcclConfig) || config->blocking)
    return complain(NULL, ncclInvalidArgument, "the configuration is not one that does not block");
  if (ranks > MOST_RANKS || rank < 0 || rank >= ranks)
    return complain(NULL, ncclInvalidArgument, "rank %d of %d", rank, ranks);
  snprintf(comm->path, sizeof comm->path, "%.79s", id.internal);
  int file = open(comm->path, O_RDWR);
  comm->shared = file < 0 ? MAP_FAILED
                          : mmap(NULL, comm->map_bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_NORESERVE, file, 0);
  if (file >= 0)
    close(file);
  if (comm->shared == MAP_FAILED)
    return complain(NULL, ncclSystemError, "no rank has made %s", comm->path);
  comm->copies = (unsigned char *)(comm->shared + 1);
  if (seen && *seen)
    snprintf(comm->shared->device[rank], sizeof comm->shared->device[rank], "%.30s, %.10s", seen,
             device ? device : "0");
  atomic_store(&comm->shared->present[rank], 1);
  *made = comm;
  return ncclInProgress;
}

static bool has_duplicates(ncclComm_t comm) {
  const Shared *s = comm->shared;
  for (int a = 0; a < comm->size; a++)
    for (int b = 0; b < a; b++)
      if (*s->device[a] && strcmp(s->device[a], s->device[b]) == 0) {
        complain(comm, ncclInvalidUsage,
                 "Duplicate GPU detected : rank %d and rank %d both on CUDA device %s", b, a,
                 s->device[a]);
        return true;
      }
  return false;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status) {
  BEGIN;
  *status = comm->status;
  int broken = atomic_load(&comm->shared->broken);
  if (*status == ncclSuccess && broken)
    *status = broken == 1 + comm->rank ? ncclSystemError : ncclRemoteError;
  if (*status != ncclSuccess)
    return ncclSuccess;
  *status = ncclInProgress;
  for (int r = 0; !comm->connected && r < comm->size; r++)
    if (!atomic_load(&comm->shared->present[r]))
      return ncclSuccess;
  if (comm->asked-- > 0)
    return ncclSuccess;
  if (!comm->connected && has_duplicates(comm)) {
    *status = comm->status;
    return ncclSuccess;
  }
  comm->connected = true;
  unlink(comm->path);
  *status = ncclSuccess;
  return ncclSuccess;
}

static void leave(ncclComm_t comm) {
  if (fake_number("FAKE_NCCL_CALLS", 0))
    fprintf(stderr, "fake NCCL: rank %d: %d calls, %d captured, %d executed\n", comm->rank,
            comm->n_direct, comm->n_captured, comm->n_run);
  unlink(comm->path);
  comm->aborted = true;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  BEGIN;
  comm->asked = 1;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  BEGIN;
  leave(comm);
  munmap(comm->shared, comm->map_bytes);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  BEGIN;
  leave(comm);
  return ncclSuccess;
}

/* ---- what a stream does ---- */

static size_t type_size(int type) {
  return type == ncclFloat32 || type == ncclInt32 ? 4 : 0;
}

static unsigned char *copy_at(ncclComm_t comm, int rank, uint64_t number) {
  return comm->copies + ((size_t)rank * PLACES + number % PLACES) * MOST_BYTES;
}

static Note *note_at(ncclComm_t comm, int rank, uint64_t number) {
  return &comm->shared->note[rank][number % PLACES];
}

static void begin_call(Call *call) {
  ncclComm_t comm = call->comm;
  const char *wish = getenv("FAKE_NCCL_BREAK"), *at = wish ? strchr(wish, ':') : NULL;
  call->number = ++comm->n_begun;
  if (at && atoi(wish) == comm->rank && (uint64_t)atoll(at + 1) == call->number) {
    complain(comm, ncclSystemError, "the network of rank %d is gone", comm->rank);
    atomic_store(&comm->shared->broken, 1 + comm->rank);
    return;
  }
  Note *note = note_at(comm, comm->rank, call->number);
  unsigned char *copy = copy_at(comm, comm->rank, call->number);
  note->kind = call->kind;
  note->type = call->type;
  note->count = call->count;
  note->n_sends = 0;
  size_t used = 0;
  for (int i = 0; i < call->n; i++) {
    const Transfer *t = &call->transfer[i];
    if (!t->from)
      continue;
    note->send[note->n_sends] = t->piece;
    note->send[note->n_sends++].at = used;
    memcpy(copy + used, t->from, t->piece.count * type_size(t->piece.type));
    used += t->piece.count * type_size(t->piece.type);
  }
  if (call->kind != EXCHANGE)
    memcpy(copy, call->from, call->count * type_size(call->type));
  atomic_store(&note->number, call->number);
}

static bool all_have_begun(const Call *call) {
  for (int r = 0; r < call->comm->size; r++)
    if (atomic_load(&note_at(call->comm, r, call->number)->number) != call->number)
      return false;
  return true;
}

static bool all_want_the_same(const Call *call) {
  static const char *const name[] = {"sums", "gathers", "exchanges"};
  for (int r = 0; r < call->comm->size; r++) {
    const Note *n = note_at(call->comm, r, call->number);
    if (n->kind != call->kind || n->type != call->type || n->count != call->count) {
      complain(call->comm, ncclInvalidUsage,
               "call %llu: rank %d %s %zu of type %d, rank %d %s %zu of type %d",
               (unsigned long long)call->number, call->comm->rank, name[call->kind], call->count,
               call->type, r, name[n->kind], n->count, n->type);
      return false;
    }
  }
  return true;
}

/* Is what this rank gave still in memory? */
static bool nobody_wrote(const Call *call) {
  const unsigned char *copy = copy_at(call->comm, call->comm->rank, call->number);
  bool same =
      call->kind == EXCHANGE || memcmp(copy, call->from, call->count * type_size(call->type)) == 0;
  for (int i = 0; i < call->n; i++) {
    const Transfer *t = &call->transfer[i];
    size_t bytes = t->piece.count * type_size(t->piece.type);
    if (!t->from)
      continue;
    same &= memcmp(copy, t->from, bytes) == 0;
    copy += bytes;
  }
  if (!same)
    complain(call->comm, ncclInvalidUsage, "call %llu: rank %d wrote to its numbers meanwhile",
             (unsigned long long)call->number, call->comm->rank);
  return same;
}

/* A ring adds each chunk in the order of the ranks, from one that nobody promises. */
static void sum(const Call *call) {
  ncclComm_t comm = call->comm;
  const char *order = getenv("FAKE_NCCL_ORDER"), *algorithm = getenv("NCCL_ALGO");
  const float *from[MOST_RANKS];
  float *to = call->to;
  for (int r = 0; r < comm->size; r++)
    from[r] = (const float *)(const void *)copy_at(comm, r, call->number);
  if (order && strcmp(order, "tree") == 0) {
    for (size_t i = 0; i < call->count; i++) {
      float v[MOST_RANKS];
      for (int r = 0; r < comm->size; r++)
        v[r] = from[r][i];
      for (int step = 1; step < comm->size; step *= 2)
        for (int r = 0; r + step < comm->size; r += 2 * step)
          v[r] += v[r + step];
      to[i] = v[0];
    }
    return;
  }
  unsigned seed = algorithm && strstr(algorithm, "ing") ? 0 : comm->shared->seed;
  for (size_t i = 0; i < call->count; i++) {
    unsigned chunk = (unsigned)(i / CHUNK), size = (unsigned)comm->size;
    unsigned start = ((seed + chunk) * 2654435761u >> 16) % size;
    float v = from[start][i];
    for (unsigned k = 1; k < size; k++)
      v += from[(start + k) % size][i];
    to[i] = v;
  }
}

static void gather(const Call *call) {
  size_t bytes = call->count * type_size(call->type);
  for (int r = 0; r < call->comm->size; r++)
    memcpy((unsigned char *)call->to + (size_t)r * bytes, copy_at(call->comm, r, call->number),
           bytes);
}

/* The k-th piece that a rank receives from another is the k-th that that one sends to it. */
static bool receive(const Call *call, int index) {
  ncclComm_t comm = call->comm;
  const Transfer *t = &call->transfer[index];
  const Note *note = note_at(comm, t->piece.peer, call->number);
  int k = 0, i = 0;
  for (int before = 0; before < index; before++)
    k += !call->transfer[before].from && call->transfer[before].piece.peer == t->piece.peer;
  while (i < note->n_sends && (note->send[i].peer != comm->rank || k-- > 0))
    i++;
  if (i == note->n_sends || note->send[i].count != t->piece.count ||
      note->send[i].type != t->piece.type) {
    complain(comm, ncclInvalidUsage, "call %llu: rank %d wants %zu from rank %d, which sends %zu",
             (unsigned long long)call->number, comm->rank, t->piece.count, t->piece.peer,
             i == note->n_sends ? 0 : note->send[i].count);
    return false;
  }
  memcpy(t->to, copy_at(comm, t->piece.peer, call->number) + note->send[i].at,
         t->piece.count * type_size(t->piece.type));
  return true;
}

static int try_call(void *data) {
  Call *call = data;
  ncclComm_t comm = call->comm;
  if (comm->aborted)
    return 1;
  if (comm->status != ncclSuccess || atomic_load(&comm->shared->broken))
    return 0; /* as a kernel that waits for ever */
  if (!call->number)
    begin_call(call);
  if (comm->status != ncclSuccess || !all_have_begun(call))
    return 0;
  bool good = all_want_the_same(call) && nobody_wrote(call);
  if (good && call->kind == SUM)
    sum(call);
  else if (good && call->kind == GATHER)
    gather(call);
  for (int i = 0; good && i < call->n; i++)
    good = call->transfer[i].from || receive(call, i);
  if (!good) {
    atomic_store(&comm->shared->broken, 1 + comm->rank);
    return 0;
  }
  call->number = 0;
  comm->n_run++;
  return 1;
}

/* ---- calls ---- */

/* The first call is as slow as one that opens connections. */
static ncclResult_t queue(Call *call, FakeStream *stream) {
  ncclComm_t comm = call->comm;
  if (comm->aborted || !comm->connected || comm->asked > 0)
    return complain(comm, ncclInvalidUsage, "a call before the one before has ended");
  size_t bytes = call->count * type_size(call->type);
  for (int i = 0; i < call->n; i++)
    bytes += call->transfer[i].piece.count * type_size(call->transfer[i].piece.type);
  if (bytes > MOST_BYTES || (call->kind != EXCHANGE && !type_size(call->type)))
    return complain(comm, ncclInvalidArgument, "%zu bytes of type %d", bytes, call->type);
  comm->asked = comm->n_direct + comm->n_captured == 0 ? 2 : 0;
  if (stream->is_capturing(stream))
    comm->n_captured++;
  else
    comm->n_direct++;
  stream->add_try(stream, try_call, call, sizeof *call);
  return comm->asked ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  BEGIN;
  if (op != ncclSum || type != ncclFloat32)
    return complain(comm, ncclInvalidArgument, "operation %d of type %d", op, type);
  Call call = {.comm = comm, .kind = SUM, .type = type, .count = count, .from = from, .to = to};
  return queue(&call, (FakeStream *)(void *)stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  BEGIN;
  Call call = {.comm = comm, .kind = GATHER, .type = type, .count = count, .from = from, .to = to};
  return queue(&call, (FakeStream *)(void *)stream);
}

ncclResult_t ncclGroupStart(void) {
  BEGIN;
  if (n_groups++ == 0)
    group = (Call){.kind = EXCHANGE};
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  BEGIN;
  if (--n_groups || !group.n)
    return ncclSuccess;
  return queue(&group, group_stream);
}

static ncclResult_t add_transfer(Transfer transfer, ncclComm_t comm, cudaStream_t stream) {
  if (!n_groups || group.n == 2 * MOST_PIECES || transfer.piece.peer < 0 ||
      transfer.piece.peer >= comm->size || !type_size(transfer.piece.type))
    return complain(comm, ncclInvalidArgument, "%zu to or from rank %d", transfer.piece.count,
                    transfer.piece.peer);
  group.comm = comm;
  group.transfer[group.n++] = transfer;
  group_stream = (FakeStream *)(void *)stream;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  BEGIN;
  return add_transfer((Transfer){.piece = {peer, type, count, 0}, .from = from}, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  BEGIN;
  return add_transfer((Transfer){.piece = {peer, type, count, 0}, .to = to}, comm, stream);
}

const char *ncclGetErrorString(ncclResult_t status) {
  static const char *const text[] = {
      [ncclSuccess] = "no error",
      [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
      [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
      [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
      [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
      [ncclRemoteError] = "remote process exited or there was a network error",
      [ncclInProgress] = "NCCL operation in progress"};
  return (unsigned)status <= ncclInProgress ? text[status] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) {
  return comm ? comm->error : last_error;
}
