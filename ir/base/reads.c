#include "ir/base/reads.h"

#include "ir/base/diag.h"

#include <stdlib.h>
#include <string.h>

static char **list;
static size_t n;

void reads_add(const char *path) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(list[i], path))
      return;
  list = realloc(list, (n + 2) * sizeof *list);
  CHECK(list, "out of memory");
  list[n] = strdup(path);
  CHECK(list[n], "out of memory");
  list[++n] = NULL;
}

static int compare(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *const *reads_list(void) {
  static const char *const none[] = {NULL};
  if (list)
    qsort(list, n, sizeof *list, compare);
  return list ? (const char *const *)list : none;
}
