#include "runtime/core/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;
static const struct {
  int signal;
  const char *name;
  int flags;
} watched[] = {{SIGINT, "SIGINT", (int)SA_RESETHAND | SA_RESTART},
               {SIGTERM, "SIGTERM", (int)SA_RESETHAND | SA_RESTART},
               {SIGHUP, "SIGHUP", SA_RESTART}};
enum { N_WATCHED = sizeof watched / sizeof *watched };
static struct sigaction before[N_WATCHED];

/* Handlers run on a stack of their own. In oneDNN's sgemm the stack pointer points to a block of
 * the heap for a while: what the kernel pushes for a handler would destroy the block below. */
static _Alignas(16) unsigned char stack[1 << 16];
static stack_t stack_before;

static void note(int signal) {
  came = signal;
}

void amprt_stop_listen(void) {
  came = 0;
  if (!sigaltstack(NULL, &stack_before) && stack_before.ss_flags & SS_DISABLE)
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  for (int i = 0; i < N_WATCHED; i++) {
    struct sigaction action = {.sa_handler = note, .sa_flags = watched[i].flags | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(watched[i].signal, NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      sigaction(watched[i].signal, &action, NULL);
  }
}

int amprt_stop_signal(void) {
  return came;
}

const char *amprt_stop_name(int signal) {
  for (int i = 0; i < N_WATCHED; i++)
    if (watched[i].signal == signal)
      return watched[i].name;
  return "a signal";
}

void amprt_stop_forget(void) {
  for (int i = 0; i < N_WATCHED; i++)
    sigaction(watched[i].signal, &before[i], NULL);
  if (stack_before.ss_flags & SS_DISABLE)
    sigaltstack(&stack_before, NULL);
}
