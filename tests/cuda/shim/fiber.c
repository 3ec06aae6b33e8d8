#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { GUARD_PAGE = 4096 };

static Fiber main_fiber, *current = &main_fiber;
static void (*fiber_body)(void);
#ifdef __SANITIZE_ADDRESS__
static const void *main_stack;
static size_t main_stack_size;
#endif

/* Saves the registers that a function call must preserve and the stack pointer, and loads those of
 * `to`. ucontext would do the same, but with two system calls each time. */
__attribute__((visibility("hidden"))) void shim_switch(void **from, void *to);
#ifdef __aarch64__
enum { SAVED = 20, RETURNS_TO = 1 }; /* words that it saves, and which of them is the address */
__asm__(".text\n"
        ".hidden shim_switch\n"
        ".globl shim_switch\n"
        ".type shim_switch, @function\n"
        "shim_switch:\n"
        "  stp x29, x30, [sp, #-160]!\n"
        "  stp x19, x20, [sp, #16]\n  stp x21, x22, [sp, #32]\n  stp x23, x24, [sp, #48]\n"
        "  stp x25, x26, [sp, #64]\n  stp x27, x28, [sp, #80]\n  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #16]\n  ldp x21, x22, [sp, #32]\n  ldp x23, x24, [sp, #48]\n"
        "  ldp x25, x26, [sp, #64]\n  ldp x27, x28, [sp, #80]\n  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  ldp x29, x30, [sp], #160\n"
        "  ret\n"
        ".size shim_switch, .-shim_switch\n");
#else
enum { SAVED = 7, RETURNS_TO = 6 };
__asm__(".text\n"
        ".hidden shim_switch\n"
        ".globl shim_switch\n"
        ".type shim_switch, @function\n"
        "shim_switch:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n"
        ".size shim_switch, .-shim_switch\n");
#endif

/* The first code on a new stack, to which shim_switch "returns". */
static void fiber_start(void) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(NULL, &main_stack, &main_stack_size);
#endif
  fiber_body();
  abort();
}

static void switch_to(Fiber *to, const void *stack, size_t size) {
  Fiber *from = current;
  current = to;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from->fake_stack, stack, size);
#else
  (void)stack, (void)size;
#endif
  shim_switch(&from->sp, to->sp);
#ifdef __SANITIZE_ADDRESS__
  const void **bottom = from == &main_fiber ? NULL : &main_stack;
  __sanitizer_finish_switch_fiber(from->fake_stack, bottom, bottom ? &main_stack_size : NULL);
#endif
}

static void start(Fiber *fiber) {
  if (!fiber->stack) {
    fiber->stack = mmap(NULL, FIBER_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED || mprotect(fiber->stack, GUARD_PAGE, PROT_NONE) != 0) {
      perror("shim: stack of a thread");
      abort();
    }
  }
  /* On x86-64 a word more aligns the stack as after a call. */
  uintptr_t *sp = (uintptr_t *)(void *)(fiber->stack + FIBER_STACK) - SAVED - SAVED % 2;
  memset(sp, 0, SAVED * sizeof *sp);
  sp[RETURNS_TO] = (uintptr_t)fiber_start;
  fiber->sp = sp;
  fiber->is_started = true;
}

void fiber_enter(Fiber *fiber, void (*body)(void)) {
  fiber_body = body;
  if (!fiber->is_started)
    start(fiber);
  switch_to(fiber, fiber->stack, FIBER_STACK);
}

void fiber_leave(void) {
#ifdef __SANITIZE_ADDRESS__
  switch_to(&main_fiber, main_stack, main_stack_size);
#else
  switch_to(&main_fiber, NULL, 0);
#endif
}

void fiber_reset(Fiber *fiber) {
#ifdef __SANITIZE_ADDRESS__
  if (fiber->stack) /* AddressSanitizer would keep frames that are never left poisoned */
    __asan_unpoison_memory_region(fiber->stack + GUARD_PAGE, FIBER_STACK - GUARD_PAGE);
#endif
  fiber->is_started = false;
  fiber->fake_stack = NULL;
}

void fiber_free(Fiber *fiber) {
  if (fiber->stack)
    munmap(fiber->stack, FIBER_STACK);
  *fiber = (Fiber){0};
}
