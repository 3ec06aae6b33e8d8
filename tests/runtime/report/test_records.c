/* Tests records: checksums, framing and tf.Example, and that damage is found. */
#include "runtime/record/crc32c.h"
#include "runtime/record/record.h"
#include "runtime/record/tf_example.h"
#include "tests/runtime/harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms. */
static void test_checksum(void **state) {
  static const unsigned char read_pdu[48] = {
      0x01, 0xc0, [16] = 0x14, [22] = 4, [27] = 0x14, [31] = 0x18, 0x28, [40] = 2};
  unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
  (void)state;
  for (int i = 0; i < 32; i++) {
    ones[i] = 0xff;
    up[i] = (unsigned char)i;
    down[i] = (unsigned char)(31 - i);
  }
  const struct {
    const void *data;
    size_t size;
    uint32_t want;
  } cases[] = {{zeros, 32, 0x8a9136aa},
               {ones, 32, 0x62a8ab43},
               {up, 32, 0x46dd794e},
               {down, 32, 0x113fdb5c},
               {read_pdu, 48, 0xd9963a56},
               {"123456789", 9, 0xe3069283},
               {"", 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(amprt_crc32c(cases[i].data, cases[i].size), cases[i].want);
    assert_int_equal(amprt_crc32c_portable(cases[i].data, cases[i].size), cases[i].want);
  }
}

static void test_both_checksums_agree(void **state) {
  unsigned char data[300];
  (void)state;
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)(i * i * 7 + i);
  for (size_t from = 0; from < 9; from++)
    for (size_t n = 0; n + from <= sizeof data; n++)
      assert_int_equal(amprt_crc32c(data + from, n), amprt_crc32c_portable(data + from, n));
}

static void write_records(const char *path, int n, size_t size) {
  AmprtError error;
  unsigned char *data = calloc(1, size + (size_t)n + 1);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0 && data);
  for (int i = 0; i < n; i++) { /* lengths differ */
    memset(data, 'a' + i % 26, size + (size_t)i);
    assert_int_equal(amprt_record_write(fd, path, data, size + (size_t)i, &error), 0);
  }
  close(fd);
  free(data);
}

typedef struct Walk {
  const AmprtRecordFile *file;
  int n;
  AmprtStatus bad; /* of reading the data */
  AmprtError error;
} Walk;

/* Also reads the record. */
static bool each(void *context, uint64_t offset, uint64_t length) {
  Walk *walk = context;
  unsigned char *room = malloc(length + AMPRT_RECORD_HEAD + AMPRT_RECORD_TAIL);
  assert_non_null(room);
  AmprtStatus status = amprt_record_read(walk->file, offset, length, room, &walk->error);
  if (status)
    walk->bad = status;
  for (uint64_t i = 0; !status && i < length; i++)
    assert_int_equal(room[AMPRT_RECORD_HEAD + i], 'a' + walk->n % 26);
  walk->n++;
  free(room);
  return true;
}

static AmprtStatus walk_file(const char *path, Walk *walk, AmprtError *error) {
  AmprtRecordFile file;
  *walk = (Walk){.file = &file};
  AmprtStatus status = amprt_records_open(&file, path, error);
  if (status)
    return status;
  status = amprt_records_walk(&file, each, walk, error);
  amprt_records_close(&file);
  return status;
}

/* Short records are read many at a time, long ones are skipped; the file has both next to each
 * other. */
static void test_round_trip(void **state) {
  static const struct {
    int n;
    size_t size;
  } cases[] = {{0, 0}, {1, 0}, {3, 20}, {5000, 40}, {40, 4080}, {5, 100000}, {30, 65536 - 16}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *path = in_scratch("records");
    Walk walk;
    AmprtError error;
    write_records(path, cases[i].n, cases[i].size);
    if (walk_file(path, &walk, &error))
      fail_msg("%s", error.text);
    assert_int_equal(walk.n, cases[i].n);
    assert_int_equal(walk.bad, AMPRT_OK);
  }
}

/* As TensorBoard 2.21 writes it: RecordWriter(file).write(b"ampcc"). */
static void test_bytes(void **state) {
  static const unsigned char want[] = {5,    0,   0,   0,   0,   0,   0,    0,    0xea, 0xb2, 0x04,
                                       0x3e, 'a', 'm', 'p', 'c', 'c', 0x81, 0xc5, 0x62, 0xe0};
  (void)state;
  AmprtError error;
  int fd = open(in_scratch("one"), O_WRONLY | O_CREAT, 0666);
  assert_int_equal(amprt_record_write(fd, "one", "ampcc", 5, &error), 0);
  close(fd);
  AmprtBytes bytes = read_bytes(in_scratch("one"));
  assert_int_equal(bytes.size, sizeof want);
  assert_memory_equal(bytes.data, want, sizeof want);
  free(bytes.data);
}

/* Every bit of a file of five records, one at a time. */
static void test_flipped_bits(void **state) {
  (void)state;
  const char *path = in_scratch("flipped");
  write_records(path, 5, 30);
  AmprtBytes bytes = read_bytes(path);
  int fd = open(path, O_RDWR);
  for (size_t bit = 0; bit < bytes.size * 8; bit++) {
    Walk walk;
    AmprtError error = {0};
    unsigned char byte = bytes.data[bit / 8] ^ (unsigned char)(1 << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
    AmprtStatus status = walk_file(path, &walk, &error);
    if (!status && !walk.bad)
      fail_msg("bit %zu was not found", bit);
    const char *text = status ? error.text : walk.error.text;
    assert_non_null(strstr(text, path));
    assert_non_null(strstr(text, ": record at byte "));
    assert_non_null(strstr(text, "checksum"));
    assert_int_equal(pwrite(fd, bytes.data + bit / 8, 1, (off_t)(bit / 8)), 1);
  }
  close(fd);
  free(bytes.data);
}

/* A file that was cut is refused at every length, unless it ends between two records. */
static void test_short_files(void **state) {
  (void)state;
  const char *path = in_scratch("short");
  write_records(path, 3, 10);
  for (off_t size = 80; size >= 0; size--) {
    Walk walk;
    AmprtError error;
    assert_int_equal(truncate(path, size), 0);
    AmprtStatus status = walk_file(path, &walk, &error);
    bool whole = size == 0 || size == 26 || size == 53;
    assert_int_equal(status, whole ? AMPRT_OK : AMPRT_INPUT);
    assert_true(whole || strstr(error.text, "ends"));
  }
}

static void test_not_a_file(void **state) {
  (void)state;
  Walk walk;
  AmprtError error;
  assert_int_equal(walk_file(scratch, &walk, &error), AMPRT_INPUT);
  assert_non_null(strstr(error.text, "not a regular file"));
  assert_int_equal(walk_file(in_scratch("none"), &walk, &error), AMPRT_INPUT);
}

static const float ymin[] = {.1f, .2f}, xmin[] = {0, .5f}, ymax[] = {.9f, .25f}, xmax[] = {1, .75f};

static void test_example(void **state) {
  (void)state;
  const AmprtTfExample in = {(const unsigned char *)"jpeg", 4, 17, 2, ymin, xmin, ymax, xmax, NULL};
  AmprtTfExample out;
  size_t size;
  unsigned char *bytes = amprt_tf_example_pack(&in, "a bird", &size);
  assert_non_null(bytes);
  assert_null(amprt_tf_example_parse(&out, bytes, size));
  assert_int_equal(out.size, 4);
  assert_memory_equal(out.encoded, "jpeg", 4);
  assert_int_equal(out.label, 17);
  assert_int_equal(out.n_boxes, 2);
  assert_memory_equal(out.ymin, ymin, sizeof ymin);
  assert_memory_equal(out.xmin, xmin, sizeof xmin);
  assert_memory_equal(out.ymax, ymax, sizeof ymax);
  assert_memory_equal(out.xmax, xmax, sizeof xmax);
  amprt_tf_example_close(&out);
  for (size_t n = 0; n < size; n++) { /* a part may be another example, but never crashes */
    unsigned char *part = malloc(n + 1);
    memcpy(part, bytes, n);
    amprt_tf_example_parse(&out, part, n);
    amprt_tf_example_close(&out);
    free(part);
  }
  free(bytes);
}

/* Written by hand: an Example of one feature each. */
static void test_bad_examples(void **state) {
  static const struct {
    const char *data;
    size_t size;
    const char *want;
  } cases[] = {
      {"", 0, "image/encoded"},
      {"\x0a", 1, "no tf.Example"},
      {"\x0a\x05\xff", 3, "no tf.Example"},
      /* features { feature { key: "image/encoded" value { int64_list { value: 1 } } } } */
      {"\x0a\x18\x0a\x16\x0a\x0dimage/encoded\x12\x05\x1a\x03\x0a\x01\x01", 26, "image/encoded"},
      /* two strings */
      {"\x0a\x1a\x0a\x18\x0a\x0dimage/encoded\x12\x07\x0a\x05\x0a\x01x\x0a\x00", 28,
       "image/encoded"},
      /* a key alone */
      {"\x0a\x11\x0a\x0f\x0a\x0dimage/encoded", 19, "image/encoded"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtTfExample out;
    const char *why = amprt_tf_example_parse(&out, cases[i].data, cases[i].size);
    if (!why || !strstr(why, cases[i].want))
      fail_msg("case %zu: %s", i, why ? why : "taken");
    amprt_tf_example_close(&out);
  }
}

/* What other writers may do: no label; boxes of different numbers. */
static void test_odd_examples(void **state) {
  (void)state;
  AmprtTfExample in = {(const unsigned char *)"x", 1, -1, 1, ymin, xmin, ymax, xmax, NULL}, out;
  size_t size;
  unsigned char *bytes = amprt_tf_example_pack(&in, NULL, &size);
  assert_null(amprt_tf_example_parse(&out, bytes, size));
  assert_int_equal(out.label, -1);
  amprt_tf_example_close(&out);
  /* the last entry of a key counts, and one without a kind is none */
  unsigned char *more = malloc(size + 32);
  memcpy(more, bytes, size);
  memcpy(more + size, "\x0a\x1a\x0a\x18\x0a\x16image/object/bbox/ymin", 28);
  const char *why = amprt_tf_example_parse(&out, more, size + 28);
  assert_true(why && strstr(why, "one length"));
  amprt_tf_example_close(&out);
  free(more);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_checksum),
      cmocka_unit_test(test_both_checksums_agree),
      cmocka_unit_test_setup_teardown(test_round_trip, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_bytes, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_flipped_bits, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_short_files, scratch_setup, scratch_teardown),
      cmocka_unit_test_setup_teardown(test_not_a_file, scratch_setup, scratch_teardown),
      cmocka_unit_test(test_example),
      cmocka_unit_test(test_bad_examples),
      cmocka_unit_test(test_odd_examples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
