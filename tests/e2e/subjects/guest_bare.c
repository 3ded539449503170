/* SPDX-License-Identifier: MIT */
/* A guest without an operating system: a small kernel for x86-64 that QEMU starts with -kernel (PVH), and three threads
 * in user mode that the timer interrupts and that mark themselves through peet/mark_bare.h. Built with gcc alone:
 *
 *     gcc -O1 -ffreestanding -fno-pic -no-pie -nostdlib -static -mno-red-zone -mgeneral-regs-only \
 *         -fno-stack-protector -fcf-protection=none -Wl,-Ttext-segment=0x100000 -Wl,--build-id=none -Wl,-e,start
 *
 * Thread n executes rounds_of(n) rounds of a loop of known length between its marks. The kernel prints on the first serial port
 *     command line: TEXT
 *     thread N rounds R instructions I references F
 * with what R rounds take beyond one round, and `end S`, where S is the number of times that threads took turns; then it powers
 * off by ACPI. With FAIL defined it ends QEMU with status 7 instead, through isa-debug-exit at port 0xf4; with HANG defined it
 * never ends, and with SPIN defined its threads work without an end. */
#include <stdint.h>

#define PEET_MARK_STACK_BYTES 8192
#include <peet/mark_bare.h>

enum { THREADS = 3, STACK = 8192, INSNS_PER_ROUND = 4, REFERENCES_PER_ROUND = 2, TICKS_HZ = 1000 };
enum { KERNEL_CODE = 0x08, KERNEL_DATA = 0x10, USER_CODE = 0x1b, USER_DATA = 0x23, TASK = 0x28 };
enum { VECTOR_TIMER = 32, VECTOR_DONE = 0x80, VECTORS = 256, INTERRUPTS_ON = 0x202 };

/* ---- from the 32-bit entry to C ---- */

__asm__(".pushsection .note.pvh, \"a\", @note\n"
        ".balign 4\n"
        ".long 4, 4, 18\n" /* XEN_ELFNOTE_PHYS32_ENTRY */
        ".asciz \"Xen\"\n"
        ".long start\n"
        ".popsection\n"
        ".code32\n"
        ".globl start\n"
        "start:\n"
        "cli\n"
        "movl %ebx, start_info\n"
        "movl $boot_stack_end, %esp\n"
        /* Virtual is physical, for user mode, too: one table of 512 pages of 2 MiB. */
        "movl $table3, %eax\n"
        "orl $7, %eax\n"
        "movl %eax, table4\n"
        "movl $table2, %eax\n"
        "orl $7, %eax\n"
        "movl %eax, table3\n"
        "xorl %ecx, %ecx\n"
        "1: movl %ecx, %eax\n"
        "shll $21, %eax\n"
        "orl $0x87, %eax\n"
        "movl %eax, table2(,%ecx,8)\n"
        "incl %ecx\n"
        "cmpl $512, %ecx\n"
        "jne 1b\n"
        "movl $table4, %eax\n"
        "movl %eax, %cr3\n"
        "movl %cr4, %eax\n"
        "orl $0x20, %eax\n" /* PAE */
        "movl %eax, %cr4\n"
        "movl $0xc0000080, %ecx\n" /* EFER */
        "rdmsr\n"
        "orl $0x100, %eax\n" /* long mode */
        "wrmsr\n"
        "movl %cr0, %eax\n"
        "orl $0x80000001, %eax\n"
        "movl %eax, %cr0\n"
        "lgdt boot_gdt_register\n"
        "ljmp $8, $start64\n"
        ".code64\n"
        "start64:\n"
        "movl $0x10, %eax\n"
        "movl %eax, %ds\n"
        "movl %eax, %es\n"
        "movl %eax, %ss\n"
        "call kernel_main\n"
        "2: hlt\n"
        "jmp 2b\n"
        ".balign 8\n"
        "boot_gdt_register: .word 23\n"
        ".quad gdt\n"
        /* A thread's registers stand on its own kernel stack, on top of what the processor pushes. */
        ".macro ENTER what\n"
        "push %rax; push %rbx; push %rcx; push %rdx; push %rsi; push %rdi; push %rbp\n"
        "push %r8; push %r9; push %r10; push %r11; push %r12; push %r13; push %r14; push %r15\n"
        "movq %rsp, %rdi\n"
        "call \\what\n"
        "movq %rax, %rsp\n"
        "jmp leave\n"
        ".endm\n"
        ".globl on_timer_entry, on_done_entry, on_fault_entry, leave\n"
        "on_timer_entry: ENTER on_timer\n"
        "on_done_entry: ENTER on_done\n"
        "on_fault_entry: call on_fault\n"
        "leave:\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %r11; pop %r10; pop %r9; pop %r8\n"
        "pop %rbp; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rbx; pop %rax\n"
        "iretq\n");

extern char on_timer_entry[], on_done_entry[], on_fault_entry[];
_Noreturn void leave(void);
uint64_t *on_timer(uint64_t *frame);
uint64_t *on_done(uint64_t *frame);
_Noreturn void on_fault(void);
_Noreturn void kernel_main(void);

_Alignas(4096) uint64_t table4[512], table3[512], table2[512];
char boot_stack[4096];
__asm__(".globl boot_stack_end\n.set boot_stack_end, boot_stack + 4096");

struct {
    uint32_t magic, version, flags, modules;
    uint64_t module_list, command_line, root_pointer;
} * start_info; /* of PVH; the lower half is filled in before C begins */

_Alignas(16) uint64_t gdt[7] = { 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00affa000000ffff, 0x00cff2000000ffff };

static _Alignas(16) struct {
    uint64_t low, high;
} idt[VECTORS];

static struct __attribute__((packed)) {
    uint32_t reserved;
    uint64_t kernel_stack;
    uint64_t others[11];
    uint16_t more, ports;
} task;

/* ---- the console, and the end ---- */

static void port_put8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void say(const char *text)
{
    for (; *text; text++)
        port_put8(0x3f8, (uint8_t)*text);
}

static void say_number(const char *before, uint64_t n)
{
    char text[21], *p = text + sizeof text - 1;

    for (*p = 0; n || !*p; n /= 10)
        *--p = (char)('0' + n % 10);
    say(before);
    say(p);
}

static _Noreturn void power_off(void)
{
#ifdef HANG
    for (;;)
        __asm__ volatile("hlt");
#endif
#ifdef FAIL
    port_put8(0xf4, 3); /* status 2 * 3 + 1 */
#endif
    __asm__ volatile("outw %0, %1" : : "a"((uint16_t)0x2000), "Nd"((uint16_t)0x604));
    for (;;)
        __asm__ volatile("cli; hlt");
}

_Noreturn void on_fault(void)
{
    say("fault\n");
    power_off();
}

/* ---- threads ---- */

static struct thread {
    uint64_t *frame; /* its registers, on its kernel stack */
    uint64_t done;
    _Alignas(4096) char stack[STACK], kernel_stack[4096];
} thread[THREADS];
static unsigned current;
static uint64_t switches;
static volatile uint64_t sum[THREADS];

static uint64_t rounds_of(unsigned n)
{
    static const uint64_t rounds[THREADS] = { 1, 400000, 700000 };

    return rounds[n];
}

/* INSNS_PER_ROUND and REFERENCES_PER_ROUND are of this. */
__attribute__((noipa)) static void work(volatile uint64_t *at, uint64_t rounds)
{
    __asm__ volatile("1: addq $1, (%1)\n\t"
                     "movq (%1), %%rax\n\t"
                     "decq %0\n\t"
                     "jnz 1b"
                     : "+r"(rounds)
                     : "r"(at)
                     : "rax", "memory", "cc");
}

static void thread_main(uint64_t number)
{
    PEET_THREAD_BEGIN(number);
    work(&sum[number], rounds_of((unsigned)number));
#ifdef SPIN
    for (;;)
        work(&sum[number], rounds_of((unsigned)number));
#endif
    PEET_THREAD_END();
    __asm__ volatile("int $0x80");
}

static uint64_t *switch_from(uint64_t *frame)
{
    unsigned next = current;

    thread[current].frame = frame;
    do
        next = (next + 1) % THREADS;
    while (thread[next].done && next != current);
    if (thread[next].done)
        return 0;
    switches += next != current;
    current = next;
    task.kernel_stack = (uint64_t)(thread[next].kernel_stack + sizeof thread[next].kernel_stack);
    return thread[next].frame;
}

uint64_t *on_timer(uint64_t *frame)
{
    port_put8(0x20, 0x20); /* end of interrupt */
    return switch_from(frame);
}

uint64_t *on_done(uint64_t *frame)
{
    thread[current].done = 1;
    uint64_t *next = switch_from(frame);
    if (next)
        return next;
    for (unsigned i = 0; i < THREADS; i++) {
        uint64_t more = rounds_of(i) - 1;
        say_number("thread ", i);
        say_number(" rounds ", sum[i]);
        say_number(" instructions ", more * INSNS_PER_ROUND);
        say_number(" references ", more * REFERENCES_PER_ROUND);
        say("\n");
    }
    say_number("end ", switches);
    say("\n");
    power_off();
}

static void thread_prepare(unsigned n)
{
    uint64_t *at = (uint64_t *)(thread[n].kernel_stack + sizeof thread[n].kernel_stack);

    *--at = USER_DATA;
    *--at = (uint64_t)(thread[n].stack + STACK - 64 - 8); /* as after a call */
    *--at = INTERRUPTS_ON;
    *--at = USER_CODE;
    *--at = (uint64_t)thread_main;
    for (int i = 0; i < 15; i++)
        *--at = i == 5 ? n : 0; /* rdi */
    thread[n].frame = at;
}

/* ---- the machine ---- */

static void idt_set(unsigned vector, const char *entry, uint64_t privilege)
{
    uint64_t to = (uint64_t)entry;

    idt[vector].low = (to & 0xffff) | KERNEL_CODE << 16 | (0x8e00 | privilege << 13) << 32 | (to >> 16 & 0xffff) << 48;
    idt[vector].high = to >> 32;
}

static void tables_set(void)
{
    struct __attribute__((packed)) {
        uint16_t limit;
        uint64_t base;
    } gdt_register = { sizeof gdt - 1, (uint64_t)gdt }, idt_register = { sizeof idt - 1, (uint64_t)idt };
    uint64_t base = (uint64_t)&task;

    gdt[5] = (sizeof task - 1) | (base & 0xffffff) << 16 | (uint64_t)0x89 << 40 | (base >> 24 & 0xff) << 56;
    gdt[6] = base >> 32;
    for (unsigned i = 0; i < VECTORS; i++)
        idt_set(i, on_fault_entry, 0);
    idt_set(VECTOR_TIMER, on_timer_entry, 0);
    idt_set(VECTOR_DONE, on_done_entry, 3);
    __asm__ volatile("lgdt %0; lidt %1; ltr %w2" : : "m"(gdt_register), "m"(idt_register), "r"(TASK));
}

static void timer_start(void)
{
    static const uint8_t pic[][2] = { { 0x20, 0x11 }, { 0xa0, 0x11 }, { 0x21, VECTOR_TIMER }, { 0xa1, 40 }, { 0x21, 4 },
                                      { 0xa1, 2 },    { 0x21, 1 },    { 0xa1, 1 },             { 0x21, 0xfe }, { 0xa1, 0xff } };
    unsigned divisor = 1193182 / TICKS_HZ;

    for (unsigned i = 0; i < sizeof pic / sizeof *pic; i++)
        port_put8(pic[i][0], pic[i][1]);
    port_put8(0x43, 0x34);
    port_put8(0x40, divisor & 0xff);
    port_put8(0x40, (uint8_t)(divisor >> 8));
}

_Noreturn void kernel_main(void)
{
    say("command line: ");
    say((const char *)start_info->command_line);
    say("\n");
    tables_set();
    for (unsigned i = 0; i < THREADS; i++)
        thread_prepare(i);
    task.kernel_stack = (uint64_t)(thread[0].kernel_stack + sizeof thread[0].kernel_stack);
    timer_start();
    __asm__ volatile("movq %0, %%rsp; jmp leave" : : "r"(thread[0].frame));
    __builtin_unreachable();
}
