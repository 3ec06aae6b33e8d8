/* What the values of options mean, and which options contradict each other. */
#include "codegen/codegen.h"
#include "codegen/program/cache.h"
#include "frontend/driver/coupling.h"
#include "frontend/driver/depfile.h"
#include "frontend/driver/options.h"
#include "frontend/driver/tf_version.h"
#include "ir/base/nearest.h"
#include "ir/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool wrong_value(OptionId id, const char *text) {
  return option_wrong_value(&option_table, id, text);
}

static bool read_choice(const Options *options, OptionId id, int *out) {
  return option_choice(&option_table, id, options->text[id], out);
}

static bool read_number(const Options *options, OptionId id, double low, double high, double *out) {
  return option_number(&option_table, id, options->text[id], low, high, out);
}

bool options_bytes(const Options *options, OptionId id, int64_t *out) {
  static const struct {
    const char *name;
    double bytes;
  } unit[] = {{"", 1},         {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},    {"TB", 1e12},
              {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const char *text = options->text[id];
  if (!text)
    return true;
  char *end;
  double number = strtod(text, &end);
  for (size_t i = 0; end != text && i < sizeof unit / sizeof unit[0]; i++)
    if (!strcmp(end, unit[i].name) && number * unit[i].bytes >= 1 &&
        number * unit[i].bytes < 0x1p60) {
      *out = (int64_t)(number * unit[i].bytes);
      return true;
    }
  return wrong_value(id, text);
}

static bool read_dtype(Options *options) {
  const char *text = options->text[OPT_dtype];
  options->compile.dtype = DT_F32;
  for (int d = 0; text && d < DT_COUNT; d++)
    if (dtype_info[d].flag && !strcmp(dtype_info[d].flag, text)) {
      options->compile.dtype = (DType)d;
      return true;
    }
  return !text || wrong_value(OPT_dtype, text);
}

static bool read_tf32(Options *options) {
  options->compile.tf32 = options->text[OPT_tf32] != NULL;
  if (!options->compile.tf32 || options->compile.dtype == DT_F32)
    return true;
  text_say("ampcc: --tf32 is of fp32, not of --dtype=%s\n", options->text[OPT_dtype]);
  return false;
}

static bool read_distributed(Options *options) {
  int off = 0;
  if (!read_choice(options, OPT_distributed, &off))
    return false;
  options->compile.distributed = !off;
  options->compile.sync_batch_norm = options->text[OPT_sync_batch_norm] != NULL;
  options->compile.must_distribute =
      options->text[OPT_distributed] || options->compile.sync_batch_norm;
  if (off && options->compile.sync_batch_norm)
    text_say("ampcc: --sync-batch-norm is of the step that --distributed=off leaves out\n");
  return !off || !options->compile.sync_batch_norm;
}

bool options_cache(Arena *arena, Options *options) {
  enum { READWRITE, READ, OFF };
  int mode = READWRITE;
  if (!read_choice(options, OPT_cache_mode, &mode))
    return false;
  if (mode == READ || options->text[OPT_dry_run])
    cache_only_read();
  options->cache = mode == OFF ? NULL : cache_folder(arena, options->text[OPT_cache_dir]);
  if (options->text[OPT_cache_shared] && mode != OFF) {
    if (!options->cache)
      return text_say("ampcc: --cache-shared is a folder behind that of --cache-dir, and there is "
                      "none; --cache-dir=FOLDER --cache-mode=read uses one alone\n"),
             false;
    cache_share(options->text[OPT_cache_shared]);
  }
  options->cache_bytes = (int64_t)5 << 30;
  return options_bytes(options, OPT_cache_size, &options->cache_bytes);
}

static bool read_levels(Options *options) {
  int excess = EXCESS_EXACT, level = FUSE_MAINS - FUSE_LOOPS;
  if (!read_choice(options, OPT_excess_precision, &excess) ||
      !read_choice(options, OPT_fuse_level, &level))
    return false;
  options->compile.excess = (ExcessPrecision)excess;
  options->compile.fuse_level = (FuseLevel)(FUSE_LOOPS + level);
  return true;
}

static bool read_cpu_library(Options *options) {
  int library = 0, winograd = WINOGRAD_AUTO;
  if (!read_choice(options, OPT_cpu_library, &library) ||
      !read_choice(options, OPT_winograd, &winograd))
    return false;
  options->winograd = (Winograd)winograd;
  if (options->text[OPT_winograd] && library)
    text_say("ampcc: --winograd is not for --cpu-library=onednn, which computes directly\n");
  return !library || !options->text[OPT_winograd];
}

/* --cpu: a name that is known to be such a CPU. The C compiler would refuse another name too, but
 * only after the whole compilation. */
static bool read_cpu(Arena *arena, const Options *options) {
  const char *name = options->text[OPT_cpu];
  const CpuArch *arch = options->targets.arch;
  Nearest nearest = nearest_to(name ? name : "");
  for (const CpuModel *cpu = arch->cpus; name && cpu->name; cpu++) {
    if (!strcmp(cpu->name, name))
      return true;
    nearest_try(&nearest, cpu->name);
  }
  if (name)
    text_say("ampcc: --cpu=%s: %s%s; %s\n", name, arch->cpus_said,
             nearest_hint(arena, &nearest, ""), arch->cpus_hint);
  return !name;
}

static bool read_output(Options *options) {
  const char *text = options->text[OPT_emit];
  int emit = options->text[OPT_passes] ? EMIT_IR : EMIT_EXE;
  if (text && !strcmp(text, "graphdef")) {
    fputs("ampcc: --emit=graphdef is an option of ampcc-tf, which rewrites GraphDefs\n", stderr);
    return false;
  }
  if (!read_choice(options, OPT_emit, &emit))
    return false;
  options->emit = (EmitKind)emit;
  options->output = options->text[OPT_output];
  if (!options->output)
    options->output = emit == EMIT_EXE ? "a.out" : emit == EMIT_OBJ ? "a.o" : "-";
  if ((emit == EMIT_EXE || emit == EMIT_OBJ) && !strcmp(options->output, "-")) {
    fputs("ampcc: a program cannot go to standard output; give -o FILE\n", stderr);
    return false;
  }
  if (!strcmp(options->output, options->model) && strcmp(options->model, "-")) {
    fputs("ampcc: the output would overwrite the model\n", stderr);
    return false;
  }
  return true;
}

static bool check_passes(const Options *options, OptionId id) {
  const char *list = options->text[id];
  size_t length;
  if (!list || !strcmp(list, "all"))
    return true;
  const char *unknown = pass_list_unknown(list, &length);
  if (unknown)
    text_say("ampcc: --%s: unknown pass `%.*s`; see --list-passes\n", option_info[id].flag,
             (int)length, unknown);
  return !unknown;
}

/* --certify, --certify-batch, --max-error */
static bool read_certify(Options *options) {
  if (!option_count(&option_table, OPT_certify_batch, options->text[OPT_certify_batch], 1 << 20,
                    &options->certify_batch) ||
      !read_number(options, OPT_max_error, 0, INFINITY, &options->max_error))
    return false;
  bool certifies = options->text[OPT_certify] != NULL;
  if (!certifies && (options->text[OPT_certify_batch] || options->text[OPT_max_error])) {
    fputs("ampcc: --certify-batch and --max-error belong to --certify\n", stderr);
    return false;
  }
  if (certifies && !strcmp(options->model, "-")) {
    fputs("ampcc: --certify reads the model more than once: give it as a file\n", stderr);
    return false;
  }
  return true;
}

bool options_need_plan(const Options *options) {
  return (options->emit >= EMIT_C && options->emit <= EMIT_EXE) ||
         options->text[OPT_print_memory_plan] || options->text[OPT_print_traffic] ||
         options->text[OPT_figures] || options->text[OPT_certify];
}

/* Without --target a program gets parts for GPUs too if this ampcc was built with CUDA; static
 * programs and all other output are for the CPU. */
static bool read_targets(Arena *arena, Options *options) {
  bool gpus = options->emit == EMIT_EXE && codegen_has_cuda && !options->text[OPT_static];
  const char *text = options->text[OPT_target];
  return targets_parse(arena, text ? text : gpus ? "cpu,cuda" : "cpu", &options->targets);
}

/* Do the targets fit what is to be written? */
static bool check_targets(const Options *options) {
  static const OptionId for_gpus[] = {OPT_tf32, OPT_tuning_db, OPT_require_tuned};
  const TargetList *targets = &options->targets;
  bool cpu = !targets->device[targets->n - 1], here = targets->arch == &cpu_x86_64;
  if (targets->n > 1 && options->emit != EMIT_EXE && options->emit != EMIT_OBJ) {
    fputs("ampcc: --target: one at a time, but for programs and objects\n", stderr);
    return false;
  }
  if (options->text[OPT_static] && options_need_plan(options) && options->emit != EMIT_EXE) {
    fputs("ampcc: --static is how a program is linked: leave out --emit\n", stderr);
    return false;
  }
  for (int i = 0; i < 3; i++)
    if (options->text[for_gpus[i]] && !targets->device[0] && options_need_plan(options)) {
      text_say("ampcc: --%s is for GPUs: name one with --target=cuda:...\n",
               option_info[for_gpus[i]].flag);
      return false;
    }
  EmitKind emit = options->emit;
  if ((emit == EMIT_CUDA || emit == EMIT_PTX || emit == EMIT_CUBIN) && cpu) {
    text_say("ampcc: --emit=%s is for GPUs: name one with --target=cuda:...\n",
             options->text[OPT_emit]);
    return false;
  }
  if (options->text[OPT_certify] && !(cpu && here)) {
    fputs("ampcc: --certify runs the step here: --target must have cpu in it\n", stderr);
    return false;
  }
  if (!backend_cpu(targets->arch, options->text[OPT_cpu_library], options->winograd)) {
    text_say("ampcc: --cpu-library=%s is not for --target=%s\n", options->text[OPT_cpu_library],
             targets->arch->target);
    return false;
  }
  return true;
}

/* --amp-compat */
static bool read_compat(Options *options) {
  const char *text = options->text[OPT_amp_compat];
  int version;
  if (!tf_version_read("ampcc", text, &version))
    return false;
  if (text)
    options->compile.amp_compat = version >= TF_VERSION_FOLLOWS ? AMP_TF_B : AMP_TF_A;
  options->compile.bf16_2_15 = version == 215;
  return true;
}

/* What a program keeps of a flag's value. It holds no paths, which differ from one machine to the
 * next: each is replaced by what --help calls the value. */
static const char *kept_value(const char *argument, const char *value) {
  if (!argument)
    return "true";
  return strstr(argument, "FILE") || strchr(value, '/') ? argument : value;
}

/* Collects the flags that make the same program of the model again. */
static void collect_given(Arena *arena, Options *options) {
  GivenFlag *list =
      arena_alloc(arena, (size_t)(OPTION_COUNT + options->overrides.n) * sizeof *list);
  int n = 0;
  for (int i = 0; i < OPTION_COUNT; i++) {
    const char *value = options->text[i], *argument = option_info[i].argument;
    if (value && option_info[i].group == GROUP_PROGRAM)
      list[n++] = (GivenFlag){option_info[i].flag, kept_value(argument, value)};
  }
  for (int i = 0; i < options->overrides.n; i++) {
    const Override *now = &options->overrides.at[i];
    bool again = false; /* the last one counts */
    for (int k = i + 1; k < options->overrides.n; k++)
      again |= options->overrides.at[k].field == now->field;
    if (!again)
      list[n++] = (GivenFlag){now->field->flag, now->text};
  }
  options->given = list;
  options->n_given = n;
}

/* --diagnostics-format and what belongs to it */
static bool read_diagnostics(Options *options) {
  DiagSettings *settings = &options->diagnostics;
  if (!diagnostics_read(&option_table, options->text, OPT_diagnostics_format, OPT_diagnostics_file,
                        OPT_color, settings))
    return false;
  if (options->text[OPT_dry_run])
    settings->path = NULL;
  options->silent =
      options->text[OPT_quiet] != NULL || (settings->form != FORM_TEXT && !settings->path);
  return true;
}

bool options_interpret(Arena *arena, Options *options) {
  if (options->text[OPT_print_after_all])
    options->text[OPT_print_after] = "all";
  collect_given(arena, options);
  options->compile.unfused = options->text[OPT_no_fuse] != NULL;
  return read_diagnostics(options) && read_dtype(options) && read_tf32(options) &&
         coupling_resolve(options) &&
         read_number(options, OPT_batch_norm_momentum, 0, 1, &options->batch_norm_momentum) &&
         options_bytes(options, OPT_max_memory, &options->compile.max_memory) &&
         options_bytes(options, OPT_bucket, &options->compile.bucket_bytes) &&
         options_cache(arena, options) && read_levels(options) && read_distributed(options) &&
         read_cpu_library(options) && read_output(options) && depfile_check(options) &&
         read_targets(arena, options) && read_cpu(arena, options) && read_certify(options) &&
         check_targets(options) && check_passes(options, OPT_passes) &&
         check_passes(options, OPT_skip) && check_passes(options, OPT_print_before) &&
         check_passes(options, OPT_print_after) && read_compat(options);
}
