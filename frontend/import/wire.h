/* Protobuf bytes from a stranger: a first look at them, since protobuf-c follows nested messages
 * without limit and cuts strings at a NUL byte, and then their message. */
#ifndef AMPCC_FRONTEND_IMPORT_WIRE_H
#define AMPCC_FRONTEND_IMPORT_WIRE_H

#include "ir/base/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL if the bytes are well formed, no deeper than 100 messages, and every string in them is UTF-8
 * without a NUL; else what is wrong, and *at is the byte where. */
const char *wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                       size_t *at);
/* The message, all of it in the arena; NULL if the bytes are none of that type. */
void *wire_unpack(Arena *arena, const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                  size_t size);

#endif
