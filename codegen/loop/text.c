#include "codegen/loop/text.h"

#include <stdio.h>
#include <string.h>

static void make_room(Text *text, int more) {
  if (text->len + more < text->cap)
    return;
  int cap = 2 * (text->len + more) + 256;
  text->s = arena_grow(text->arena, text->s, (size_t)text->cap, (size_t)cap);
  text->cap = cap;
}

void text_add(Text *text, const char *s) {
  int n = (int)strlen(s);
  make_room(text, n + 1);
  memcpy(text->s + text->len, s, (size_t)n + 1);
  text->len += n;
}

void text_format(Text *text, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  make_room(text, n + 1);
  va_start(args, fmt);
  vsnprintf(text->s + text->len, (size_t)n + 1, fmt, args);
  va_end(args);
  text->len += n;
}

const char *text_get(Text *text) {
  text_add(text, "");
  return text->s;
}
