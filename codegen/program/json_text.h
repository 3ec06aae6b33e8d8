/* Names in JSON. */
#ifndef AMPCC_CODEGEN_PROGRAM_JSON_TEXT_H
#define AMPCC_CODEGEN_PROGRAM_JSON_TEXT_H

#include "ir/base/arena.h"

#include <jansson.h>

/* emit_json.c. JSON is UTF-8; bytes of a name that are not become \xHH. */
json_t *json_text(Arena *arena, const char *text);

#endif
