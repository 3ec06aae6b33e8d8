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

char *quoted_word(char **text, const QuoteRules *rules, bool *open) {
  char *at = *text + strspn(*text, rules->blanks), *word = at, *to = at, quote = '\0';
  *text = at;
  if (!*at || (*at == '#' && rules->comments))
    return NULL;
  for (; *at && (quote || !strchr(rules->blanks, *at)); at++) {
    if (quote ? *at == quote : *at == '"' || *at == '\'')
      quote = quote ? '\0' : *at;
    else if (*at == '\\' && at[1] && !(quote == '\'' && rules->single_is_plain))
      *to++ = *++at;
    else
      *to++ = *at;
  }
  *text = *at ? at + 1 : at;
  *to = '\0';
  *open = quote != '\0';
  return *open ? NULL : word;
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
