#include "runtime/flags/official.h"

#include <inttypes.h>
#include <string.h>

#define GROUP(title) {.group = title},
#define OFFICIAL(name, letters, kind, otherwise, takes, does, text)                                \
  {NULL, #name, letters, otherwise, text, AMPRT_OPT_##kind, AMPRT_DOES_##does, {takes}},
const AmprtOfficial amprt_official[] = {
#include "runtime/flags/official.def"
};
const int amprt_n_official = sizeof amprt_official / sizeof *amprt_official;
_Static_assert(sizeof amprt_official / sizeof *amprt_official == AMPRT_N_OFFICIAL,
               "options.h counts the rows");

const AmprtOfficial *amprt_official_find(const char *name, size_t n) {
  for (int i = 0; i < amprt_n_official; i++) {
    const AmprtOfficial *row = &amprt_official[i];
    if (row->name && (amprt_same_flag(name, n, row->name) ||
                      (*row->letters && amprt_same_flag(name, n, row->letters))))
      return row;
  }
  return NULL;
}

/* --num_gpus: 0 is the CPU, 1 a GPU. The official programs divide their batch by larger numbers. */
static AmprtStatus set_gpus(AmprtOptions *options, int64_t n, AmprtError *error) {
  if (n > 1)
    return amprt_fail(error, AMPRT_USAGE,
                      "--num_gpus=%" PRId64 ": a process trains on one GPU; start it with "
                      "--local-gpus=%" PRId64 " instead, made with --batch-size=GLOBAL/%" PRId64
                      ": the batch that a program is made with is that of one process",
                      n, n, n);
  if (!n)
    options->device = "cpu";
  return AMPRT_OK;
}

AmprtStatus amprt_official_set(AmprtOptions *options, AmprtWanted *wanted, const AmprtOfficial *row,
                               const char *value, AmprtError *error) {
  AmprtValueOf parsed;
  if (row->does == AMPRT_DOES_OURS) /* the program's own flag checks its values */
    return amprt_options_set(options, row->text, value, error);
  if (!value && row->kind == AMPRT_OPT_BOOL)
    value = "true";
  if (!value)
    return amprt_fail(error, AMPRT_USAGE, "--%s needs a value (%s)", row->name,
                      amprt_kind_text(row->kind));
  bool plain = !strcmp(value, row->otherwise); /* also "" for a flag without a default */
  AmprtStatus status =
      amprt_value_read(row->name, row->kind, plain ? NULL : &row->takes, value, &parsed, error);
  if (status)
    return status;
  options->official[row - amprt_official] = row->does == AMPRT_DOES_NOTHING;
  switch (row->does) {
  case AMPRT_DOES_FIXED:
    return amprt_wanted_set(wanted, amprt_built_find(row->text, strlen(row->text)), value, error);
  case AMPRT_DOES_SIZE:
    wanted->size = value;
    return AMPRT_OK;
  case AMPRT_DOES_VERSION:
    wanted->version = value;
    return AMPRT_OK;
  case AMPRT_DOES_LARS:
    wanted->lars = parsed.truth ? "lars" : "momentum";
    return AMPRT_OK;
  case AMPRT_DOES_TUNE:
    wanted->tunes = parsed.truth ? "true" : "false";
    return AMPRT_OK;
  case AMPRT_DOES_GPUS:
    options->official[row - amprt_official] = parsed.integer == -1; /* all that there are */
    return set_gpus(options, parsed.integer, error);
  case AMPRT_DOES_HOSTS:
    if (strchr(value, ','))
      return amprt_fail(error, AMPRT_USAGE, "--%s: %s", row->name, row->text);
    return AMPRT_OK;
  case AMPRT_DOES_REFUSED:
    if (!amprt_value_same(row->kind, value, row->otherwise))
      return amprt_fail(error, AMPRT_USAGE, "--%s is not supported: %s", row->name, row->text);
    return AMPRT_OK;
  case AMPRT_DOES_OURS:
  case AMPRT_DOES_NOTHING:
    break;
  }
  return AMPRT_OK;
}

/* One note for all flags that do nothing for the same reason. */
void amprt_official_tell(const AmprtOptions *options, AmprtLog *log) {
  bool told[AMPRT_N_OFFICIAL] = {false};
  for (int i = 0; i < amprt_n_official; i++) {
    AmprtText names = {0};
    int n = 0;
    for (int k = i; k < amprt_n_official; k++) {
      const AmprtOfficial *row = &amprt_official[k];
      if (!options->official[k] || told[k] || (n && strcmp(row->text, amprt_official[i].text)))
        continue;
      if (!n && k != i)
        break;
      amprt_text_add(&names, "%s--%s", n++ ? ", " : "", row->name);
      told[k] = true;
    }
    if (n)
      amprt_say(log, "note: %s %s nothing here: %s", names.data, n > 1 ? "do" : "does",
                amprt_official[i].text);
    amprt_text_free(&names);
  }
}
