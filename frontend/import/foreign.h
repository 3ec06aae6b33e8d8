/* Tells by a file's first bytes which format of models or graphs it is in, so that a file for the
 * other program, one that must be converted first, or one that neither program can use, gets a
 * message that says so. */
#ifndef AMPCC_FRONTEND_IMPORT_FOREIGN_H
#define AMPCC_FRONTEND_IMPORT_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

typedef enum FileKind {
  FILE_UNKNOWN,
  FILE_MODELDEF,     /* for ampcc                             */
  FILE_GRAPHDEF,     /* for ampcc-tf                          */
  FILE_METAGRAPHDEF, /* a file of TensorFlow's with a GraphDef */
  FILE_SAVEDMODEL,   /* likewise                              */
  FILE_ONNX          /* for neither                           */
} FileKind;

/* `text` says that the file is in protobuf's text form, not the binary one. `bytes[size]` is NUL.
 */
FileKind file_kind(bool text, const char *bytes, size_t size);
/* A message that says what a file is that neither program reads and, if it holds a GraphDef, how to
 * extract that. NULL for other files. */
const char *file_advice(FileKind kind);

#endif
