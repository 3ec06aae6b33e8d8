/* The one allocation on the GPU: state, arena, constants, inputs on their way in and scalars on
 * their way out, and what other ranks send. */
#include "runtime/base/convert.h"
#include "runtime/core/machine.h"
#include "runtime/cuda/inner.h"

static unsigned char *base;
static CudaLayout layout;
static CudaRun run;

enum { ALIGNMENT = 512 };

static uint64_t align_up(uint64_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t cuda_rt_port_bytes(const AmprtPort *port) {
  return (uint64_t)amprt_port_elements(port) * amprt_dtype_size((AmprtDType)port->dtype);
}

uint64_t cuda_rt_scaling_at(const AmprtPort *port) {
  return align_up((uint64_t)amprt_port_elements(port));
}

uint64_t cuda_rt_scaling_bytes(void) {
  const AmprtProgram *program = cuda_rt_found.program;
  return (uint64_t)(program->batch_size * program->channels) * sizeof(AmprtScaling);
}

/* A port that takes pixels may be given numbers too, so there is room for the larger of the two. */
uint64_t cuda_rt_staging_next(uint64_t at, const AmprtPort *port) {
  uint64_t bytes = cuda_rt_port_bytes(port);
  uint64_t pixels = port->pixels ? cuda_rt_scaling_at(port) + cuda_rt_scaling_bytes() : 0;
  return align_up(at + (pixels > bytes ? pixels : bytes));
}

uint64_t cuda_rt_staging_bytes(const AmprtGraph *graph) {
  uint64_t at = 0;
  for (int i = 0; i < graph->n_inputs; i++)
    at = cuda_rt_staging_next(at, &graph->input[i]);
  return at;
}

CudaLayout cuda_rt_layout(const CudaPart *part, const AmprtProgram *program,
                          const AmprtRanks *ranks) {
  uint64_t arena = 0, staging = 0;
  for (int i = 0; i < program->n_graphs; i++) {
    if (program->graph[i].n_buckets && !ranks)
      continue;
    uint64_t bytes = cuda_rt_staging_bytes(&program->graph[i]);
    staging = bytes > staging ? bytes : staging;
    arena = program->graph[i].arena_bytes > arena ? program->graph[i].arena_bytes : arena;
  }
  CudaLayout out = {.state = 0};
  out.arena = align_up(program->state_bytes);
  out.constant = out.arena + align_up(arena);
  out.staging = out.constant + align_up(part->constant_bytes);
  out.kept = out.staging + align_up(staging);
  out.arrived = out.kept + align_up(CUDA_KEPT_BYTES);
  out.bytes = out.arrived + align_up(ranks ? cuda_rt_arrived_bytes(ranks) : 0);
  return out;
}

int cuda_rt_memory_open(const AmprtRanks *ranks) {
  const CudaPart *part = cuda_rt_found.part;
  size_t free_bytes = 0, all = 0;
  double gib = 1 << 30;
  void *made = NULL;
  layout = cuda_rt_layout(part, cuda_rt_found.program, ranks);
  if (CUDA(cudaMemGetInfo, &free_bytes, &all))
    return -1;
  if (layout.bytes > free_bytes)
    return cuda_rt_fail("this needs %.2f GiB of GPU memory, of the %.2f of %s %.2f are free: end "
                        "other programs, or compile with --max-memory or a smaller --batch-size",
                        (double)layout.bytes / gib, (double)all / gib, cuda_rt_found.device,
                        (double)free_bytes / gib);
  if (CUDA(cudaMalloc, &made, layout.bytes))
    return -1;
  base = made;
  run = (CudaRun){base + layout.arena, base + layout.state, base + layout.constant};
  CUDA(cudaMemsetAsync, base, 0, layout.bytes, NULL);
  if (part->constant_bytes)
    CUDA(cudaMemcpyAsync, base + layout.constant, part->constant, part->constant_bytes,
         cudaMemcpyHostToDevice, NULL);
  return CUDA(cudaStreamSynchronize, NULL);
}

void cuda_rt_memory_close(void) {
  if (base)
    cudaFree(base);
  base = NULL;
}

const CudaRun *cuda_rt_run(void) {
  return &run;
}

unsigned char *cuda_rt_at(unsigned block, uint64_t at) {
  const uint64_t start[] = {
      [CUDA_ARENA] = layout.arena, [CUDA_STATE] = layout.state, [CUDA_CONSTANT] = layout.constant};
  return block < CUDA_NOWHERE ? base + start[block] + at : NULL;
}

unsigned char *cuda_rt_staging(void) {
  return base + layout.staging;
}

unsigned char *cuda_rt_kept(void) {
  return base + layout.kept;
}

unsigned char *cuda_rt_arrived(void) {
  return base + layout.arrived;
}
