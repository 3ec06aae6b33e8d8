/* A model file of any form -> Module. */
#ifndef AMPCC_FRONTEND_IMPORT_LOAD_H
#define AMPCC_FRONTEND_IMPORT_LOAD_H

#include "frontend/import/import.h"
#include "frontend/import/pbtext.h"

typedef enum ModelForm { MODEL_PB, MODEL_PBTXT, MODEL_AMP } ModelForm;

/* The whole file and a NUL that is not counted; "-" is standard input. False after an error. */
bool file_read(Arena *arena, const char *path, Bytes *out, Diag *diag);
/* A text of less than 1 MiB, without NULs; "-" is a file like any other. NULL after an error. */
char *text_read(Arena *arena, const char *path, Diag *diag);
/* By the file's ending, else by its first bytes. */
ModelForm model_form(const char *path, const char *bytes, size_t size);
/* What file_read gave of that path. NULL after reporting at least one error through diag; sets
 * diag->source for text forms. */
Module *model_load(Arena *arena, const char *path, const Bytes *bytes, Overrides overrides,
                   Diag *diag);
/* The same for a form that is known; `bytes[size]` is NUL. */
Module *model_read(Arena *arena, const char *file, ModelForm form, const char *bytes, size_t size,
                   Overrides overrides, Diag *diag);

#endif
