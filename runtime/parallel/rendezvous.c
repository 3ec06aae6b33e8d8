#include "runtime/parallel/rendezvous.h"

#include "runtime/base/clock.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS = 16, MOST_STRANGERS = 64, MOST_ADDRESSES = 16 };

/* What a process says when it comes, and what rank 0 answers. */
typedef struct Hello {
  char magic[8];
  uint64_t job;
  int32_t rank, size;
} Hello;
typedef enum Verdict { WELCOME, OTHER_SIZE, TWICE } Verdict;
typedef struct Answer {
  char magic[8];
  int32_t verdict, size;
} Answer;
/* They begin with different words, as a process that comes to an unused port of its own machine may
 * get that port itself and be connected to itself, and then hears what it says. */
static const char magic[8] = "ampcc 2", answer_magic[8] = "AMPCC 2";

struct AmprtStar {
  int rank, size;
  int *fd;       /* [size]; -1: not connected. Rank 0 has all others, they have fd[0]. */
  uint64_t turn; /* gathers so far */
  int *missing;  /* room for ranks */
  size_t *at;    /* bytes that have been moved from or to each */
  struct pollfd *poll;
};

static bool set_options(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static int milliseconds_until(double end) {
  double left = (end - amprt_seconds()) * 1e3;
  return left <= 0 ? 0 : left > 1e6 ? 1000000 : (int)left + 1;
}

/* Moves all of it, in time. */
static bool move_all(int fd, void *data, size_t n, bool out, double end) {
  for (size_t at = 0; at < n;) {
    struct pollfd wait = {.fd = fd, .events = out ? POLLOUT : POLLIN};
    int timeout = milliseconds_until(end);
    if (!timeout || poll(&wait, 1, timeout) <= 0)
      return false;
    char *p = (char *)data + at;
    ssize_t k = out ? send(fd, p, n - at, MSG_NOSIGNAL) : recv(fd, p, n - at, 0);
    if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
      return false;
    at += k > 0 ? (size_t)k : 0;
  }
  return true;
}

static uint64_t add_to_hash(uint64_t hash, const char *text) {
  for (; text && *text; text++)
    hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;
}

AmprtStarWhere amprt_star_where(const char *host, const char *port) {
  const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
  uint64_t job = 0xcbf29ce484222325u;
  job = add_to_hash(job, getenv("TORCHELASTIC_RUN_ID"));
  job = add_to_hash(job, getenv("TORCHELASTIC_RESTART_COUNT"));
  /* Then torchrun itself listens at MASTER_PORT. */
  return (AmprtStarWhere){host, port, agent && !strcmp(agent, "True"), job};
}

static bool port_of(const char *text, int add, char out[16]) {
  char *end;
  long n = strtol(text, &end, 10);
  if (end == text || *end || n < 1 || n > 65535 - add)
    return false;
  snprintf(out, 16, "%d", (int)n + add);
  return true;
}

/* ---- rank 0 ---- */

static int listen_as(const struct sockaddr *at, socklen_t bytes, int size, int *failed) {
  int fd = socket(at->sa_family, SOCK_STREAM, 0), on = 1, off = 0;
  if (fd < 0)
    return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (!bind(fd, at, bytes) && !listen(fd, size) && set_options(fd))
    return fd;
  *failed = errno;
  close(fd);
  return -1;
}

static int listen_at(const char *port, int size, int *failed) {
  in_port_t number = htons((in_port_t)strtol(port, NULL, 10));
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = number};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = number};
  /* A socket of IPv6 hears IPv4 too; it is tried first. */
  int fd = listen_as((const struct sockaddr *)&six, sizeof six, size, failed);
  return fd >= 0 ? fd : listen_as((const struct sockaddr *)&four, sizeof four, size, failed);
}

/* Somebody who has connected and not yet said all. */
typedef struct Stranger {
  int fd;
  size_t have;
  Hello hello;
} Stranger;

static bool has_hung_up(int fd) {
  char byte;
  ssize_t k = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR);
}

/* Reads what has come. Returns false when the stranger is to be forgotten: he has become a peer,
 * or is none of us. */
static bool hear(AmprtStar *s, Stranger *who, uint64_t job, int *n_here) {
  ssize_t k = recv(who->fd, (char *)&who->hello + who->have, sizeof who->hello - who->have, 0);
  if (k < 0 && (errno == EAGAIN || errno == EINTR))
    return true;
  who->have += k > 0 ? (size_t)k : 0;
  if (k > 0 && who->have < sizeof who->hello)
    return true;
  const Hello *h = &who->hello;
  if (k > 0 && !memcmp(h->magic, magic, sizeof magic) && h->job == job) {
    Answer answer = {.verdict = WELCOME, .size = s->size};
    memcpy(answer.magic, answer_magic, sizeof answer_magic);
    if (h->size != s->size || h->rank < 1 || h->rank >= s->size) {
      answer.verdict = OTHER_SIZE;
    } else if (s->fd[h->rank] >= 0) {
      if (has_hung_up(s->fd[h->rank])) { /* he did not wait for an answer, and has come again */
        close(s->fd[h->rank]);
        s->fd[h->rank] = -1, --*n_here;
      } else {
        answer.verdict = TWICE;
      }
    }
    if (send(who->fd, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer &&
        answer.verdict == WELCOME) {
      s->fd[h->rank] = who->fd, ++*n_here;
      return false;
    }
  }
  close(who->fd);
  return false;
}

static AmprtStatus serve(AmprtStar *s, AmprtStarWhere where, double seconds, AmprtError *error) {
  double end = amprt_seconds() + seconds;
  int door = -1, failed = 0;
  char port[16];
  for (int i = where.skip; i < PORTS && door < 0 && port_of(where.port, i, port); i++)
    door = listen_at(port, s->size, &failed);
  if (door < 0)
    return amprt_fail(error, AMPRT_ENV,
                      "rank 0 cannot listen at MASTER_PORT=%s nor at the ports behind it%s%s",
                      where.port, failed ? ": " : "", failed ? strerror(failed) : "");
  Stranger stranger[MOST_STRANGERS];
  int n_strangers = 0, n_here = 1;
  while (n_here < s->size) {
    struct pollfd wait[MOST_STRANGERS + 1];
    /* When the hall is full, those in it must speak before more are let in. */
    wait[0] = (struct pollfd){.fd = n_strangers < MOST_STRANGERS ? door : -1, .events = POLLIN};
    for (int i = 0; i < n_strangers; i++)
      wait[i + 1] = (struct pollfd){.fd = stranger[i].fd, .events = POLLIN};
    int timeout = milliseconds_until(end);
    if (!timeout)
      break;
    if (poll(wait, (nfds_t)n_strangers + 1, timeout) <= 0)
      continue;
    int kept = 0;
    for (int i = 0; i < n_strangers; i++)
      if (!wait[i + 1].revents || hear(s, &stranger[i], where.job, &n_here))
        stranger[kept++] = stranger[i];
    n_strangers = kept;
    if (wait[0].revents) {
      int fd = accept(door, NULL, NULL);
      if (fd >= 0 && set_options(fd))
        stranger[n_strangers++] = (Stranger){.fd = fd};
      else if (fd >= 0)
        close(fd);
    }
  }
  for (int i = 0; i < n_strangers; i++)
    close(stranger[i].fd);
  close(door);
  if (n_here == s->size)
    return AMPRT_OK;
  int n = 0;
  for (int r = 1; r < s->size; r++)
    if (s->fd[r] < 0)
      s->missing[n++] = r;
  char who[160];
  amprt_ranks_text(who, sizeof who, s->missing, n);
  return amprt_fail(error, AMPRT_ENV,
                    "%s of %d %s not come to %s:%s within %.0f s (--connect-timeout)", who, s->size,
                    n == 1 ? "has" : "have", where.host, where.port, seconds);
}

/* ---- the others ---- */

static int connect_to(const AmprtAddress *a, double end) {
  int fd = socket(a->at.ss_family, SOCK_STREAM, 0);
  if (fd < 0 || !set_options(fd)) {
    if (fd >= 0)
      close(fd);
    return -1;
  }
  struct pollfd wait = {.fd = fd, .events = POLLOUT};
  int failed = 0;
  socklen_t size = sizeof failed;
  if (!connect(fd, (const struct sockaddr *)&a->at, a->size) ||
      (errno == EINPROGRESS && poll(&wait, 1, milliseconds_until(end)) == 1 &&
       !getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) && !failed))
    return fd;
  close(fd);
  return -1;
}

enum { NOBODY = -1, NEVER = -2 };

/* Asks at one port. NOBODY: nobody of ours is there yet; NEVER: the host cannot be found. */
static int knock(const AmprtStar *s, AmprtStarWhere where, const char *port, Answer *answer,
                 const char **trouble) {
  AmprtAddress list[MOST_ADDRESSES];
  const char *why = NULL;
  int n = amprt_addresses(where.host, port, list, MOST_ADDRESSES, &why), found = NOBODY;
  if (n <= 0) {
    *trouble = why;
    return n < 0 ? NEVER : NOBODY;
  }
  for (int i = 0; i < n && found < 0; i++) {
    int fd = connect_to(&list[i], amprt_seconds() + 1);
    if (fd < 0)
      continue;
    Hello hello = {.job = where.job, .rank = s->rank, .size = s->size};
    memcpy(hello.magic, magic, sizeof magic);
    double end = amprt_seconds() + 1; /* rank 0 answers at once; what else listens may not */
    if (move_all(fd, &hello, sizeof hello, true, end) &&
        move_all(fd, answer, sizeof *answer, false, end) &&
        !memcmp(answer->magic, answer_magic, sizeof answer_magic))
      found = fd;
    else
      close(fd);
  }
  return found;
}

static AmprtStatus join(AmprtStar *s, AmprtStarWhere where, double seconds, AmprtError *error) {
  double end = amprt_seconds() + seconds;
  const char *trouble = "nobody answers there";
  bool never = false;
  while (!never && amprt_seconds() < end) {
    char port[16];
    for (int i = where.skip; i < PORTS && port_of(where.port, i, port); i++) {
      Answer answer;
      int fd = knock(s, where, port, &answer, &trouble);
      never |= fd == NEVER;
      if (fd < 0)
        continue;
      s->fd[0] = fd;
      if (answer.verdict == OTHER_SIZE)
        return amprt_fail(error, AMPRT_ENV,
                          "this process is rank %d of %d, but rank 0 at %s:%s counts %d processes",
                          s->rank, s->size, where.host, port, answer.size);
      if (answer.verdict == TWICE)
        return amprt_fail(error, AMPRT_ENV, "two processes say that they are rank %d of %d",
                          s->rank, s->size);
      return AMPRT_OK;
    }
    struct timespec nap = {.tv_nsec = 50000000}; /* rank 0 may come later */
    nanosleep(&nap, NULL);
  }
  if (never)
    return amprt_fail(error, AMPRT_ENV, "rank 0 cannot be found at MASTER_ADDR=%s: %s", where.host,
                      trouble);
  return amprt_fail(error, AMPRT_ENV,
                    "rank 0 was not found at MASTER_ADDR=%s, MASTER_PORT=%s within %.0f s "
                    "(--connect-timeout): %s",
                    where.host, where.port, seconds, trouble);
}

AmprtStatus amprt_star_open(AmprtStar **star, AmprtStarWhere where, int rank, int size,
                            double seconds, AmprtError *error) {
  char port[16];
  if (!port_of(where.port, 0, port))
    return amprt_fail(error, AMPRT_ENV, "MASTER_PORT is %s, which is no port", where.port);
  AmprtStar *s = calloc(1, sizeof *s);
  size_t n = (size_t)size;
  if (!s || !(s->fd = malloc(n * sizeof *s->fd)) || !(s->missing = calloc(n, sizeof *s->missing)) ||
      !(s->at = calloc(n, sizeof *s->at)) || !(s->poll = calloc(n, sizeof *s->poll))) {
    if (s)
      free(s->fd), free(s->missing), free(s->at), free(s);
    return amprt_fail_memory(error, n * 32, "connections to other processes");
  }
  /* Jobs without a name, whose ports are neighbours, look for rank 0 at the same ports. */
  where.job = add_to_hash(where.job, where.port);
  s->rank = rank, s->size = size;
  for (int r = 0; r < size; r++)
    s->fd[r] = -1;
  AmprtStatus status = rank ? join(s, where, seconds, error) : serve(s, where, seconds, error);
  if (status) {
    amprt_star_close(s);
    return status;
  }
  *star = s;
  return AMPRT_OK;
}

/* ---- gathers ---- */

/* Goes before each message, so that processes that do not do the same are found out. */
typedef struct Envelope {
  uint64_t turn, bytes;
} Envelope;

static AmprtStatus lost(int rank, AmprtError *error) {
  return amprt_fail(error, AMPRT_ENV, "the connection to rank %d is lost: it has ended", rank);
}

/* Moves an envelope and `bytes` for each of the peers at once: out, the same data to all; in, rank
 * r's to data + r * bytes (of one peer: to data). */
static AmprtStatus exchange(AmprtStar *s, unsigned char *data, size_t bytes, bool out,
                            AmprtWatchdog *watchdog, AmprtError *error) {
  Envelope sent = {s->turn, bytes}, *got = calloc((size_t)s->size, sizeof *got);
  if (!got)
    return amprt_fail_memory(error, (size_t)s->size * sizeof *got, "what other processes tell");
  size_t whole = sizeof sent + bytes;
  AmprtStatus status = AMPRT_OK;
  memset(s->at, 0, (size_t)s->size * sizeof *s->at);
  while (!status) {
    int n = 0;
    for (int r = 0; r < s->size; r++)
      if (s->fd[r] >= 0 && s->at[r] < whole) {
        s->missing[n] = r;
        s->poll[n++] = (struct pollfd){.fd = s->fd[r], .events = out ? POLLOUT : POLLIN};
      }
    if (!n)
      break;
    int ready = poll(s->poll, (nfds_t)n, 100);
    if (ready <= 0)
      amprt_watchdog_missing(watchdog, s->missing, n, s->rank != 0);
    for (int i = 0; i < n && ready > 0 && !status; i++) {
      if (!s->poll[i].revents)
        continue;
      int r = s->missing[i];
      bool head = s->at[r] < sizeof sent;
      size_t at = head ? s->at[r] : s->at[r] - sizeof sent;
      unsigned char *base = !head ? data + (out || s->rank ? 0 : (size_t)r * bytes)
                            : out ? (unsigned char *)&sent
                                  : (unsigned char *)&got[r];
      size_t left = (head ? sizeof sent : bytes) - at;
      ssize_t k =
          out ? send(s->fd[r], base + at, left, MSG_NOSIGNAL) : recv(s->fd[r], base + at, left, 0);
      if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
        status = lost(r, error);
      s->at[r] += k > 0 ? (size_t)k : 0;
      if (!status && !out && head && s->at[r] == sizeof sent && memcmp(&got[r], &sent, sizeof sent))
        status = amprt_fail(error, AMPRT_ENV,
                            "rank %d does not run the same program with the same flags as rank %d",
                            r, s->rank);
    }
  }
  free(got);
  return status;
}

AmprtStatus amprt_star_gather(AmprtStar *s, const void *mine, void *all, size_t bytes,
                              AmprtWatchdog *watchdog, AmprtError *error) {
  AmprtStatus status;
  s->turn++;
  if (s->rank == 0) {
    memcpy(all, mine, bytes);
    status = exchange(s, all, bytes, false, watchdog, error);
    if (!status)
      status = exchange(s, all, (size_t)s->size * bytes, true, watchdog, error);
  } else {
    status = exchange(s, (unsigned char *)(uintptr_t)mine, bytes, true, watchdog, error);
    if (!status)
      status = exchange(s, all, (size_t)s->size * bytes, false, watchdog, error);
  }
  return status;
}

bool amprt_star_broken(const AmprtStar *s, int *rank) {
  for (*rank = 0; *rank < s->size; ++*rank)
    if (s->fd[*rank] >= 0 && has_hung_up(s->fd[*rank]))
      return true;
  return false;
}

void amprt_star_close(AmprtStar *s) {
  if (!s)
    return;
  for (int r = 0; r < s->size; r++)
    if (s->fd[r] >= 0)
      close(s->fd[r]);
  free(s->fd), free(s->missing), free(s->at), free(s->poll);
  free(s);
}
