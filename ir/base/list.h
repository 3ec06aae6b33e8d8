/* Lists of words in one string, such as "amp,cse". */
#ifndef AMPCC_IR_BASE_LIST_H
#define AMPCC_IR_BASE_LIST_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* Takes the next item off a comma list: it is the `*length` bytes at `*item`, and `*list` moves
 * behind it and its comma. False at the end of the list; NULL is an empty list. An item between
 * two commas is empty; nothing follows a comma that ends the list. */
bool list_next(const char **list, const char **item, size_t *length);
/* Is the word one of the comma list's items? */
bool list_has(const char *list, const char *word);

/* The next word of *list, copied; *list moves behind it. Words are parted by one or more of the
 * character `between`, so none is empty. NULL at the end; a NULL list is empty. */
char *list_word(Arena *arena, const char **list, char between);

#endif
