#include "runtime/cpu/dnn_rt.h"

#include "runtime/cpu/plan.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static Plan *plan; /* by slot */
static int n_plans;
static unsigned char *extra; /* workspace of the ops that need more here than was planned */
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
           (long long)op->c, (long long)op->k, (long long)op->r, (long long)op->s,
           (long long)dnn_filter_c(op), dnn_reason());
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

int dnn_open(const DnnOp *const *ops, int n_ops, const AmprtRun *run, char *error,
             size_t error_size) {
  int64_t *need = calloc((size_t)n_ops + 1, sizeof *need); /* bytes of workspace, by op */
  plan = calloc((size_t)n_ops + 1, sizeof *plan);
  n_plans = n_ops;
  bool good = need && plan;
  if (!good)
    snprintf(error, error_size, "out of memory");
  for (int i = 0; good && i < n_ops; i++) {
    need[i] = dnn_workspace(ops[i], error, error_size);
    good = need[i] >= 0;
    if (need[i] > (int64_t)ops[i]->workspace_bytes && need[i] > extra_bytes)
      extra_bytes = need[i];
  }
  if (good && extra_bytes > 0) {
    extra_bytes = (extra_bytes + 63) / 64 * 64;
    extra = aligned_alloc(64, (size_t)extra_bytes);
    good = extra != NULL;
    if (!good)
      snprintf(error, error_size, "oneDNN: more workspace: out of memory");
  }
  for (int i = 0; good && i < n_ops; i++) {
    const DnnOp *op = ops[i];
    bool fits = need[i] <= (int64_t)op->workspace_bytes;
    Builder b = {.op = op,
                 .run = run,
                 .plan = &plan[op->slot],
                 .scratch = fits ? run->arena + op->workspace : extra};
    good = build(&b);
    if (!good)
      explain(op, error, error_size);
  }
  free(need);
  if (good)
    return 0;
  dnn_close();
  return -1;
}

void dnn_close(void) {
  for (int i = 0; plan && i < n_plans; i++)
    for (int j = 0; j < plan[i].n_steps; j++) {
      Step *step = &plan[i].step[j];
      for (int k = 0; k < step->n_args; k++)
        dnnl_memory_destroy(step->arg[k].memory);
      if (step->prim)
        dnnl_primitive_destroy(step->prim);
    }
  free(plan);
  free(extra);
  plan = NULL;
  extra = NULL;
  extra_bytes = n_plans = 0;
  dnn_api_stop();
}

void dnn_run(const AmprtRun *run, const void *op) {
  (void)run; /* dnn_open has put addresses into the steps */
  const Plan *p = &plan[((const DnnOp *)op)->slot];
  for (int64_t chunk = 0; chunk < p->n_chunks; chunk++)
    for (int i = 0; i < p->n_steps; i++) {
      const Step *step = &p->step[i];
      if (step->when == EACH || chunk == (step->when == FIRST ? 0 : p->n_chunks - 1))
        step->run(step, chunk);
    }
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
