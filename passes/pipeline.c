/* The order of the passes. Reading default_pipeline is reading what the compiler does; each
 * comment says what breaks if its line moves. */
#include "passes/pass.h"

#include <string.h>

typedef struct Pipeline {
  PassContext *context;
  const PassTrace *trace;
  const char *skip;
  bool failed;
} Pipeline;

static bool is_skipped(const char *skip, const PassInfo *pass) {
  for (size_t len; skip && *skip; skip += len + (skip[len] == ',')) {
    len = strcspn(skip, ",");
    if (pass_find(skip, len) == pass)
      return true;
  }
  return false;
}

static void run_info(Pipeline *p, const PassInfo *pass) {
  int errors = p->context->diag->n_errors;
  if (p->failed || is_skipped(p->skip, pass))
    return;
  pass_run(pass, p->context, p->trace);
  p->failed = p->context->diag->n_errors != errors;
}

static void run(Pipeline *p, PassFn *fn) {
  for (int i = 0; i < n_passes; i++)
    if (pass_info[i].run == fn)
      run_info(p, &pass_info[i]);
}

static void default_pipeline(Pipeline *p) {
  run(p, pass_simplify);   /* first: what it removes is neither copied nor differentiated       */
  run(p, pass_eval_graph); /* before autodiff: @eval and @stats are made of the forward pass    */
  run(p, pass_autodiff);   /* before amp: gradients get the same policy as values               */
  run(p, pass_loss_scale); /* before optimizer, which gates every update by the finite test     */
  run(p, pass_optimizer);  /* before amp, so that it sees which gradients end in f32 updates    */
  run(p, pass_simplify);   /* folds what the seed and the means left: amp should not colour it  */
  run(p, pass_amp);        /*                                                                   */
  run(p, pass_fold_casts); /* before weight-copies: only casts that really are needed get one   */
  run(p, pass_weight_copies); /* after optimizer, whose nodes write the copies */
  run(p, pass_cse); /* after the casts have settled; not after fuse: it makes clones     */
  run(p, pass_dce); /*                                                                   */
  run(p, pass_assign_layout); /* before lower-norm: one node per normalisation to look at */
  run(p, pass_lower_norm); /* after all precision passes: to them batch norm is one op          */
  run(p, pass_fuse);          /* needs the halves of batch norm                                    */
  run(p, pass_schedule);      /* orders whole kernels                                              */
  run(p, pass_plan_memory);   /* needs the final order                                             */
  run(p, pass_check_plan);    /* last: nothing may move after it                                   */
}

bool pipeline_run(PassContext *context, const char *only, const char *skip,
                  const PassTrace *trace) {
  Pipeline p = {.context = context, .trace = trace, .skip = skip};
  if (!only)
    default_pipeline(&p);
  for (size_t len; only && *only; only += len + (only[len] == ',')) {
    len = strcspn(only, ",");
    const PassInfo *pass = pass_find(only, len);
    CHECK(pass, "unknown pass `%.*s`", (int)len, only);
    run_info(&p, pass);
  }
  return !p.failed;
}
