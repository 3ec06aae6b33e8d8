#include "frontend/driver/options.h"

#include "ir/base/text.h"

#include <math.h>

const OptionInfo option_info[OPTION_COUNT] = {
#define OPTION(id, flag, letter, argument, group, help)                                            \
  [OPT_##id] = {flag, argument, help, letter, GROUP_##group},
#include "frontend/driver/options.def"
};

static const char *const heading[GROUP_COUNT] = {
    [GROUP_OUTPUT] = "output",   [GROUP_PROGRAM] = "program", [GROUP_PASSES] = "passes",
    [GROUP_REPORTS] = "reports", [GROUP_TOOLS] = "tools",     [GROUP_BATCH] = "many models",
};

/* Options of ampcc-tf that ampcc does not have. */
static const char *const graphdef_flag[] = {
#define OPTION(id, flag, letter, argument, group, help) flag,
#include "frontend/tf/options.def"
    NULL};

const OptionTable option_table = {
    .program = "ampcc",
    .option = option_info,
    .n_options = OPTION_COUNT,
    .heading = heading,
    .n_groups = GROUP_COUNT,
    .warn = OPT_warn,
    .warnings = ~(1u << WARN_TF_PASS | 1u << WARN_TF_TYPE),
    .recipe = true,
    .foreign = graphdef_flag,
    .owner = "ampcc-tf, which rewrites TensorFlow's GraphDefs",
};

void options_help(FILE *out) {
  fputs("usage: ampcc MODEL [-o FILE] [options]\n"
        "       ampcc --batch=LIST --out-dir=FOLDER [options]\n\n"
        "Compiles MODEL (.pb, .pbtxt, or a graph as .amp; `-`: standard input) to a program that\n"
        "trains it. Underscores in options are the same as dashes.\n",
        out);
  option_table_help(&option_table, out);
  fputs("\nexit status: 0 done, 1 the model is wrong, 2 the command line is wrong, 3 the machine\n"
        "lacks something (compiler, disk space), 70 a bug in ampcc.\n",
        out);
}

void options_list_passes(FILE *out) {
  for (int i = 0; i < n_passes; i++)
    fprintf(out, "%-16s %s\n", pass_info[i].flag, pass_info[i].summary);
}

bool options_parse(Arena *arena, int argc, char **argv, Options *out) {
  *out = (Options){.batch_norm_momentum = -1, .max_error = NAN};
  compile_options_default(&out->compile);
  CommandLine line = {.text = out->text};
  if (!command_line_parse(arena, &option_table, argc, argv, &line))
    return false;
  out->model = line.model;
  out->overrides = line.overrides;
  out->warn = line.warn;
  out->word = line.word;
  out->n_words = line.n_words;
  if (out->text[OPT_help] || out->text[OPT_explain] || out->text[OPT_version] ||
      out->text[OPT_list_passes] || out->text[OPT_list_targets])
    return true;
  if (out->text[OPT_cache_stats] || out->text[OPT_cache_verify])
    return options_cache(arena, out);
  if (out->text[OPT_batch])
    return true; /* frontend/batch/ checks the rest */
  for (int i = 0; i < OPTION_COUNT; i++)
    if (out->text[i] && option_info[i].group == GROUP_BATCH) {
      text_say("ampcc: --%s is an option of --batch\n", option_info[i].flag);
      return false;
    }
  if (!out->model) {
    fputs("ampcc: no model given; see --help\n", stderr);
    return false;
  }
  return options_interpret(arena, out);
}
