/* Stand-in for a fuzzing engine: runs each file named on the command line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    static uint8_t data[1 << 22];
    FILE *in = fopen(argv[i], "rb");
    if (!in)
      return perror(argv[i]), 1;
    size_t size = fread(data, 1, sizeof data, in);
    fclose(in);
    LLVMFuzzerTestOneInput(data, size);
  }
  return argc > 1 ? 0 : 1; /* without seeds nothing would be tested */
}
