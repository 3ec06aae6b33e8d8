#include "ir/base/text.h"

#include "ir/base/diag.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int utf8_length(const char *at, size_t n) {
  const unsigned char *byte = (const unsigned char *)at, lead = n ? byte[0] : 0xff;
  int length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (!length || lead > 0xf4 || (size_t)length > n)
    return 0;
  /* the second byte rules out overlong forms, surrogates and what is above U+10FFFF */
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (int i = 1; i < length; i++, low = 0x80, high = 0xbf)
    if (byte[i] < low || byte[i] > high)
      return 0;
  return length;
}

/* The same, but 0 also for characters that a terminal does not just show: control characters (C0,
 * DEL and C1), line separators, and those that embed, override or isolate a direction of writing.
 */
static int printable_length(const char *at, size_t n) {
  int length = utf8_length(at, n);
  const unsigned char *b = (const unsigned char *)at;
  if (length == 1)
    return b[0] >= 0x20 && b[0] != 0x7f ? 1 : 0;
  if (length == 2)
    return b[0] == 0xc2 && b[1] < 0xa0 ? 0 : 2;
  bool odd = length == 3 && b[0] == 0xe2 &&
             ((b[1] == 0x80 && b[2] >= 0xa8 && b[2] <= 0xae) || /* U+2028 to U+202E */
              (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9));  /* U+2066 to U+2069 */
  return odd ? 0 : length;
}

bool text_is_utf8(const char *text) {
  for (size_t n = strlen(text), length; n > 0; text += length, n -= length)
    if (!(length = (size_t)utf8_length(text, n)))
      return false;
  return true;
}

bool text_is_printable(const char *text) {
  for (size_t n = strlen(text), length; n > 0; text += length, n -= length)
    if (!(length = (size_t)printable_length(text, n)))
      return false;
  return true;
}

bool text_ends_in(const char *text, const char *ending) {
  size_t n = strlen(text), k = strlen(ending);
  return n > k && !strcmp(text + n - k, ending);
}

int text_print(const char *text, size_t most, FILE *out) {
  int columns = 0;
  for (size_t n = strlen(text); n > 0;) {
    size_t length = (size_t)printable_length(text, n), taken = length ? length : 1;
    if (taken > most) {
      fputs("...", out);
      return columns + 3;
    }
    if (length)
      fwrite(text, 1, length, out);
    else
      fprintf(out, "\\x%02x", (unsigned char)*text);
    columns += length ? 1 : 4;
    text += taken;
    n -= taken;
    most -= taken;
  }
  return columns;
}

char *text_printable(const char *text, size_t most) {
  TextDraft draft;
  text_print(text, most, text_draft(&draft));
  fclose(draft.file);
  return draft.text;
}

void text_say(const char *fmt, ...) {
  TextDraft draft;
  va_list ap;
  va_start(ap, fmt);
  vfprintf(text_draft(&draft), fmt, ap);
  va_end(ap);
  text_finish(&draft, stderr);
}

FILE *text_draft(TextDraft *draft) {
  *draft = (TextDraft){.text = NULL};
  draft->file = open_memstream(&draft->text, &draft->size);
  CHECK(draft->file, "out of memory");
  return draft->file;
}

char *text_take(TextDraft *draft, Arena *arena) {
  fclose(draft->file);
  char *text = arena_strdup(arena, draft->text, draft->size);
  free(draft->text);
  return text;
}

void text_finish(TextDraft *draft, FILE *out) {
  fclose(draft->file);
  for (char *line = draft->text, *end; *line; line = end) {
    end = line + strcspn(line, "\n");
    bool whole = *end == '\n';
    *end = '\0';
    text_print(line, SIZE_MAX, out);
    if (whole) {
      fputc('\n', out);
      end++;
    }
  }
  free(draft->text);
}
