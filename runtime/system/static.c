#include "runtime/image/libraries.h"
#include "runtime/system/system.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const bool amprt_opens_libraries = false;

/* ---- libraries ---- */

typedef struct Function {
  const char *name;
  void (*at)(void);
} Function;

typedef struct Library {
  const char *file;
  const Function *function;
} Library;

#ifdef AMPRT_STATIC_IMAGES
static const Function jpeg[] = {
#define JPEG(result, name, arguments) {#name, (void (*)(void))name},
#include "runtime/image/jpeg_api.def"
    {NULL, NULL}};
static const Function png[] = {
#define PNG(result, name, arguments) {#name, (void (*)(void))name},
#include "runtime/image/png_api.def"
    {NULL, NULL}};
static const Library within[] = {{AMPRT_JPEG_FILE, jpeg}, {AMPRT_PNG_FILE, png}, {NULL, NULL}};
#else
static const Library within[] = {{NULL, NULL}};
#endif

void *amprt_library_open(const char *file, bool global, char *why, size_t size) {
  (void)global;
  for (const Library *library = within; library->file; library++)
    if (!strcmp(library->file, file))
      return (void *)(uintptr_t)library;
  snprintf(why, size, "this program is static (ampcc --static) and does not have it");
  return NULL;
}

void *amprt_library_symbol(void *library, const char *name) {
  const Function *function = ((const Library *)library)->function;
  while (function->name && strcmp(function->name, name))
    function++;
  void *at = NULL;
  memcpy(&at, &function->at, sizeof at);
  return at;
}

/* ---- addresses ---- */

static AmprtAddress address_4(struct in_addr address, in_port_t port) {
  AmprtAddress out = {.size = sizeof(struct sockaddr_in)};
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = port, .sin_addr = address};
  memcpy(&out.at, &to, sizeof to);
  return out;
}

static AmprtAddress address_6(struct in6_addr address, in_port_t port) {
  AmprtAddress out = {.size = sizeof(struct sockaddr_in6)};
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = address};
  memcpy(&out.at, &to, sizeof to);
  return out;
}

int amprt_addresses(const char *host, const char *port, AmprtAddress *out, int most,
                    const char **why) {
  in_port_t number = htons((in_port_t)strtol(port, NULL, 10));
  struct in_addr four = {htonl(INADDR_LOOPBACK)};
  struct in6_addr six = IN6ADDR_LOOPBACK_INIT;
  bool here = !strcmp(host, "localhost");
  int n = 0;
  if (n < most && (here || inet_pton(AF_INET6, host, &six) == 1))
    out[n++] = address_6(six, number);
  if (n < most && (here || inet_pton(AF_INET, host, &four) == 1))
    out[n++] = address_4(four, number);
  *why = "this program is static (ampcc --static) and takes localhost and numbers (10.0.0.1, ::1)";
  return n ? n : -1;
}
