#include "frontend/batch/memory.h"

#include <string.h>

/* Before any program has ended, and at the least: a part for a GPU takes as much. */
static const int64_t first_need = (int64_t)512 << 20;

/* The number behind `name` in a file of lines `NAME NUMBER`, or -1. */
static int64_t read_number(const char *path, const char *name) {
  char line[200];
  size_t length = strlen(name);
  long long number = -1;
  FILE *file = fopen(path, "r");
  while (file && number < 0 && fgets(line, sizeof line, file))
    if (strncmp(line, name, length) != 0 || sscanf(line + length, "%lld", &number) != 1)
      number = -1;
  if (file)
    fclose(file);
  return number;
}

/* What this machine has, or the control group of a container. INT64_MAX if neither says. */
static int64_t available(void) {
  int64_t kib = read_number("/proc/meminfo", "MemAvailable:");
  int64_t most = read_number("/sys/fs/cgroup/memory.max", "");
  int64_t used = read_number("/sys/fs/cgroup/memory.stat", "anon ");
  int64_t machine = kib < 0 ? INT64_MAX : kib << 10;
  int64_t group = most < 0 || used < 0 ? INT64_MAX : most > used ? most - used : 0;
  return machine < group ? machine : group;
}

bool memory_begin(const Options *options, BatchMemory *out) {
  *out = (BatchMemory){.limit = available(), .need = first_need};
  return options_bytes(options, OPT_batch_memory, &out->limit);
}

void memory_learn(BatchMemory *memory, int64_t bytes) {
  memory->need = 2 * bytes > memory->need ? 2 * bytes : memory->need;
}

int memory_room(const BatchMemory *memory, int jobs) {
  int64_t room = memory->limit / memory->need;
  return room < 1 ? 1 : room < jobs ? (int)room : jobs;
}

bool memory_suffices(const BatchMemory *memory, int n) {
  return memory_room(memory, n) >= n && available() >= memory->need;
}
