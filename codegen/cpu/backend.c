/* The CPU's part of a program: functions, compiled once for each instruction set; tables, compiled
 * once for any CPU of the kind; and the choice between the sets where the program runs. */
#include "codegen/backend.h"

#include "codegen/cpu/cpu.h"
#include "codegen/cpu/library.h"
#include "codegen/text/prelude_text.h"

#include <jansson.h>
#include <string.h>

/* ---- kernels ---- */

/* The number of a function of the program, or that of all of them if it is none. */
static int function_find(const ProgramCode *program, const char *name) {
  int i = 0;
  while (i < program->n_functions && strcmp(program->function[i], name) != 0)
    i++;
  return i;
}

static int function_index(ProgramCode *program, const char *name) {
  int i = function_find(program, name);
  if (i < program->n_functions)
    return i;
  arena_push(program->arena, program->function, program->n_functions, program->cap_functions, name);
  return program->n_functions - 1;
}

/* A function of the library that loops call, and not the program (text/cpu/conv_calls.h). */
static const char behind_groups[] = "amp_grouped_behind";

static void emit_graph(ProgramCode *program, GraphCode *code) {
  Emitter *emit = &program->emit;
  int n = code->kernels.n, *function = arena_alloc(program->arena, (size_t)n * sizeof *function);
  for (int i = 0; i < n; i++) {
    const Kernel *kernel = &code->kernels.kernel[i];
    const Node *main = kernel_main(kernel);
    if (main && op_info[main->op].gen != GEN_POOL)
      cpu_library(emit->target)->emit_kernel(emit, kernel, &code->call[i]);
    else
      cpu_emit_loop(emit, kernel, &code->call[i]);
    function[i] = function_index(program, code->call[i].function);
  }
  if (emit->loops_behind_groups)
    function_index(program, behind_groups);
  fprintf(emit->tables, "static const uint16_t functions_%s[] = {", code->ident);
  for (int i = 0; i < n; i++)
    fprintf(emit->tables, "%s%d,", i % 16 ? " " : "\n  ", function[i]);
  fputs(" 0};\n\n", emit->tables);
}

/* ---- text ---- */

/* Does a module have convolutions or matrix products at all, or of bf16? Without a module: yes. */
static bool has_products(const Module *module, bool in_bf16) {
  for (int g = 0; module && g < module->n_graphs; g++)
    for (int i = 0; i < module->graph[g]->n_nodes; i++) {
      const Node *node = module->graph[g]->node[i];
      GenClass gen = op_info[node->op].gen;
      if ((gen == GEN_CONV || gen == GEN_MATMUL) &&
          (!in_bf16 || node->arg[0]->type.dtype == DT_BF16))
        return true;
    }
  return !module;
}

/* Has a program products of bf16, and the library functions for CPUs that multiply bf16? */
static bool takes_bf16_units(const CpuLibrary *library, const Module *module) {
  return library->multiplies_bf16 && has_products(module, true);
}

static void emit_lines(const char *const *line, FILE *out) {
  for (; line && *line; line++)
    fputs(*line, out);
}

static void emit_head(const ProgramCode *program, FILE *out) {
  const CpuLibrary *library = cpu_library(program->emit.target);
  fputs("typedef struct AmpVariant { /* the functions compiled for one instruction set */\n"
        "  AmprtFunction *const *function;\n  unsigned needs;\n} AmpVariant;\n\n"
        "enum { /* the features that the compiler may use here, a bit each */\n"
        "  AMP_NEEDS = 0\n",
        out);
  const CpuFeature *feature = program->backend->arch->features;
  for (int i = 0; feature[i].condition; i++)
    fprintf(out, "#if %s\n              | 1 << %d\n#endif\n", feature[i].condition, i);
  fputs("};\n\n", out);
  if (library->include)
    fputs(library->include, out);
  emit_lines(cpu_prelude, out);
  emit_lines(library->text, out);
  fputs("#ifndef AMPCC_APART\n", out);
  emit_lines(cpu_rows, out);
  emit_lines(library->kernels, out);
  fputs("#endif\n\n", out);
}

/* The name that text/cpu/fits.c.in has for the kernels among which a function is found; NULL if it
 * is none of the kernels that all programs share, but was written for this program. */
static const char *library_of(const char *function) {
  if (strncmp(function, "amp_", strlen("amp_")) != 0)
    return NULL;
  return strncmp(function, "amp_conv", strlen("amp_conv")) == 0 ? "products" : "others";
}

static void emit_functions(const ProgramCode *program, const char *types, const char *functions,
                           FILE *out, FILE *kernels) {
  (void)types, (void)kernels; /* the types stand among the functions */
  Arena *arena = program->arena;
  Text names = {arena}, all = {arena};
  for (int i = 0; i < program->n_functions; i++) {
    const char *name = program->function[i], *library = library_of(name);
    text_format(&names, library ? "AMP_LIBRARY(%s),\n" : "%s,\n", name);
    if (library)
      text_format(&all, " IN(%s, %s)", library, name);
    else
      text_format(&all, " NONE");
  }
  file_fill(out, arena,
            "#ifndef AMPCC_KERNELS\n"
            "$FUNCTIONS\n"
            "#endif\n"
            "\n"
            "#ifdef AMPCC_APART\n"
            "#define AMP_LIBRARY(function) NULL\n"
            "#define AMP_LIBRARY_OF(products, others)$ALL\n"
            "#else\n"
            "#define AMP_LIBRARY(function) function\n"
            "#endif\n"
            "\n"
            "#ifdef AMPCC_CODE\n"
            "static AmprtFunction *const functions[] = {\n"
            "  $NAMES\n"
            "  NULL};\n"
            "\n"
            "const AmpVariant AMPCC_CODE = {functions, AMP_NEEDS};\n"
            "#endif\n"
            "\n",
            holes({"FUNCTIONS", functions}, {"NAMES", text_get(&names)}, {"ALL", text_get(&all)}));
}

static void emit_fits(const ProgramCode *program, FILE *out) {
  Arena *arena = program->arena;
  Text tests = {arena}, pays = {arena}, levels = {arena}, graphs = {arena}, all = {arena};
  const CpuArch *arch = program->backend->arch;
  bool bf16 = takes_bf16_units(cpu_library(program->emit.target), program->module);
  for (int i = 0; arch->features[i].condition; i++) {
    const CpuFeature *f = &arch->features[i];
    text_fill(&tests,
              "if (what & 1u << $BIT && !($TEST))\n"
              "  return \"$NAME\";\n",
              holes({"BIT", .number = i}, {"TEST", f->test}, {"NAME", f->name}));
    if (f->pays)
      text_fill(&pays,
                "if (what & 1u << $BIT && !($PAYS))\n"
                "  return 0;\n",
                holes({"BIT", .number = i}, {"PAYS", f->pays}));
    /* only units for products of bf16 do not pay on every CPU that has them */
    if (f->level && (bf16 || !f->pays))
      text_fill(&levels,
                "if (bound & 1u << $BIT && pays(1u << $BIT))\n"
                "  level = \"$LEVEL\";\n",
                holes({"BIT", .number = i}, {"LEVEL", f->level}));
  }
  for (int i = 0; i < program->module->n_graphs; i++)
    text_fill(&graphs,
              "for (int i = 0; i < n_kernels_$GRAPH; i++)\n"
              "  run_$GRAPH[i] = function_of(c, functions_$GRAPH[i]);\n",
              holes({"GRAPH", program->graph[i].ident}));
  if (program->emit.loops_behind_groups)
    text_format(&graphs, "amp_grouped_chosen = function_of(c, %d);\n",
                function_find(program, behind_groups));
  text_fill_lines(&all, cpu_fits,
                  holes({"HERE", arch->is_here}, {"TESTS", text_get(&tests)},
                        {"PAYS", text_get(&pays)}, {"LEAST", arch->level},
                        {"LEVELS", text_get(&levels)}, {"GRAPHS", text_get(&graphs)}));
  fputs(text_get(&all), out);
}

static void emit_hooks(const ProgramCode *program, FILE *out) {
  cpu_library(program->emit.target)->emit_hooks(&program->emit, out);
}

static const CpuModel *cpu_model(const Backend *backend, const CodegenOptions *options) {
  const CpuModel *cpu = backend->arch->cpus;
  while (options->cpu && cpu->name && strcmp(cpu->name, options->cpu) != 0)
    cpu++;
  CHECK(cpu->name, "no CPU %s", options->cpu);
  return cpu;
}

static void manifest(const ProgramCode *program, struct json_t *part) {
  json_object_set_new(part, "library", json_string(cpu_library(program->backend->target)->name));
  json_object_set_new(part, "cpu",
                      json_string(cpu_model(program->backend, program->options)->name));
}

/* ---- objects ---- */

/* What a program may run on a CPU: functions, and kernels, which are compiled apart. */
typedef struct Level {
  const char *functions, *kernels, *march;
  const char *others;  /* where kernels without products come from; NULL: `kernels` */
  const char *feature; /* of `kernels`; functions have that of the CPU's row */
  const char *given;   /* a macro for `kernels`, or NULL */
} Level;

/* The levels of a program that runs on any x86-64 CPU, the widest first. Only convolutions and
 * matrix products use a CPU's units for bf16, so the first level takes all other kernels from the
 * second. */
static const Level x86_64_levels[] = {{"amp_v4", "amp_bf16_kernels", "x86-64-v4", "amp_v4_kernels",
                                       "-mavx512bf16", "-DAMPCC_PAIRS_PAY"},
                                      {"amp_v4", "amp_v4_kernels", "x86-64-v4"},
                                      {"amp_v3", "amp_v3_kernels", "x86-64-v3"}};

static int units(const Backend *backend, Arena *arena, const Module *module,
                 const CodegenOptions *options, Unit unit[MAX_UNITS]) {
  const CpuModel *cpu = cpu_model(backend, options);
  const CpuLibrary *library = cpu_library(backend->target);
  const Level only = {.functions = "amp_only",
                      .kernels = "amp_only_kernels",
                      .march = cpu->march ? cpu->march : cpu->name,
                      .feature = cpu->flag};
  const Level *first = &only, *past = &only + 1;
  if (strcmp(cpu->name, "x86-64-v3") == 0) {
    first = x86_64_levels + (takes_bf16_units(library, module) ? 0 : 1);
    past = x86_64_levels + sizeof x86_64_levels / sizeof *x86_64_levels;
  }
  const char *all = "", *apart = NULL;
  if (library->kernels && has_products(module, false))
    apart = "-DAMPCC_APART";
  int n = 0;
  for (const Level *l = first; l < past; l++) {
    all = apart ? arena_printf(arena, "%s K(%s,%s,%s)", all, l->functions, l->kernels,
                               l->others ? l->others : l->kernels)
                : arena_printf(arena, "%s V(%s)", all, l->functions);
    if (n && strcmp(unit[n - 1].name, l->functions) == 0)
      continue;
    /* Loops over vectors are explicit, so -O2 makes them no faster, and takes 1.5 times as long. */
    const char *code = arena_printf(arena, "-DAMPCC_CODE=%s", l->functions);
    unit[n++] = (Unit){l->functions,      .kernels = true,         .level = "-O1",
                       .march = l->march, .define = {code, apart}, .feature = cpu->flag};
  }
  for (const Level *l = first; apart && l < past; l++) {
    const char *table = arena_printf(arena, "-DAMPCC_KERNELS=%s", l->kernels);
    unit[n++] = (Unit){l->kernels,           .kernels = true,   .level = "-O2",
                       .is_common = true,    .march = l->march, .define = {table, l->given},
                       .feature = l->feature};
  }
  /* must run on every CPU, if only to say that this one will not do */
  unit[n] = (Unit){.name = backend->ident,
                   .level = "-O1",
                   .march = backend->arch->any,
                   .define = {arena_printf(arena, "-DAMPCC_TABLES=%s", all + 1), apart}};
  return n + 1;
}

#define CPU(its_arch, its_target, its_threads, linked, why_not)                                    \
  {                                                                                                \
    .target = &(its_target), .arch = &(its_arch), .ident = "cpu",                                  \
    .whole = "#define AMPCC_CODE amp_whole\n#define AMPCC_TABLES V(amp_whole)\n",                  \
    .emit_graph = emit_graph, .emit_head = emit_head, .emit_functions = emit_functions,            \
    .emit_hooks = emit_hooks,                                                                      \
    .fields = "  .open = amp_open, .close = amp_close, .describe = amp_describe,\n"                \
              "  .threads = &" #its_threads ",\n",                                                 \
    .emit_fits = emit_fits, .manifest = manifest, .units = units, .libraries = (linked),           \
    .not_static = (why_not),                                                                       \
  }
#define OWN(its_arch, target)                                                                      \
  {                                                                                                \
    CPU(its_arch, target[WINOGRAD_AUTO], amprt_threads, cpu_own_linked, NULL),                     \
        CPU(its_arch, target[WINOGRAD_OFF], amprt_threads, cpu_own_linked, NULL),                  \
        CPU(its_arch, target[WINOGRAD_ALWAYS], amprt_threads, cpu_own_linked, NULL),               \
        CPU(its_arch, target[WINOGRAD_BY_CHANNELS], amprt_threads, cpu_own_linked, NULL)           \
  }
static const Backend x86_64_own[] = OWN(cpu_x86_64, target_cpu_own);
static const Backend x86_64_onednn =
    CPU(cpu_x86_64, target_cpu_onednn, dnn_threads, cpu_onednn_linked,
        "oneDNN is a shared library: leave --cpu-library=onednn out");
static const Backend aarch64_own[] = OWN(cpu_aarch64, target_cpu_aarch64);

const Backend *backend_cpu(const CpuArch *arch, const char *library, Winograd winograd) {
  const Backend *const all[] = {&x86_64_own[winograd], &x86_64_onednn, &aarch64_own[winograd]};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]->arch == arch &&
        (!library || strcmp(cpu_library(all[i]->target)->name, library) == 0))
      return all[i];
  return NULL;
}
