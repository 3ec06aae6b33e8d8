/* Runs one graph of the program that it is linked with: PROGRAM GRAPH THREADS FILE. The file holds
 * the arena and then the state, and is overwritten by what the graph makes of them. For programs of
 * another machine, which program_emulate (program.h) makes. */
#include "amprt.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 64 };

static unsigned char *block(FILE *file, size_t size) {
  unsigned char *at = aligned_alloc(ALIGN, (size + ALIGN) / ALIGN * ALIGN);
  return at && fread(at, 1, size, file) == size ? at : NULL;
}

int amprt_main(const AmprtPart *part, int n_parts, int argc, char **argv) {
  char why[200];
  if (argc != 4 || n_parts != 1 || part->fits(why, sizeof why))
    return 2;
  const AmprtProgram *program = part->program;
  const AmprtGraph *graph = &program->graph[atoi(argv[1])];
  FILE *file = fopen(argv[3], "r+b");
  if (!file)
    return 3;
  size_t arena = (size_t)graph->arena_bytes, state = (size_t)program->state_bytes;
  AmprtRun run = {0};
  run.arena = block(file, arena);
  run.state = block(file, state);
  run.threads = program->threads;
  run.constant = program->constant;
  if (!run.arena || !run.state || run.threads->open(atoi(argv[2]), why, sizeof why) ||
      (program->open && program->open(&run, why, sizeof why)))
    return 4;
  for (int i = 0; i < graph->n_kernels; i++)
    graph->run[i](&run, graph->kernel[i].args);
  rewind(file);
  bool good = fwrite(run.arena, 1, arena, file) == arena &&
              fwrite(run.state, 1, state, file) == state && fclose(file) == 0;
  run.threads->close();
  return good ? 0 : 5;
}
