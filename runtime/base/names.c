#include "runtime/base/names.h"

#define PORT(name, what, by) const char amprt_name_##name[] = #name;
#include "ir/ports.def"
