/* Printing text of unknown origin to a terminal. Names of a model may hold any bytes; these
 * functions print them as printable UTF-8. */
#ifndef AMPCC_IR_BASE_TEXT_H
#define AMPCC_IR_BASE_TEXT_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* The length in bytes of the UTF-8 character at `at`; 0 if the bytes there, of which `n` may be
 * read, are no UTF-8 character. */
int utf8_length(const char *at, size_t n);
bool text_is_utf8(const char *text);
/* Is all of the text UTF-8, and nothing in it a control character or one that changes the direction
 * of writing? */
bool text_is_printable(const char *text);
/* Does the text, which is longer, end in `ending`? */
bool text_ends_in(const char *text, const char *ending);
/* Prints at most `most` bytes of `text`, then "..."; bytes that are not printable become \xHH.
 * Returns the number of columns that it took, one per character. */
int text_print(const char *text, size_t most, FILE *out);
/* The same to memory, which the caller frees. */
char *text_printable(const char *text, size_t most);

/* As fprintf(stderr, ...), for messages that quote arguments or files. */
void text_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A report that holds names. It is written to memory first and made printable as a whole, so that
 * the functions that write it need not care. */
typedef struct TextDraft {
  FILE *file;
  char *text;
  size_t size;
} TextDraft;

/* Returns draft->file. */
FILE *text_draft(TextDraft *draft);
/* Ends the draft. Returns its text as it was written, of draft->size bytes, in the arena. */
char *text_take(TextDraft *draft, Arena *arena);
/* Ends the draft and prints it, line by line, as text_print does. */
void text_finish(TextDraft *draft, FILE *out);

#endif
