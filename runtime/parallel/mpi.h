/* libmpi without its header, opened when the program starts: one program runs on Open MPI 3 to 5,
 * on MPICH and its relatives, and on whatever has the standard ABI of MPI 5.0. */
#ifndef AMPRT_MPI_H
#define AMPRT_MPI_H

#include "runtime/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum AmprtMpiKind { AMPRT_MPI_OMPI, AMPRT_MPI_MPICH, AMPRT_MPI_ABI } AmprtMpiKind;

typedef struct AmprtMpi {
  void *library;
  char file[256];   /* as it was found, for messages */
  char version[96]; /* "Open MPI 4.1.4" */
  AmprtMpiKind kind;
#define MPI_HANDLE(field, ompi, mpich, abi) intptr_t field;
#define MPI_NUMBER(field, ompi, mpich, abi) intptr_t field;
#include "runtime/parallel/mpi_abi.def"
#define MPI_FUNCTION(name, parameters) int(*name) parameters;
#include "runtime/parallel/mpi_functions.def"
} AmprtMpi;

/* Opens `file`; if that is "", the first library found, those of `kind` before the others. Nothing
 * of MPI is started. AMPRT_ENV: there is none, or it lacks something. */
AmprtStatus amprt_mpi_open(AmprtMpi *mpi, const char *file, AmprtMpiKind kind, AmprtError *error);

/* Requests lie side by side as the library wants them. */
static inline unsigned char *amprt_mpi_request(const AmprtMpi *mpi, unsigned char *requests,
                                               int i) {
  return requests + (size_t)i * (size_t)mpi->request_bytes;
}

/* Is nothing asked for (any more) by this request? */
bool amprt_mpi_done(const AmprtMpi *mpi, const unsigned char *request);
void amprt_mpi_clear(const AmprtMpi *mpi, unsigned char *request);

#endif
