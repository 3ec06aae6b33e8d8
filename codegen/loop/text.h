/* Text that grows, in an arena. */
#ifndef AMPCC_CODEGEN_LOOP_TEXT_H
#define AMPCC_CODEGEN_LOOP_TEXT_H

#include "ir/base/arena.h"

typedef struct Text {
  Arena *arena;
  char *s; /* ends in NUL; "" once anything was asked of it */
  int len, cap;
} Text;

void text_add(Text *text, const char *s);
void text_format(Text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *text_get(Text *text);

#endif
