#include "runtime/parallel/mpi.h"

#include "runtime/system/system.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct MpiFile {
  AmprtMpiKind kind;
  const char *name;
} files[] = {
#define MPI_LIBRARY(kind, name) {AMPRT_MPI_##kind, name},
#include "runtime/parallel/mpi_abi.def"
};

enum { N_FILES = sizeof files / sizeof *files, VERSION_ROOM = 8192, WHY_ROOM = 300 };

/* Which ABI has the library that the user named? Open MPI alone has variables as handles; of the
 * others the file's own name tells, as their functions have the same names. */
static AmprtMpiKind kind_of(void *library, const char *file) {
  if (amprt_library_symbol(library, "ompi_mpi_comm_world"))
    return AMPRT_MPI_OMPI;
  char *path = realpath(file, NULL);
  const char *name = path ? path : file, *slash = strrchr(name, '/');
  AmprtMpiKind kind = strstr(slash ? slash + 1 : name, "mpi_abi") ? AMPRT_MPI_ABI : AMPRT_MPI_MPICH;
  free(path);
  return kind;
}

static bool open_file(AmprtMpi *mpi, const char *file, char why[WHY_ROOM]) {
  /* Open MPI's own plug-ins look for symbols of the library that opened them. */
  mpi->library = amprt_library_open(file, true, why, WHY_ROOM);
  if (mpi->library)
    snprintf(mpi->file, sizeof mpi->file, "%s", file);
  return mpi->library != NULL;
}

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:      4.0.2\n..." to name and number. */
static void shorten(char *to, size_t size, const char *version) {
  size_t n = 0;
  for (const char *c = version; *c && *c != ',' && *c != '\n' && n + 1 < size; c++) {
    bool blank = isspace((unsigned char)*c);
    if (!strncmp(c, " Version:", 9))
      c += 8;
    else if (*c == 'v' && n && to[n - 1] == ' ' && isdigit((unsigned char)c[1]))
      continue;
    else if (!(blank && n && to[n - 1] == ' '))
      to[n++] = blank ? ' ' : *c;
  }
  to[n] = 0;
}

AmprtStatus amprt_mpi_open(AmprtMpi *mpi, const char *file, AmprtMpiKind kind, AmprtError *error) {
  char why[WHY_ROOM];
  memset(mpi, 0, sizeof *mpi);
  if (!amprt_opens_libraries)
    return amprt_fail(error, AMPRT_ENV,
                      "this program cannot open an MPI library, as it is static (ampcc --static): "
                      "start its processes with torchrun, or make it without --static");
  if (*file) {
    if (!open_file(mpi, file, why))
      return amprt_fail(error, AMPRT_ENV, "--mpi-library: %s", why);
    mpi->kind = kind_of(mpi->library, file);
  }
  for (int others = 0; others < 2 && !mpi->library; others++)
    for (int i = 0; i < N_FILES && !mpi->library; i++)
      if ((files[i].kind != kind) == others && open_file(mpi, files[i].name, why))
        mpi->kind = files[i].kind;
  if (!mpi->library) {
    amprt_fail(error, AMPRT_ENV, "no MPI library was found; looked for");
    for (int i = 0; i < N_FILES; i++) {
      amprt_fail_more(error, i ? ", " : " ");
      amprt_fail_more(error, files[i].name);
    }
    amprt_fail_more(error, ": install one (Debian: libopenmpi3 or libmpich12), or name it by "
                           "--mpi-library=FILE");
    return AMPRT_ENV;
  }

  const char *missing = NULL;
  const void *symbol;
#define MPI_FUNCTION(name, parameters)                                                             \
  symbol = amprt_library_symbol(mpi->library, "MPI_" #name);                                       \
  if (!symbol)                                                                                     \
    missing = "MPI_" #name;                                                                        \
  memcpy(&mpi->name, &symbol, sizeof symbol);
#include "runtime/parallel/mpi_functions.def"
#define MPI_HANDLE(field, ompi, mpich, abi)                                                        \
  if (mpi->kind == AMPRT_MPI_OMPI &&                                                               \
      !(mpi->field = (intptr_t)amprt_library_symbol(mpi->library, ompi)))                          \
    missing = ompi;                                                                                \
  if (mpi->kind != AMPRT_MPI_OMPI)                                                                 \
    mpi->field = mpi->kind == AMPRT_MPI_MPICH ? (mpich) : (abi);
#define MPI_NUMBER(field, ompi, mpich, abi)                                                        \
  mpi->field = mpi->kind == AMPRT_MPI_OMPI    ? (ompi)                                             \
               : mpi->kind == AMPRT_MPI_MPICH ? (mpich)                                            \
                                              : (abi);
#include "runtime/parallel/mpi_abi.def"
  if (missing)
    return amprt_fail(error, AMPRT_ENV,
                      "%s has no %s: it is no MPI library that this program knows", mpi->file,
                      missing);
  char *version = calloc(1, VERSION_ROOM + 1);
  if (!version)
    return amprt_fail_memory(error, VERSION_ROOM, "the version of the MPI library");
  int length;
  mpi->Get_library_version(version, &length);
  shorten(mpi->version, sizeof mpi->version, version);
  free(version);
  return AMPRT_OK;
}

bool amprt_mpi_done(const AmprtMpi *mpi, const unsigned char *request) {
  return !memcmp(request, &mpi->request_null, (size_t)mpi->request_bytes); /* little-endian */
}

void amprt_mpi_clear(const AmprtMpi *mpi, unsigned char *request) {
  memcpy(request, &mpi->request_null, (size_t)mpi->request_bytes);
}
