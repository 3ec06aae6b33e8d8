/* What the variables of launchers say, and which library is opened. */
#include "runtime/parallel/launch.h"
#include "tests/parallel/unit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void forget_all(void) {
  static const char *const names[] = {
#define LAUNCHER(name, size, rank, besides, meeting, library, instead) size, rank, besides,
#include "runtime/parallel/launchers.def"
      "MASTER_ADDR", "MASTER_PORT"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (*names[i])
      unsetenv(names[i]);
}

/* Sets the variables of "A=1 B=2". */
static void set_all(const char *list) {
  char copy[512], *rest = NULL;
  snprintf(copy, sizeof copy, "%s", list);
  for (char *one = strtok_r(copy, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(one, '=');
    *value++ = 0;
    setenv(one, value, 1);
  }
}

static void test_launchers(void **state) {
  (void)state;
  static const struct {
    const char *variables, *launcher; /* NULL: alone */
    int rank, size;
    AmprtMeeting meeting;
    AmprtMpiKind library;
  } cases[] = {
      {"", NULL, 0, 1, AMPRT_MEET_MPI, AMPRT_MPI_OMPI},
      {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=2", "mpirun of Open MPI", 2, 4, AMPRT_MEET_MPI,
       AMPRT_MPI_OMPI},
      {"OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0", NULL, 0, 1, AMPRT_MEET_MPI, AMPRT_MPI_OMPI},
      {"PMI_SIZE=3 PMI_RANK=0", "mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2", 0, 3,
       AMPRT_MEET_MPI, AMPRT_MPI_MPICH},
      {"MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=1", "mpirun of MVAPICH", 1, 2, AMPRT_MEET_MPI,
       AMPRT_MPI_MPICH},
      {"WORLD_SIZE=8 RANK=7 MASTER_ADDR=a MASTER_PORT=1", "torchrun", 7, 8, AMPRT_MEET_TCP,
       AMPRT_MPI_OMPI},
      {"WORLD_SIZE=8", NULL, 0, 1, AMPRT_MEET_MPI, AMPRT_MPI_OMPI}, /* somebody else's variable */
      {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 PMIX_RANK=1", "srun --mpi=pmix", 1, 2, AMPRT_MEET_MPI,
       AMPRT_MPI_OMPI},
      {"SLURM_NTASKS=8 SLURM_PROCID=0", NULL, 0, 1, AMPRT_MEET_MPI,
       AMPRT_MPI_OMPI}, /* a batch script */
      /* mpirun within a step of srun, and torchrun on each node of one: the inner one counts */
      {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3",
       "mpirun of Open MPI", 3, 4, AMPRT_MEET_MPI, AMPRT_MPI_OMPI},
      {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 WORLD_SIZE=4 RANK=3 MASTER_ADDR=a MASTER_PORT=1",
       "torchrun", 3, 4, AMPRT_MEET_TCP, AMPRT_MPI_OMPI},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtLaunch launch;
    AmprtError error;
    forget_all();
    set_all(cases[i].variables);
    assert_int_equal(amprt_launch_read(&launch, &error), AMPRT_OK);
    assert_int_equal(launch.rank, cases[i].rank);
    assert_int_equal(launch.size, cases[i].size);
    assert_int_equal(!launch.launcher, !cases[i].launcher);
    if (launch.launcher) {
      assert_string_equal(launch.launcher->name, cases[i].launcher);
      assert_int_equal(launch.launcher->meeting, cases[i].meeting);
      assert_int_equal(launch.launcher->library, cases[i].library);
    }
  }
  forget_all();
}

static void test_bad_variables(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"PMI_SIZE=two PMI_RANK=0", "PMI_SIZE is two: a number from 1 to 1048576 was expected"},
      {"PMI_SIZE=0 PMI_RANK=0", "PMI_SIZE is 0: "},
      {"PMI_SIZE=4 PMI_RANK=4", "PMI_RANK is 4: a number from 0 to 3 was expected"},
      {"PMI_SIZE=4 PMI_RANK=", "PMI_RANK is empty: "},
      {"WORLD_SIZE=2 RANK=0 MASTER_PORT=1", "WORLD_SIZE is 2, but MASTER_ADDR is not set"},
      {"WORLD_SIZE=2 RANK=0 MASTER_ADDR=a", "WORLD_SIZE is 2, but MASTER_PORT is not set"},
      {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1",
       "srun without --mpi has started 2 processes (SLURM_STEP_NUM_TASKS), which cannot find each "
       "other: use srun --mpi=pmix"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtLaunch launch;
    AmprtError error;
    forget_all();
    set_all(cases[i][0]);
    assert_int_equal(amprt_launch_read(&launch, &error), AMPRT_ENV);
    assert_non_null(strstr(error.text, cases[i][1]));
  }
  forget_all();
}

/* The library of the standard ABI that fake_mpi.c makes, and what its table of constants is. */
static const char *fake;

static void test_standard_abi(void **state) {
  (void)state;
  AmprtMpi mpi;
  AmprtError error;
  assert_int_equal(amprt_mpi_open(&mpi, fake, AMPRT_MPI_OMPI, &error), AMPRT_OK);
  assert_int_equal(mpi.kind, AMPRT_MPI_ABI);
  assert_string_equal(mpi.version, "Fake MPI 5.0.1");
  assert_int_equal(mpi.comm_world, 0x101);
  assert_int_equal(mpi.request_bytes, 8);
  assert_int_equal(mpi.thread_funneled, 1024);
  int level = 0;
  assert_int_equal(mpi.Init_thread(NULL, NULL, (int)mpi.thread_funneled, &level), 0);
  assert_int_equal(level, 1024);
  unsigned char requests[16];
  amprt_mpi_clear(&mpi, amprt_mpi_request(&mpi, requests, 1));
  assert_true(amprt_mpi_done(&mpi, requests + 8));
  requests[8] ^= 1;
  assert_false(amprt_mpi_done(&mpi, requests + 8));
}

/* Those that are installed are opened, and the one that the launcher belongs to comes first. */
static void test_libraries(void **state) {
  (void)state;
  static const struct {
    const char *file, *version;
    AmprtMpiKind kind;
  } cases[] = {{"libmpi.so.40", "Open MPI ", AMPRT_MPI_OMPI},
               {"libmpich.so.12", "MPICH ", AMPRT_MPI_MPICH}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    AmprtMpi mpi;
    AmprtError error;
    if (!dlopen(cases[i].file, RTLD_NOW | RTLD_GLOBAL)) {
      print_message("without %s: not installed\n", cases[i].file);
      continue;
    }
    for (int named = 0; named < 2; named++) {
      assert_int_equal(amprt_mpi_open(&mpi, named ? cases[i].file : "", cases[i].kind, &error), 0);
      assert_int_equal(mpi.kind, cases[i].kind);
      size_t n = strlen(cases[i].version);
      assert_memory_equal(mpi.version, cases[i].version, n);
      assert_true(mpi.version[n] >= '0' && mpi.version[n] <= '9');
    }
  }
}

static void test_no_library(void **state) {
  (void)state;
  AmprtMpi mpi;
  AmprtError error;
  assert_int_equal(amprt_mpi_open(&mpi, "/nowhere/libmpi.so", AMPRT_MPI_OMPI, &error), AMPRT_ENV);
  assert_non_null(strstr(error.text, "--mpi-library: /nowhere/libmpi.so"));
  assert_int_equal(amprt_mpi_open(&mpi, "libm.so.6", AMPRT_MPI_OMPI, &error), AMPRT_ENV);
  assert_non_null(strstr(error.text, "libm.so.6 has no MPI_"));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_launchers),    cmocka_unit_test(test_bad_variables),
      cmocka_unit_test(test_standard_abi), cmocka_unit_test(test_libraries),
      cmocka_unit_test(test_no_library),
  };
  fake = argc > 1 ? argv[1] : "";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
