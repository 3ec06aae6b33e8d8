/* Code generation: from a module in stage PLANNED to a program. */
#ifndef AMPCC_CODEGEN_CODEGEN_H
#define AMPCC_CODEGEN_CODEGEN_H

#include "ir/base/sha256.h"
#include "passes/pass.h"

/* A flag that decides what a program is, and its value: "true" of one without an argument. */
typedef struct GivenFlag {
  const char *flag, *value;
} GivenFlag;

/* A file that the program was made from. */
typedef struct InputFile {
  const char *what, *name; /* "model", "resnet50.pb": without a folder */
  int64_t bytes;
  char sha256[SHA256_TEXT];
} InputFile;

typedef struct CodegenOptions {
  const CompileOptions *compile;
  const char *cpu;        /* the name of one of CpuArch.cpus; NULL: the first */
  const char *output;     /* final path */
  const char *resource;   /* folder of libamprt.a, amprt.h, ...; NULL: beside the running ampcc */
  const char *cc;         /* C compiler; NULL: that of the CpuArch */
  const char *save_temps; /* keep generated files, named after this prefix; or NULL */
  const char *cache;      /* folder of objects that were compiled before; or NULL */
  int64_t cache_bytes;    /* that the folder may take */
  bool verbose;           /* print the commands run */
  bool dry_run;           /* print the commands to standard output instead */
  bool time_report;       /* add emit, cc and ld to the time report */
  bool object;            /* one object file instead of a program */
  bool is_static;         /* a program that needs no library where it runs */
  /* codegen/program/used.h: filled with the files that the program is made of; NULL: not wanted */
  struct UsedList *used;
  const GivenFlag *given; /* what the program says that it was made with */
  int n_given;
  const InputFile *input;
  int n_inputs;
  const char *source; /* the text of the module before the first pass, for --dump-ir */
} CodegenOptions;

/* backend.h: a target as the code generator sees it. */
typedef struct Backend Backend;
/* A CPU by name, and how code for it is compiled. */
typedef struct CpuModel {
  const char *name;  /* as --cpu takes it */
  const char *march; /* the value of -march; NULL: the name */
  const char *flag;  /* further argument of the compiler, or NULL */
} CpuModel;
/* What code for some CPUs needs. */
typedef struct CpuFeature {
  const char *condition; /* of the preprocessor: is the code compiled for CPUs that have it */
  const char *test;      /* an expression in C: has this CPU got it */
  const char *name;      /* in messages */
  const char *level;     /* what --about calls code whose last such feature this is, or NULL */
  const char *pays;      /* an expression in C, or NULL: where a program can choose, should it take
                            code that uses it */
} CpuFeature;
/* codegen/cpu/arch.c: a kind of CPU that programs run on. */
typedef struct CpuArch {
  const char *target, *summary;      /* as --target has it; for --list-targets */
  const CpuModel *cpus;              /* that --cpu takes; ends in a row without a name */
  const CpuFeature *features;        /* at most 32; ends in a row without a condition */
  const char *is_here;               /* the macro of compilers for it */
  const char *cpus_said, *cpus_hint; /* what is said of other names */
  const char *any;                   /* the -march value that every CPU of the kind runs */
  const char *level;                 /* what --about calls code for those */
  const char *flag;                  /* further argument of the compiler, or NULL */
  const char *assembler, *linker;    /* that compilers for it call */
  const char *compiler;              /* NULL: $CC, else cc */
  const char *folder;                /* of its libraries in the resource folder; NULL: itself */
  const char *zlib;                  /* what zlib is linked by: as Backend.libraries */
} CpuArch;
extern const CpuArch cpu_x86_64, cpu_aarch64;

/* codegen/cpu: CPUs with oneDNN, and with kernels of our own, which are the default. */
/* --winograd: whether our own kernels compute convolutions by that method: where it is faster,
 * never, or (in tests) wherever they can. */
typedef enum Winograd {
  WINOGRAD_AUTO,
  WINOGRAD_OFF,
  WINOGRAD_ALWAYS, /* for tests: wherever it can be, */
  /* and by groups of channels (text/cpu/wino.h), with shared tiles (text/cpu/wino_grad.h) */
  WINOGRAD_BY_CHANNELS,
} Winograd;
extern const Target target_cpu_onednn, target_cpu_own[], target_cpu_aarch64[]; /* by Winograd */
/* Such a CPU with the library of this name; NULL: with the default. NULL if there is none. */
const Backend *backend_cpu(const CpuArch *arch, const char *library, Winograd winograd);

/* What a part of a program consists of, for reports. Filled while the part is made. */
typedef struct PartFigures {
  int launches, functions, plans, products; /* CUDA: kernels a step, their texts, libraries' */
  int spills;                               /* functions that keep registers in memory */
  int64_t image_bytes;
  double seconds;     /* of processor time */
  const char *passes; /* those that ran, with commas between; NULL: unknown */
} PartFigures;

/* The part of a program that is for one target. */
typedef struct ProgramPart {
  const Module *module; /* stage PLANNED, for the backend's target */
  const Backend *backend;
  PartFigures *figures; /* may be NULL */
} ProgramPart;

/* The target of a GPU, with plans and kernels from the folder `cuda_path` of a toolkit (NULL: the
 * usual one). With `ptx` the part also serves newer GPUs. NULL with one line in *error where there
 * is no CUDA. codegen/cuda/backend.c or, without CUDA, missing.c */
typedef struct CudaOptions {
  const CpuArch *arch;           /* the CPU beside the GPU */
  const char *cuda_path, *cache; /* folders; the latter may be NULL */
  bool ptx;
  const struct Tuning *tuning; /* codegen/cuda/toolkit/tuning.h: --tuning-db; NULL: none */
  bool require_tuned;          /* a plan that it has no choice of is an error */
  int fuse_level;              /* a FuseLevel: plan_forms.def says which forms each may use */
} CudaOptions;
struct Device;                      /* codegen/cuda/toolkit/device.h */
extern const bool codegen_has_cuda; /* false: backend_cuda always gives NULL */
const Backend *backend_cuda(Arena *arena, const struct Device *device, const CudaOptions *options,
                            const char **error);
/* Which toolkit a part for a GPU would be made with: its folder and versions, or why there is none.
 */
const char *codegen_cuda_versions(Arena *arena, const char *cuda_path);
const Target *backend_target(const Backend *backend);
/* Why a program with this part cannot be static, or NULL if it can be. */
const char *backend_not_static(const Backend *backend);
/* Reports what the passes found that the target cannot run. Returns an exit status. */
int backend_report(const Backend *backend, Diag *diag);

/* check.c: reports what the target cannot run (E402), before any pass runs. */
bool codegen_check(const Module *module, Diag *diag);
/* emit_c.c: the program of one part as one C text (deterministic: no paths, no times), and the text
 * of the kernels where the target has a compiler of its own (NULL: not wanted). */
void emit_c(const ProgramPart *part, const CodegenOptions *options, FILE *out, FILE *kernels);
/* The part of that text that units compile which are common to all programs. */
void emit_common(Arena *arena, const Backend *backend, FILE *out);
/* One of its texts alone, or what they compile to. A C text is complete: with the machine code of
 * the kernels. Returns 0, or 3 after one line on stderr. */
typedef enum TextForm { TEXT_C, TEXT_KERNELS, TEXT_PTX, TEXT_CUBIN } TextForm;
int emit_program_text(const ProgramPart *part, const CodegenOptions *options, TextForm form,
                      FILE *out);
/* emit_json.c, emit_dot.c: for tools and for people */
void emit_json(const Module *module, FILE *out);
void emit_dot(const Module *module, FILE *out);
/* emit_explain.c: --explain-precision=json */
void emit_explain(const Module *module, FILE *out);
/* build.c: C texts -> objects -> executable, written under a temporary name beside `output` and
 * renamed. The program tries its parts in this order. Returns 0, or 3 after one line on stderr that
 * names the call and the way out. */
int build_program(const ProgramPart *part, int n_parts, const CodegenOptions *options);
/* build.c: the object of a unit that is common to all programs, as an entry of the cache in the
 * file `output`. An entry that is there and needs no change is not compiled again. `resource` need
 * have the headers alone. Where the compiler fails, the file becomes empty, after one line on
 * stderr. Returns 0, or 3 after one line. */
int build_common(const Backend *backend, const char *unit, const CodegenOptions *options);
/* Prints a line on the objects that ampcc came with, if any. `resource` is as in the options. */
void build_print_shipped(Arena *arena, const char *resource, FILE *out);

#endif
