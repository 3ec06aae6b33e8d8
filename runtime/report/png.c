#include "runtime/report/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const unsigned char color_type[] = {[1] = 0, [3] = 2, [4] = 6};

static void put32(unsigned char *out, uint64_t value) {
  for (int i = 0; i < 4; i++)
    out[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Completes a chunk whose data is at `at` + 8 already; returns the place behind it. */
static unsigned char *end_chunk(unsigned char *at, const char *type, size_t size) {
  put32(at, size);
  memcpy(at + 4, type, 4);
  put32(at + 8 + size, crc32_z(0, at + 4, 4 + size));
  return at + 12 + size;
}

bool amprt_png_write(const unsigned char *pixel, int64_t height, int64_t width, int64_t channels,
                     AmprtBytes *out) {
  enum { MOST = 1 << 15, CHUNKS = 3 };
  if (height < 1 || width < 1 || height > MOST || width > MOST ||
      (channels != 1 && channels != 3 && channels != 4))
    return false;
  size_t row = (size_t)(width * channels), raw_size = (size_t)height * (row + 1);
  uLong most = compressBound((uLong)raw_size), packed = most;
  unsigned char *raw = malloc(raw_size), *file = malloc(8 + CHUNKS * 12 + 13 + most);
  bool good = raw && file;
  for (int64_t y = 0; good && y < height; y++) { /* each row begins with its filter: none */
    raw[(size_t)y * (row + 1)] = 0;
    memcpy(raw + (size_t)y * (row + 1) + 1, pixel + (size_t)y * row, row);
  }
  if (good) {
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    unsigned char *at = file + 8, *header = at + 8;
    put32(header, (uint64_t)width);
    put32(header + 4, (uint64_t)height);
    memcpy(header + 8, (unsigned char[]){8, color_type[channels], 0, 0, 0}, 5);
    at = end_chunk(at, "IHDR", 13);
    good = compress2(at + 8, &packed, raw, (uLong)raw_size, 6) == Z_OK;
    at = good ? end_chunk(at, "IDAT", packed) : at;
    at = end_chunk(at, "IEND", 0);
    *out = (AmprtBytes){file, (size_t)(at - file)};
  }
  free(raw);
  if (!good)
    free(file);
  return good;
}
