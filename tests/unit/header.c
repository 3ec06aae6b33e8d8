/* Every public header compiles alone: meson defines HEADER for each. */
#include HEADER

/* a file must hold something */
extern int header_compiles_alone;
