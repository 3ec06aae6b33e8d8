/* A program of many processes: sums buckets over them for some steps, and compares every sum with a
 * plain tree over values that each process can compute for all. Rank 0 prints one line: how sums
 * are made, and a hash of them.
 *
 * sums NAME=VALUE...: elements, buckets (1,3,40: all steps are done with one bucket, then again
 * with three, ..., which must give the same bits), steps, comm_timeout, connect_timeout,
 * mpi_library;
 * pause: milliseconds that every step takes beside; local=1: no arena, gathers alone; fail=R: rank
 * R ends with an error after half of the steps; cores=1: print what processors each rank has. */
#include "runtime/parallel/group.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct Args {
  long elements, steps, pause, local, fail, cores;
  const char *buckets;
  AmprtGroupOptions options;
} Args;

static bool read_args(Args *a, int argc, char **argv) {
  *a = (Args){.elements = 1000, .buckets = "3", .steps = 4, .fail = -1, .options = {"", 20, 20}};
  for (int i = 1; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value)
      return false;
    *value++ = 0;
    const struct {
      const char *name;
      long *to;
      double *seconds;
    } known[] = {{"elements", &a->elements, NULL},
                 {"steps", &a->steps, NULL},
                 {"pause", &a->pause, NULL},
                 {"local", &a->local, NULL},
                 {"fail", &a->fail, NULL},
                 {"cores", &a->cores, NULL},
                 {"comm_timeout", NULL, &a->options.comm_timeout},
                 {"connect_timeout", NULL, &a->options.connect_timeout}};
    bool library = !strcmp(argv[i], "mpi_library"), buckets = !strcmp(argv[i], "buckets");
    bool found = library || buckets;
    if (library)
      a->options.mpi_library = value;
    if (buckets)
      a->buckets = value;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      if (!strcmp(argv[i], known[k].name)) {
        found = true;
        if (known[k].to)
          *known[k].to = atol(value);
        else
          *known[k].seconds = atof(value);
      }
    if (!found)
      return false;
  }
  return a->elements > 0;
}

/* Values of very different magnitudes, so that another order of sums has other bits. */
static float value(long step, int rank, uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xbf58476d1ce4e5b9u +
               (uint64_t)step * 0x94d049bb133111ebu;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  float scale = 1.0f / (float)(1u << (x & 15));
  return ((float)(int32_t)(x >> 32)) * 0x1p-31f * scale;
}

/* The sum over ranks first .. first+n-1, by its definition. */
static float plain_tree(long step, int first, int n, uint64_t i) {
  if (n == 1)
    return value(step, first, i);
  int left = 1;
  while (2 * left < n)
    left *= 2;
  return plain_tree(step, first, left, i) + plain_tree(step, first + left, n - left, i);
}

static uint64_t bucket_edge(uint64_t lines, int b, int buckets) {
  return lines * (uint64_t)b / (uint64_t)buckets * 16;
}

/* One step: every bucket is filled and started, polled for, waited for and compared. */
static int step(AmprtGroup *g, const Args *a, long k, int buckets, unsigned char *arena,
                uint64_t at, uint64_t *hash, AmprtError *error) {
  const AmprtGroupInfo *info = amprt_group_info(g);
  uint64_t lines = ((uint64_t)a->elements + 15) / 16, n = lines * 16;
  float *v = (float *)(void *)(arena + at);
  for (int b = 0; b < buckets; b++) {
    uint64_t from = bucket_edge(lines, b, buckets), past = bucket_edge(lines, b + 1, buckets);
    for (uint64_t i = from; i < past; i++)
      v[i] = value(k, info->rank, i);
    amprt_group_start(g, b, at + 4 * from, past - from);
    amprt_group_poll(g);
  }
  for (int b = 0; b < buckets; b++)
    if (amprt_group_wait(g, b, error))
      return error->status;
  for (uint64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &v[i], sizeof bits);
    *hash = (*hash ^ bits) * 0x100000001b3u;
    float want = plain_tree(k, 0, info->size, i);
    if (memcmp(&want, &v[i], sizeof want))
      return (int)amprt_fail(error, AMPRT_INPUT, "step %ld: element %llu is %.9g, not %.9g", k,
                             (unsigned long long)i, (double)v[i], (double)want);
  }
  return 0;
}

static int steps(AmprtGroup *g, const Args *a, int buckets, unsigned char *arena, uint64_t at,
                 uint64_t *all, uint64_t *hash, AmprtError *error) {
  const AmprtGroupInfo *info = amprt_group_info(g);
  int status = 0;
  *hash = 0xcbf29ce484222325u;
  for (long k = 0; k < a->steps && !status; k++) {
    struct timespec pause = {a->pause / 1000, a->pause % 1000 * 1000000};
    nanosleep(&pause, NULL);
    if (k == a->steps / 2 && info->rank == a->fail)
      status = (int)amprt_fail(error, AMPRT_INPUT, "rank %d was told to fail", info->rank);
    if (!status && arena)
      status = step(g, a, k, buckets, arena, at, hash, error);
    uint64_t mine = *hash + (uint64_t)(a->local * info->rank);
    if (!status)
      status = (int)amprt_group_gather(g, &mine, all, sizeof mine, error);
    for (int r = 0; r < info->size && !status; r++)
      if (all[r] != *hash + (uint64_t)(a->local * r))
        status = (int)amprt_fail(error, AMPRT_INPUT, "step %ld: rank %d has another sum", k, r);
  }
  return status;
}

static int run(AmprtGroup *g, const Args *a, AmprtError *error) {
  const AmprtGroupInfo *info = amprt_group_info(g);
  /* The buckets begin and end in the middle of pages, on lines. */
  uint64_t at = 4096 * 3 + 64 * 5, bytes = ((uint64_t)a->elements + 15) / 16 * 64;
  uint64_t *all = calloc((size_t)info->size, sizeof *all);
  unsigned char *arena = NULL;
  int status = all ? 0 : 3;
  if (!status && !a->local)
    status = (int)amprt_group_arena(g, at + bytes + 100, at, bytes, &arena, error);
  for (uint64_t i = 0; arena && i < at + bytes + 100 && !status; i++)
    if (arena[i])
      status = (int)amprt_fail(error, AMPRT_INPUT, "the arena is not zero");
  uint64_t hash = 0, first = 0;
  for (const char *list = a->buckets; list && !status; list = strchr(list, ',')) {
    list += list != a->buckets; /* the comma */
    status = steps(g, a, atoi(list), arena, at, all, &hash, error);
    first = list == a->buckets ? hash : first;
    if (!status && hash != first)
      status = (int)amprt_fail(error, AMPRT_INPUT, "%s buckets: other bits", list);
  }
  if (!status && a->cores) {
    AmprtGroupCores c = amprt_group_cores(g);
    printf("rank %d: %d of %d processors%s\n", info->rank, c.mine, c.together,
           c.apart ? ", its own" : "");
  }
  if (!status && info->rank == 0)
    printf("%d ranks on %d machines, %s: %016llx\n", info->size, info->machines, info->transport,
           (unsigned long long)hash);
  free(all);
  return status;
}

int main(int argc, char **argv) {
  Args args;
  AmprtError error = {.text = ""};
  AmprtGroup *group;
  if (!read_args(&args, argc, argv))
    return fprintf(stderr, "sums: bad argument\n"), 2;
  int status = (int)amprt_group_open(&group, &args.options, &error);
  if (!status && !group)
    return printf("alone\n"), 0;
  if (!status && args.pause) { /* a test is to stop or kill some of these */
    printf("rank %d is process %d\n", amprt_group_info(group)->rank, (int)getpid());
    fflush(stdout);
  }
  if (!status)
    status = run(group, &args, &error);
  if (status)
    fprintf(stderr, "sums: error: %s\n", error.text);
  amprt_group_close(group, status != 0);
  return status;
}
