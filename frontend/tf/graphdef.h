/* GraphDefs from and to files. */
#ifndef AMPCC_FRONTEND_TF_GRAPHDEF_H
#define AMPCC_FRONTEND_TF_GRAPHDEF_H

#include "frontend/import/pbtext.h"
#include "frontend/tf/graphdef.pb-c.h"

/* Text or binary -> binary that tf_graphdef_unpack takes. False after reporting an error. `bytes`
 * ends in a NUL that is not counted. */
bool tf_graphdef_bytes(Arena *arena, const char *file, Bytes bytes, bool text, Bytes *out,
                       Diag *diag);
/* A fresh copy at each call, in the arena. NULL after reporting an error. */
Tensorflow__GraphDef *tf_graphdef_unpack(Arena *arena, const char *file, Bytes bytes, Diag *diag);
/* Nothing that was read is lost in binary form, be it known or not. */
void tf_graphdef_write(Arena *arena, const Tensorflow__GraphDef *def, bool text, FILE *out);

#endif
