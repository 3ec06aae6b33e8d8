#include "frontend/driver/certify_run.h"

#include "codegen/program/build.h"
#include "frontend/certify/certify.h"
#include "frontend/driver/compile.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"
#include "ir/ports.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* The certified step has at least two images, as batch normalisation needs, and up to eight where
 * the evaluator can afford them. */
enum { FEWEST = 2, MOST = 8, SEED = 1 };
static const double affordable = 1e9; /* multiplications of one forward pass */

typedef struct Certifying {
  Arena *arena;
  const Options *options;
  Options chosen; /* `options` with the batch size and loss scale of the certified step */
  Diag *diag;
  int64_t own_batch, batch;
  Module *module, *exact; /* the one that becomes code, and the f32 model to compare with */
  const char *folder;
} Certifying;

/* ---- the two modules ---- */

static Options with_batch(Arena *arena, const Options *options, int64_t batch) {
  Options copy = *options;
  int n = options->overrides.n;
  Override *override = arena_alloc(arena, (size_t)(n + 1) * sizeof *override);
  if (n)
    memcpy(override, options->overrides.at, (size_t)n * sizeof *override);
  override[n] =
      (Override){recipe_find("batch_size"), arena_printf(arena, "%lld", (long long)batch)};
  copy.overrides = (Overrides){override, n + 1};
  return copy;
}

static bool choose_batch(Certifying *c) {
  Module *module = compile_load(c->arena, c->options, c->diag);
  if (!module)
    return false;
  const Graph *graph = module->graph[0];
  c->batch = c->options->certify_batch ? c->options->certify_batch : c->own_batch;
  /* The batch is built into a graph that was read from text. Only such graphs have line numbers. */
  bool from_text = graph->n_nodes && graph->node[0]->loc.line > 0;
  if (c->options->certify_batch || from_text)
    return true;
  double each = (double)graph_products(graph) / (double)c->own_batch;
  c->batch = c->own_batch < MOST ? c->own_batch : MOST;
  while (c->batch > FEWEST && (double)c->batch * each > affordable)
    c->batch /= 2;
  return true;
}

/* The options of an f32 program with the same loss scale. */
static Options as_f32(const Options *options) {
  Options copy = *options;
  bool low = options->compile.dtype == DT_F16;
  copy.compile.dtype = DT_F32;
  copy.compile.implementation = IMPL_OURS;
  copy.compile.rules = NULL;
  if (copy.compile.loss_scale == LOSS_SCALE_AUTO)
    copy.compile.loss_scale = low ? LOSS_SCALE_DYNAMIC : LOSS_SCALE_NONE;
  copy.text[OPT_skip] = NULL;
  return copy;
}

static const Backend *backend_of(const Options *options) {
  return backend_cpu(options->targets.arch, options->text[OPT_cpu_library], options->winograd);
}

static Module *compile_quietly(const Certifying *c, Options options) {
  options.text[OPT_print_before] = options.text[OPT_print_after] = NULL;
  options.text[OPT_time_report] = NULL;
  Module *module = compile_load(c->arena, &options, c->diag);
  return module && compile_passes(module, &options, backend_target(backend_of(&options)), NULL,
                                  c->diag)
             ? module
             : NULL;
}

static bool make_modules(Certifying *c) {
  if (!choose_batch(c))
    return false;
  c->chosen = c->batch == c->own_batch ? *c->options : with_batch(c->arena, c->options, c->batch);
  c->module = compile_quietly(c, c->chosen);
  c->exact = c->module ? compile_quietly(c, as_f32(&c->chosen)) : NULL;
  return c->exact != NULL;
}

/* ---- the step ---- */

static const char *file_of(const Certifying *c, const char *name) {
  return arena_printf(c->arena, "%s/%s", c->folder, name);
}

/* Builds the program of one part for the CPU and runs one step of it, which writes the dump. */
static bool run_step(const Certifying *c) {
  const char *program = file_of(c, "step");
  CodegenOptions codegen = compile_codegen(c->options);
  codegen.output = program;
  codegen.save_temps = NULL;
  codegen.time_report = false;
  if (build_program(&(ProgramPart){c->module, backend_of(c->options), NULL}, 1, &codegen) != 0)
    return false;
  const char *argv[] = {program,
                        arena_printf(c->arena, "--dump-step=%s", file_of(c, "dump")),
                        "--dump-values",
                        "--use-synthetic-data",
                        "--synthetic-mean=0",
                        "--synthetic-stddev=1",
                        arena_printf(c->arena, "--seed=%d", SEED),
                        "--threads=1",
                        "--quiet",
                        NULL};
  Command command = {.argv = argv, .log = file_of(c, "log")};
  spawn_begin();
  bool good = commands_run(&command, 1, "running the step", c->options->text[OPT_verbose] != NULL);
  spawn_end();
  return good;
}

/* Divides the loss scale by 16: a step that overflows says little, and the program itself would
 * soon arrive at a smaller scale. False if the scale is fixed or as small as it may be. */
static bool lower_scale(Certifying *c) {
  CompileOptions *compile = &c->chosen.compile;
  const Graph *graph = c->module->graph[0];
  if (!graph_find(graph, port_good_steps) || compile->scale_init / 16 < compile->scale_min)
    return false;
  compile->scale_init /= 16;
  c->module = compile_quietly(c, c->chosen);
  return c->module != NULL;
}

/* Runs steps with smaller and smaller loss scales until one is not skipped. Returns an exit status;
 * if it is 0, the dump of the last step is open. */
static int make_step(Certifying *c, Dump *dump) {
  for (;;) {
    if (!run_step(c) || !dump_open(c->arena, file_of(c, "dump"), dump))
      return EXIT_ENVIRONMENT;
    if (!step_was_skipped(dump) || !lower_scale(c))
      return c->module ? 0 : EXIT_INPUT;
    dump_close(dump);
  }
}

/* ---- the report ---- */

static int report(const Certifying *c, const Certificate *certificate) {
  double worst = certificate_worst(certificate), most = c->options->max_error;
  const char *dtype = dtype_info[c->options->compile.dtype].flag;
  const CertificateHead head = {c->module->recipe->name,
                                dtype,
                                c->batch,
                                c->own_batch,
                                SEED,
                                c->chosen.compile.scale_init,
                                c->options->compile.scale_init,
                                most};
  if (!c->options->text[OPT_quiet])
    certificate_print(certificate, &head, strcmp(c->options->output, "-") ? stdout : stderr);
  const char *path = c->options->text[OPT_certify]; /* "" if no file was named */
  if (*path) {
    Output out;
    if (!output_open(c->arena, path, &out))
      return EXIT_ENVIRONMENT;
    certificate_json(c->arena, certificate, &head, out.file);
    if (!output_close(&out))
      return EXIT_ENVIRONMENT;
  }
  double used = certificate_bound(certificate);
  if (!(used <= 1)) {
    diag_error(c->diag, (SrcLoc){.file = c->options->model}, DIAG_CERTIFY,
               "a result is off by %.3g times the bound that its kernel states", used);
    return EXIT_INPUT;
  }
  if (isnan(most) || worst <= most)
    return 0;
  diag_error(c->diag, (SrcLoc){.file = c->options->model}, DIAG_CERTIFY,
             "a result is off by %.2g of its size, more than --max-error=%g", worst, most);
  return EXIT_INPUT;
}

int certify_run(Arena *arena, const Options *options, int64_t own_batch, Diag *diag) {
  Certifying c = {.arena = arena, .options = options, .diag = diag, .own_batch = own_batch};
  if (!make_modules(&c))
    return EXIT_INPUT;
  c.folder = scratch_folder(arena, "ampcc-certify");
  if (!c.folder)
    return EXIT_ENVIRONMENT;
  Dump dump;
  int status = make_step(&c, &dump);
  if (!status) {
    status = report(&c, certify(arena, c.module->graph[0], backend_target(backend_of(options)),
                                c.exact->graph[0], &dump));
    dump_close(&dump);
  }
  static const char *const made[] = {"step", "dump", "log"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    unlink(file_of(&c, made[i]));
  rmdir(c.folder);
  return status;
}
