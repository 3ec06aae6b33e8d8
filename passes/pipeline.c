/* The order of the passes. Reading default_pipeline is reading what the compiler does; each
 * comment says what breaks if its line moves. */
#include "ir/base/list.h"
#include "passes/pass.h"

#include <string.h>

typedef struct Pipeline {
  PassContext *context;
  const PassTrace *trace;
  const char *skip;
  bool failed;
} Pipeline;

static void run_info(Pipeline *p, const PassInfo *pass) {
  int errors = p->context->diag->n_errors;
  if (p->failed || list_has(p->skip, pass->flag))
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
  run(p, pass_simplify);      /* first: what it removes is neither copied nor differentiated */
  run(p, pass_set_compute);   /* before autodiff: a gradient op computes as its forward op does */
  run(p, pass_zero_gamma);    /* before freeze, which replaces normalisations */
  run(p, pass_freeze);        /* before eval-graph: @stats must not renew frozen statistics */
  run(p, pass_eval_graph);    /* before autodiff: @eval, @stats are made of the forward pass */
  run(p, pass_mix);           /* after eval-graph, which has no mixing; before autodiff */
  run(p, pass_autodiff);      /* before amp: gradients get the same policy as values */
  run(p, pass_loss_scale);    /* before optimizer, which gates updates by the finite test */
  run(p, pass_accumulate);    /* after loss-scale: each part is scaled; before optimizer */
  run(p, pass_optimizer);     /* before amp, which must see what reads the gradients */
  run(p, pass_average);       /* after optimizer: follows its updates */
  run(p, pass_l2_loss);       /* after optimizer: reads its decays */
  run(p, pass_all_reduce);    /* after all that makes the step; before simplify, amp */
  run(p, pass_simplify);      /* folds constants that autodiff made, so amp need not colour them */
  run(p, pass_amp);           /* on the whole step, batch norm still in one piece */
  run(p, pass_fold_casts);    /* before weight-copies: only casts that must stay get a copy */
  run(p, pass_weight_copies); /* after optimizer, whose nodes write the copies */
  run(p, pass_cse);           /* after the casts have settled; before fuse, which makes clones */
  run(p, pass_dce);           /* after cse, which leaves inputs and variables unread */
  run(p, pass_tf32);          /* after cse: no later pass adds a convolution or product */
  run(p, pass_assign_layout); /* before lower-norm: a normalisation is still one node */
  run(p, pass_lower_norm);    /* after the precision passes, before fuse, which needs halves */
  run(p, pass_norm_forms);    /* after cse, which would merge its clones */
  run(p, pass_fuse);          /* makes kernels; from here on nothing may merge nodes */
  run(p, pass_schedule);      /* orders whole kernels */
  run(p, pass_recompute);     /* after schedule: knows what lives when; makes kernels of its own */
  run(p, pass_plan_memory);   /* needs the final order */
  run(p, pass_check_plan);    /* last: nothing may move after it */
}

bool pipeline_run(PassContext *context, const char *only, const char *skip,
                  const PassTrace *trace) {
  Pipeline p = {.context = context, .trace = trace, .skip = skip};
  pass_trail_begin(context->module);
  if (!only)
    default_pipeline(&p);
  const char *item;
  for (size_t len; list_next(&only, &item, &len);) {
    const PassInfo *pass = pass_find(item, len);
    CHECK(pass, "unknown pass `%.*s`", (int)len, item);
    run_info(&p, pass);
  }
  pass_trail_end();
  return !p.failed;
}
