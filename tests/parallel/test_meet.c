/* test_meet PYTHON PORTS: processes that meet by TCP, and the watchdog. Each rank is a process of
 * its own. PORTS is tests/ports.py. */
#include "runtime/base/clock.h"
#include "runtime/parallel/rendezvous.h"
#include "tests/parallel/unit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- children ---- */

typedef struct Child {
  pid_t pid;
  int pipe;
} Child;

static void nap(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

/* Ends the child with this status and text. */
static void say(int status, const char *text) {
  ssize_t n = write(2, text, strlen(text));
  _exit(n < 0 ? 9 : status);
}

static Child begin(void (*body)(int rank, const void *arg), int rank, const void *arg) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  Child child = {fork(), ends[0]};
  assert_true(child.pid >= 0);
  if (!child.pid) {
    alarm(20); /* no test hangs */
    dup2(ends[1], 2);
    close(ends[0]), close(ends[1]);
    body(rank, arg);
    _exit(0);
  }
  close(ends[1]);
  return child;
}

/* The child must end with this status and have said this. */
static void expect(Child child, int status, const char *says) {
  char text[4096] = "";
  int got;
  size_t at = 0;
  for (ssize_t n;
       at + 1 < sizeof text && (n = read(child.pipe, text + at, sizeof text - 1 - at)) > 0;)
    at += (size_t)n;
  close(child.pipe);
  assert_int_equal(waitpid(child.pid, &got, 0), child.pid);
  if (!WIFEXITED(got) || WEXITSTATUS(got) != status || !strstr(text, says))
    fail_msg("status %x, wanted %d and `%s`: %s", (unsigned)got, status, says, text);
}

/* ---- meeting ---- */

typedef struct Meeting {
  int size, skip;
  uint64_t job;
  double seconds;
  char port[16];
} Meeting;

static char ports[2048]; /* the command that prints a free port */

/* At a port that is free, and so are some behind it, for all we know. */
static Meeting meeting(int size, double seconds) {
  Meeting m = {.size = size, .seconds = seconds};
  FILE *said = popen(ports, "r");
  assert_non_null(said);
  assert_int_equal(fscanf(said, "%15[0-9]", m.port), 1);
  assert_int_equal(pclose(said), 0);
  return m;
}

/* Meets, and gathers something small and something large. */
static void meet(int rank, const void *arg) {
  const Meeting *m = arg;
  AmprtStar *star;
  AmprtError error;
  AmprtWatchdog *watchdog;
  AmprtStarWhere where = {"localhost", m->port, m->skip, m->job};
  if (amprt_watchdog_open(&watchdog, rank, m->size, 60, &error) ||
      amprt_star_open(&star, where, rank, m->size, m->seconds, &error))
    say(3, error.text);
  for (size_t n = 1; n <= 1 << 20; n <<= 10) {
    unsigned char *mine = malloc(n), *all = malloc(n * (size_t)m->size);
    memset(mine, rank + 1, n);
    if (amprt_star_gather(star, mine, all, n, watchdog, &error))
      say(3, error.text);
    for (size_t i = 0; i < n * (size_t)m->size; i++)
      if (all[i] != i / n + 1)
        say(1, "wrong bytes");
    free(mine), free(all);
  }
  int gone;
  if (m->size == 3 && rank == 2)
    say(7, "ends without a word");
  nap(0.3);
  if (m->size == 3 && (!amprt_star_broken(star, &gone) || gone != 2) && !rank)
    say(1, "does not see that rank 2 has ended");
  unsigned char byte = 0, bytes[64];
  if (m->size == 3 && amprt_star_gather(star, &byte, bytes, 1, watchdog, &error))
    say(3, error.text);
  amprt_star_close(star);
  amprt_watchdog_close(watchdog);
}

static void test_all_come(void **state) {
  (void)state;
  Meeting m = meeting(6, 10);
  Child child[6];
  for (int i = 0; i < 6; i++)
    child[(i + 3) % 6] = begin(meet, (i + 3) % 6, &m); /* rank 0 is neither first nor last */
  for (int i = 0; i < 6; i++)
    expect(child[i], 0, "");
}

static void test_one_leaves(void **state) {
  (void)state;
  Meeting m = meeting(3, 10);
  Child child[3];
  for (int i = 0; i < 3; i++)
    child[i] = begin(meet, i, &m);
  expect(child[2], 7, "");
  expect(child[0], 3, "the connection to rank 2 is lost");
  expect(child[1], 3, "the connection to rank 0 is lost"); /* which has ended for that reason */
}

static void test_some_do_not_come(void **state) {
  (void)state;
  Meeting m = meeting(5, 0.7), other = m;
  other.job = 1; /* another job's process does not count */
  other.seconds = 0.5;
  Child zero = begin(meet, 0, &m), two = begin(meet, 2, &m), stranger = begin(meet, 1, &other);
  expect(zero, 3, "ranks 1, 3 and 4 of 5 have not come to localhost:");
  expect(two, 3, "the connection to rank 0 is lost");
  expect(stranger, 3, "rank 0 was not found at MASTER_ADDR=localhost");
}

static void test_twice_and_other_size(void **state) {
  (void)state;
  Meeting m = meeting(4, 1.5), other = m;
  other.size = 6;
  Child zero = begin(meet, 0, &m);
  nap(0.3);
  Child one = begin(meet, 1, &m);
  nap(0.3);
  Child again = begin(meet, 1, &m), sixth = begin(meet, 5, &other);
  expect(again, 3, "two processes say that they are rank 1 of 4");
  expect(sixth, 3, "this process is rank 5 of 6, but rank 0 at localhost:");
  expect(zero, 3, "ranks 2 and 3 of 4 have not come");
  expect(one, 3, "the connection to rank 0 is lost");
}

/* A socket that listens at the first port. */
static int take_port(const Meeting *m) {
  int door = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(m->port))};
  assert_int_equal(bind(door, (struct sockaddr *)&a, sizeof a), 0);
  assert_int_equal(listen(door, 9), 0);
  return door;
}

/* Whoever knocks and says nothing, or something else, keeps nobody from meeting; nor does a program
 * that has the first port. */
static void test_strangers(void **state) {
  (void)state;
  Meeting m = meeting(2, 10);
  int taken = take_port(&m);
  struct sockaddr_in a = {.sin_family = AF_INET};
  Child zero = begin(meet, 0, &m);
  nap(0.3);
  a.sin_port = htons((uint16_t)(atoi(m.port) + 1));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int quiet = socket(AF_INET, SOCK_STREAM, 0), loud = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(quiet, (struct sockaddr *)&a, sizeof a), 0);
  assert_int_equal(connect(loud, (struct sockaddr *)&a, sizeof a), 0);
  assert_true(send(loud, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35, MSG_NOSIGNAL) > 0);
  Child one = begin(meet, 1, &m);
  expect(one, 0, "");
  expect(zero, 0, "");
  close(taken), close(quiet), close(loud);
}

/* Two jobs of one machine whose ports are neighbours do not mix. */
static void test_neighbours(void **state) {
  (void)state;
  Meeting m = meeting(2, 10), other = m;
  snprintf(other.port, sizeof other.port, "%d", atoi(m.port) + 1);
  Child other_zero = begin(meet, 0, &other);
  nap(0.3);
  Child one = begin(meet, 1, &m); /* nobody but the other job's rank 0 is there */
  nap(0.3);
  Child zero = begin(meet, 0, &m), other_one = begin(meet, 1, &other);
  expect(one, 0, "");
  expect(zero, 0, "");
  expect(other_one, 0, "");
  expect(other_zero, 0, "");
}

/* Sends back what it hears, as a connection of a process to itself does. */
static void echo(int door, const void *arg) {
  (void)arg;
  for (;;) {
    char text[256];
    int fd = accept(door, NULL, NULL);
    ssize_t n = recv(fd, text, sizeof text, 0);
    if (n > 0)
      n = send(fd, text, (size_t)n, MSG_NOSIGNAL);
    close(fd);
  }
}

static void test_echo(void **state) {
  (void)state;
  Meeting m = meeting(2, 10);
  int door = take_port(&m);
  Child itself = begin(echo, door, NULL), one = begin(meet, 1, &m);
  nap(0.3);
  Child zero = begin(meet, 0, &m);
  expect(one, 0, "");
  expect(zero, 0, "");
  kill(itself.pid, SIGKILL);
  assert_int_equal(waitpid(itself.pid, NULL, 0), itself.pid);
  close(itself.pipe), close(door);
}

/* ---- the watchdog ---- */

static void test_names(void **state) {
  (void)state;
  char text[160];
  const int rank[] = {5, 6, 9, 10, 11, 12, 13, 14, 15, 16};
  const struct {
    int n;
    const char *want;
  } cases[] = {{1, "rank 5"},
               {2, "ranks 5 and 6"},
               {3, "ranks 5, 6 and 9"},
               {8, "ranks 5, 6, 9, 10, 11, 12, 13 and 14"},
               {10, "ranks 5, 6, 9, 10, 11, 12, 13, 14 and 2 more"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    amprt_ranks_text(text, sizeof text, rank, cases[i].n);
    assert_string_equal(text, cases[i].want);
  }
}

static AmprtWatchdog *watchdog_of(int rank, double warn) {
  AmprtWatchdog *w;
  AmprtError error;
  if (amprt_watchdog_open(&w, rank, 4, warn, &error))
    say(9, error.text);
  return w;
}

static void hang(int rank, const void *arg) {
  AmprtWatchdog *w = watchdog_of(rank, 0.2);
  const int missing[] = {2, 3};
  (void)arg;
  amprt_watchdog_begin(w, "step 412", 0);
  amprt_watchdog_begin(w, "bucket 3", 0.8);
  amprt_watchdog_missing(w, missing, 2, rank == 1);
  nap(15);
}

static void wait_in_turns(int rank, const void *arg) {
  AmprtWatchdog *w = watchdog_of(rank, 60);
  (void)arg;
  for (int i = 0; i < 5; i++) { /* none of these is too long, all together are */
    amprt_watchdog_begin(w, "an exchange", 0.8);
    nap(0.3);
    amprt_watchdog_end(w);
  }
  amprt_watchdog_begin(w, "an exchange", 0); /* for ever */
  nap(0.5);
  amprt_watchdog_end(w);
  amprt_watchdog_close(w);
  say(0, "well");
}

static void test_watchdog(void **state) {
  (void)state;
  Child warned = begin(hang, 0, NULL), behind = begin(hang, 1, NULL);
  Child well = begin(wait_in_turns, 0, NULL);
  expect(warned, 3,
         "rank 0 of 4: warning: step 412, bucket 3 has waited 0 s for ranks 2 and 3\n"
         "rank 0 of 4: error: step 412, bucket 3 has waited 1 s for ranks 2 and 3\n");
  expect(behind, 3, "waited 1 s for ranks 2 and 3, or one that they wait for\n");
  expect(well, 0, "well");
}

/* A job that is suspended as a whole goes on afterwards. The limit is shorter than the time it
 * stands still and far above the 0.8 s that it runs: a loaded machine must not reach it. */
static volatile sig_atomic_t continued;

static void on_continue(int signal) {
  (void)signal;
  continued = 1;
}

static void suspended(int rank, const void *arg) {
  AmprtWatchdog *w = watchdog_of(rank, 60);
  (void)arg;
  amprt_watchdog_begin(w, "an exchange", 4);
  while (!continued)
    nap(0.1);
  nap(0.5); /* the watchdog looks several times at how long the wait has lasted */
  amprt_watchdog_end(w);
  say(0, "well");
}

static void test_suspended(void **state) {
  (void)state;
  signal(SIGCONT, on_continue); /* the child's from its first moment */
  Child child = begin(suspended, 0, NULL);
  nap(0.3);
  kill(child.pid, SIGSTOP);
  nap(4.5);
  kill(child.pid, SIGCONT);
  expect(child, 0, "well");
  signal(SIGCONT, SIG_DFL);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fputs("usage: test_meet PYTHON PORTS\n", stderr);
    return 2;
  }
  snprintf(ports, sizeof ports, "'%s' '%s'", argv[1], argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_come),         cmocka_unit_test(test_one_leaves),
      cmocka_unit_test(test_some_do_not_come), cmocka_unit_test(test_twice_and_other_size),
      cmocka_unit_test(test_strangers),        cmocka_unit_test(test_names),
      cmocka_unit_test(test_neighbours),       cmocka_unit_test(test_echo),
      cmocka_unit_test(test_watchdog),         cmocka_unit_test(test_suspended),
  };
  signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
