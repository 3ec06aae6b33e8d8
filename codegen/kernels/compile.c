/* compile_kernels TARGET UNIT HEADERS OUTPUT, which runs while ampcc is built: compiles one unit of
 * the kernels whose text is the same in every program, by the compiler that ampcc calls by default,
 * and writes the object as an entry of the cache to OUTPUT. That file is installed with ampcc, for
 * the first compile of its users (codegen/README.md, What is compiled once). */
#include "codegen/codegen.h"
#include "ir/base/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  output_start("ampcc");
  if (argc != 5)
    return fputs("usage: compile_kernels TARGET UNIT HEADERS OUTPUT\n", stderr), 2;
  static const CpuArch *const arch[] = {&cpu_x86_64, &cpu_aarch64};
  char *headers = realpath(argv[3], NULL);
  int status = 2;
  /* Users have a $CC of their own, or none. */
  unsetenv("CC");
  for (size_t i = 0; i < sizeof arch / sizeof *arch && headers; i++)
    if (strcmp(arch[i]->target, argv[1]) == 0)
      status = build_common(backend_cpu(arch[i], NULL, WINOGRAD_AUTO), argv[2],
                            &(CodegenOptions){.resource = headers, .output = argv[4]});
  free(headers);
  return output_finish(status);
}
