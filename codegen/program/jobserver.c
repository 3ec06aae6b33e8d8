#include "codegen/program/jobserver.h"

#include "ir/base/list.h"
#include "ir/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What follows `=` in the last word of $MAKEFLAGS that names a jobserver, or NULL. make before 4.2
 * calls it --jobserver-fds. */
static const char *find_auth(Arena *arena) {
  static const char *const flag[] = {"--jobserver-auth=", "--jobserver-fds="};
  const char *flags = getenv("MAKEFLAGS"), *word, *auth = NULL;
  while ((word = list_word(arena, &flags, ' ')) != NULL)
    for (int i = 0; i < 2; i++)
      if (!strncmp(word, flag[i], strlen(flag[i])))
        auth = word + strlen(flag[i]);
  return auth;
}

/* Opens a pipe that was inherited once more: whether reading blocks is then our own matter. */
static int open_again(Arena *arena, int fd) {
  return open(arena_printf(arena, "/proc/self/fd/%d", fd), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void say_closed(const char *auth) {
  static bool said;
  if (!said)
    text_say("ampcc: the jobserver that MAKEFLAGS names (%s) is not open to this command: one job "
             "at a time. A rule of make that begins with + passes it on.\n",
             auth);
  said = true;
}

bool jobserver_open(Arena *arena, Jobserver *out) {
  const char *auth = find_auth(arena);
  int read_end, write_end, end = 0;
  *out = (Jobserver){.read = -1, .write = -1};
  if (!auth)
    return true;
  if (!strncmp(auth, "fifo:", 5)) {
    out->read = open(auth + 5, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    out->write = open(auth + 5, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  } else if (sscanf(auth, "%d,%d%n", &read_end, &write_end, &end) == 2 && !auth[end]) {
    if (read_end < 0 || write_end < 0)
      return true; /* make says in this way that there is none */
    out->read = open_again(arena, read_end);
    out->write = fcntl(write_end, F_DUPFD_CLOEXEC, 3);
  }
  out->present = out->read >= 0 && out->write >= 0;
  if (!out->present) {
    say_closed(auth);
    jobserver_close(out);
  }
  return out->present;
}

bool jobserver_make(Arena *arena, int jobs, Jobserver *out) {
  const char *flags = getenv("MAKEFLAGS");
  int end[2];
  if (pipe(end) != 0) {
    text_say("ampcc: cannot make a pipe: %s\n", strerror(errno));
    return false;
  }
  char *token = arena_alloc(arena, (size_t)jobs);
  memset(token, '+', (size_t)jobs);
  /* Every pipe of Linux holds 64 KiB, or one page where a user has very many of them. */
  bool full = fcntl(end[1], F_SETFL, O_NONBLOCK) == 0 &&
              write(end[1], token, (size_t)jobs - 1) == jobs - 1 && fcntl(end[1], F_SETFL, 0) == 0;
  if (!full)
    text_say("ampcc: cannot fill a pipe with %d tokens\n", jobs - 1);
  setenv("MAKEFLAGS",
         arena_printf(arena, "%s --jobserver-auth=%d,%d", flags ? flags : "", end[0], end[1]), 1);
  return full && jobserver_open(arena, out);
}

bool jobserver_take(Arena *arena, Jobserver *server) {
  char token;
  ssize_t n;
  do
    n = read(server->read, &token, 1);
  while (n < 0 && errno == EINTR);
  if (n == 1)
    arena_push(arena, server->token, server->n, server->cap, token);
  return n == 1;
}

void jobserver_give(Jobserver *server, int keep) {
  while (server->n > keep) {
    if (write(server->write, &server->token[server->n - 1], 1) < 0 && errno == EINTR)
      continue;
    server->n--;
  }
}

void jobserver_close(Jobserver *server) {
  if (server->read >= 0)
    close(server->read);
  if (server->write >= 0)
    close(server->write);
  server->present = false;
}
