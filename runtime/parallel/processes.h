/* --processes and --local-gpus: a program that starts its own ranks on this machine. It writes no
 * launcher: it runs the mpirun that is installed, passes signals on to the ranks, and ends with the
 * launcher's status. */
#ifndef AMPRT_PROCESSES_H
#define AMPRT_PROCESSES_H

#include "runtime/flags/options.h"

/* Runs this program again, argv included, as several ranks, if a flag asks for more than one.
 * *ran: the launcher has run and ended with *exit_status, and nothing is left to do. Otherwise this
 * process is to go on alone; where it is to run on a GPU, options->device says so. Fails with
 * AMPRT_USAGE if a launcher has started this process already, or if this machine has not that many
 * GPUs, and with AMPRT_ENV if no launcher is installed. */
AmprtStatus amprt_processes_run(AmprtOptions *options, const AmprtPart *part, int n_parts, int argc,
                                char **argv, bool *ran, int *exit_status, AmprtError *error);

#endif
