#include "frontend/import/wire.h"

#include "ir/base/text.h"

enum { MAX_DEPTH = 100 }; /* as protobuf's own readers */

typedef struct Check {
  const uint8_t *at;
  const char *wrong;
} Check;

static bool fail(Check *check, const char *wrong) {
  check->wrong = wrong;
  return false;
}

static bool varint_read(Check *check, const uint8_t *end, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 70 && check->at < end; shift += 7) {
    uint8_t byte = *check->at++;
    if (shift < 64)
      *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return fail(check, "a number does not end");
}

static bool string_check(Check *check, const uint8_t *end) {
  while (check->at < end) {
    int n = utf8_length((const char *)check->at, (size_t)(end - check->at));
    if (n == 0)
      return fail(check, "a string is no UTF-8");
    if (!*check->at)
      return fail(check, "a string holds a NUL byte");
    check->at += n;
  }
  return true;
}

static bool message_check(Check *check, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                          int depth);

static bool bytes_check(Check *check, const ProtobufCFieldDescriptor *field, const uint8_t *end,
                        int depth) {
  uint64_t size;
  if (!varint_read(check, end, &size))
    return false;
  if (size > (uint64_t)(end - check->at))
    return fail(check, "the file ends too early");
  const uint8_t *after = check->at + size;
  if (field && field->type == PROTOBUF_C_TYPE_STRING && !string_check(check, after))
    return false;
  if (field && field->type == PROTOBUF_C_TYPE_MESSAGE &&
      !message_check(check, field->descriptor, after, depth + 1))
    return false;
  check->at = after;
  return true;
}

static bool skip(Check *check, const uint8_t *end, int n) {
  if (end - check->at < n)
    return fail(check, "the file ends too early");
  check->at += n;
  return true;
}

static bool field_check(Check *check, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                        int depth) {
  uint64_t tag, number;
  if (!varint_read(check, end, &tag))
    return false;
  if (tag >> 3 == 0 || tag > UINT32_MAX)
    return fail(check, "a field has an impossible number");
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
  switch (tag & 7) {
  case 0:
    return varint_read(check, end, &number);
  case 1:
    return skip(check, end, 8);
  case 2:
    return bytes_check(check, field, end, depth);
  case 5:
    return skip(check, end, 4);
  default:
    return fail(check, "a field is of a kind that proto3 does not have");
  }
}

static bool message_check(Check *check, const ProtobufCMessageDescriptor *type, const uint8_t *end,
                          int depth) {
  if (depth > MAX_DEPTH)
    return fail(check, "messages are nested more than 100 deep");
  while (check->at < end)
    if (!field_check(check, type, end, depth))
      return false;
  return true;
}

const char *wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                       size_t *at) {
  Check check = {.at = bytes};
  if (size && !message_check(&check, type, bytes + size, 1))
    *at = (size_t)(check.at - bytes);
  return check.wrong;
}

static void *arena_take(void *arena, size_t size) {
  return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *pointer) {
  (void)arena, (void)pointer;
}

void *wire_unpack(Arena *arena, const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                  size_t size) {
  ProtobufCAllocator allocator = {arena_take, arena_keep, arena};
  return protobuf_c_message_unpack(type, &allocator, size, bytes);
}
