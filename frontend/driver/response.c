#include "frontend/driver/response.h"

#include "ir/base/list.h"
#include "ir/base/reads.h"
#include "ir/base/text.h"

#include <errno.h>
#include <string.h>

enum { MOST_DEEP = 10, MOST_BYTES = 1 << 20 };

typedef struct Words {
  Arena *arena;
  const char *program;
  char **at;
  int n, cap;
  bool only_models; /* `--` has come */
} Words;

static bool refuse(const Words *words, const char *path, const char *why) {
  text_say("%s: @%s: %s\n", words->program, path, why);
  return false;
}

/* All of a file as text. NULL after one line on stderr. */
static char *read_file(const Words *words, const char *path) {
  FILE *in = fopen(path, "r");
  char *text = in ? arena_alloc(words->arena, MOST_BYTES + 1) : NULL;
  size_t size = in ? fread(text, 1, MOST_BYTES + 1, in) : 0;
  const char *why = !in || ferror(in)                  ? strerror(errno)
                    : size > MOST_BYTES                ? "the file is larger than 1 MiB"
                    : memchr(text, '\0', size) != NULL ? "a NUL byte: this is no text"
                                                       : NULL;
  if (in)
    fclose(in);
  if (why) {
    refuse(words, path, why);
    return NULL;
  }
  text[size] = '\0';
  return text;
}

static bool add(Words *words, char *word, int depth);

static bool add_file(Words *words, const char *path, int depth) {
  static const QuoteRules as_gcc = {.blanks = " \t\r\n\v\f"};
  char *text = depth < MOST_DEEP ? read_file(words, path) : NULL, *word;
  bool open = false, good = text != NULL;
  if (depth == MOST_DEEP)
    return refuse(words, path, "response files name each other more than 10 deep");
  reads_add(path);
  while (good && (word = quoted_word(&text, &as_gcc, &open)) != NULL)
    good = add(words, word, depth + 1);
  return open ? refuse(words, path, "a quote is not closed") : good;
}

static bool add(Words *words, char *word, int depth) {
  words->only_models |= !strcmp(word, "--");
  if (*word == '@' && !words->only_models)
    return add_file(words, word + 1, depth);
  arena_push(words->arena, words->at, words->n, words->cap, word);
  return true;
}

bool response_expand(Arena *arena, const char *program, int *argc, char ***argv) {
  Words words = {.arena = arena, .program = program};
  for (int i = 0; i < *argc; i++)
    if (i == 0)
      arena_push(arena, words.at, words.n, words.cap, (*argv)[0]);
    else if (!add(&words, (*argv)[i], 0))
      return false;
  *argc = words.n;
  *argv = words.at;
  return true;
}
