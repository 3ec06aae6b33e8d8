/* What a compiled step computes against what it should. Every number that the step stored
 * (certify/dump.h) is measured twice: model  against the same step of the f32 model, in doubles
 * throughout: what the choice of precision costs, summed up over all layers before code   against
 * the evaluator, op by op, on the operands that the code itself had, with the same roundings in the
 * same places: what the code generator and its libraries add Parameters, slots and moving averages
 * after the step have only the second. */
#ifndef AMPCC_FRONTEND_CERTIFY_CERTIFY_H
#define AMPCC_FRONTEND_CERTIFY_CERTIFY_H

#include "frontend/certify/dump.h"
#include "frontend/certify/measure.h"

typedef enum Role { ROLE_FORWARD, ROLE_GRADIENT, ROLE_UPDATE, ROLE_COUNT } Role;
extern const char *const role_name[ROLE_COUNT];

/* One stored tensor. */
typedef struct Finding {
  const Value *value;
  const char *layer; /* user's layer; NULL if it belongs to none: most of the update */
  const DumpTensor *stored;
  Role role;
  bool has_model; /* does the f32 model have it? It knows no casts and no copies */
  bool blurred;   /* a rounding to 16 bits inside the kernel may have fallen the other way */
  Error model;
  Drift code;
} Finding;

typedef struct Certificate {
  Finding *at; /* in the order of execution */
  int n, cap;
  DType unit;   /* what ulps of model errors are of: the program's low type, else f32 */
  bool skipped; /* gradients were not finite: nothing was updated */
} Certificate;

/* `graph` is @train as it became code, `exact` that of the f32 model, both planned. Marks of both
 * are changed. */
Certificate *certify(Arena *arena, Graph *graph, Graph *exact, const Dump *dump);
/* Were its gradients not finite, so that it updated nothing but the loss scale? */
bool step_was_skipped(const Dump *dump);
/* The largest model error (norm); Inf if a number was lost. */
double certificate_worst(const Certificate *certificate);
/* Multiplications of one step's forward pass: says how long the evaluator will take. */
int64_t graph_products(const Graph *graph);

/* report.c */
typedef struct CertificateHead { /* what it is about */
  const char *model, *dtype;
  int64_t batch, own_batch; /* of the certified step; of the program */
  int64_t seed;
  double scale, own_scale; /* loss scale, likewise */
  double max_error;        /* NaN: none given */
} CertificateHead;
void certificate_print(const Certificate *certificate, const CertificateHead *head, FILE *out);
void certificate_json(Arena *arena, const Certificate *certificate, const CertificateHead *head,
                      FILE *out);

#endif
