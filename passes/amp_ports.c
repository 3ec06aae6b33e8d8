#include "passes/amp.h"

const AmpPorts amp_ports[OP_COUNT] = {
#define AMP_PORTS(id, operands, results, selects) [OP_##id] = {operands, results, selects},
#include "passes/amp_ports.def"
};

static AmpPort port(const char *letters, int i) {
  for (; i > 0 && letters[1] != '*'; i--)
    letters++;
  return (AmpPort)letters[0];
}

AmpPort amp_operand(OpKind op, int i) {
  return port(amp_ports[op].operands, i);
}

AmpPort amp_result(OpKind op, int i) {
  return port(amp_ports[op].results, i);
}
