/* A library with the functions of MPI that are looked up, and nothing in them: built as
 * libfake_mpi_abi.so, so that its name says that it has the standard ABI. */
#include <stdint.h>
#include <string.h>

#define MPI_FUNCTION(name, parameters) int MPI_##name parameters;
#include "runtime/parallel/mpi_functions.def"

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  (void)argc, (void)argv;
  *provided = required;
  return 0;
}

int MPI_Get_library_version(char *version, int *length) {
  strcpy(version, "Fake  MPI v5.0.1, made for a test");
  *length = (int)strlen(version);
  return 0;
}

int MPI_Finalize(void) {
  return 1;
}

int MPI_Abort(intptr_t comm, int status) {
  return comm && status;
}

int MPI_Comm_rank(intptr_t comm, int *rank) {
  return comm && rank;
}

int MPI_Comm_size(intptr_t comm, int *size) {
  return comm && size;
}

int MPI_Isend(const void *data, int count, intptr_t type, int to, int tag, intptr_t comm,
              void *request) {
  return data && count && type && to && tag && comm && request;
}

int MPI_Irecv(void *data, int count, intptr_t type, int from, int tag, intptr_t comm,
              void *request) {
  return data && count && type && from && tag && comm && request;
}

int MPI_Testsome(int n, void *requests, int *completed, int *which, intptr_t statuses) {
  return n && requests && completed && which && statuses;
}
