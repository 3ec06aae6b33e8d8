/* Compares what a compiled step computes with what it should compute. Every number that the step
 * stored (certify/dump.h) is measured twice:
 *
 *   model   against the same step of the f32 model in doubles throughout. This is what the choice
 *           of precision costs, with the errors of all layers before.
 *   code    against the evaluator, op by op, on the operands that the code itself had and with the
 *           same roundings in the same places. This is what the code generator and its libraries
 *           add.
 *
 * Parameters, slots and moving averages after the step are measured only in the second way. */
#ifndef AMPCC_FRONTEND_CERTIFY_CERTIFY_H
#define AMPCC_FRONTEND_CERTIFY_CERTIFY_H

#include "frontend/certify/dump.h"
#include "frontend/certify/measure.h"
#include "passes/target.h"

typedef enum Role { ROLE_FORWARD, ROLE_GRADIENT, ROLE_UPDATE, ROLE_COUNT } Role;
extern const char *const role_name[ROLE_COUNT];

/* One stored tensor. */
typedef struct Finding {
  const Value *value;
  const char *layer; /* the user's layer; NULL if it belongs to none, as most of the update */
  const DumpTensor *stored;
  Role role;
  bool has_model; /* has the f32 model this tensor? It has no casts and no copies of weights */
  bool blurred;   /* a 16-bit rounding inside the kernel may have gone to the other neighbour */
  Error model;
  Drift code;
  bool has_bound; /* does the target state a bound on what the code may be off? */
  Bound bound;
} Finding;

typedef struct Certificate {
  Finding *at; /* in the order of execution */
  int n, cap;
  DType unit;   /* the type whose ulp measures model errors: the program's low type, else f32 */
  bool skipped; /* gradients were not finite: nothing was updated */
} Certificate;

/* `graph` is @train as it became code for `target`, `exact` that of the f32 model; both are
 * planned. */
Certificate *certify(Arena *arena, Graph *graph, const Target *target, Graph *exact,
                     const Dump *dump);
/* Were the step's gradients not finite, so that it updated nothing but the loss scale? */
bool step_was_skipped(const Dump *dump);
/* The largest model error (norm); Inf if a number is Inf or NaN that should not be. */
double certificate_worst(const Certificate *certificate);
/* The largest share of a bound that the code used up: more than 1 if it broke one. */
double certificate_bound(const Certificate *certificate);
/* The multiplications of one forward pass, from which follows how long the evaluator will take. */
int64_t graph_products(const Graph *graph);

/* report.c */
typedef struct CertificateHead { /* what the certificate is about */
  const char *model, *dtype;
  int64_t batch, own_batch; /* batch size of the certified step, and of the program */
  int64_t seed;
  double scale, own_scale; /* loss scale of the certified step, and of the program */
  double max_error;        /* NaN if none was given */
} CertificateHead;
void certificate_print(const Certificate *certificate, const CertificateHead *head, FILE *out);
void certificate_json(Arena *arena, const Certificate *certificate, const CertificateHead *head,
                      FILE *out);

#endif
