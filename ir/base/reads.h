/* The files that this process has read and that its output depends on, for depfiles (-MD). */
#ifndef AMPCC_IR_BASE_READS_H
#define AMPCC_IR_BASE_READS_H

/* Adds a file; one that is known already is not added again. */
void reads_add(const char *path);
/* The paths in the order of their bytes, ended by NULL. Valid until the next reads_add. */
const char *const *reads_list(void);

#endif
