#include "runtime/system/system.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

const bool amprt_opens_libraries = true;

void *amprt_library_open(const char *file, bool global, char *why, size_t size) {
  void *library = dlopen(file, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  const char *text = library ? "" : dlerror();
  snprintf(why, size, "%s", text ? text : "dlopen failed");
  return library;
}

void *amprt_library_symbol(void *library, const char *name) {
  return dlsym(library, name);
}

int amprt_addresses(const char *host, const char *port, AmprtAddress *out, int most,
                    const char **why) {
  struct addrinfo *list, wish = {.ai_socktype = SOCK_STREAM};
  /* localhost always is this machine (RFC 6761, 6.3), for which getaddrinfo wants NULL: there may
   * be no /etc/hosts that says so. */
  const char *asked = strcmp(host, "localhost") == 0 ? NULL : host;
  int failed = getaddrinfo(asked, port, &wish, &list), n = 0;
  if (failed) {
    *why = gai_strerror(failed);
    return 0;
  }
  for (struct addrinfo *a = list; a && n < most; a = a->ai_next)
    if (a->ai_addrlen <= sizeof out[n].at) {
      memcpy(&out[n].at, a->ai_addr, a->ai_addrlen);
      out[n++].size = a->ai_addrlen;
    }
  freeaddrinfo(list);
  return n;
}
