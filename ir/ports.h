/* The names of ir/ports.def for the compiler: port_image is "image". */
#ifndef AMPCC_IR_PORTS_H
#define AMPCC_IR_PORTS_H

#define PORT(name, what, by) extern const char port_##name[];
#include "ir/ports.def"

typedef enum PortWhat { PORT_INPUT, PORT_OUTPUT, PORT_VARIABLE } PortWhat;
typedef enum PortBy {
  BY_MODEL,
  BY_EVAL_GRAPH,
  BY_MIX,
  BY_LOSS_SCALE,
  BY_ACCUMULATE,
  BY_OPTIMIZER,
  BY_ALL_REDUCE
} PortBy;

typedef struct PortInfo {
  const char *name;
  PortWhat what;
  PortBy by;
} PortInfo;

extern const PortInfo port_info[];
extern const int n_ports;

const PortInfo *port_find(const char *name); /* NULL if the table has no such name */

#endif
