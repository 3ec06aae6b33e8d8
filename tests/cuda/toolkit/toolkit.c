/* Tests an ampcc that finds no CUDA, a part of it, or another version: one line says what is
 * missing, and nothing crashes. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "codegen/cuda/toolkit/toolkit.h"

#include "codegen/cuda/toolkit/nvrtc.h"
#include "codegen/cuda/toolkit/plan.h"
#include "tests/cuda/toolkit/check.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena *arena;
static char folder[] = "toolkit.XXXXXX";
static const char *builtins = "no builtins"; /* files of NVRTC, whose version is in their names */
static const char *const libraries[] = {"libnvrtc.so.13",
                                        "libcudnn_graph.so.9",
                                        "libcudnn_heuristic.so.9",
                                        "libcudnn_engines_precompiled.so.9",
                                        "libcudnn_engines_runtime_compiled.so.9",
                                        "libcublasLt.so.13"};
enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

static const char *path_of(const char *name) {
  return arena_printf(arena, "%s/lib64/%s", folder, name);
}

/* The name as a file of these bytes, or as a link to `target`. */
static void put(const char *name, const char *target) {
  unlink(path_of(name));
  if (target) {
    assert_int_equal(symlink(target, path_of(name)), 0);
    return;
  }
  FILE *file = fopen(path_of(name), "w");
  assert_non_null(file);
  fputs("no library\n", file);
  fclose(file);
}

static void expect(const char *error, const char *first, const char *second) {
  if (!strstr(error, first) || !strstr(error, second) || strchr(error, '\n'))
    fail_msg("`%s` names no `%s` and `%s`", error, first, second);
}

static void names_what_is_missing(void **state) {
  (void)state;
  char error[TOOLKIT_ERROR];
  assert_null(toolkit_find(arena, "/nowhere", error));
  expect(error, "no libnvrtc.so.13 in /nowhere", "--cuda-path");
  for (int i = 0; i < N_LIBRARIES; i++) {
    assert_null(toolkit_find(arena, folder, error));
    expect(error, arena_printf(arena, "no %s in", libraries[i]), "--cuda-path");
    put(libraries[i], NULL);
  }
  assert_non_null(toolkit_find(arena, folder, error));
}

/* Runs after names_what_is_missing: all files are there, but none of them is a library. */
static void says_what_cannot_be_opened(void **state) {
  (void)state;
  char error[TOOLKIT_ERROR];
  NvrtcCode code;
  PlanText plan;
  ConvOp op;
  Toolkit *toolkit = toolkit_find(arena, folder, error);
  assert_non_null(toolkit);
  assert_true(cuda_conv_key_parse("fprop f16 n8 h8 w8 c8 k8 r1 s1 u1,1 p0,0,0,0", &op));
  assert_false(nvrtc_compile(toolkit, NULL, arena, "", 90, &code, error));
  expect(error, "cannot open", "libnvrtc.so.13");
  assert_false(plan_list(toolkit, NULL, arena, &op, device_at(0), &plan, 1, error));
  expect(error, "cannot open", "libcudnn_graph.so.9");
  assert_int_equal(toolkit->cudnn_version, 0);
}

static void says_which_version_it_is_not(void **state) {
  (void)state;
  char error[TOOLKIT_ERROR];
  put("libnvrtc.so.13", getenv("STUB_NVRTC"));
  put("libcudnn_graph.so.9", getenv("STUB_CUDNN"));
  Toolkit *toolkit = toolkit_find(arena, folder, error);
  assert_non_null(toolkit);
  assert_false(toolkit_nvrtc(toolkit, error));
  expect(error, "is not of CUDA 13", folder);
  assert_false(toolkit_cudnn(toolkit, error));
  expect(error, "is no cuDNN 9: cudnnGetErrorString", folder);
}

/* Makes `name` a link to the library of the toolkit that is installed. */
static void link_to(const Toolkit *whole, const char *name) {
  static const char *const part[] = {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cudnn/lib"};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    const char *path = arena_printf(arena, "%s/%s/%s", whole->folder, part[i], name);
    if (access(path, R_OK) == 0)
      put(name, path);
  }
}

/* cuDNN ends the process if there is no cublasLt, so ampcc must notice that first. It also reports
 * itself which of cuDNN's other parts cannot be opened. */
static void half_a_cudnn_is_none(void **state) {
  (void)state;
  char error[TOOLKIT_ERROR];
  Toolkit *whole = toolkit_find(arena, NULL, error);
  if (!whole)
    skip();
  if (!toolkit_nvrtc(whole, error))
    fail_msg("%s", error);
  int version = whole->nvrtc_version;
  builtins = arena_printf(arena, "libnvrtc-builtins.so.%d.%d", version / 1000, version % 1000 / 10);
  link_to(whole, builtins);
  for (int i = 2; i < N_LIBRARIES; i++) {
    for (int k = 0; k < N_LIBRARIES; k++)
      link_to(whole, libraries[k]);
    put(libraries[i], NULL);
    Toolkit *toolkit = toolkit_find(arena, folder, error);
    assert_non_null(toolkit);
    assert_true(toolkit_cudnn(toolkit, error));
    assert_null(toolkit_device(toolkit, device_at(0), error));
    expect(error, "cannot open", libraries[i]);
  }
}

/* Takes the place of the C library's dlopen, for cuDNN as well as for ampcc, as that of a sanitizer
 * does. Notes the libraries that are opened by a bare name and are not open yet. */
static char searched[200];
void *dlopen(const char *name, int mode) {
  void *(*real)(const char *, int);
  void *next = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&real, &next, sizeof real); /* C has no cast from an object's to a function's pointer */
  bool ours = name && !strchr(name, '/') && !strstr(name, "libcuda.so"); /* the driver's is not */
  void *open = ours ? real(name, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (ours && !open && !searched[0])
    snprintf(searched, sizeof searched, "%s", name);
  if (open)
    dlclose(open);
  return real(name, mode);
}

/* Before cuDNN plans, every library that it opens by name is open already, from the folder of the
 * toolkit. So it does not matter where the dynamic linker would look. */
static void nothing_is_searched_for(void **state) {
  (void)state;
  char error[TOOLKIT_ERROR];
  PlanText plan;
  ConvOp op;
  Toolkit *toolkit = toolkit_find(arena, NULL, error);
  if (!toolkit)
    skip();
  assert_true(cuda_conv_key_parse("fprop f16 n8 h8 w8 c8 k8 r1 s1 u1,1 p0,0,0,0", &op));
  if (!plan_list(toolkit, NULL, arena, &op, device_at(0), &plan, 1, error))
    fail_msg("%s", error);
  if (searched[0])
    fail_msg("%s was searched for", searched);
}

int main(void) {
  /* nothing_is_searched_for comes first, because libraries stay open */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_searched_for), cmocka_unit_test(names_what_is_missing),
      cmocka_unit_test(says_what_cannot_be_opened), cmocka_unit_test(says_which_version_it_is_not),
      cmocka_unit_test(half_a_cudnn_is_none)};
  if (!mkdtemp(folder))
    return 3;
  arena = arena_new();
  mkdir(arena_printf(arena, "%s/lib64", folder), 0777);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  for (int i = 0; i < N_LIBRARIES; i++)
    unlink(path_of(libraries[i]));
  unlink(path_of(builtins));
  rmdir(arena_printf(arena, "%s/lib64", folder));
  rmdir(folder);
  arena_free(arena);
  return failed;
}
