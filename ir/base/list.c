#include "ir/base/list.h"

#include <string.h>

bool list_next(const char **list, const char **item, size_t *length) {
  if (!*list || !**list)
    return false;
  *item = *list;
  *length = strcspn(*list, ",");
  *list += *length + ((*list)[*length] == ',');
  return true;
}

bool list_has(const char *list, const char *word) {
  const char *item;
  size_t length;
  while (list_next(&list, &item, &length))
    if (strlen(word) == length && memcmp(item, word, length) == 0)
      return true;
  return false;
}

char *list_word(Arena *arena, const char **list, char between) {
  const char stop[] = {between, '\0'};
  if (!*list)
    return NULL;
  *list += strspn(*list, stop);
  size_t length = strcspn(*list, stop);
  char *word = length ? arena_strdup(arena, *list, length) : NULL;
  *list += length;
  return word;
}
