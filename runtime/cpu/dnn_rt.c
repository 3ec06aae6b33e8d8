#include "runtime/cpu/dnn_rt.h"

#include "runtime/cpu/plan.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static Plan *plan; /* by slot */
static int n_plans;
static unsigned char *extra; /* for ops that need more scratch here than was planned */
static int64_t extra_bytes;

bool dnn_bf16_is_native(void) {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
         dnnl_cpu_isa_avx512_core_bf16;
}

static bool build(Builder *b) {
  *b->plan = (Plan){.n_chunks = 1};
  if (b->op->kind == DNN_MATMUL)
    return dnn_build_matmul(b);
  return b->op->method == DNN_GEMM ? dnn_build_gemm_conv(b) : dnn_build_conv(b);
}

static const char *const kind_name[] = {"conv2d", "conv2d_dgrad", "conv2d_wgrad", "matmul"};

static void explain(const DnnOp *op, char *error, size_t error_size) {
  snprintf(error, error_size,
           "cannot make %s of [%lld,%lld,%lld,%lld] with a filter [%lld,%lld,%lld,%lld]: %s",
           kind_name[op->kind], (long long)op->n, (long long)op->h, (long long)op->w,
           (long long)op->c, (long long)op->k, (long long)op->r, (long long)op->s, (long long)op->c,
           dnn_reason());
}

int64_t dnn_workspace(const DnnOp *op, char *error, size_t error_size) {
  Plan scratch;
  Builder b = {.op = op, .plan = &scratch, .dry = true};
  if (dnn_api_start() && build(&b))
    return b.used;
  explain(op, error, error_size);
  return -1;
}

void dnn_plan_for(int threads) {
  dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  omp_set_num_threads(threads);
}

static bool open_one(const DnnOp *op, const AmprtRun *run, int64_t need) {
  Builder b = {.op = op, .run = run, .plan = &plan[op->slot]};
  b.scratch = need <= (int64_t)op->workspace_bytes ? run->arena + op->workspace : extra;
  return build(&b);
}

static bool open_extra(const DnnOp *const *ops, const int64_t *need) {
  for (int i = 0; i < n_plans; i++)
    if (need[i] > (int64_t)ops[i]->workspace_bytes && need[i] > extra_bytes)
      extra_bytes = need[i];
  if (extra_bytes == 0)
    return true;
  extra_bytes = (extra_bytes + 63) / 64 * 64;
  extra = aligned_alloc(64, (size_t)extra_bytes);
  return extra || dnn_fail("more workspace", dnnl_out_of_memory);
}

int dnn_open(const DnnOp *const *ops, int n_ops, const AmprtRun *run, char *error,
             size_t error_size) {
  int64_t *need = calloc((size_t)n_ops + 1, sizeof *need);
  plan = calloc((size_t)n_ops + 1, sizeof *plan);
  n_plans = n_ops;
  int done = 0;
  bool good = need && plan;
  for (int i = 0; good && i < n_ops; i++)
    good = (need[i] = dnn_workspace(ops[i], error, error_size)) >= 0;
  if (!need || !plan)
    snprintf(error, error_size, "out of memory");
  else if (good && !open_extra(ops, need))
    snprintf(error, error_size, "%s", dnn_reason()), good = false;
  for (; good && done < n_ops; done++)
    if (!open_one(ops[done], run, need[done]))
      explain(ops[done], error, error_size), good = false;
  free(need);
  if (good)
    return 0;
  dnn_close();
  return -1;
}

static void step_close(Step *step) {
  for (int i = 0; i < step->n_args; i++)
    dnnl_memory_destroy(step->arg[i].memory);
  if (step->prim)
    dnnl_primitive_destroy(step->prim);
}

void dnn_close(void) {
  for (int i = 0; plan && i < n_plans; i++)
    for (int j = 0; j < plan[i].n_steps; j++)
      step_close(&plan[i].step[j]);
  free(plan);
  free(extra);
  plan = NULL;
  extra = NULL;
  extra_bytes = n_plans = 0;
  dnn_api_stop();
}

void dnn_run(const AmprtRun *run, const void *op) {
  (void)run; /* places were bound by dnn_open */
  const Plan *p = &plan[((const DnnOp *)op)->slot];
  for (int64_t chunk = 0; chunk < p->n_chunks; chunk++)
    for (int i = 0; i < p->n_steps; i++) {
      const Step *step = &p->step[i];
      if (step->when == EACH || chunk == (step->when == FIRST ? 0 : p->n_chunks - 1))
        step->run(step, chunk);
    }
}

void dnn_set_threads(int threads) {
  if (threads > 0) /* else as OpenMP has it: all, or OMP_NUM_THREADS */
    omp_set_num_threads(threads);
}

int dnn_threads(void) {
  return omp_get_max_threads();
}

const char *dnn_describe(void) {
  static const struct {
    int isa;
    const char *name;
  } known[] = {{dnnl_cpu_isa_avx512_core_amx, "AVX-512 and AMX"},
               {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 and bf16"},
               {dnnl_cpu_isa_avx512_core, "AVX-512"},
               {dnnl_cpu_isa_avx2, "AVX2"}};
  static char text[160];
  const dnnl_version_t *version = dnnl_version();
  const char *name = "no AVX2";
  for (size_t i = sizeof known / sizeof *known; i-- > 0;)
    if (((int)dnnl_get_effective_cpu_isa() & known[i].isa) == known[i].isa)
      name = known[i].name;
  int len = snprintf(text, sizeof text, "oneDNN %d.%d.%d, %s", version->major, version->minor,
                     version->patch, name);
  if (extra)
    snprintf(text + len, sizeof text - (size_t)len, ", %.1f MiB more workspace than planned",
             (double)extra_bytes / (1 << 20));
  return text;
}
