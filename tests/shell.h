/* Commands that run beside a test. */
#ifndef AMPCC_TESTS_SHELL_H
#define AMPCC_TESTS_SHELL_H

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* What shell_finish waits for; negative if there is no process to be had. */
static inline pid_t shell_begin(const char *command) {
  pid_t pid = fork();
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  return pid;
}

/* Did it end well? */
static inline bool shell_finish(pid_t pid) {
  int status;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

#endif
