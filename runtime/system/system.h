/* What only a dynamically linked program has: other libraries, which it opens when it needs them,
 * and the system's name service. libamprt has them from the system (dynamic.c). The programs of
 * `ampcc --static` are linked with libamprt_static in front of it, whose functions take the place
 * of these (static.c): the only libraries are those within the program, and hosts are numbers. */
#ifndef AMPRT_SYSTEM_H
#define AMPRT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* False in static programs: beside libjpeg and libpng, all libraries are missing. */
extern const bool amprt_opens_libraries;

/* `global`: libraries that this one opens see its symbols. NULL with the reason in `why`. */
void *amprt_library_open(const char *file, bool global, char *why, size_t size);
/* NULL if the library has no such function or variable. */
void *amprt_library_symbol(void *library, const char *name);

typedef struct AmprtAddress {
  struct sockaddr_storage at;
  socklen_t size;
} AmprtAddress;

/* Finds at most `most` addresses of a host and a port for TCP. Returns how many; 0 with the reason
 * in *why if there are none now, and -1 if there cannot be any later. */
int amprt_addresses(const char *host, const char *port, AmprtAddress *out, int most,
                    const char **why);

#endif
