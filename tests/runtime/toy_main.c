/* The toy program as an executable, for tests/runtime/kill.py. `toy --write-data DIR` makes its
 * data. */
#include "tests/runtime/toy.h"

#include <string.h>

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--write-data"))
    return toy_write_data(argv[2], 203, 50), 0;
  const AmprtPart part = {toy_fp16.target, &toy_fp16, NULL};
  return amprt_main(&part, 1, argc, argv);
}
