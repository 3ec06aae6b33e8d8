#include "frontend/tf/options.h"

#include "frontend/driver/tf_version.h"
#include "frontend/tf/settings.h"

#include <string.h>

enum { GROUP_OUTPUT, GROUP_PASS, GROUP_SETTINGS, GROUP_COUNT };

static const OptionInfo option[TF_OPTION_COUNT] = {
#define OPTION(id, flag, letter, argument, group, help)                                            \
  [TF_OPT_##id] = {flag, argument, help, letter, GROUP_##group},
#include "frontend/tf/options.def"
};

static const char *const heading[GROUP_COUNT] = {
    [GROUP_OUTPUT] = "output",
    [GROUP_PASS] = "the pass and the machine it works for",
    [GROUP_SETTINGS] = "settings of the pass (after the file of --amp-lists and the environment)",
};

/* Options of ampcc that ampcc-tf does not have. */
static const char *const model_flag[] = {
#define OPTION(id, flag, letter, argument, group, help) flag,
#include "frontend/driver/options.def"
#define RECIPE(field, flag, kind, otherwise, takes, when, help) flag,
#include "ir/recipe/recipe.def"
    NULL};

const OptionTable tf_option_table = {
    .program = "ampcc-tf",
    .option = option,
    .n_options = TF_OPTION_COUNT,
    .heading = heading,
    .n_groups = GROUP_COUNT,
    .warn = TF_OPT_warn,
    .warnings = 1u << WARN_TF_PASS | 1u << WARN_TF_TYPE,
    .foreign = model_flag,
    .owner = "ampcc, which compiles models",
};

void tf_options_help(FILE *out) {
  fputs(
      "usage: ampcc-tf MODEL [-o FILE] [options]\n\n"
      "Rewrites MODEL, a TensorFlow GraphDef (.pb, .pbtxt; `-`: standard input), as TensorFlow's\n"
      "own automatic mixed precision does, or reports what that would do. Underscores in options\n"
      "are the same as dashes.\n",
      out);
  option_table_help(&tf_option_table, out);
  tf_settings_help(out);
  fputs(
      "\nexit status: 0 done, also where TensorFlow's pass fails and leaves the graph as it was;\n"
      "1 the GraphDef or the file of --amp-lists is wrong, 2 the command line or a variable is\n"
      "wrong, 3 the output cannot be written, 70 a bug in ampcc-tf.\n",
      out);
}

/* Is the option absent, or its value the one word that its row has? */
static bool is_right(TfOptionId id, const TfOptions *options) {
  int choice;
  return option_choice(&tf_option_table, id, options->text[id], &choice);
}

bool tf_options_parse(Arena *arena, int argc, char **argv, TfOptions *out) {
  *out = (TfOptions){.output = "-"};
  CommandLine line = {.text = out->text};
  if (!command_line_parse(arena, &tf_option_table, argc, argv, &line))
    return false;
  out->model = line.model;
  out->warn = line.warn;
  if (out->text[TF_OPT_help] || out->text[TF_OPT_explain] || out->text[TF_OPT_version])
    return true;
  if (!out->model) {
    fputs("ampcc-tf: no model given; see --help\n", stderr);
    return false;
  }
  if (out->text[TF_OPT_output])
    out->output = out->text[TF_OPT_output];
  if (!strcmp(out->output, out->model) && strcmp(out->model, "-") != 0) {
    fputs("ampcc-tf: the output would overwrite the model\n", stderr);
    return false;
  }
  out->report = out->text[TF_OPT_tf_amp_report] != NULL;
  out->graph = out->text[TF_OPT_emit] || !out->report;
  return is_right(TF_OPT_emit, out) && is_right(TF_OPT_tf_amp_report, out) &&
         diagnostics_read(&tf_option_table, out->text, TF_OPT_diagnostics_format,
                          TF_OPT_diagnostics_file, TF_OPT_color, &out->diagnostics) &&
         tf_version_read("ampcc-tf", out->text[TF_OPT_amp_compat], &out->version);
}
