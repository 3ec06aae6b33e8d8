/* Objects that the cache keeps (codegen/program/cache.h). The key of an object is what the compiler
 * sees of the text, that is the text behind its preprocessor; the command line; and which compiler
 * it is, in its own words (-v) and by the size and time of its executable and the assembler's.
 *
 * The file names of source and object are no part of the key. Compilers store the name of the
 * source in the object, as a local symbol, so an object from the cache may hold the name of some
 * other file. The linker removes local symbols from executables and objects that ampcc writes. */
#ifndef AMPCC_CODEGEN_PROGRAM_OBJECTS_H
#define AMPCC_CODEGEN_PROGRAM_OBJECTS_H

#include "codegen/program/build.h"
#include "codegen/program/cache.h"

typedef struct Object {
  Command *compile; /* makes the object */
  const char *text; /* path of what it compiles */
  Command probe;    /* makes the text behind the preprocessor; its log says which compiler it is */
  const char *rule; /* file in which the probe names the headers that it has read */
  int n_words;      /* of compile->argv, that name the compiler */
  const char *assembler;
  const char *shipped; /* CacheKey.shipped */
  bool is_known;       /* has a key */
  CacheKey key;
  int lock; /* of the entry, while it is made; or -1 */
} Object;

/* Fills in the files that the cache has (NULL: those that are shipped), whose commands become empty
 * (argv is NULL). Waits for those that another ampcc is making, and locks those that are missing.
 * `paths` is a list of folders that ends in NULL: their names are left out of the keys, because
 * they are others in each compile. */
void objects_find(Arena *arena, const char *cache, Object *object, int n, const char *const *paths,
                  bool verbose);
/* Puts the files that their commands have made into the cache, which may then take `most` bytes. */
void objects_keep(Arena *arena, const char *cache, const Object *object, int n, int64_t most);
/* Ends the locks, whether the files were made or not. */
void objects_unlock(const char *cache, Object *object, int n);

#endif
