/* protobuf's text format (.pbtxt), both ways, for any message protobuf-c has a descriptor of.
 * protobuf-c itself reads and writes only the binary form. */
#ifndef AMPCC_FRONTEND_IMPORT_PBTEXT_H
#define AMPCC_FRONTEND_IMPORT_PBTEXT_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Bytes {
  uint8_t *at;
  int len, cap;
} Bytes;

/* pbtext_print.c: fields that hold their default are left out, as proto3 does. */
void pbtext_print(const ProtobufCMessage *message, FILE *out);

/* pbtext_read.c: text -> the binary form, so that protobuf-c's own unpack builds the structs and
 * there is one way in. `text[size]` is NUL. False after reporting at least one error, with its
 * line. */
bool pbtext_read(Arena *arena, const char *file, const char *text, size_t size,
                 const ProtobufCMessageDescriptor *type, Bytes *out, Diag *diag);

#endif
