/* --certify: the compiled step is run once, with the model's initial weights and random images, and
 * held against the evaluator (frontend/certify/). */
#ifndef AMPCC_FRONTEND_DRIVER_CERTIFY_RUN_H
#define AMPCC_FRONTEND_DRIVER_CERTIFY_RUN_H

#include "frontend/driver/options.h"

/* Returns an exit status: 0, and the certificate is written; 1, also after E501, when an error is
 * above --max-error; 3. `own_batch` is the batch size of the program that is to be made. */
int certify_run(Arena *arena, const Options *options, int64_t own_batch, Diag *diag);

#endif
