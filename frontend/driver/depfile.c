#include "frontend/driver/depfile.h"

#include "ir/base/output.h"
#include "ir/base/reads.h"
#include "ir/base/text.h"

#include <string.h>

static bool is_wanted(const Options *options) {
  return options->text[OPT_MD] || options->text[OPT_MF];
}

bool depfile_check(const Options *options) {
  bool no_name = !strcmp(options->output, "-") || !strcmp(options->output, "/dev/null");
  const char *path = options->text[OPT_MF];
  if ((options->text[OPT_MT] || options->text[OPT_MP]) && !is_wanted(options))
    fputs("ampcc: -MT and -MP belong to -MD\n", stderr);
  else if (is_wanted(options) && no_name && (!path || !options->text[OPT_MT]))
    text_say("ampcc: -MD: the output `%s` is no file to name a depfile after; give -MF FILE and "
             "-MT NAME\n",
             options->output);
  else if (path && !strcmp(path, options->output))
    fputs("ampcc: -MF names the output\n", stderr);
  else
    return true;
  return false;
}

const char *depfile_path(Arena *arena, const Options *options) {
  const char *output = options->output, *slash = strrchr(output, '/');
  if (!is_wanted(options) || options->text[OPT_MF])
    return options->text[OPT_MF];
  const char *name = slash ? slash + 1 : output, *dot = strrchr(name, '.');
  size_t length = dot && dot > name ? (size_t)(dot - output) : strlen(output);
  return arena_printf(arena, "%.*s.d", (int)length, output);
}

/* A path as make and ninja read it. */
static void print_path(const char *path, FILE *out) {
  for (const char *c = path; *c; c++) {
    if (*c == ' ' || *c == '\t')
      for (const char *before = c; before > path && before[-1] == '\\'; before--)
        fputc('\\', out); /* those before a blank count twice */
    if (strchr(" \t#:", *c))
      fputc('\\', out);
    fputs(*c == '$' ? "$" : "", out);
    fputc(*c, out);
  }
}

/* A line break cannot be written in a depfile. */
static bool check_path(const char *path) {
  if (!strpbrk(path, "\n\r"))
    return true;
  text_say("ampcc: -MD: make cannot read the name of a file with a line break: %s\n", path);
  return false;
}

bool depfile_write(Arena *arena, const Options *options) {
  const char *target = options->text[OPT_MT] ? options->text[OPT_MT] : options->output;
  const char *const *reads = reads_list();
  Output out;
  if (!is_wanted(options))
    return true;
  for (int i = 0; reads[i]; i++)
    if (!check_path(reads[i]))
      return false;
  if (!check_path(target) || !output_open(arena, depfile_path(arena, options), &out))
    return false;
  print_path(target, out.file);
  fputc(':', out.file);
  for (int i = 0; reads[i]; i++) {
    fputs(" \\\n  ", out.file);
    print_path(reads[i], out.file);
  }
  fputc('\n', out.file);
  for (int i = 0; reads[i] && options->text[OPT_MP]; i++) {
    fputc('\n', out.file); /* a rule of its own, so that make goes on where the file is gone */
    print_path(reads[i], out.file);
    fputs(":\n", out.file);
  }
  return output_close(&out);
}
