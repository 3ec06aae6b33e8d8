/* A thread that ends the process when a wait for other processes lasts too long. It calls no
 * library but libc, so it works while the rest hangs in one. */
#ifndef AMPRT_WATCHDOG_H
#define AMPRT_WATCHDOG_H

#include "runtime/base/status.h"

#include <stdbool.h>

typedef struct AmprtWatchdog AmprtWatchdog;

/* After `warn` seconds of a wait a warning is printed, once in the life of the process. */
AmprtStatus amprt_watchdog_open(AmprtWatchdog **watchdog, int rank, int size, double warn,
                                AmprtError *error);

/* A wait begins, which may last `limit` seconds (0: for ever); after that one line is printed, and
 * the process ends with status 3. `what` is what is waited for, such as "the sum of bucket 3".
 * Time in which the process stood still itself does not count. Waits may lie within each other,
 * two deep; then both names are printed. */
void amprt_watchdog_begin(AmprtWatchdog *watchdog, const char *what, double limit);
void amprt_watchdog_end(AmprtWatchdog *watchdog);

/* The ranks that the innermost wait waits for; n 0: not known. Of many only the first are
 * printed. `behind`: or others that those wait for in turn. */
void amprt_watchdog_missing(AmprtWatchdog *watchdog, const int *rank, int n, bool behind);

void amprt_watchdog_close(AmprtWatchdog *watchdog); /* NULL is fine */

/* "rank 5", "ranks 5, 6 and 9", "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 56 more". */
void amprt_ranks_text(char *to, size_t size, const int *rank, int n);

#endif
