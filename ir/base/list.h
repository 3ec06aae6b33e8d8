/* Lists of words in one string, such as "amp,cse". */
#ifndef AMPCC_IR_BASE_LIST_H
#define AMPCC_IR_BASE_LIST_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* Takes the next item off a comma list: sets *item and *length to its bytes and moves *list behind
 * it and its comma. False at the end of the list; NULL is an empty list. There is an empty item
 * between two adjacent commas, but none behind a comma at the end of the list. */
bool list_next(const char **list, const char **item, size_t *length);
/* Is the word one of the comma list's items? */
bool list_has(const char *list, const char *word);

/* Returns a copy of the next word of *list and moves *list behind it. Words are separated by one or
 * more of the character `between`, so none is empty. NULL at the end; a NULL list is empty. */
char *list_word(Arena *arena, const char **list, char between);

/* How a text is divided into words that may be quoted, with '' or "". A backslash keeps the
 * character behind it. */
typedef struct QuoteRules {
  const char *blanks;   /* the characters that separate words */
  bool comments;        /* does `#` in the place of a word begin a comment, up to the end? */
  bool single_is_plain; /* is a backslash within '' as any other character? */
} QuoteRules;

/* Returns the next word of *text, in its place but without its quotes and backslashes, and moves
 * *text behind it. NULL at the end, and, with *open set, if a quote in the word is not closed. */
char *quoted_word(char **text, const QuoteRules *rules, bool *open);

#endif
