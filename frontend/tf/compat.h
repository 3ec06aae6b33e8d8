/* ampcc --emit=graphdef, --tf-amp-report: GraphDefs in, rewritten as TensorFlow rewrites them. */
#ifndef AMPCC_FRONTEND_TF_COMPAT_H
#define AMPCC_FRONTEND_TF_COMPAT_H

#include "frontend/options.h"

/* The exit status of ampcc. */
int tf_compat(Arena *arena, const Options *options);

#endif
