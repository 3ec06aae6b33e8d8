/* Clocks, for reports of what took how long. */
#ifndef AMPCC_IR_BASE_CLOCK_H
#define AMPCC_IR_BASE_CLOCK_H

/* Seconds of a clock that nobody sets. */
double clock_seconds(void);
/* Seconds of processor time that this process has taken, to which other work of the machine adds
 * nothing. */
double clock_cpu_seconds(void);

#endif
