/* An internal error ends with status 70 and leaves a file that holds the graph and the command. */
#include "frontend/driver/reproducer.h"

#include "ir/base/exit.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char model[] =
    "recipe {name=\"m\"}\n\ngraph @train stage model {\n"
    "  %x = input {name=\"image\"} : f32[2]\n  output %x {name=\"loss\"}\n}\n";

static void fail_inside(void) {
  static Options options;
  char *argv[] = {"ampcc", "m.amp", "--dtype=fp16", "--quiet"};
  Arena *arena = arena_new();
  Diag diag = {.out = stderr, .source = model};
  if (!options_parse(arena, 4, argv, &options))
    _exit(1);
  reproducer_install(&options);
  reproducer_set_module(module_parse(arena, "m.amp", model, &diag), NULL);
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

int main(void) {
  char folder[] = "/tmp/reproducer-XXXXXX", text[4096];
  if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1))
    return perror(folder), 1;
  pid_t child = fork();
  if (child == 0)
    fail_inside();
  int status = 0;
  waitpid(child, &status, 0);
  const char *found = only_file(folder, text, sizeof text);
  rmdir(folder);
  bool good = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BUG && found &&
              strstr(found, " --dtype=fp16\n") && strstr(found, model);
  printf("status %#x\n%s", (unsigned)status, found ? found : "no file\n");
  return good ? 0 : 1;
}
