#include "frontend/batch/batch.h"

#include "frontend/batch/report.h"
#include "ir/base/clock.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"
#include "ir/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static bool read_jobs(Batch *batch) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  batch->jobs = cpus > 0 ? (int)cpus : 1;
  return option_count(&option_table, OPT_jobs, batch->options->text[OPT_jobs], 1 << 16,
                      &batch->jobs);
}

/* ---- folders ---- */

/* Removes what a batch that was killed has left half written. */
static void clean(const Batch *batch) {
  DIR *folder = opendir(batch->workplace);
  const struct dirent *entry;
  while (folder && (entry = readdir(folder)) != NULL)
    if (*entry->d_name != '.' && strcmp(entry->d_name, "lock") &&
        !text_ends_in(entry->d_name, ".json") && !text_ends_in(entry->d_name, ".log"))
      unlink(arena_printf(batch->arena, "%s/%s", batch->workplace, entry->d_name));
  if (folder)
    closedir(folder);
}

/* Makes the folders and takes the lock of the workplace, which lasts as long as this process. */
static bool open_folders(Batch *batch) {
  batch->folder = batch->options->text[OPT_out_dir];
  batch->workplace = arena_printf(batch->arena, "%s/.ampcc-batch", batch->folder);
  if (!output_folder(batch->folder) || !output_folder(batch->workplace))
    return false;
  const char *path = arena_printf(batch->arena, "%s/lock", batch->workplace);
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    text_say("ampcc: %s: %s\n", batch->folder,
             errno == EWOULDBLOCK ? "another ampcc --batch is at work in this folder"
                                  : strerror(errno));
    return false;
  }
  clean(batch);
  return true;
}

/* ---- all ---- */

/* The worst of all: a bug, then what the machine lacks, then what is wrong with a model. */
static int status_of(const Batch *batch) {
  int status = batch_count(batch).regressed ? EXIT_INPUT : 0;
  for (int i = 0; i < batch->n; i++) {
    const BatchProgram *program = &batch->program[i];
    if (program->result != BATCH_FAILED)
      continue;
    bool input = program->status == EXIT_INPUT || program->status == EXIT_USAGE;
    int now = program->status == EXIT_BUG ? EXIT_BUG : input ? EXIT_INPUT : EXIT_ENVIRONMENT;
    status = now > status ? now : status;
  }
  return status;
}

static void say_stopped(const Batch *batch, int number) {
  text_say("ampcc: stopped by signal %d (%s) with %d of %d programs done; the same command goes on "
           "from here\n",
           number, strsignal(number), batch->n_done, batch->n);
  fflush(stdout);
  signal(number, SIG_DFL);
  raise(number);
}

static int run(Batch *batch) {
  if (!batch->options->text[OPT_quiet])
    batch_print_head(batch);
  int number = batch_make(batch);
  if (number)
    return say_stopped(batch, number), EXIT_ENVIRONMENT;
  batch->seconds = clock_seconds() - batch->start;
  baseline_compare(batch);
  batch_print_table(batch);
  int status = status_of(batch);
  return report_write(batch) || status ? status : EXIT_ENVIRONMENT;
}

int batch_run(Arena *arena, const Options *options) {
  Batch batch = {.arena = arena, .options = options, .start = clock_seconds()};
  if (options->model)
    return text_say("ampcc: --batch names the models, so `%s` is one too many\n", options->model),
           EXIT_USAGE;
  if (!options->text[OPT_out_dir])
    return text_say("ampcc: --batch needs --out-dir=FOLDER\n"), EXIT_USAGE;
  if (!read_jobs(&batch) || !memory_begin(options, &batch.memory) || !baseline_tolerance(&batch) ||
      !report_check(options) || !batch_list(&batch))
    return EXIT_USAGE;
  if (!baseline_read(&batch))
    return EXIT_INPUT;
  int status = open_folders(&batch) ? run(&batch) : EXIT_ENVIRONMENT;
  json_decref(batch.baseline);
  return status;
}
