/* The graph: nodes in topological order, each with operands, results and typed attributes. A Module
 * holds the graphs of one program (@train, @eval, @stats) and its Recipe; graphs share state
 * through `variable` nodes of the same name. All of it lives in the module's arena, so nothing here
 * is ever freed on its own. Logical shapes are N,H,W,C for activations, K,R,S,C for filters and
 * [out,in] for dense kernels. */
#ifndef AMPCC_IR_IR_H
#define AMPCC_IR_IR_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_RANK = 6, MAX_RESULTS = 5, MAX_GRAPHS = 8 };
enum { MAX_DIM = 1 << 28 };                 /* limit of one dimension, checked on input */
#define MAX_TENSOR_BYTES (INT64_C(1) << 40) /* limit of one tensor                      */

typedef enum DType {
#define DTYPE(id, ...) DT_##id,
#include "ir/dtypes.def"
  DT_COUNT
} DType;

typedef enum Stage {
#define STAGE(id, name) STAGE_##id,
#include "ir/stages.def"
  STAGE_COUNT
} Stage;

typedef enum OpKind {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
  OP_COUNT
} OpKind;

typedef enum AttrKey {
#define ATTR(id, text, kind, where, words) ATTR_##id,
#include "ir/attrs.def"
  ATTR_END
} AttrKey;

typedef enum VariableKind {
  VARIABLE_NONE,
#define KIND(id, text) VARIABLE_##id,
#include "ir/variables.def"
} VariableKind;

typedef enum AttrKind { ATTR_INT, ATTR_FLOAT, ATTR_STR, ATTR_INTS, ATTR_FLOATS } AttrKind;
typedef enum Rounds { ROUNDS_NEVER, ROUNDS_ONCE, ROUNDS_OTHER } Rounds; /* see ir/ops.def */
typedef enum AmpClass { AMP_ALLOW, AMP_INFER, AMP_CLEAR, AMP_DENY, AMP_NONE } AmpClass;
typedef enum GenClass {
  GEN_STATE,
  GEN_CONST,
  GEN_VIEW,
  GEN_POINT,
  GEN_VECTOR,
  GEN_CHANNEL,
  GEN_ROW,
  GEN_REDUCE,
  GEN_CONV,
  GEN_MATMUL,
  GEN_POOL,
  GEN_OPT
} GenClass;
typedef enum Layout { LAYOUT_LOGICAL, LAYOUT_NHWC, LAYOUT_NCHW, LAYOUT_COUNT } Layout;

enum {
  OPF_NOGRAD = 1 << 0,   /* no gradient flows through it                */
  OPF_COMMUTES = 1 << 1, /* operands may be swapped                     */
  OPF_EFFECT = 1 << 2,   /* kept although nothing reads it: output, update */
  OPF_FINITE = 1 << 3,   /* finite operands give finite results         */
};

/* Values of ATTR_AT that are no offsets. */
enum {
  AT_INTERNAL = -1, /* exists inside its kernel only, never in memory             */
  AT_STATE = -2,    /* written straight to its variable by an update of its kernel */
  AT_VIEW = -3,     /* shares the storage of its operand                          */
};

typedef struct TensorType {
  DType dtype;
  int rank;
  int64_t dim[MAX_RANK];
} TensorType;

typedef struct Attr {
  AttrKey key;
  int n; /* elements of ints or floats */
  union {
    int64_t i;
    double f;
    const char *s;
    const int64_t *ints;
    const double *floats;
  };
} Attr;

typedef struct Node Node;
typedef struct Value Value;

/* One use of a value: it is operand `arg` of `node`. */
typedef struct Use {
  Node *node;
  int arg;
} Use;

struct Value {
  TensorType type;
  const char *name; /* printed as %name; unique in its graph, any bytes but NUL and newline */
  Layout layout;    /* LAYOUT_LOGICAL until assign-layout */
  Node *node;
  int index;      /* which result of `node` */
  Value *forward; /* set by value_replace, resolved by graph_sweep */
  /* The uses of the value in graph order, as they were at the last graph_sweep or graph_index_uses.
   * They do not show later edits. */
  const Use *use;
  int n_uses;
};

struct Node {
  OpKind op;
  int n_args, n_results, n_attrs, cap_attrs;
  Value **arg;
  Value *result[MAX_RESULTS];
  Attr *attr; /* ascending by key */
  SrcLoc loc; /* loc.name is the user's layer */
  int order;  /* position in its graph, valid after graph_sweep; indexes the arrays of passes */
};

typedef struct Module Module;
typedef struct NameMap NameMap;
typedef struct Graph {
  Module *module;
  Arena *arena; /* the module's */
  const char *name;
  Stage stage;
  Node **node;
  int n_nodes, cap_nodes;
  NameMap *names;
  Use *use; /* the uses of all values, one value after the other */
  int cap_uses;
  int64_t arena_bytes; /* plan-memory: size of the arena (printed in the graph's header) */
} Graph;

struct Module {
  Arena *arena;
  struct Recipe *recipe; /* ir/recipe/recipe.h; never NULL */
  Graph *graph[MAX_GRAPHS];
  int n_graphs;
  int64_t state_bytes; /* plan-memory: size of the state block */
};

/* Writes the type of each result to `out`; on failure returns false and sets *why. */
typedef bool ShapeFn(const Node *node, TensorType *out, const char **why);

typedef struct OpInfo {
  const char *name;
  int min_args, max_args, min_results, max_results;
  ShapeFn *shape;
  AmpClass amp;
  const char *operands, *results; /* letters for amp, see ir/ops.def */
  Rounds rounds;
  const char *space; /* letters: how loops read operands */
  GenClass gen;
  unsigned flags;
  Stage first, last;
  uint64_t attrs; /* bit k: attribute k may be written by the user */
} OpInfo;

extern const OpInfo op_info[OP_COUNT];
typedef struct DTypeInfo {
  const char *name;
  int bytes;
  const char *ctype;
  bool is_float, low;
  int digits, least; /* significant bits; 2^least is the smallest magnitude but 0 */
  double most;       /* the largest value */
  const char *safetensors;
  const char *flag; /* what --dtype calls it; NULL if no program computes in it */
} DTypeInfo;
extern const DTypeInfo dtype_info[DT_COUNT];
extern const char *const stage_name[STAGE_COUNT];
extern const char *const layout_name[LAYOUT_COUNT];
typedef struct AttrInfo {
  const char *text;
  AttrKind kind;
  bool any;          /* legal on every op                                                   */
  bool note;         /* only explains: nodes that differ in it alone compute the same       */
  const char *words; /* a comma list of what a string may be; NULL if it may be any text    */
} AttrInfo;
extern const AttrInfo attr_info[ATTR_END];

/* ir.c: building and changing */
Module *module_new(Arena *arena);
Graph *module_add_graph(Module *module, const char *name, Stage stage);
Graph *module_find(const Module *module, const char *name); /* NULL if absent */
void module_leave_out(Module *module, const Graph *graph);  /* takes it out of the list */
/* Appends a node without results, and copies the array of operands. Set its attributes, then call
 * node_finish, which infers result types from them. */
Node *graph_append(Graph *graph, OpKind op, SrcLoc loc, int n_args, Value *const *args);
/* Creates n_results results named `name`, `name.1`, ... or, where a name is taken, with the next
 * free number appended, and infers their types. BUGs if the operands do not fit the op, since
 * passes build only legal nodes. The types of ops that say theirs (input, variable, cast, const)
 * come from `written`, which is NULL otherwise. Returns the first result, or NULL. */
Value *node_finish(Graph *graph, Node *node, const char *name, int n_results,
                   const TensorType *written);
/* graph_append + node_finish for an op without attributes and with one result. */
Value *graph_op(Graph *graph, OpKind op, const char *name, SrcLoc loc, int n_args,
                Value *const *args);
Value *graph_cast(Graph *graph, Value *x, DType dtype, const char *name);
Value *graph_const(Graph *graph, TensorType type, double value, const char *name, SrcLoc loc);
const char *graph_fresh_name(Graph *graph, const char *want);
void graph_rename(Graph *graph, Value *value, const char *name);
Value *graph_find(const Graph *graph, const char *name); /* NULL if absent */
/* Moves the last `count` nodes of the graph to just before position `before`. */
void graph_move_tail(Graph *graph, int count, int before);
/* Stable topological re-sort after edits that broke the order. */
void graph_sort(Graph *graph);
/* All uses of `old` become uses of `with` at the next graph_sweep; refuses a change of type. */
void value_replace(Value *old, Value *with);
Value *value_resolve(Value *value); /* what `value` stands for now */
/* Applies replacements, drops nodes that no OPF_EFFECT node depends on, renumbers, and lists the
 * uses of every value anew. `input` and `variable` nodes stay: they are the graph's signature. */
void graph_sweep(Graph *graph);
void graph_index_uses(Graph *graph);                  /* the same, but drops nothing */
bool graph_has(const Graph *graph, const Node *node); /* false if dropped; needs a valid `order` */
Graph *graph_clone(Module *into, const Graph *graph, const char *name);
void graph_drop_node(Graph *graph, Node *node); /* removes a node whose results nothing reads */

/* Types */
bool type_equal(TensorType a, TensorType b);
TensorType type_scalar(DType dtype);
TensorType type_with(TensorType type, DType dtype);
int64_t type_count(TensorType type); /* elements */
int64_t type_bytes(TensorType type);
TensorType type_of(DType dtype, int rank, const int64_t *dim);

/* attr.c: access; the getters return `otherwise` (or NULL) when absent */
const Attr *attr_find(const Node *node, AttrKey key);
int64_t attr_int(const Node *node, AttrKey key, int64_t otherwise);
double attr_float(const Node *node, AttrKey key, double otherwise);
const char *attr_str(const Node *node, AttrKey key, const char *otherwise);
const int64_t *attr_ints(const Node *node, AttrKey key, int n); /* NULL unless it has n elements */
void attr_set_int(Graph *graph, Node *node, AttrKey key, int64_t i);
void attr_set_float(Graph *graph, Node *node, AttrKey key, double f);
void attr_set_str(Graph *graph, Node *node, AttrKey key, const char *s);
void attr_set_ints(Graph *graph, Node *node, AttrKey key, const int64_t *ints, int n);
void attr_set_floats(Graph *graph, Node *node, AttrKey key, const double *floats, int n);
void attr_set(Graph *graph, Node *node, Attr attr); /* copies what it points to */
void attr_remove(Node *node, AttrKey key);
int attr_lookup(const char *text); /* -1 if there is none */
/* VARIABLE_NONE for nodes of other ops and for kinds that the verifier refuses. */
VariableKind variable_kind(const Node *node);
void variable_set_kind(Graph *graph, Node *node, VariableKind kind);

/* infer.c: shape and dtype rules */
bool node_infer(const Node *node, TensorType *out, const char **why);
int op_lookup(const char *name);    /* -1 if there is none */
int dtype_lookup(const char *name); /* -1 if there is none */

/* print.c */
void module_print(const Module *module, FILE *out);
void node_print(const Node *node, FILE *out);
const char *type_text(Arena *arena, TensorType type);

/* parse.c: NULL after reporting at least one error. `text` ends in NUL. */
Module *module_parse(Arena *arena, const char *file, const char *text, Diag *diag);

/* verify.c: checks every invariant that the passes rely on, legality in the stage included.
 * module_check is for parsed input: it reports through `diag` and returns false. module_verify is
 * for graphs that a pass has changed: it prints the module and BUGs; `when` names the pass. */
bool module_check(const Module *module, Diag *diag);
void module_verify(const Module *module, const char *when);

#endif
