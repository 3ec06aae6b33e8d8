/* What --precision-file asks of single ops: rules over the classes of the op table. */
#ifndef AMPCC_PASSES_PRECISION_PRECISION_RULES_H
#define AMPCC_PASSES_PRECISION_PRECISION_RULES_H

#include "ir/ir.h"

typedef enum RuleKind { RULE_OP, RULE_LAYER, RULE_VALUE, RULE_KIND_COUNT } RuleKind;

typedef enum RuleSays {
  SAYS_LOW, /* the low type, whatever its class                        */
  SAYS_F32, /* f32; it spoils nothing that it feeds                    */
  SAYS_ALLOW,
  SAYS_INFER,
  SAYS_CLEAR,
  SAYS_DENY, /* another class than the op table's */
  RULE_SAYS_COUNT
} RuleSays;

/* The words of the file, e.g. rule_kind_name[RULE_OP] is "op". */
extern const char *const rule_kind_name[RULE_KIND_COUNT];
extern const char *const rule_says_name[RULE_SAYS_COUNT];

typedef struct PrecisionRule {
  RuleKind kind;
  RuleSays says;
  const char *pattern; /* *, ? and [..] as in file names; * goes over / too */
  SrcLoc loc;          /* its line */
} PrecisionRule;

typedef struct PrecisionRules {
  PrecisionRule *at;
  int n, cap;
} PrecisionRules;

/* The last rule that names the node; NULL if none does, or if its precision is not chosen (state,
 * statistics, integers). */
const PrecisionRule *rule_for(const PrecisionRules *rules, const Node *node);
/* Reports every rule that names nothing (with the nearest names) or only what keeps its type, and
 * warns of those that lower a deny op; false if it reported any. Before amp changes the module. */
bool rules_check(const PrecisionRules *rules, const Module *module, Arena *scratch, Diag *diag);

#endif
