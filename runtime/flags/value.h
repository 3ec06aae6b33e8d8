/* Values of flags: their text form, and which values a flag takes. */
#ifndef AMPRT_VALUE_H
#define AMPRT_VALUE_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { AMPRT_MAX_FLOATS = 64 };

typedef struct AmprtFloats {
  int n;
  double v[AMPRT_MAX_FLOATS];
} AmprtFloats;

typedef bool AmprtOptBOOL;
typedef int64_t AmprtOptINT;
typedef double AmprtOptFLOAT;
typedef const char *AmprtOptSTR; /* points into argv, the program's recipe or a table */
typedef AmprtFloats AmprtOptFLOATS;

typedef enum AmprtOptionKind {
  AMPRT_OPT_BOOL,
  AMPRT_OPT_INT,
  AMPRT_OPT_FLOAT,
  AMPRT_OPT_STR,
  AMPRT_OPT_FLOATS
} AmprtOptionKind;

typedef union AmprtValueOf {
  AmprtOptBOOL truth;
  AmprtOptINT integer;
  AmprtOptFLOAT number;
  AmprtOptSTR text;
  AmprtOptFLOATS list;
} AmprtValueOf;

/* The values that a flag takes, as its table says; all zero: any. */
typedef struct AmprtTakes {
  double low, high;  /* bounds of a number, or of each number of a list; both 0: there are none */
  const char *words; /* STR: the words that fit, separated by blanks; NULL: any text */
  bool many;         /* STR: a list of such words with commas, in upper or lower case */
  /* FLOATS: each number is greater than the one before, the first greater than `low` */
  bool rising;
} AmprtTakes;

/* Reads `text` as a value of this kind, checks it, and stores it in `out`, a field of that type or
 * an AmprtValueOf. If `takes` is NULL, any value fits. The message of AMPRT_USAGE names the flag,
 * what it takes, and the text. */
AmprtStatus amprt_value_read(const char *flag, AmprtOptionKind kind, const AmprtTakes *takes,
                             const char *text, void *out, AmprtError *error);
/* Do two texts stand for the same value? */
bool amprt_value_same(AmprtOptionKind kind, const char *a, const char *b);
const char *amprt_kind_text(AmprtOptionKind kind); /* "a whole number" */

/* The position of `word` in a list of words separated by blanks (NULL: no words), or -1. */
int amprt_word_index(const char *words, const char *word);
/* "a b c" -> "a, b or c" */
void amprt_words_list(const char *words, char *out, size_t size);

#endif
