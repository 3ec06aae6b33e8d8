#include "codegen/backend.h"
#include "codegen/program/build.h"
#include "ir/base/reads.h"
#include "ir/base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const needed[] = {"libamprt.a",      "libamprt_static.a", "libamprt_dnn.a",
                                     "libprotobuf-c.a", "amprt.h",           "dnn_rt.h"};

/* NULL if the folder holds all, else what is missing. */
static const char *missing_in(Arena *arena, const char *folder) {
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (access(arena_printf(arena, "%s/%s", folder, needed[i]), R_OK) != 0)
      return needed[i];
  return NULL;
}

static const char *note(Arena *arena, const char *folder) {
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    reads_add(arena_printf(arena, "%s/%s", folder, needed[i]));
  return folder;
}

/* The folder of the running ampcc's executable, or "". */
static const char *own_folder(Arena *arena) {
  char exe[4096];
  ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[len < 0 ? 0 : len] = '\0';
  char *slash = strrchr(exe, '/');
  return slash ? arena_strdup(arena, exe, (size_t)(slash - exe)) : "";
}

const char *resource_folder(Arena *arena, const char *wanted) {
  static const char *const beside[] = {"../codegen", "../" AMPCC_LIBDIR "/ampcc", "../lib/ampcc"};
  const char *own = own_folder(arena);
  if (wanted)
    return missing_in(arena, wanted) ? NULL : note(arena, wanted);
  for (size_t i = 0; *own && i < sizeof beside / sizeof *beside; i++) {
    const char *folder = arena_printf(arena, "%s/%s", own, beside[i]);
    if (!missing_in(arena, folder))
      return note(arena, folder);
  }
  return NULL;
}

const char *resource_find(Arena *arena, const char *wanted) {
  const char *folder = resource_folder(arena, wanted);
  if (!folder && wanted)
    text_say("ampcc: %s: there is no %s; --resource-dir names the folder of the runtime\n", wanted,
             missing_in(arena, wanted));
  else if (!folder)
    text_say("ampcc: %s: no runtime (libamprt.a) beside ampcc; name its folder with "
             "--resource-dir\n",
             own_folder(arena));
  return folder;
}

/* The path of the file that an element of Backend.libraries names. NULL if the element is an option
 * of the linker, such as -lm. */
static const char *library_path(Arena *arena, const char *folder, const char *library) {
  if (strchr(library, '/'))
    return library;
  return text_ends_in(library, ".a") ? arena_printf(arena, "%s/%s", folder, library) : NULL;
}

bool resource_has(Arena *arena, const char *folder, const Backend *backend) {
  for (const char *const *library = backend->libraries; *library; library++) {
    const char *path = library_path(arena, folder, *library);
    if (path && access(path, R_OK) != 0) {
      text_say("ampcc: %s: there is no %s: this ampcc was built without what programs for %s "
               "beside %s are linked with (README.md, Dependencies)\n",
               folder, *library, backend->target->name, backend->arch->target);
      return false;
    }
  }
  return true;
}

void resource_note(Arena *arena, const char *resource, const Backend *backend) {
  const char *apart = backend->arch->folder;
  const char *folder = apart ? arena_printf(arena, "%s/%s", resource, apart) : resource;
  reads_add(arena_printf(arena, "%s/libamprt.a", folder));
  for (const char *const *library = backend->libraries; *library; library++) {
    const char *path = library_path(arena, folder, *library);
    if (path)
      reads_add(path);
  }
}

const char *resource_libraries(Arena *arena, const char *resource, const char *folder) {
  static const char *const apart[] = {"libamprt.a", "libamprt_static.a", "libprotobuf-c.a",
                                      "libz.a",     "libjpeg.a",         "libpng16.a"};
  if (!folder)
    return resource;
  const char *path = arena_printf(arena, "%s/%s", resource, folder);
  for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
    const char *library = arena_printf(arena, "%s/%s", path, apart[i]);
    if (access(library, R_OK) != 0) {
      text_say("ampcc: %s: there is no %s: this ampcc was built without a compiler or libraries "
               "for %s CPUs (README.md, Dependencies)\n",
               path, apart[i], folder);
      return NULL;
    }
    reads_add(library);
  }
  return path;
}
