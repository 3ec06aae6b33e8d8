/* Tests texts with holes (codegen/loop/text.h): the forms that a line can have, and what is a
 * bug. */
#include "codegen/loop/text.h"

/* clang-format off */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h> /* needs those before it */
/* clang-format on */

static Arena *arena;

#define becomes(text, filled, ...)                                                                 \
  assert_string_equal(text_filled(arena, text, holes(__VA_ARGS__)), filled)

static void holes_within_a_line(void **state) {
  (void)state;
  becomes("const $TYPE *x$I = &a->x[$I];\n", "const float *x3 = &a->x[3];\n", {"TYPE", "float"},
          {"I", .number = 3});
  becomes("x$I[start + i]", "x0[start + i]", {"I", .number = 0});
  becomes("$NAME_args", "k_relu_args", {"NAME", "k_relu"});
  becomes("no hole\n\n  and a blank line\n", "no hole\n\n  and a blank line\n", {"X", "x"});
  becomes("$A$B\n", "ab\n", {"A", "a"}, {"B", "b"});
  becomes("$A\n", "$B\n", {"A", "$B\n"},
          {"B", "b"}); /* text that fills a hole is not searched for holes */
}

static void a_hole_of_many_lines(void **state) {
  (void)state;
  becomes("{\n    $LINES\n}\n", "{\n    if (go)\n      y = x;\n}\n",
          {"LINES", "if (go)\n  y = x;\n"});
  becomes("  $LINES\n", "  a\n\n  b\n", {"LINES", "a\n\nb"});
}

static void an_empty_hole_takes_its_line(void **state) {
  (void)state;
  becomes("{\n  $LINES\n}\n", "{\n}\n", {"LINES", ""});
  becomes("{\n  AmpRef x[$N];\n}\n", "{\n}\n", {"N", ""});
  becomes("a\n  $I and $NONE\nb\n", "a\nb\n", {"I", .number = 1}, {"NONE", ""});
  becomes("$NONE", "", {"NONE", ""});
}

static void conditions(void **state) {
  (void)state;
  const char *text = "a\n$if YES\nb\n  $if NO\n  c\n  $if YES\n  d\n  $end\n  $end\ne\n$end\nf\n";
  becomes(text, "a\nb\ne\nf\n", {"YES", .number = 0}, {"NO", ""});
  becomes(text, "a\nb\n  c\n  d\ne\nf\n", {"YES", "y"}, {"NO", "n"});
  becomes(text, "a\nf\n", {"YES", ""}, {"NO", "n"});
}

static void lists_go_on(void **state) {
  (void)state;
  const Hole common[] = {{"V", .number = 8}, {"I", .number = 9}, {0}};
  assert_string_equal(text_filled(arena, "b$I[$V]", holes_and(common, {"I", .number = 1})),
                      "b1[8]");
}

static void embedded_lines(void **state) {
  (void)state;
  const char *const line[] = {"{\n", "  $if N\n", "  n\n", "  $end\n", "  $LINES\n", "}\n", NULL};
  Text out = {.arena = arena};
  text_fill_lines(&out, line, holes({"N", ""}, {"LINES", "a\nb\n"}));
  assert_string_equal(text_get(&out), "{\n  a\n  b\n}\n");
}

/* A text whose holes do not fit the list is a bug of ampcc, which must be noticed. */
static void mistakes(void **state) {
  (void)state;
  static const char *const text[] = {"$MISSING\n", "$if MISSING\n$end\n", "$if X\n",
                                     "$end\n",     "costs $5\n",          "$XY\n"};
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    pid_t child = fork();
    if (child == 0) {
      signal(SIGABRT, SIG_DFL);
      if (!freopen("/dev/null", "w", stderr))
        _exit(1);
      text_filled(arena, text[i], holes({"X", "x"}));
      _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(holes_within_a_line),
                                     cmocka_unit_test(a_hole_of_many_lines),
                                     cmocka_unit_test(an_empty_hole_takes_its_line),
                                     cmocka_unit_test(conditions),
                                     cmocka_unit_test(lists_go_on),
                                     cmocka_unit_test(embedded_lines),
                                     cmocka_unit_test(mistakes)};
  arena = arena_new();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(arena);
  return failed;
}
