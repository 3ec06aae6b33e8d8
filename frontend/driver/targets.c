#include "frontend/driver/targets.h"

#include "ir/base/diag.h"
#include "ir/base/list.h"
#include "ir/base/nearest.h"
#include "ir/base/text.h"

#include <string.h>

static const char prefix[] = "cuda:";
enum { PREFIX = sizeof prefix - 1 };

/* The CPU sorts below every GPU. */
static int capability(const Device *device) {
  return device ? device->capability : 0;
}

static void add(TargetList *list, const Device *device) {
  int at = 0;
  while (at < list->n && capability(list->device[at]) > capability(device))
    at++;
  if (at < list->n && capability(list->device[at]) == capability(device))
    return;
  CHECK(list->n < MAX_TARGETS, "more capabilities than MAX_TARGETS");
  memmove(&list->device[at + 1], &list->device[at], (size_t)(list->n - at) * sizeof *list->device);
  list->device[at] = device;
  list->n++;
}

/* The CPUs that --target can name, the one beside most GPUs first. */
static const CpuArch *const cpus[] = {&cpu_x86_64, &cpu_aarch64};
enum { N_CPUS = sizeof cpus / sizeof *cpus };

static bool unknown(Arena *arena, const char *name) {
  const char *why;
  Nearest nearest =
      nearest_to(device_find(arena, name, &why) ? arena_printf(arena, "%s%s", prefix, name) : name);
  for (int i = 0; i < N_CPUS; i++)
    nearest_try(&nearest, cpus[i]->target);
  nearest_try(&nearest, "cuda");
  for (int i = 0; device_at(i); i++) {
    nearest_try(&nearest, arena_printf(arena, "%s%s", prefix, device_at(i)->name));
    nearest_try(&nearest, arena_printf(arena, "%ssm_%d", prefix, device_at(i)->capability));
  }
  text_say("ampcc: --target: unknown target `%s`%s; see --list-targets\n", name,
           nearest_hint(arena, &nearest, ""));
  return false;
}

/* `beside` becomes the first GPU that is only found beside AArch64 CPUs. */
static bool add_named(Arena *arena, const char *name, TargetList *list, const Device **beside) {
  const char *why = NULL;
  for (int i = 0; i < N_CPUS; i++)
    if (!strcmp(name, cpus[i]->target)) {
      bool good = !list->arch || list->arch == cpus[i];
      if (!good)
        text_say("ampcc: --target: one program is for one kind of CPU, %s or %s; make two\n",
                 list->arch->target, name);
      list->arch = cpus[i];
      add(list, NULL);
      return good;
    }
  if (!strcmp(name, "cuda")) {
    for (int i = 0; device_at(i); i++)
      if (device_at(i)->is_default)
        add(list, device_at(i));
    return true;
  }
  if (strncmp(name, prefix, PREFIX) != 0)
    return unknown(arena, name);
  const Device *device = device_find(arena, name + PREFIX, &why);
  if (device && device->is_arm && !*beside)
    *beside = device;
  if (device)
    add(list, device);
  else
    text_say("ampcc: --target=%s: %s\n", name, why);
  return device != NULL;
}

bool targets_parse(Arena *arena, const char *text, TargetList *out) {
  const Device *beside = NULL;
  const char *all = text;
  *out = (TargetList){0};
  for (const char *name; (name = list_word(arena, &text, ',')) != NULL;)
    if (!add_named(arena, name, out, &beside))
      return false;
  if (!out->n)
    fputs("ampcc: --target names nothing to build for\n", stderr);
  if (!out->arch)
    out->arch = targets_cpu(arena, all);
  if (beside && out->arch != &cpu_aarch64) {
    text_say(
        "ampcc: --target: %s%s is only found beside AArch64 CPUs: give %s in the place of %s\n",
        prefix, beside->name, cpu_aarch64.target, out->arch->target);
    return false;
  }
  return out->n > 0;
}

const CpuArch *targets_cpu(Arena *arena, const char *text) {
  const CpuArch *arch = cpus[0];
  for (const char *name, *why; (name = list_word(arena, &text, ',')) != NULL;) {
    const Device *device =
        strncmp(name, prefix, PREFIX) == 0 ? device_find(arena, name + PREFIX, &why) : NULL;
    for (int i = 0; i < N_CPUS; i++)
      if (!strcmp(name, cpus[i]->target))
        return cpus[i];
    if (device && device->is_arm)
      arch = &cpu_aarch64;
  }
  return arch;
}

void targets_list(FILE *out) {
  for (int i = 0; i < N_CPUS; i++)
    fprintf(out, "%-14s %s\n", cpus[i]->target, cpus[i]->summary);
  for (int i = 0; device_at(i); i++) {
    const Device *device = device_at(i);
    fprintf(out, "%s%-9s %ssm_%-4d %s%s%s%s\n", prefix, device->name, prefix, device->capability,
            device->product, device->is_default ? " *" : "", device->is_arm ? ", beside " : "",
            device->is_arm ? cpu_aarch64.target : "");
  }
  fputs("cuda           those with *\n", out);
}
