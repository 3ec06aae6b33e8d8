#include "runtime/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;
static struct sigaction before[2];
static const int watched[2] = {SIGINT, SIGTERM};

static void note(int signal) {
  came = signal;
}

void amprt_stop_listen(void) {
  struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  came = 0;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; i++)
    sigaction(watched[i], &action, &before[i]);
}

int amprt_stop_signal(void) {
  return came;
}

void amprt_stop_forget(void) {
  for (int i = 0; i < 2; i++)
    sigaction(watched[i], &before[i], NULL);
}
