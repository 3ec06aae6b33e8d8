#include "runtime/core/parts.h"

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/parallel/launch.h"
#include "runtime/parallel/processes.h"

#include <string.h>

typedef struct Choice {
  const AmprtPart *part; /* NULL: none fits */
  AmprtText why; /* why those before it do not fit: lines "cuda:sm_80, cuda:sm_90: REASON" */
} Choice;

/* Does --device=`device` allow this part? "cuda:sm_90" is allowed by its own name, by "cuda" and by
 * "". */
static bool is_named(const AmprtPart *part, const char *device) {
  size_t n = strlen(device);
  return !n || (!strncmp(part->name, device, n) && (!part->name[n] || part->name[n] == ':'));
}

static const AmprtPart *next_named(const AmprtPart *part, const AmprtPart *end,
                                   const char *device) {
  while (part < end && !is_named(part, device))
    part++;
  return part;
}

/* Takes the first part that fits. Parts that do not fit for the same reason share a line of
 * `why`. */
static void choose(Choice *choice, const AmprtPart *part, const AmprtPart *end,
                   const char *device) {
  char why[512] = "", last[512] = "";
  part = next_named(part, end, device);
  while (part < end && part->fits && part->fits(why, sizeof why)) {
    bool same = !strcmp(why, last);
    if (*last && !same)
      amprt_text_add(&choice->why, ": %s\n", last);
    amprt_text_add(&choice->why, "%s%s", same ? ", " : "", part->name);
    memcpy(last, why, sizeof last);
    part = next_named(part + 1, end, device);
  }
  if (*last)
    amprt_text_add(&choice->why, ": %s\n", last);
  choice->part = part < end ? part : NULL;
}

static AmprtStatus fail_name(const AmprtPart *part, int n_parts, const char *device,
                             AmprtError *error) {
  AmprtText names = {0};
  for (int i = 0; i < n_parts; i++)
    amprt_text_add(&names, "%s%s", i ? ", " : "", part[i].name);
  AmprtStatus status =
      amprt_fail(error, AMPRT_USAGE, "--device: `%.80s` is none of this program's parts: %s",
                 device, names.data ? names.data : "");
  amprt_text_free(&names);
  return status;
}

/* Prints which part runs, and why those before it do not. */
static void tell(const Choice *choice, const char *name) {
  for (const char *line = choice->why.data; line && *line;) {
    int n = (int)strcspn(line, "\n");
    amprt_print(stderr, "%s: not %.*s\n", name, n, line);
    line += n + 1;
  }
  const AmprtProgram *program = choice->part->program;
  bool describes = program->device && program->describe;
  amprt_print(stderr, "%s: device %s%s%s\n", name, choice->part->name, describes ? ": " : "",
              describes ? program->describe() : "");
}

static AmprtStatus fail_all(const Choice *choice, AmprtError *error) {
  AmprtText all = {0};
  for (const char *line = choice->why.data; line && *line;) {
    int n = (int)strcspn(line, "\n");
    amprt_text_add(&all, "%s%.*s", all.size ? "; " : "", n, line);
    line += n + 1;
  }
  AmprtStatus status = amprt_fail(error, AMPRT_ENV, "this program does not run here: %s",
                                  all.data ? all.data : "no memory to say why");
  amprt_text_free(&all);
  return status;
}

/* The rank that a launcher has given to this process; 0: it is alone. */
static int launched_rank(void) {
  AmprtLaunch launch;
  AmprtError later; /* amprt_group_open reports it */
  return !amprt_launch_read(&launch, &later) && launch.launcher ? launch.rank : 0;
}

static AmprtStatus run(const AmprtPart *part, int n_parts, AmprtOptions *options, int argc,
                       char **argv, const char *name, bool told, int *exit_status,
                       AmprtError *error) {
  const AmprtPart *end = part + n_parts, *first = next_named(part, end, options->device);
  Choice choice = {0};
  AmprtStatus status = AMPRT_OK;
  if (first == end)
    return fail_name(part, n_parts, options->device, error);
  bool asked; /* a flag such as --help, which needs no part that fits */
  status = amprt_info(first->program, part, n_parts, options, name, &asked, error);
  if (asked && !told && !status)
    status = amprt_fail(error, AMPRT_ENV, "standard output is closed");
  bool ran = false;
  if (!asked)
    status = amprt_processes_run(options, part, n_parts, argc, argv, &ran, exit_status, error);
  if (asked || ran || status)
    return status;
  choose(&choice, part, end, options->device);
  if (!choice.part)
    status = fail_all(&choice, error);
  else if ((n_parts > 1 || choice.part->program->device) && !options->quiet && !launched_rank())
    tell(&choice, name);
  if (choice.part)
    *exit_status = amprt_run(choice.part->program, options, name);
  amprt_text_free(&choice.why);
  return status;
}

int amprt_main(const AmprtPart *part, int n_parts, int argc, char **argv) {
  const char *slash = argc ? strrchr(argv[0], '/') : NULL;
  const char *name = slash ? slash + 1 : argc ? argv[0] : "train";
  AmprtOptions options;
  AmprtError error = {0};
  int exit_status = 0;
  bool told = amprt_log_standard_files();
  AmprtStatus status = amprt_options_parse(&options, part->program, argc, argv, &error);
  if (!status)
    status = run(part, n_parts, &options, argc, argv, name, told, &exit_status, &error);
  int rank = launched_rank();
  if (status && rank && status != AMPRT_USAGE)
    amprt_print(stderr, "rank %d: ", rank);
  if (status && !(rank && status == AMPRT_USAGE)) /* all processes have the same flags */
    amprt_print(stderr, "%s: error: %s\n", name, error.text);
  amprt_options_free(&options);
  return status ? (int)status : exit_status;
}
