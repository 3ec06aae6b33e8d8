/* ImageNet as the official programs read it: shards PART-00000-of-01024 ... of TFRecords, each
 * record a tf.Example with a JPEG, a label from 1 to 1000 and boxes (specs/resnet.md 4.2). Opening
 * reads the lengths of all records, several shards at once, and nothing else; a record is read and
 * its checksum checked when it is fetched. What stays in memory is one offset per record. */
#include "runtime/data/data.h"
#include "runtime/record/record.h"
#include "runtime/record/tf_example.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CLASSES = 1000, THREADS = 16 };

typedef struct Shard {
  char *path;
  uint64_t *offset; /* of its records */
  size_t n, room;
  bool short_of_memory; /* for them */
  int64_t first;        /* record of the set */
  uint64_t size;        /* bytes */
  _Atomic int file;     /* descriptor that stays open, or -1 */
} Shard;

typedef struct Shards {
  char dir[AMPRT_PATH];
  Shard *shard;
  int n;
  _Atomic int kept; /* descriptors */
  int most_kept;    /* of as many as the process may have */
  _Atomic int next; /* shard to be indexed */
  pthread_mutex_t lock;
  int failed; /* the first shard that cannot be read, and why; n: none */
  AmprtError error;
} Shards;

/* ---- which files ---- */

/* Is `name` PART-INDEX-of-COUNT, both with five digits? */
static bool parse_name(const char *name, const char *part, int *index, int *count) {
  size_t n = strlen(part);
  char again[300];
  if (strncmp(name, part, n) || name[n] != '-' || strlen(name) != n + 15)
    return false;
  *index = atoi(name + n + 1);
  *count = atoi(name + n + 10);
  snprintf(again, sizeof again, "%.200s-%05d-of-%05d", part, *index, *count);
  return !strcmp(again, name) && *count > 0 && *index < *count;
}

/* Finds the part's files in `dir`: all of one count, which is shards->n then; 0 if there are
 * none. */
static AmprtStatus list_shards(Shards *shards, const char *dir, const char *part,
                               AmprtError *error) {
  DIR *folder = opendir(dir);
  if (!folder)
    return amprt_fail(error, AMPRT_INPUT, "%s: cannot open: %s", dir, strerror(errno));
  AmprtStatus status = AMPRT_OK;
  int found = 0, index, count;
  snprintf(shards->dir, sizeof shards->dir, "%s", dir);
  for (const struct dirent *entry; !status && (entry = readdir(folder));) {
    if (!parse_name(entry->d_name, part, &index, &count))
      continue;
    if (!shards->n) {
      shards->shard = calloc((size_t)count, sizeof *shards->shard);
      shards->n = shards->shard ? count : 0;
    }
    if (!shards->n)
      status = amprt_fail_memory(error, (size_t)count * sizeof *shards->shard, dir);
    else if (count != shards->n)
      status = amprt_fail(error, AMPRT_INPUT,
                          "%s: has files of two sets, one %s-...-of-%05d, one -of-%05d", dir, part,
                          shards->n, count);
    else if (!(shards->shard[index].path = malloc(strlen(dir) + strlen(entry->d_name) + 2)))
      status = amprt_fail_memory(error, AMPRT_PATH, dir);
    else
      found += sprintf(shards->shard[index].path, "%s/%s", dir, entry->d_name) > 0;
  }
  closedir(folder);
  for (int i = 0; !status && i < shards->n; i++)
    if (!shards->shard[i].path)
      status = amprt_fail(error, AMPRT_INPUT,
                          "%s: %s-%05d-of-%05d is missing (%d of %d files are there)", dir, part, i,
                          shards->n, found, shards->n);
  return status;
}

/* The files lie in the folder itself or, as some tools leave them, in its folder PART. */
static AmprtStatus find_shards(Shards *shards, const char *dir, const char *part,
                               AmprtError *error) {
  char inner[AMPRT_PATH];
  AmprtStatus status = list_shards(shards, dir, part, error);
  if (!status)
    status = amprt_path(inner, dir, part, error);
  if (!status && !shards->n && access(inner, F_OK) == 0)
    status = list_shards(shards, inner, part, error);
  if (!status && !shards->n)
    status = amprt_fail(error, AMPRT_INPUT,
                        "%s: has no files %s-00000-of-..., the shards of TFRecords that are wanted",
                        dir, part);
  return status;
}

/* ---- where the records are ---- */

static bool add_record(void *context, uint64_t offset, uint64_t length) {
  Shard *shard = context;
  (void)length;
  if (shard->n == shard->room) {
    size_t room = shard->room ? 2 * shard->room : 512;
    uint64_t *more = realloc(shard->offset, room * sizeof *more);
    shard->short_of_memory = !more;
    if (!more)
      return false;
    shard->offset = more;
    shard->room = room;
  }
  shard->offset[shard->n++] = offset;
  return true;
}

static AmprtStatus index_shard(Shard *shard, AmprtError *error) {
  AmprtRecordFile file;
  AmprtStatus status = amprt_records_open(&file, shard->path, error);
  if (status)
    return status;
  posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM); /* what lies between lengths is not wanted */
  shard->size = file.size;
  status = amprt_records_walk(&file, add_record, shard, error);
  amprt_records_close(&file);
  if (!status && shard->short_of_memory)
    status = amprt_fail_memory(error, 2 * shard->room * sizeof *shard->offset, shard->path);
  return status;
}

static void *index_some(void *arg) {
  Shards *shards = arg;
  for (int i; (i = atomic_fetch_add(&shards->next, 1)) < shards->n;) {
    AmprtError error;
    if (!index_shard(&shards->shard[i], &error))
      continue;
    pthread_mutex_lock(&shards->lock);
    if (i < shards->failed) {
      shards->failed = i;
      shards->error = error;
    }
    pthread_mutex_unlock(&shards->lock);
  }
  return NULL;
}

/* Indexes several shards at once, since network file systems answer slowly, but many requests at a
 * time. The threads block all signals; if none can be started, this thread does all the work. */
static AmprtStatus index_all(Shards *shards, int64_t *n, AmprtError *error) {
  pthread_t thread[THREADS];
  int started = 0;
  sigset_t all, before;
  shards->failed = shards->n;
  pthread_mutex_init(&shards->lock, NULL);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < THREADS && started + 1 < shards->n &&
         !pthread_create(&thread[started], NULL, index_some, shards))
    started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  index_some(shards);
  for (int i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
  *n = 0;
  if (shards->failed < shards->n) {
    *error = shards->error;
    return error->status;
  }
  for (int i = 0; i < shards->n; i++) {
    shards->shard[i].first = *n;
    *n += (int64_t)shards->shard[i].n;
  }
  if (*n == 0 || *n > INT32_MAX)
    return amprt_fail(error, AMPRT_INPUT, "%s: its %d files hold %s", shards->dir, shards->n,
                      *n ? "more than 2^31 records" : "no records");
  return AMPRT_OK;
}

/* ---- the reader ---- */

/* The shard of a record, the last that begins at or before it. */
static Shard *shard_of(const Shards *shards, int64_t index, uint64_t *offset, uint64_t *length) {
  int low = 0, high = shards->n;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (shards->shard[middle].first <= index)
      low = middle;
    else
      high = middle;
  }
  Shard *shard = &shards->shard[low];
  size_t i = (size_t)(index - shard->first);
  uint64_t end = i + 1 < shard->n ? shard->offset[i + 1] : shard->size;
  *offset = shard->offset[i];
  *length = end - *offset - AMPRT_RECORD_HEAD - AMPRT_RECORD_TAIL;
  return shard;
}

/* Files stay open, because opening one again for each record would cost a request to a network file
 * system each time. Those beyond the number that the process may have open are opened each time. */
static AmprtStatus open_shard(Shards *shards, Shard *shard, AmprtRecordFile *file, bool *kept,
                              AmprtError *error) {
  int none = -1;
  *file = (AmprtRecordFile){atomic_load(&shard->file), shard->size, shard->path};
  *kept = file->fd >= 0;
  if (*kept)
    return AMPRT_OK;
  AmprtStatus status = amprt_records_open(file, shard->path, error);
  if (status)
    return status;
  if (file->size != shard->size) {
    amprt_records_close(file);
    return amprt_fail(error, AMPRT_INPUT, "%s: its size has changed during the run", shard->path);
  }
  posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
  *kept = atomic_fetch_add(&shards->kept, 1) < shards->most_kept &&
          atomic_compare_exchange_strong(&shard->file, &none, file->fd);
  if (!*kept)
    atomic_fetch_sub(&shards->kept, 1);
  return AMPRT_OK;
}

static AmprtStatus fail_at(const Shard *shard, uint64_t offset, const char *why,
                           AmprtError *error) {
  return amprt_fail(error, AMPRT_INPUT, "%s: record at byte %" PRIu64 ": %s", shard->path, offset,
                    why);
}

/* Replaces the record in the room by its boxes and then its image, which are never more. */
static AmprtStatus take_example(const Shard *shard, uint64_t offset, uint64_t length,
                                unsigned char *room, AmprtRecord *record, AmprtError *error) {
  AmprtTfExample example;
  const char *why = amprt_tf_example_parse(&example, room + AMPRT_RECORD_HEAD, length);
  char text[100];
  if (!why && (example.label < 1 || example.label > CLASSES)) {
    snprintf(text, sizeof text, "its image/class/label is %" PRId64 ", not from 1 to %d",
             example.label, CLASSES);
    why = text;
  }
  AmprtStatus status = why ? fail_at(shard, offset, why, error) : AMPRT_OK;
  if (!status) {
    AmprtBox *box = (void *)room;
    unsigned char *image = room + (size_t)example.n_boxes * sizeof *box;
    for (int i = 0; i < example.n_boxes; i++)
      box[i] = (AmprtBox){example.ymin[i], example.xmin[i], example.ymax[i], example.xmax[i]};
    memcpy(image, example.encoded, example.size);
    *record =
        (AmprtRecord){image, example.size, (int32_t)(example.label - 1), box, example.n_boxes};
  }
  amprt_tf_example_close(&example);
  return status;
}

static AmprtStatus shards_fetch(const AmprtDataset *set, int64_t index, AmprtRoom *room,
                                AmprtRecord *record, AmprtError *error) {
  Shards *shards = set->state;
  uint64_t offset, length;
  Shard *shard = shard_of(shards, index, &offset, &length);
  AmprtRecordFile file;
  bool kept;
  unsigned char *memory = amprt_room(room, length + AMPRT_RECORD_HEAD + AMPRT_RECORD_TAIL, error);
  AmprtStatus status = memory ? open_shard(shards, shard, &file, &kept, error) : AMPRT_ENV;
  if (status)
    return status;
  status = amprt_record_read(&file, offset, length, memory, error);
  if (!kept)
    amprt_records_close(&file);
  return status ? status : take_example(shard, offset, length, memory, record, error);
}

/* Looks only at files that are open already, as this must not wait. */
static void shards_ahead(const AmprtDataset *set, int64_t index) {
  uint64_t offset, length;
  const Shard *shard = shard_of(set->state, index, &offset, &length);
  int file = atomic_load(&shard->file);
  if (file >= 0)
    posix_fadvise(file, (off_t)offset, (off_t)length, POSIX_FADV_WILLNEED);
}

static void shards_place(const AmprtDataset *set, int64_t index, char *out, size_t size) {
  uint64_t offset, length;
  const Shard *shard = shard_of(set->state, index, &offset, &length);
  snprintf(out, size, "%s, byte %" PRIu64, shard->path, offset);
}

static void shards_close(void *state) {
  Shards *shards = state;
  for (int i = 0; i < shards->n; i++) {
    if (shards->shard[i].file >= 0)
      close(shards->shard[i].file);
    free(shards->shard[i].path);
    free(shards->shard[i].offset);
  }
  free(shards->shard);
  free(shards);
}

static const AmprtReader shards_reader = {shards_fetch, shards_ahead, shards_place, shards_close};

AmprtStatus amprt_open_imagenet(const char *dir, const char *part, AmprtDataset *set,
                                AmprtError *error) {
  struct rlimit limit;
  Shards *shards = calloc(1, sizeof *shards);
  if (!shards)
    return amprt_fail_memory(error, sizeof *shards, dir);
  set->state = shards;
  set->reader = &shards_reader;
  set->classes = CLASSES;
  set->exact = set->background = true;
  AmprtStatus status = find_shards(shards, dir, part, error);
  for (int i = 0; i < shards->n; i++)
    shards->shard[i].file = -1;
  /* the training and the test set may each keep a quarter of all descriptors open */
  shards->most_kept =
      getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 1 << 20 ? 256 : (int)limit.rlim_cur / 4;
  return status ? status : index_all(shards, &set->n, error);
}
