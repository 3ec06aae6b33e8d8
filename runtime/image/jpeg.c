/* JPEG through libjpeg-turbo. Its fatal errors come back by longjmp; its warnings are made fatal,
 * but for the few that change no pixel. */
#include "runtime/image/codec.h"
#include "runtime/image/libraries.h"
#include "runtime/image/room.h"

#include <jerror.h>
#include <setjmp.h>
#include <string.h>

enum {
  MOST_PIXELS_A_BYTE = 1024, /* a block of 64 takes a bit at least; twice that for safety */
  MOST_SCANS = 500,          /* of a progressive file: each is work for the whole image */
  MARGIN = 2,                /* pixels beside the region: smooth chroma looks at its neighbours */
};

typedef struct Jpeg {
  struct jpeg_decompress_struct lib; /* the first member, as libjpeg hands out its address */
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  struct jpeg_source_mgr source;
  const AmprtJpegApi *api;
  jmp_buf back;
  AmprtError *error;
  bool no_end;          /* the file has no end marker: read all rows to see what is missing */
  int64_t width, lanes; /* of the region's rows */
  unsigned char *spare; /* one such row, of four lanes */
  size_t spare_size;
} Jpeg;

static void fail(j_common_ptr lib) {
  Jpeg *jpeg = (Jpeg *)lib;
  char text[JMSG_LENGTH_MAX];
  lib->err->format_message(lib, text);
  amprt_fail(jpeg->error, lib->err->msg_code == JERR_OUT_OF_MEMORY ? AMPRT_ENV : AMPRT_INPUT,
             "JPEG: %s", text);
  longjmp(jpeg->back, 1);
}

/* Bytes between two markers, and versions from the future, are common and harm nothing. */
static void warn(j_common_ptr lib, int level) {
  int code = lib->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR)
    fail(lib);
}

static void say_nothing(j_common_ptr lib) {
  (void)lib;
}

static void count_scans(j_common_ptr lib) {
  Jpeg *jpeg = (Jpeg *)lib;
  if (jpeg->lib.input_scan_number <= MOST_SCANS)
    return;
  amprt_fail(jpeg->error, AMPRT_INPUT, "JPEG: more than %d scans", MOST_SCANS);
  longjmp(jpeg->back, 1);
}

static void source_nothing(j_decompress_ptr lib) {
  (void)lib;
}

/* At the end of the file gives libjpeg an end marker in place of more bytes; libjpeg then says
 * which data is missing, if any is. */
static boolean source_end(j_decompress_ptr lib) {
  static const JOCTET end[] = {0xff, JPEG_EOI};
  lib->src->next_input_byte = end;
  lib->src->bytes_in_buffer = sizeof end;
  return TRUE;
}

static void source_skip(j_decompress_ptr lib, long n) {
  struct jpeg_source_mgr *source = lib->src;
  if (n <= 0)
    return;
  if ((size_t)n > source->bytes_in_buffer) {
    source_end(lib);
    return;
  }
  source->next_input_byte += n;
  source->bytes_in_buffer -= (size_t)n;
}

static void jpeg_drop(void *decoder) {
  Jpeg *jpeg = decoder;
  if (jpeg->lib.mem)
    jpeg->api->jpeg_destroy_decompress(&jpeg->lib);
  free(jpeg->spare);
  free(jpeg);
}

static void *jpeg_make(AmprtError *error) {
  const AmprtJpegApi *api;
  if (amprt_image_jpeg(&api, error))
    return NULL;
  Jpeg *jpeg = calloc(1, sizeof *jpeg);
  if (!jpeg) {
    amprt_fail_memory(error, sizeof *jpeg, "a JPEG decoder");
    return NULL;
  }
  jpeg->api = api;
  jpeg->error = error;
  jpeg->lib.err = api->jpeg_std_error(&jpeg->errors);
  jpeg->errors.error_exit = fail;
  jpeg->errors.emit_message = warn;
  jpeg->errors.output_message = say_nothing;
  if (setjmp(jpeg->back)) {
    jpeg_drop(jpeg);
    return NULL;
  }
  api->jpeg_CreateDecompress(&jpeg->lib, JPEG_LIB_VERSION, sizeof jpeg->lib);
  jpeg->progress.progress_monitor = count_scans;
  jpeg->lib.progress = &jpeg->progress;
  jpeg->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                          .fill_input_buffer = source_end,
                                          .skip_input_data = source_skip,
                                          .resync_to_restart = api->jpeg_resync_to_restart,
                                          .term_source = source_nothing};
  jpeg->lib.src = &jpeg->source;
  return jpeg;
}

/* The value of tag 274 in the first directory of EXIF data, or 1. */
static int exif_orientation(const unsigned char *exif, size_t n) {
  if (n < 14 || memcmp(exif, "Exif\0\0", 6) != 0)
    return 1;
  const unsigned char *tiff = exif + 6;
  n -= 6;
  bool little = tiff[0] == 'I';
#define AT2(i) ((uint32_t)tiff[(i) + !little] | (uint32_t)tiff[(i) + little] << 8)
#define AT4(i) (little ? AT2(i) | AT2((i) + 2) << 16 : AT2(i) << 16 | AT2((i) + 2))
  size_t directory = AT4(4);
  if (directory > n - 2)
    return 1;
  size_t entries = AT2(directory);
  for (size_t e = 0, at = directory + 2; e < entries && at + 12 <= n; e++, at += 12)
    if (AT2(at) == 0x112 && AT2(at + 2) == 3)
      return AT2(at + 8) >= 1 && AT2(at + 8) <= 8 ? (int)AT2(at + 8) : 1;
#undef AT2
#undef AT4
  return 1;
}

static AmprtStatus jpeg_open(void *decoder, const unsigned char *bytes, size_t size,
                             bool orientation, AmprtPhotoHead *head, AmprtError *error) {
  Jpeg *jpeg = decoder;
  struct jpeg_decompress_struct *lib = &jpeg->lib;
  jpeg->error = error;
  if (setjmp(jpeg->back))
    return error->status;
  jpeg->source.next_input_byte = bytes;
  jpeg->source.bytes_in_buffer = size;
  jpeg->api->jpeg_save_markers(lib, JPEG_APP0 + 1, orientation ? 0xffff : 0);
  jpeg->api->jpeg_read_header(lib, TRUE);
  jpeg->no_end =
      !amprt_photo_ends(jpeg->source.next_input_byte, jpeg->source.bytes_in_buffer, "\xff\xd9", 2);
  *head = (AmprtPhotoHead){.kind = "JPEG",
                           .height = lib->image_height,
                           .width = lib->image_width,
                           .channels = lib->num_components,
                           .orientation = 1};
  for (jpeg_saved_marker_ptr m = lib->marker_list; m && head->orientation == 1; m = m->next)
    head->orientation = exif_orientation(m->data, m->data_length);
  if (lib->num_components != 1 && lib->num_components != 3 && lib->num_components != 4)
    return amprt_fail(error, AMPRT_INPUT, "JPEG: %d colour components; 1, 3 and 4 are supported",
                      lib->num_components);
  if (jpeg->no_end && (lib->progressive_mode || lib->comps_in_scan < lib->num_components))
    return amprt_fail(error, AMPRT_INPUT, "JPEG: the file is cut off: it has no end marker");
  return amprt_photo_check_size("JPEG", lib->image_height, lib->image_width, size,
                                MOST_PIXELS_A_BYTE, error);
}

static AmprtStatus jpeg_start(void *decoder, AmprtRegion *region, AmprtError *error) {
  Jpeg *jpeg = decoder;
  struct jpeg_decompress_struct *lib = &jpeg->lib;
  bool cmyk = lib->num_components == 4;
  jpeg->error = error;
  if (setjmp(jpeg->back))
    return error->status;
  lib->scale_num = 1;
  lib->scale_denom = (unsigned)region->shrink;
  lib->out_color_space = cmyk ? JCS_CMYK : region->lanes == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
  jpeg->api->jpeg_start_decompress(lib);
  int64_t first = region->x > MARGIN ? region->x - MARGIN : 0;
  int64_t end = region->x + region->width + MARGIN;
  end = end > lib->output_width ? lib->output_width : end;
  JDIMENSION x = (JDIMENSION)first, width = (JDIMENSION)(end - first);
  jpeg->api->jpeg_crop_scanline(lib, &x, &width);
  if (region->y)
    jpeg->api->jpeg_skip_scanlines(lib, (JDIMENSION)region->y);
  region->x = x;
  region->width = width;
  jpeg->width = width;
  jpeg->lanes = region->lanes;
  return amprt_room_grow((void **)&jpeg->spare, &jpeg->spare_size, (uint64_t)width * 4, error);
}

/* n pixels of cyan, magenta, yellow, black to red, green, blue. Adobe's programs store them
 * inverted. */
static void from_cmyk(unsigned char *pixel, size_t n, bool inverted) {
  unsigned flip = inverted ? 0 : 255;
  for (size_t i = 0; i < n; i++, pixel += 4) {
    unsigned key = pixel[3] ^ flip;
    for (int c = 0; c < 3; c++)
      pixel[c] = (unsigned char)(((pixel[c] ^ flip) * key + 127) / 255);
  }
}

static AmprtStatus jpeg_row(void *decoder, unsigned char *out, AmprtError *error) {
  Jpeg *jpeg = decoder;
  struct jpeg_decompress_struct *lib = &jpeg->lib;
  bool cmyk = lib->out_color_space == JCS_CMYK, grey = jpeg->lanes == 1;
  jpeg->error = error;
  if (setjmp(jpeg->back))
    return error->status;
  JSAMPROW row = cmyk && grey ? jpeg->spare : out;
  jpeg->api->jpeg_read_scanlines(lib, &row, 1);
  if (cmyk)
    from_cmyk(row, (size_t)jpeg->width, lib->saw_Adobe_marker);
  if (cmyk && grey)
    amprt_photo_grey(row, out, (size_t)jpeg->width);
  return AMPRT_OK;
}

static AmprtStatus jpeg_finish(void *decoder, AmprtError *error) {
  Jpeg *jpeg = decoder;
  struct jpeg_decompress_struct *lib = &jpeg->lib;
  jpeg->error = error;
  if (setjmp(jpeg->back))
    return error->status;
  while (jpeg->no_end && lib->output_scanline < lib->output_height)
    jpeg->api->jpeg_read_scanlines(lib, &jpeg->spare, 1);
  return AMPRT_OK;
}

static void jpeg_close(void *decoder) {
  Jpeg *jpeg = decoder;
  AmprtError ignored;
  jpeg->error = &ignored;
  if (!setjmp(jpeg->back))
    jpeg->api->jpeg_abort_decompress(&jpeg->lib);
}

const AmprtCodec amprt_jpeg_codec = {"JPEG",    "\xff\xd8\xff", 3,         true,
                                     jpeg_make, jpeg_drop,      jpeg_open, jpeg_start,
                                     jpeg_row,  jpeg_finish,    jpeg_close};
