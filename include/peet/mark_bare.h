/* SPDX-License-Identifier: MIT */
/* The marker of peet/mark.h for programs without a C library: of another operating system, or of none. It needs nothing but the
 * compiler (GNU C, C++ or assembly extensions as gcc and clang have them). Three lines per program:
 *
 *     #include <peet/mark_bare.h>
 *     PEET_THREAD_BEGIN(number);       first thing in each thread that `peet record --system` shall record
 *     PEET_THREAD_END();               where it ends, before it leaves its stack to others
 *
 * A thread is known by its stack, so two threads that live at the same time in one address space need stacks that do not
 * overlap. The stack is taken to end with the page of the stack pointer and to have PEET_MARK_STACK_BYTES (4096, a page);
 * define that before, or use PEET_THREAD_BEGIN_ON(number, lowest, bytes), which says where the stack lies. Threads run in user
 * mode: what the processor executes with the kernel's privileges is not recorded.
 *
 * The marker is one instruction that no compiler emits and that does nothing. Registers hold, in the order of a call's
 * arguments: the operation, the thread's number, the address of the stack's last byte, its size in bytes, and the address of a card
 * (peet/mark_guest.h; 0: there is none). After it there is a load of the last byte, so that its page is mapped. */
#ifndef PEET_MARK_BARE_H
#define PEET_MARK_BARE_H

enum { PEET_MARK_BEGIN = 1, PEET_MARK_END = 2, PEET_MARK_MAPS = 3 }; /* the operations */

typedef unsigned long long peet_mark_word; /* 64 bits */

/* Values are computed before registers are given their names: what computes one of them may be a call. */
/* clang-format off */
#if defined(__x86_64__)
static inline void peet_marker(peet_mark_word op, peet_mark_word number, peet_mark_word last, peet_mark_word bytes,
                               peet_mark_word card)
{
    register peet_mark_word r8 __asm__("r8") = card;

    __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00,0x50,0x45,0x45,0x54\n\tmovb (%%rdx), %%al"
                     : : "D"(op), "S"(number), "d"(last), "c"(bytes), "r"(r8) : "memory", "rax");
}
#elif defined(__aarch64__)
static inline void peet_marker(peet_mark_word op, peet_mark_word number, peet_mark_word last, peet_mark_word bytes,
                               peet_mark_word card)
{
    register peet_mark_word x0 __asm__("x0") = op, x1 __asm__("x1") = number, x2 __asm__("x2") = last;
    register peet_mark_word x3 __asm__("x3") = bytes, x4 __asm__("x4") = card;

    __asm__ volatile(".inst 0xd2e8a8bf\n\tldrb w5, [x2]"
                     : : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "x5");
}
#elif defined(__riscv) && __riscv_xlen == 64
static inline void peet_marker(peet_mark_word op, peet_mark_word number, peet_mark_word last, peet_mark_word bytes,
                               peet_mark_word card)
{
    register peet_mark_word a0 __asm__("a0") = op, a1 __asm__("a1") = number, a2 __asm__("a2") = last;
    register peet_mark_word a3 __asm__("a3") = bytes, a4 __asm__("a4") = card;

    __asm__ volatile(".word 0x4554a013\n\tlbu a5, 0(a2)"
                     : : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory", "a5");
}
#else
#error "peet/mark_bare.h knows 64-bit x86, Arm and RISC-V"
#endif
/* clang-format on */

#ifndef PEET_MARK_GUEST_H /* else its marks, which know more, are meant */

#ifndef PEET_MARK_STACK_BYTES
#define PEET_MARK_STACK_BYTES 4096
#endif
#define PEET_MARK_HERE ((peet_mark_word)(__UINTPTR_TYPE__)__builtin_frame_address(0))

#define PEET_THREAD_BEGIN_ON(number, lowest, bytes) \
    peet_marker(PEET_MARK_BEGIN, (peet_mark_word)(number), \
                (peet_mark_word)(__UINTPTR_TYPE__)(lowest) + (peet_mark_word)(bytes)-1, (peet_mark_word)(bytes), 0)
#define PEET_THREAD_BEGIN(number) \
    PEET_THREAD_BEGIN_ON(number, (PEET_MARK_HERE | 4095) + 1 - (PEET_MARK_STACK_BYTES), PEET_MARK_STACK_BYTES)
#define PEET_THREAD_END() peet_marker(PEET_MARK_END, 0, PEET_MARK_HERE, 0, 0)

#endif

#endif
