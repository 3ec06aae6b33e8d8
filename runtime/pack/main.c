/* ampcc-pack: packs data sets. See README.md. */
#include "runtime/core/stop.h"
#include "runtime/pack/job.h"
#include "runtime/pack/show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRAIN, VAL, N_SPLITS };
static const char *const split_name[N_SPLITS] = {"train", "val"};

/* One run: the splits that are wanted are those that have a path. */
typedef struct Run {
  const PackOptions *options;
  AmprtLog log;
  AmprtData data;
  char path[N_SPLITS][AMPRT_PATH];
  char note[N_SPLITS][512];
  PackWriter writer[N_SPLITS];
  bool begun[N_SPLITS], made_dir;
} Run;

/* The note has all options that decide the bytes of a pack, and nothing else: no paths, no time, no
 * number of threads. */
static void write_note(const PackOptions *options, int split, char *out, size_t size) {
  int n = snprintf(out, size, "ampcc-pack %s --dataset=%.80s --split=%s", AMPCC_VERSION,
                   options->dataset, split_name[split]);
  if (options->resize)
    n += snprintf(out + n, size - (size_t)n, " --resize=%" PRId64, options->resize);
  if (options->resize && options->lossless)
    n += snprintf(out + n, size - (size_t)n, " --lossless");
  else if (options->resize)
    n += snprintf(out + n, size - (size_t)n, " --quality=%" PRId64, options->quality);
  if (options->shuffle >= 0)
    snprintf(out + n, size - (size_t)n, " --shuffle=%" PRId64, options->shuffle);
}

/* Sets the paths, and refuses to replace what is there. */
static AmprtStatus choose_files(Run *run, AmprtError *error) {
  const PackOptions *options = run->options;
  const AmprtSource *pack = amprt_source_find("pack");
  const char *const file[N_SPLITS] = {pack->train_files, pack->test_files};
  AmprtStatus status = AMPRT_OK;
  struct stat info;
  for (int i = 0; i < N_SPLITS && !status; i++) {
    if (*options->split && strcmp(options->split, split_name[i]) != 0)
      continue;
    status = amprt_path(run->path[i], options->output, file[i], error);
    if (!status && !options->force && lstat(run->path[i], &info) == 0)
      status =
          amprt_fail(error, AMPRT_INPUT, "%s: is there already; --force replaces it", run->path[i]);
    write_note(options, i, run->note[i], sizeof run->note[i]);
  }
  return status;
}

static AmprtStatus open_source(Run *run, AmprtError *error) {
  const AmprtSource *from = amprt_source_find(run->options->dataset);
  AmprtDataset *set[N_SPLITS] = {&run->data.train, &run->data.test};
  if (!from)
    return amprt_fail(error, AMPRT_USAGE, "there is no data set `%.80s`; see --help",
                      run->options->dataset);
  const char *const files[N_SPLITS] = {from->train_files, from->test_files};
  AmprtStatus status = amprt_source_folder(from, run->options->data_dir, run->data.dir, error);
  for (int i = 0; i < N_SPLITS && !status; i++) {
    if (*run->path[i])
      status = from->open(run->data.dir, files[i], set[i], error);
    if (status == AMPRT_INPUT && i == VAL && *run->path[TRAIN])
      amprt_fail_more(error, "; --split=train packs the training set alone");
    if (!status && set[i]->height && run->options->resize)
      status = amprt_fail(error, AMPRT_USAGE,
                          "--resize is for image files; %s has raw pixels, %" PRId64 "x%" PRId64,
                          from->name, set[i]->height, set[i]->width);
  }
  return status ? status : amprt_data_check_names(&run->data, error);
}

static AmprtStatus pack_one(Run *run, PackJob *job, int split, AmprtError *error) {
  PackWriter *writer = &run->writer[split];
  run->begun[split] = true;
  job->name = split_name[split];
  job->set = split == TRAIN ? &run->data.train : &run->data.test;
  job->writer = writer;
  AmprtStatus status =
      pack_write_begin(writer, run->path[split], job->set, run->note[split], error);
  if (!status)
    status = pack_job_run(job, error);
  if (!status && !amprt_stop_signal())
    status = pack_write_tables(writer, error);
  if (status || amprt_stop_signal() || run->options->quiet)
    return status;
  char resized[100] = "";
  if (run->options->resize)
    snprintf(resized, sizeof resized, " (%" PRId64 " of them resized, from %.1f MB)", job->resized,
             (double)job->bytes_in * 1e-6);
  amprt_say(&run->log, "%s: %" PRId64 " images%s, %.1f MB in %.1f s", run->path[split], writer->n,
            resized, (double)writer->at * 1e-6, job->seconds);
  return AMPRT_OK;
}

/* No pack gets its name before both are whole. */
static AmprtStatus pack(Run *run, AmprtError *error) {
  struct stat info;
  PackJob job = {.options = run->options, .log = &run->log};
  AmprtStatus status = choose_files(run, error);
  if (!status)
    status = open_source(run, error);
  if (status)
    return status;
  run->made_dir = lstat(run->options->output, &info) < 0;
  status = amprt_make_dir(run->options->output, error);
  for (int i = 0; i < N_SPLITS && !status && !amprt_stop_signal(); i++)
    if (*run->path[i])
      status = pack_one(run, &job, i, error);
  bool keep = !status && !amprt_stop_signal();
  for (int i = 0; i < N_SPLITS; i++) {
    AmprtError failed;
    AmprtStatus ended =
        run->begun[i] ? pack_write_end(&run->writer[i], keep && !status, &failed) : AMPRT_OK;
    if (ended && !status) {
      *error = failed;
      status = ended;
    }
  }
  if ((!keep || status) && run->made_dir)
    rmdir(run->options->output); /* the folder is removed if nothing is in it */
  return status;
}

/* `told`: standard output is open. */
static AmprtStatus run_all(Run *run, bool told, AmprtError *error) {
  const PackOptions *options = run->options;
  bool asked = options->help || options->version || *options->list || *options->verify;
  AmprtStatus status = AMPRT_OK;
  if (asked && !told)
    return amprt_fail(error, AMPRT_ENV, "standard output is closed");
  if (options->help)
    pack_options_help(stdout);
  else if (options->version)
    amprt_print(stdout, "ampcc-pack %s\n", AMPCC_VERSION);
  else if (*options->dataset)
    status = pack(run, error);
  else if (*options->list)
    status = pack_list(options->list, error);
  if (!status && *options->verify && !options->help && !options->version)
    status = pack_verify(options->verify, &run->log, error);
  if (!status && asked && (fflush(stdout) || ferror(stdout)))
    status = amprt_fail(error, AMPRT_ENV, "cannot write to standard output: %s", strerror(errno));
  return status;
}

int main(int argc, char **argv) {
  static Run run; /* paths are long */
  PackOptions options;
  AmprtError error = {0};
  bool told = amprt_log_standard_files();
  AmprtStatus status = pack_options_parse(&options, argc, argv, &error);
  if (!status) {
    run.options = &options;
    amprt_log_begin(&run.log, options.quiet, false, false);
    amprt_stop_listen();
    status = run_all(&run, told, &error);
    amprt_data_close(&run.data);
    amprt_log_close(&run.log);
  }
  if (status)
    amprt_print(stderr, "ampcc-pack: error: %s\n", error.text);
  int signal = amprt_stop_signal();
  if (signal && !status)
    amprt_print(stderr, "ampcc-pack: stopped by %s%s\n", amprt_stop_name(signal),
                *options.dataset ? "; nothing was written" : "");
  return status ? (int)status : signal ? 128 + signal : 0;
}
