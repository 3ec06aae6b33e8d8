/* A first look at protobuf bytes from a stranger, before protobuf-c unpacks them: it follows nested
 * messages without limit, and cuts strings at a NUL byte. */
#ifndef AMPCC_FRONTEND_IMPORT_WIRE_H
#define AMPCC_FRONTEND_IMPORT_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL if the bytes are well formed, no deeper than 100 messages, and every string in them is UTF-8
 * without a NUL; else what is wrong, and *at is the byte where. */
const char *wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                       size_t *at);

#endif
