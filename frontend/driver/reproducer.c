#include "frontend/driver/reproducer.h"

#include "ir/base/exit.h"
#include "ir/base/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Options *options;
static const Module *module;
static const char *target;

/* Prints the command with the options that change the program; the recipe is in the module's text.
 */
static void print_command(FILE *out, const char *path, const PassTrail *trail) {
  fprintf(out, "ampcc %s", path);
  for (int i = 0; i < OPTION_COUNT; i++)
    if (option_info[i].group == GROUP_PROGRAM && options->text[i])
      fprintf(out, " --%s=%s", option_info[i].flag,
              i == OPT_target && target ? target : options->text[i]);
  if (trail)
    fprintf(out, " --passes=%s", trail->begun);
}

static void print_file(FILE *out, const char *path, const PassTrail *trail) {
  fputs("// ampcc " AMPCC_VERSION ": internal error", out);
  if (trail)
    fprintf(out, " in pass %s", trail->flag);
  fputs("\n// ", out);
  print_command(out, path, trail);
  fputs("\n", out);
  if (trail && trail->text)
    fputs(trail->text, out);
  else
    module_print(module, out);
}

static void write_reproducer(void) {
  const PassTrail *trail = pass_trail();
  const char *folder = getenv("TMPDIR");
  if (!trail && !module)
    return;
  char path[4096];
  snprintf(path, sizeof path, "%s/ampcc-bug-XXXXXX.amp", folder && *folder ? folder : "/tmp");
  int fd = mkstemps(path, 4);
  FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
  if (!out)
    return;
  print_file(out, path, trail);
  fclose(out);
  fprintf(stderr, "ampcc: this is a bug of ampcc. It shows again with\n  ");
  print_command(stderr, path, trail);
  fputs("\nPlease report it with that file.\n", stderr);
}

static void on_bug(void) {
  output_abandon();
  write_reproducer();
  _exit(EXIT_BUG);
}

void reproducer_install(const Options *given) {
  options = given;
  bug_set_hook(on_bug);
}

void reproducer_set_module(const Module *given, const char *given_target) {
  module = given;
  target = given_target;
}
