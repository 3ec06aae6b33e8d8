/* The recipe of a model: one C struct made of the rows of ir/recipe.def. */
#ifndef AMPCC_IR_RECIPE_H
#define AMPCC_IR_RECIPE_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "ir/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct RecipeFloats {
  int n;
  const double *v;
} RecipeFloats;

typedef const char *RecipeSTR;
typedef int64_t RecipeINT;
typedef double RecipeFLOAT;
typedef RecipeFloats RecipeFLOATS;

typedef struct Recipe {
#define RECIPE(field, flag, kind, otherwise, when, help) Recipe##kind field;
#include "ir/recipe.def"
} Recipe;

typedef enum RecipeKind { RECIPE_STR, RECIPE_INT, RECIPE_FLOAT, RECIPE_FLOATS } RecipeKind;
typedef enum RecipeWhen { RECIPE_COMPILE, RECIPE_RUN } RecipeWhen;

typedef struct RecipeField {
  const char *field, *flag, *help;
  RecipeKind kind;
  RecipeWhen when;
  size_t offset; /* of the field in Recipe */
} RecipeField;

extern const RecipeField recipe_field[];
extern const int n_recipe_fields;

Recipe *recipe_new(Arena *arena);                          /* every field at its default */
const RecipeField *recipe_find(const char *flag_or_field); /* NULL if there is none */
/* Sets one field from text (a flag's value; lists by commas). False if the text does not fit. */
bool recipe_set(Arena *arena, Recipe *recipe, const RecipeField *field, const char *text);
/* Checks what one field cannot say alone: known words, ranges, list lengths. Reports all. */
void recipe_check(const Recipe *recipe, SrcLoc loc, Diag *diag);
/* `recipe {name="x", batch_size=128, ...}`: the fields that differ from their defaults. */
void recipe_print(const Recipe *recipe, FILE *out);
/* What follows the word `recipe` in the text form. */
bool recipe_parse(Recipe *recipe, Lexer *lex);

#endif
