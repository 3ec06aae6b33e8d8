/* The launch in front of a graph's own: the image port, made of bytes. */
#include "codegen/cuda/launch.h"
#include "codegen/program/emit.h"

/* ROUNDS: loads of one thread. What bytes mean is 256 divisions for each block. */
enum { WIDTH_MOST = 8, ROUNDS = 8 };

const Value *cuda_pixels_port(const Graph *graph) {
  for (int i = 0; i < graph->n_nodes; i++)
    if (graph->node[i]->op == OP_INPUT && attr_int(graph->node[i], ATTR_PIXELS, 0))
      return graph->node[i]->result[0];
  return NULL;
}

static int width_of(int64_t each) {
  int width = WIDTH_MOST;
  while (each % width)
    width /= 2;
  return width;
}

static const char *function_of(Emitter *emit, const Value *port, int width) {
  const char *call = arena_printf(emit->arena, "amp_pixels(&run, &a, %s, %d, table)",
                                  cdtype_name(port->type.dtype), width);
  return launch_wrap(emit, "pixels", "AmpPixels", "  AMP_SHARED(float, table, 256);\n", call);
}

Launch cuda_emit_pixels(Emitter *emit, const Value *port) {
  int64_t images = port->type.dim[0], each = type_count(port->type) / images;
  int width = width_of(each);
  int64_t work = (int64_t)LAUNCH_THREADS * width * ROUNDS, parts = (each + work - 1) / work;
  const char *args =
      arena_printf(emit->arena, "args_%s_pixels", ident_of(emit->arena, emit->graph->name));
  fprintf(emit->tables, "static const AmpPixels %s = {.out = %s, .each = %lld, .parts = %lld};\n",
          args, ref_text(emit->arena, ref_read(emit, port, "")), (long long)each, (long long)parts);
  return (Launch){.kind = CUDA_KERNEL,
                  .kernel = -1,
                  .name = "pixels",
                  .function = function_of(emit, port, width),
                  .args = args,
                  .grid = {images * parts, 1, 1},
                  .block = {LAUNCH_THREADS, 1, 1}};
}
