/* The text that generated code begins with: prelude*.h, one string per line, ended by NULL. */
#ifndef AMPCC_CODEGEN_CPU_PRELUDE_TEXT_H
#define AMPCC_CODEGEN_CPU_PRELUDE_TEXT_H

extern const char *const cpu_prelude[];

#endif
