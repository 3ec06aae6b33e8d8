/* --amp-compat, and which options are for GraphDefs alone. */
#include "frontend/options.h"

#include <string.h>

/* "2.19", "2.19.1" -> 219; 0 for a version whose lists we do not have. */
static int version_parse(const char *text) {
  static const struct {
    const char *text;
    int version;
  } known[] = {{"2.15", 215}, {"2.17", 217}, {"2.18", 218},
               {"2.19", 219}, {"2.20", 220}, {"2.21", 221}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t n = strlen(known[i].text);
    const char *patch = text + n;
    bool same = !strncmp(text, known[i].text, n);
    if (same &&
        (!*patch || (*patch == '.' && patch[1] && !patch[1 + strspn(patch + 1, "0123456789")])))
      return known[i].version;
  }
  return 0;
}

static bool read_compat(Options *options) {
  const char *text = options->text[OPT_amp_compat];
  options->tf_version = 219;
  if (text && !strncmp(text, "tf:", 3))
    options->tf_version = version_parse(text + 3);
  else if (text && strcmp(text, "tf") != 0)
    options->tf_version = 0;
  if (!options->tf_version) {
    fprintf(stderr,
            "ampcc: --amp-compat takes tf or tf:VERSION, where VERSION is 2.15 or 2.17 to "
            "2.21, not `%s`\n",
            text);
    return false;
  }
  if (text)
    options->compile.amp_compat = options->tf_version >= 220 ? AMP_TF_B : AMP_TF_A;
  options->compile.bf16_2_15 = options->tf_version == 215;
  return true;
}

/* Does the option mean something for GraphDefs? */
static bool fits_graphdef(OptionId id) {
  static const OptionId both[] = {OPT_output, OPT_emit,  OPT_dtype,  OPT_amp_compat,
                                  OPT_warn,   OPT_quiet, OPT_verbose};
  for (size_t i = 0; i < sizeof both / sizeof both[0]; i++)
    if (both[i] == id)
      return true;
  return option_info[id].group == GROUP_GRAPHDEF;
}

static bool not_for(const char *flag, const char *why) {
  fprintf(stderr, "ampcc: --%s %s\n", flag, why);
  return false;
}

static bool check_each(const Options *options) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (!options->text[i])
      continue;
    if (!options->graphdef && option_info[i].group == GROUP_GRAPHDEF)
      return not_for(option_info[i].flag,
                     "is for GraphDefs: give --emit=graphdef or --tf-amp-report=json");
    if (options->graphdef && !fits_graphdef((OptionId)i))
      return not_for(option_info[i].flag, "is for models, not for GraphDefs");
  }
  if (options->graphdef && options->overrides.n > 0)
    return not_for(options->overrides.at[0].field->flag, "is for models, not for GraphDefs");
  return true;
}

static bool check_graphdef(Options *options) {
  const char *report = options->text[OPT_tf_amp_report];
  options->graphdef = options->emit == EMIT_GRAPHDEF || report;
  if (report && strcmp(report, "json") != 0) {
    fprintf(stderr, "ampcc: --tf-amp-report takes json, not `%s`\n", report);
    return false;
  }
  if (options->graphdef && !options->text[OPT_amp_compat]) {
    fputs("ampcc: a GraphDef is rewritten as TensorFlow does it: give --amp-compat=tf\n", stderr);
    return false;
  }
  if (report && options->text[OPT_emit] && options->emit != EMIT_GRAPHDEF) {
    fputs("ampcc: --tf-amp-report goes with --emit=graphdef alone\n", stderr);
    return false;
  }
  return check_each(options);
}

bool options_tf(Options *options) {
  return read_compat(options) && check_graphdef(options);
}
