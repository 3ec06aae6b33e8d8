/* The toy program as an executable, for tests/runtime/kill.py. PART, if defined, names a part in
 * front of the CPU's. `toy --write-data DIR` makes its data. */
#include "tests/runtime/device.h"
#include "tests/runtime/toy.h"

#include <stdlib.h>
#include <string.h>

#ifndef PART
#define PART toy_fp16.target
#endif

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--write-data"))
    return toy_write_data(argv[2], 203, 50), 0;
  AmprtProgram program = toy_fp16;
  if (getenv("TOY_DEVICE")) { /* how many runs it leaves undone behind the last */
    test_device_lag = atoi(getenv("TOY_DEVICE"));
    program.device = &test_device;
  }
  const AmprtPart part[] = {{PART, &program, NULL}, {toy_fp16.target, &program, NULL}};
  return amprt_main(part, strcmp(PART, toy_fp16.target) ? 2 : 1, argc, argv);
}
