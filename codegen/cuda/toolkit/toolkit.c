#include "codegen/cuda/toolkit/toolkit.h"

#include "codegen/cudnn/api.h"
#include "codegen/cudnn/conv_graph.h"
#include "ir/base/reads.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where libraries lie in a toolkit's folder, and in a folder of wheels. */
static const char *const library_folder[] = {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cudnn/lib",
                                             ".",     NULL};

/* Files that must be there before any library is opened. */
static const char *const needed[] = {"libnvrtc.so.13",
                                     "libcudnn_graph.so.9",
                                     "libcudnn_heuristic.so.9",
                                     "libcudnn_engines_precompiled.so.9",
                                     "libcudnn_engines_runtime_compiled.so.9",
                                     "libcublasLt.so.13",
                                     NULL};

#ifdef __SANITIZE_ADDRESS__
/* A leak checker must not report what NVIDIA's libraries keep until the process ends. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libcublasLt.so\nleak:libcudnn\nleak:libnvrtc\n";
}
#endif

static const char *find_library(Arena *arena, const char *folder, const char *name) {
  for (int i = 0; library_folder[i]; i++) {
    const char *path = arena_printf(arena, "%s/%s/%s", folder, library_folder[i], name);
    if (access(path, R_OK) == 0)
      return path;
  }
  return NULL;
}

static const char *missing_in(Arena *arena, const char *folder) {
  for (int i = 0; needed[i]; i++)
    if (!find_library(arena, folder, needed[i]))
      return needed[i];
  return NULL;
}

Toolkit *toolkit_find(Arena *arena, const char *folder, char error[TOOLKIT_ERROR]) {
  const char *const usual[] = {AMPCC_CUDA_PATH, "/usr/local/cuda", "/opt/cuda", NULL};
  const char *const given[] = {folder, NULL};
  const char *const *try = folder ? given : usual;
  for (int i = 0; try[i]; i++)
    if (!missing_in(arena, try[i])) {
      Toolkit *toolkit = arena_new_of(arena, Toolkit);
      toolkit->arena = arena;
      toolkit->folder = try[i];
      for (int k = 0; needed[k]; k++)
        reads_add(find_library(arena, try[i], needed[k]));
      return toolkit;
    }
  snprintf(error, TOOLKIT_ERROR,
           "no %s in %s; --cuda-path names the folder of CUDA 13 with cuDNN 9, or of the wheels "
           "nvidia-cuda-nvrtc, nvidia-cudnn-cu13 and nvidia-cublas",
           missing_in(arena, try[0]), try[0]);
  return NULL;
}

const char *const *toolkit_files(Toolkit *toolkit) {
  static const char *const name[] = {"libcublasLt.so", "libcudnn", "libnvrtc"};
  const char **file = NULL;
  int n = 0, cap = 0;
  for (int i = 0; library_folder[i]; i++) {
    const char *folder = arena_printf(toolkit->arena, "%s/%s", toolkit->folder, library_folder[i]);
    DIR *dir = opendir(folder);
    if (!dir)
      continue;
    arena_push(toolkit->arena, file, n, cap, folder);
    for (struct dirent *entry; (entry = readdir(dir));)
      for (size_t k = 0; k < sizeof name / sizeof *name; k++)
        if (strncmp(entry->d_name, name[k], strlen(name[k])) == 0 && strstr(entry->d_name, ".so"))
          arena_push(toolkit->arena, file, n, cap,
                     arena_printf(toolkit->arena, "%s/%s", folder, entry->d_name));
    closedir(dir);
  }
  arena_push(toolkit->arena, file, n, cap, NULL);
  return file;
}

static void *open_library(Toolkit *toolkit, const char *name, char error[TOOLKIT_ERROR]) {
  const char *path = find_library(toolkit->arena, toolkit->folder, name);
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library)
    snprintf(error, TOOLKIT_ERROR,
             "cannot open %s: %s; --cuda-path names another folder of CUDA 13", path ? path : name,
             path ? dlerror() : "it is gone");
  return library;
}

bool toolkit_cudnn(Toolkit *toolkit, char error[TOOLKIT_ERROR]) {
  if (toolkit->cudnn_version)
    return true;
  void *library = open_library(toolkit, "libcudnn_graph.so.9", error);
  if (!library)
    return false;
  const char *missing = cuda_cudnn_bind(&toolkit->cudnn, library);
  int version = missing ? 0 : (int)toolkit->cudnn.cudnnGetVersion();
  if (missing || version / 10000 != 9) {
    snprintf(error, TOOLKIT_ERROR, "libcudnn_graph.so.9 in %s is no cuDNN 9: %s", toolkit->folder,
             missing ? missing : "another major version");
    dlclose(library);
    return false;
  }
  toolkit->cudnn_version = version;
  return true;
}

bool toolkit_nvrtc(Toolkit *toolkit, char error[TOOLKIT_ERROR]) {
  if (toolkit->nvrtc_version)
    return true;
  void *library = open_library(toolkit, "libnvrtc.so.13", error);
  if (!library)
    return false;
  static const ApiEntry entry[] = {
#define NVRTC(result, name, arguments) {#name, offsetof(NvrtcApi, name)},
#include "codegen/cuda/toolkit/nvrtc_api.def"
  };
  int major = 0, minor = 0;
  const char *missing =
      cuda_api_bind(&toolkit->nvrtc, library, entry, sizeof entry / sizeof *entry);
  if (missing || toolkit->nvrtc.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS || major != 13) {
    snprintf(error, TOOLKIT_ERROR, "libnvrtc.so.13 in %s is not of CUDA 13: %s", toolkit->folder,
             missing ? missing : "another major version");
    dlclose(library);
    return false;
  }
  /* NVRTC opens this library by its bare name. If it were not open already, the dynamic linker
   * might take that of another version or find none. */
  const char *builtins = arena_printf(toolkit->arena, "libnvrtc-builtins.so.%d.%d", major, minor);
  if (!open_library(toolkit, builtins, error))
    return false;
  toolkit->nvrtc_version = major * 1000 + minor * 10;
  return true;
}

/* When cuDNN plans, it opens its other parts, NVRTC and cublasLt by their bare names. The dynamic
 * linker then gives it libraries of these names that are open already, and only otherwise searches
 * its path. So everything is opened here first. All of it then comes from the toolkit's folder,
 * even where another version lies in a usual place, and even under a sanitizer, whose dlopen does
 * not search the path (RUNPATH) that cuDNN's own files name. There are two more reasons: cuDNN ends
 * the process if there is no cublasLt, and it would load and unload NVRTC, which takes 30 ms, for
 * one plan in ten. */
static bool open_for_planning(Toolkit *toolkit, char error[TOOLKIT_ERROR]) {
  if (!toolkit_cudnn(toolkit, error) || !toolkit_nvrtc(toolkit, error))
    return false;
  for (int i = 0; needed[i]; i++)
    if (!open_library(toolkit, needed[i], error))
      return false;
  return true;
}

CudnnObject toolkit_device(Toolkit *toolkit, const Device *device, char error[TOOLKIT_ERROR]) {
  if (toolkit->planned == device)
    return toolkit->description;
  if (!open_for_planning(toolkit, error))
    return NULL;
  if (toolkit->description)
    toolkit->cudnn.cudnnBackendDestroyDescriptor(toolkit->description);
  toolkit->description = cuda_conv_device(&toolkit->cudnn, device_json(toolkit->arena, device), 0,
                                          error, TOOLKIT_ERROR);
  toolkit->planned = toolkit->description ? device : NULL;
  return toolkit->description;
}
