/* How ampcc, ampcc-tf and ampcc-zoo end. Programs that ampcc makes have a table of their own
 * (runtime/amprt.h). */
#ifndef AMPCC_IR_BASE_EXIT_H
#define AMPCC_IR_BASE_EXIT_H

enum {
  EXIT_INPUT = 1,       /* the model, or a file that belongs to it, is wrong */
  EXIT_USAGE = 2,       /* the command line is wrong */
  EXIT_ENVIRONMENT = 3, /* the machine lacks something: a compiler, disk space, a library */
  EXIT_BUG = 70         /* a bug of ours */
};

#endif
