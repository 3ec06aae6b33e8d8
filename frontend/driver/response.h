/* Response files: an argument @FILE stands for the words in that file. */
#ifndef AMPCC_FRONTEND_DRIVER_RESPONSE_H
#define AMPCC_FRONTEND_DRIVER_RESPONSE_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* Replaces each argument @FILE before `--` by the words in FILE, which may be further @FILEs. Words
 * stand between blanks and line ends; quotes of both kinds and backslashes mean what they mean to
 * gcc. False after one line on stderr, which begins with the program's name. */
bool response_expand(Arena *arena, const char *program, int *argc, char ***argv);

#endif
