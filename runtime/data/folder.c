/* Folders of photographs, as torchvision's ImageFolder has them: PART/CLASS/.../NAME.jpg. The
 * classes are the names of the folders in PART, in the order of their bytes; the records of a class
 * are its files, those in deeper folders too, in the order of the bytes of their paths. What ends
 * in .jpg, .jpeg or .png, in small or capital letters, is an image; other files are left alone. */
#include "runtime/data/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 1 << 28, DEEPEST = 32 };

/* Texts one behind the other, and the place where each begins. */
typedef struct Names {
  char *text;
  size_t size, room;
  uint32_t *at;
  size_t n, places;
} Names;

typedef struct Folder {
  char path[AMPRT_PATH];  /* of the part */
  Names class_name, file; /* the paths of files, below `path` */
  const char **class_list;
  uint32_t *class_end; /* records of class c end before class_end[c] */
} Folder;

static AmprtStatus add_name(Names *names, const char *dir, const char *name, AmprtError *error) {
  size_t length = strlen(dir) + strlen(name) + 2;
  if (names->size + length > UINT32_MAX)
    return amprt_fail(error, AMPRT_INPUT, "%.200s: the names of its files are more than 4 GB", dir);
  if (names->size + length > names->room) {
    size_t room = 2 * (names->size + length);
    char *text = realloc(names->text, room);
    if (!text)
      return amprt_fail_memory(error, room, "the names of files");
    names->text = text;
    names->room = room;
  }
  if (names->n == names->places) {
    size_t places = 2 * names->places + 64;
    uint32_t *at = realloc(names->at, places * sizeof *at);
    if (!at)
      return amprt_fail_memory(error, places * sizeof *at, "the names of files");
    names->at = at;
    names->places = places;
  }
  names->at[names->n++] = (uint32_t)names->size;
  names->size +=
      (size_t)sprintf(names->text + names->size, "%s%s%s", dir, *dir ? "/" : "", name) + 1;
  return AMPRT_OK;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the names from `first` on. */
static AmprtStatus sort_names(Names *names, size_t first, AmprtError *error) {
  size_t n = names->n - first;
  const char **list = malloc((n + 1) * sizeof *list);
  if (!list)
    return amprt_fail_memory(error, n * sizeof *list, "the names of files");
  for (size_t i = 0; i < n; i++)
    list[i] = names->text + names->at[first + i];
  qsort(list, n, sizeof *list, by_bytes);
  for (size_t i = 0; i < n; i++)
    names->at[first + i] = (uint32_t)(list[i] - names->text);
  free(list);
  return AMPRT_OK;
}

static bool is_image(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png"));
}

/* The kind of an entry, links followed: 'd' for a folder, 'f' for a file, 0 for anything else. */
static char kind_of(const char *dir, const struct dirent *entry) {
  char path[AMPRT_PATH];
  struct stat what;
  if (entry->d_type == DT_DIR || entry->d_type == DT_REG)
    return entry->d_type == DT_DIR ? 'd' : 'f';
  if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) ||
      snprintf(path, sizeof path, "%s/%s", dir, entry->d_name) >= (int)sizeof path ||
      stat(path, &what))
    return 0;
  return S_ISDIR(what.st_mode) ? 'd' : S_ISREG(what.st_mode) ? 'f' : 0;
}

/* Adds the folders (depth 0: the classes) or the images in root/below. */
static AmprtStatus scan(const char *root, const char *below, int depth, Names *out,
                        AmprtError *error) {
  char path[AMPRT_PATH], inner[AMPRT_PATH];
  AmprtStatus status = amprt_path(path, root, below, error);
  if (!status && depth > DEEPEST)
    status =
        amprt_fail(error, AMPRT_INPUT, "%s: folders are nested more than %d deep", path, DEEPEST);
  DIR *dir = status ? NULL : opendir(path);
  if (!status && !dir)
    status = amprt_fail_errno(error, "opendir", path);
  for (const struct dirent *entry; !status && (errno = 0, entry = readdir(dir));) {
    if (entry->d_name[0] == '.')
      continue;
    if (!depth && strpbrk(entry->d_name, "\n\r")) {
      status = amprt_fail(error, AMPRT_INPUT, "%s: a class's name has a line break in it", path);
      break;
    }
    char kind = kind_of(path, entry);
    if (kind == 'd' && !depth) {
      status = add_name(out, "", entry->d_name, error);
    } else if (kind == 'd') {
      status = amprt_path(inner, below, entry->d_name, error);
      if (!status)
        status = scan(root, inner, depth + 1, out, error);
    } else if (kind == 'f' && depth && is_image(entry->d_name)) {
      status = add_name(out, below, entry->d_name, error);
    }
  }
  if (!status && errno)
    status = amprt_fail_errno(error, "readdir", path);
  if (dir)
    closedir(dir);
  return status;
}

static AmprtStatus folder_fetch(const AmprtDataset *set, int64_t index, AmprtRoom *room,
                                AmprtRecord *record, AmprtError *error) {
  const Folder *folder = set->state;
  char path[AMPRT_PATH];
  AmprtStatus status =
      amprt_path(path, folder->path, folder->file.text + folder->file.at[index], error);
  if (status)
    return status;
  int fd = -1;
  uint64_t size = 0;
  status = amprt_open_file(path, &fd, &size, error);
  if (!status && (!size || size > FILE_LIMIT))
    status =
        amprt_fail(error, AMPRT_INPUT, "%s: %s", path, size ? "is larger than 256 MB" : "is empty");
  if (!status && !amprt_room(room, (size_t)size, error)) {
    close(fd);
    return error->status;
  }
  if (!status)
    status = amprt_read_at(fd, path, 0, room->data, (size_t)size, error);
  if (fd >= 0)
    close(fd);
  if (status)
    return error->status = AMPRT_INPUT; /* of one file, so --max-bad-examples decides */
  int32_t label = 0;
  while ((uint32_t)index >= folder->class_end[label])
    label++;
  *record = (AmprtRecord){.data = room->data, .size = (size_t)size, .label = label};
  return AMPRT_OK;
}

static void folder_place(const AmprtDataset *set, int64_t index, char *out, size_t size) {
  const Folder *folder = set->state;
  snprintf(out, size, "%s/%s", folder->path, folder->file.text + folder->file.at[index]);
}

static void folder_close(void *state) {
  Folder *folder = state;
  free(folder->class_name.text);
  free(folder->class_name.at);
  free(folder->file.text);
  free(folder->file.at);
  free(folder->class_list);
  free(folder->class_end);
  free(folder);
}

static const AmprtReader folder_reader = {
    .fetch = folder_fetch, .place = folder_place, .close = folder_close};

/* The first of `files` that is a folder in `dir`. */
static AmprtStatus find_part(const char *dir, const char *files, char out[AMPRT_PATH],
                             AmprtError *error) {
  char name[64];
  struct stat what;
  for (const char *at = files; amprt_next_word(&at, name, sizeof name);) {
    AmprtStatus status = amprt_path(out, dir, name, error);
    if (status || (!stat(out, &what) && S_ISDIR(what.st_mode)))
      return status;
  }
  char list[128];
  snprintf(list, sizeof list, "%s", files);
  for (char *blank = list; (blank = strchr(blank, ' '));)
    *blank = '|';
  return amprt_fail(error, AMPRT_INPUT,
                    "%s: has no folder %s with a folder of images for each class", dir, list);
}

AmprtStatus amprt_open_folder(const char *dir, const char *files, AmprtDataset *set,
                              AmprtError *error) {
  Folder *folder = calloc(1, sizeof *folder);
  if (!folder)
    return amprt_fail_memory(error, sizeof *folder, "the data set");
  set->reader = &folder_reader;
  set->state = folder;
  Names *classes = &folder->class_name, *images = &folder->file;
  AmprtStatus status = find_part(dir, files, folder->path, error);
  if (!status)
    status = scan(folder->path, "", 0, classes, error);
  if (!status)
    status = sort_names(classes, 0, error);
  if (status)
    return status;
  folder->class_list = calloc(classes->n + 1, sizeof *folder->class_list);
  folder->class_end = calloc(classes->n + 1, sizeof *folder->class_end);
  if (!folder->class_list || !folder->class_end)
    return amprt_fail_memory(error, classes->n * sizeof *folder->class_list, "the classes");
  for (size_t c = 0; c < classes->n && !status; c++) {
    size_t first = images->n;
    folder->class_list[c] = classes->text + classes->at[c];
    status = scan(folder->path, folder->class_list[c], 1, images, error);
    if (!status)
      status = sort_names(images, first, error);
    folder->class_end[c] = (uint32_t)images->n;
  }
  if (!status && (!images->n || images->n > INT32_MAX))
    status = amprt_fail(error, AMPRT_INPUT, "%s: has %zu .jpg, .jpeg or .png files in %zu classes",
                        folder->path, images->n, classes->n);
  set->n = (int64_t)images->n;
  set->classes = (int64_t)classes->n;
  set->exact = set->background = true;
  set->class_name = folder->class_list;
  return status;
}
