/* --explain of ampcc and ampcc-tf: a page on each error code of ir/base/diag.def. The pages are the
 * files E*.txt beside this one. */
#ifndef AMPCC_FRONTEND_EXPLAIN_EXPLAIN_H
#define AMPCC_FRONTEND_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

typedef struct ExplainPage {
  int code;
  const char *meaning; /* one line, of diag.def */
  const char *text;
} ExplainPage;

/* In the order of diag.def, which is that of the codes; ended by code 0. */
extern const ExplainPage explain_page[];

/* Prints the page on `code` ("E112", "112"), or the list of all codes if it is empty or NULL. False
 * after a line on stderr, which begins with the program's name, if there is no such code. */
bool explain(const char *program, const char *code, FILE *out);

#endif
