/* Text from strangers on its way to a terminal. Names of a model may hold any bytes; here they come
 * out as printable UTF-8. */
#ifndef AMPCC_IR_BASE_TEXT_H
#define AMPCC_IR_BASE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/* How many bytes the UTF-8 character at `at` has, whose text ends in NUL or after `n` bytes; 0 if
 * those are none. */
int utf8_length(const char *at, size_t n);
bool text_is_utf8(const char *text);
/* Is all of the text UTF-8, and nothing in it a control character or one that changes the direction
 * of writing? */
bool text_is_printable(const char *text);
/* What is not printable becomes \xHH; at most `most` bytes of `text` are printed, then "...".
 * Returns how many columns it took, counting a character as one. */
int text_print(const char *text, size_t most, FILE *out);

/* As fprintf(stderr, ...), for messages that quote arguments or files. */
void text_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A report that holds names: written to memory first, so that names may be printed by any function.
 */
typedef struct TextDraft {
  FILE *file;
  char *text;
  size_t size;
} TextDraft;

/* Returns draft->file. */
FILE *text_draft(TextDraft *draft);
/* Prints the draft, line by line, as text_print does. */
void text_finish(TextDraft *draft, FILE *out);

#endif
