/* Names as JSON strings. */
#ifndef AMPCC_CODEGEN_PROGRAM_JSON_TEXT_H
#define AMPCC_CODEGEN_PROGRAM_JSON_TEXT_H

#include "ir/recipe/recipe.h"

#include <jansson.h>

/* emit_json.c. JSON must be UTF-8: in a name that is not, every byte above 127 becomes \xHH. */
json_t *json_text(Arena *arena, const char *text);
/* emit_json.c: every field that has a value. */
json_t *json_recipe(Arena *arena, const Recipe *recipe);

#endif
