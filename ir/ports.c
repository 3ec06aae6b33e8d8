#include "ir/ports.h"

#include <stddef.h>
#include <string.h>

#define PORT(name, what, by) const char port_##name[] = #name;
#include "ir/ports.def"

const PortInfo port_info[] = {
#define PORT(name, what, by) {port_##name, PORT_##what, BY_##by},
#include "ir/ports.def"
};
const int n_ports = (int)(sizeof port_info / sizeof *port_info);

const PortInfo *port_find(const char *name) {
  for (int p = 0; p < n_ports; p++)
    if (strcmp(port_info[p].name, name) == 0)
      return &port_info[p];
  return NULL;
}
