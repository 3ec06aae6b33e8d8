/* An internal error ends with status 70 and leaves a file that holds the graph, and the command
 * that shows the error again. This is tested for an error outside of passes, and for one in the
 * second of two passes, where the file must hold the graph as it was before the first. */
#include "frontend/driver/reproducer.h"

#include "ir/base/exit.h"
#include "passes/pass.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char model[] =
    "recipe {name=\"m\"}\n\ngraph @train stage model {\n"
    "  %x = input {name=\"image\"} : f32[2]\n  output %x {name=\"loss\"}\n}\n";

static bool fail(PassContext *context, Graph *graph) {
  graph->name = "changed";
  BUG("as this test asks, in @%s of %d", graph->name, context->module->n_graphs);
}

static void fail_in_pass(Module *module, Diag *diag) {
  static const PassInfo failing = {"failing", fail, PASS_EACH, STAGE_MODEL, STAGE_MODEL, ""};
  CompileOptions options;
  compile_options_default(&options);
  PassContext context = {
      .module = module, .options = &options, .diag = diag, .scratch = arena_new()};
  pass_trail_begin(module);
  pass_run(pass_find("simplify", strlen("simplify")), &context, NULL);
  pass_run(&failing, &context, NULL);
}

static void fail_inside(bool in_pass) {
  static Options options;
  char *argv[] = {"ampcc", "m.amp", "--dtype=fp16", "--quiet"};
  Arena *arena = arena_new();
  Diag diag = {.out = stderr, .source = model};
  if (!options_parse(arena, 4, argv, &options))
    _exit(1);
  reproducer_install(&options);
  Module *module = module_parse(arena, "m.amp", model, &diag);
  reproducer_set_module(module, NULL);
  if (in_pass)
    fail_in_pass(module, &diag);
  BUG("as this test asks");
}

/* The text of the only file in the folder; NULL if there is none. */
static char *only_file(const char *folder, char *text, size_t size) {
  DIR *dir = opendir(folder);
  const char *found = NULL;
  char path[4096];
  for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
    if (entry->d_name[0] != '.') {
      snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
      found = path;
    }
  FILE *in = found ? fopen(found, "r") : NULL;
  size_t n = in ? fread(text, 1, size - 1, in) : 0;
  text[n] = '\0';
  if (in) {
    fclose(in);
    unlink(path);
  }
  if (dir)
    closedir(dir);
  return in ? text : NULL;
}

/* Does the error leave a file with the command's last options and all of `model`? */
static bool leaves(bool in_pass, const char *options) {
  char folder[] = "/tmp/reproducer-XXXXXX", text[4096];
  if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1))
    return perror(folder), false;
  pid_t child = fork();
  if (child == 0)
    fail_inside(in_pass);
  int status = 0;
  waitpid(child, &status, 0);
  const char *found = only_file(folder, text, sizeof text);
  rmdir(folder);
  printf("status %#x\n%s", (unsigned)status, found ? found : "no file\n");
  return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BUG && found && strstr(found, options) &&
         strstr(found, model);
}

int main(void) {
  return leaves(false, " --dtype=fp16\n") &&
                 leaves(true, " --dtype=fp16 --passes=simplify,failing\n")
             ? 0
             : 1;
}
