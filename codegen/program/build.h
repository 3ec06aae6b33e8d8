/* From C text to a program on disk, in the steps of build.c. */
#ifndef AMPCC_CODEGEN_PROGRAM_BUILD_H
#define AMPCC_CODEGEN_PROGRAM_BUILD_H

#include "ir/base/arena.h"

#include <stdbool.h>

/* build.c: what generated C is compiled with, but for -march, -O and names. Ends in NULL. */
extern const char *const build_flags[];
/* build.c: in an ampcc that is built with sanitizers, what the tables of a program are compiled
 * with beside build_flags, because the runtime that it is linked with is sanitized. The list of an
 * ampcc without sanitizers is empty. The list ends in NULL. */
extern const char *const sanitizer_flags[];

/* build.c: the words of the command that compiles and links programs for a CPU, ended by NULL. `cc`
 * is the value of --cc, NULL if that is absent; $CC is the compiler of this machine alone. It may
 * be several words, as in CC="ccache gcc". */
struct CpuArch;
const char *const *compiler_words(Arena *arena, const char *cc, const struct CpuArch *arch);

/* resource.c: the folder that holds libamprt.a, libamprt_static.a, libamprt_dnn.a, libprotobuf-c.a,
 * amprt.h and dnn_rt.h: `wanted`, or the one that belongs to the running ampcc. NULL after one line
 * on stderr. */
const char *resource_find(Arena *arena, const char *wanted);
/* The same without the line. */
const char *resource_folder(Arena *arena, const char *wanted);

/* The folder of the libraries for a CPU: `folder` within the resource folder, or that one itself if
 * `folder` is NULL. NULL after one line on stderr. */
const char *resource_libraries(Arena *arena, const char *resource, const char *folder);
struct Backend;
/* Are those that a part is linked with in such a folder? Else one line on stderr. */
bool resource_has(Arena *arena, const char *folder, const struct Backend *backend);
/* Notes them, and libamprt, for the depfile. */
void resource_note(Arena *arena, const char *resource, const struct Backend *backend);

/* spawn.c: $TMPDIR/PREFIX-XXXXXX, or in /tmp, where mkdtemp puts letters in the place of each X. */
char *scratch_pattern(Arena *arena, const char *prefix);
/* spawn.c: a new folder of that pattern. NULL after one line on stderr. */
const char *scratch_folder(Arena *arena, const char *prefix);
/* spawn.c: commands without a shell. */
typedef struct Command {
  const char *const *argv; /* ends in NULL; NULL: nothing is left to do */
  const char *log;         /* file for what it prints */
  const char *makes;       /* file that it must write, or it failed; or NULL */
  int pid;                 /* 0: not running */
  double seconds;          /* of processor time, to which its own are added */
  /* Run first in the new process; the command follows if it returns true, else what it printed is
   * passed on. NULL: nothing. */
  bool (*before)(void *user);
  void *user;
} Command;

/* Runs all, some at a time, and waits for all. False after one line on stderr for the first that
 * failed: `what` and the first line of its log that says `error`. If `what` is NULL, without a
 * line. */
bool commands_run(Command *command, int n, const char *what, bool verbose);
/* While a build is under way SIGINT, SIGTERM and SIGHUP end all of its commands; spawn_end, when
 * everything temporary is gone, sends again the one that came. */
void spawn_begin(void);
void spawn_end(void);
/* False once such a signal has come. */
bool spawn_goes_on(void);

#endif
