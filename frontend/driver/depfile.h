/* Depfiles, as gcc writes them: -MD, -MF, -MT, -MP. Their one rule says that the output depends on
 * every file that was read: model, response files, --precision-file, --tuning-db, the runtime and,
 * with parts for GPUs, the libraries of the toolkit. */
#ifndef AMPCC_FRONTEND_DRIVER_DEPFILE_H
#define AMPCC_FRONTEND_DRIVER_DEPFILE_H

#include "frontend/driver/options.h"

/* Are the options whole? False after one line on stderr. */
bool depfile_check(const Options *options);
/* Where the depfile goes; NULL: none is wanted. */
const char *depfile_path(Arena *arena, const Options *options);
/* Writes the depfile if one is wanted. False after one line on stderr. */
bool depfile_write(Arena *arena, const Options *options);

#endif
