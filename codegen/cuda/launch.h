/* What the files that turn kernels into launches share. */
#ifndef AMPCC_CODEGEN_CUDA_LAUNCH_H
#define AMPCC_CODEGEN_CUDA_LAUNCH_H

#include "codegen/cuda/cuda.h"
#include "codegen/loop/loop.h"

enum { LAUNCH_THREADS = 256, LAUNCH_WARP = 32 }; /* AMP_THREADS, AMP_WARP of prelude.h */

static inline int64_t ceiling(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

/* Appends a launch of `function` on a grid of `blocks` by `down` blocks. */
void launch_add(Emitter *emit, const Kernel *kernel, const char *function, const char *args,
                int64_t blocks, int64_t down, LaunchList *out);
/* The name of a kernel that is one call of a function of codegen/text: `call`, behind the
 * declarations `shared` of shared memory. */
const char *launch_wrap(Emitter *emit, const char *stem, const char *args_type, const char *shared,
                        const char *call);

/* launch_loop.c: POINT, VECTOR, CHANNEL, UPDATE; launch_loops: n kernels of one text at once. */
void launch_loop(Emitter *emit, const Kernel *kernel, LaunchList *out);
void launch_loops(Emitter *emit, const Kernel *kernel, int n, LaunchList *out);
/* May kernels of this kind, `next` and the n before it, share a launch? */
bool launch_loop_joins(const Kernel *first, int n, const Kernel *next);
bool launch_opt_joins(const Kernel *first, int n, const Kernel *next);
/* launch_table.c: ROW, REDUCE, POOL */
void launch_row(Emitter *emit, const Kernel *kernel, LaunchList *out);
void launch_reduce(Emitter *emit, const Kernel *kernel, LaunchList *out);
void launch_pool(Emitter *emit, const Kernel *kernel, LaunchList *out);
/* launch_opt.c: `n` kernels of one op at once, each over its own parameter */
void launch_opt(Emitter *emit, const Kernel *kernel, int n, LaunchList *out);
int64_t launch_opt_workspace(const Kernel *kernel);

#endif
