/* SHA-256 against the examples of FIPS 180-4 and coreutils' sha256sum, in every division. */
#include "ir/base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* clang-format off: cmocka.h needs the others before it */
#include <cmocka.h>
/* clang-format on */

static void assert_hash(const Sha256 *sha, const char *hex) {
  unsigned char hash[SHA256_BYTES];
  char text[SHA256_TEXT];
  sha256_get(sha, hash);
  sha256_hex(hash, text);
  assert_string_equal(text, hex);
}

static void known(void **state) {
  (void)state;
  static const struct {
    const char *text, *hash;
  } row[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    Sha256 sha = sha256_begin();
    sha256_add(&sha, row[i].text, strlen(row[i].text));
    assert_hash(&sha, row[i].hash);
  }
}

/* 1,000,000 letters `a`, in pieces of every length up to three blocks. */
static void pieces(void **state) {
  (void)state;
  char letters[3 * SHA256_BLOCK];
  memset(letters, 'a', sizeof letters);
  Sha256 sha = sha256_begin();
  size_t left = 1000000;
  for (size_t n = 0; left; n = (n + 1) % sizeof letters) {
    size_t now = n < left ? n : left;
    sha256_add(&sha, letters, now);
    left -= now;
  }
  assert_hash(&sha, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known), cmocka_unit_test(pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
