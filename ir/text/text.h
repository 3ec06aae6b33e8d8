/* What the printer and the parser of the text form share with the recipe, which has lines there. */
#ifndef AMPCC_IR_TEXT_TEXT_H
#define AMPCC_IR_TEXT_TEXT_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* print.c */
enum { FLOAT_TEXT = 40 };
const char *float_text(double f, char text[FLOAT_TEXT]); /* shortest that reads back as a float */
void float_print(double f, FILE *out);
void string_print(const char *s, FILE *out); /* quoted, escaped */

/* lex.c */
typedef struct Lexer {
  const char *file, *at, *line_start;
  int line;
  Arena *arena;
  Diag *diag;
} Lexer;

bool name_char(char c); /* is it allowed in a name without quotes? */
SrcLoc lex_here(const Lexer *lex);
bool lex_fail(Lexer *lex, const char *expected); /* reports E101 at this place and returns false */
void lex_blanks(Lexer *lex);                     /* within the line */
void lex_lines(Lexer *lex);                      /* across lines */
void lex_skip_line(Lexer *lex);                  /* to the newline */
bool lex_accept(Lexer *lex, const char *text);   /* a word or a mark, after blanks */
const char *lex_word(Lexer *lex);                /* plain name; NULL if there is none */
const char *lex_name(Lexer *lex);                /* plain or quoted name; NULL */
bool lex_string(Lexer *lex, const char **out);
bool lex_int(Lexer *lex, int64_t *out);
bool lex_float(Lexer *lex, double *out);
bool lex_ints(Lexer *lex, const int64_t **out, int *n);
bool lex_floats(Lexer *lex, const double **out, int *n);

#endif
