/* SPDX-License-Identifier: MIT */
/* usage: subject_odd WHAT…
 * A subject that does what is hard to record, and ends with 0 if it has seen nothing of the recorder. WHAT is some of the
 * names in CASES, which are done one after another. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define FAIL(...) return (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), 1)

/* ---- instructions ---- */

static int strings(void)
{
    static char a[600], b[600];
    char *from = a, *to = b;
    uint64_t n = sizeof a;

    for (size_t i = 0; i < sizeof a; i++)
        a[i] = (char)('a' + i % 26);
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n)::"memory");
    if (memcmp(a, b, sizeof a) != 0 || n != 0)
        FAIL("rep movsb");
    from = b + 8 * 70, to = b + 8 * 72, n = 30;
    __asm__ volatile("std; rep movsq; cld" : "+S"(from), "+D"(to), "+c"(n)::"memory"); /* overlapping, downwards */
    if (memcmp(b + 8 * 43, a + 8 * 41, 8 * 30) != 0)
        FAIL("rep movsq downwards");
    to = b, n = sizeof b;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(n) : "a"('d'));
    if (to != b + 4)
        FAIL("repne scasb");
    from = a, to = b, n = 0;
    __asm__ volatile("rep stosb; rep movsb" : "+S"(from), "+D"(to), "+c"(n) : "a"(0) : "memory");
    from = a, to = b, n = 600;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(n)::"memory");
    return from - a == 8 * 43 + 1 ? 0 : 1;
}

__attribute__((target("avx2"))) static int gather(void)
{
    static int table[64], mask[8] = { -1, 0, -1, -1, 0, 0, -1, -1 }, index[8] = { 5, 1, 60, 0, 2, 3, 9, 8 }, out[8];

    if (!__builtin_cpu_supports("avx2"))
        return 0;
    for (int i = 0; i < 64; i++)
        table[i] = i * 3;
    __asm__ volatile("vmovdqu (%[mask]), %%ymm2\n\tvmovdqu (%[index]), %%ymm1\n\tvpxor %%ymm0, %%ymm0, %%ymm0\n\t"
                     "vpgatherdd %%ymm2, (%[table],%%ymm1,4), %%ymm0\n\tvmovdqu (%[mask]), %%ymm2\n\t"
                     "vpmaskmovd %%ymm0, %%ymm2, (%[out])\n\tvzeroupper" ::[mask] "r"(mask),
                     [index] "r"(index), [table] "r"(table), [out] "r"(out)
                     : "xmm0", "xmm1", "xmm2", "memory");
    for (int i = 0; i < 8; i++)
        if (out[i] != (mask[i] ? table[index[i]] : 0))
            FAIL("gather");
    return 0;
}

static int bits(void)
{
    static uint64_t field[8];
    int64_t bit = 3 * 64 + 5;
    unsigned char carry;

    __asm__ volatile("btsq %1, %0" : "+m"(field[0]) : "r"(bit) : "memory");
    bit = -2 * 64 + 7;
    __asm__ volatile("btsq %1, %0" : "+m"(field[7]) : "r"(bit) : "memory");
    bit = 5 * 64 + 7;
    __asm__ volatile("btq %2, %1; setc %0" : "=r"(carry) : "m"(field[0]), "r"(bit) : "memory");
    return field[3] == 32 && field[5] == 128 && carry ? 0 : 1;
}

/* The trap flag belongs to the recorder. */
static int flags(void)
{
    uint64_t pushed;

    __asm__ volatile("pushfq; pop %0" : "=r"(pushed));
    if (pushed & 0x100)
        FAIL("the trap flag can be seen");
    __asm__ volatile("pushfq; popfq; pushfq; pop %0" : "=r"(pushed));
    return pushed & 0x100 ? 1 : 0;
}

/* Code that is written, run, and written again, in the same place. */
static int code(void)
{
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const uint8_t SMALL[] = { 0xb8, 1, 0, 0, 0, 0xc3 }; /* mov $1, %eax; ret */
    static const uint8_t LARGE[] = { 0x48, 0xc7, 0xc0, 2, 0, 0, 0, 0xc3 };
    int (*f)(void);
    int sum = 0;

    if (page == MAP_FAILED)
        return 1;
    memcpy(&f, &page, sizeof f);
    for (int i = 0; i < 4; i++) {
        memcpy(page, i % 2 ? LARGE : SMALL, i % 2 ? sizeof LARGE : sizeof SMALL);
        sum += f();
    }
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    sum += f();
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    memcpy(page, SMALL, sizeof SMALL);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    sum += f();
    munmap(page, 4096);
    return sum == 9 ? 0 : 1;
}

/* ---- control ---- */

static jmp_buf place;

__attribute__((noinline)) static void deep(int n)
{
    if (n == 0)
        longjmp(place, 1);
    if (n > 0)
        deep(n - 1);
    __asm__ volatile("");
}

static int jumps(void)
{
    static volatile int times;

    times = 0;
    while (times < 3)
        if (setjmp(place) == 0)
            deep(5);
        else
            times++;
    return 0;
}

static volatile sig_atomic_t handled, last_signal;
static sigjmp_buf safe;
static char *guarded;

static void count(int signal)
{
    handled++;
    last_signal = signal;
}

static void repair(int signal, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    count(signal);
    mprotect(guarded, 8192, PROT_READ | PROT_WRITE);
}

static void escape(int signal)
{
    count(signal);
    siglongjmp(safe, 1);
}

static void skip(int signal, siginfo_t *info, void *context)
{
    (void)info;
    count(signal);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* over ud2 */
}

static void handle(int signal, void (*simple)(int), void (*full)(int, siginfo_t *, void *), int more)
{
    struct sigaction sa = { .sa_flags = more };

    if (full) {
        sa.sa_sigaction = full;
        sa.sa_flags |= SA_SIGINFO;
    } else {
        sa.sa_handler = simple;
    }
    sigaction(signal, &sa, NULL);
}

static int signals(void)
{
    static char stack[1 << 16];

    handle(SIGUSR1, count, NULL, 0);
    raise(SIGUSR1);
    guarded = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, NULL, repair, 0);
    *(volatile char *)guarded = 1;
    mprotect(guarded + 4096, 4096, PROT_NONE);
    memset(guarded + 4000, 2, 200);
    mprotect(guarded + 4096, 4096, PROT_NONE);
    uint64_t n = 200;
    char *to = guarded + 4000;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(3) : "memory"); /* stops in its middle */
    if (handled != 4 || guarded[0] != 1 || guarded[4199] != 3)
        FAIL("handled %d", (int)handled);
    sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
    handle(SIGUSR2, escape, NULL, SA_ONSTACK | SA_NODEFER);
    for (volatile int i = 0; i < 2; i++)
        if (sigsetjmp(safe, 1) == 0)
            raise(SIGUSR2);
    handle(SIGILL, NULL, skip, 0);
    __asm__ volatile("ud2");
    handle(SIGTRAP, count, NULL, 0);
    __asm__ volatile("int3");
    if (handled != 8 || last_signal != SIGTRAP)
        FAIL("handled %d", (int)handled);
    return 0;
}

/* Signals that come when they please, while the program computes, copies, and waits. */
static int timers(void)
{
    static char a[3000];
    struct timeval tick = { .tv_usec = 50000 };
    struct timespec nap = { .tv_nsec = 200000000 };
    int interrupted = 0, pipes[2];

    handle(SIGALRM, count, NULL, SA_RESTART);
    setitimer(ITIMER_REAL, &(struct itimerval){ tick, tick }, NULL);
    while (handled < 6) {
        char *to = a;
        uint64_t n = sizeof a;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(handled) : "memory");
        if (n || to != a + sizeof a)
            FAIL("rep stosb was not resumed");
    }
    interrupted = nanosleep(&nap, NULL) < 0 && errno == EINTR;
    if (pipe(pipes) < 0)
        return 1;
    pid_t child = fork(); /* a read that is begun again after the handler */
    if (child == 0) {
        usleep(300000);
        (void)!write(pipes[1], "x", 1);
        _exit(0);
    }
    if (read(pipes[0], a, 1) != 1 || a[0] != 'x')
        FAIL("read");
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    return waitpid(child, NULL, 0) == child && interrupted ? 0 : 1;
}

/* ---- threads and processes ---- */

static void *worker(void *arg)
{
    static __thread int own;
    pthread_t inner;

    for (int i = 0; i < 50; i++)
        own++;
    if (arg && pthread_create(&inner, NULL, worker, NULL) == 0)
        pthread_join(inner, NULL);
    return (void *)(intptr_t)own;
}

static int threads(void)
{
    pthread_t t[3];
    void *value;

    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, worker, t))
            return 1;
    for (int i = 0; i < 3; i++)
        if (pthread_join(t[i], &value) || (intptr_t)value != 50)
            return 1;
    return 0;
}

static int processes(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        execl("/proc/self/exe", "again", "bits", (char *)NULL);
        _exit(9);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        FAIL("child: %x", (unsigned)status);
    child = vfork();
    if (child == 0)
        _exit(3);
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3 ? 0 : 1;
}

static void *becomes(void *arg)
{
    (void)arg;
    execl("/proc/self/exe", "again", "bits", (char *)NULL);
    return NULL;
}

/* A thread that is not the first turns the process into another program, while others wait. */
static int exec_in_thread(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, (void *(*)(void *))(uintptr_t)pause, NULL);
    pthread_create(&t[1], NULL, becomes, NULL);
    pthread_join(t[0], NULL);
    return 1;
}

static int killed(void)
{
    raise(SIGTERM);
    return 1;
}

static int crash(void)
{
    volatile int *volatile nowhere = (volatile int *)8;

    return *nowhere;
}

static int seven(void)
{
    return 7;
}

static int sleeper(void)
{
    puts("ready");
    fflush(stdout);
    sleep(30);
    return 0;
}

static int input(void)
{
    for (int c; (c = getchar()) != EOF;)
        putchar(c);
    return 0;
}

static int stack(void)
{
    volatile char large[1 << 20];

    for (size_t i = 0; i < sizeof large; i += 65536)
        large[i] = 1;
    return large[0] - 1;
}

static int memory(void)
{
    size_t n = 1 << 20;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    p = mremap(p, n, 4 * n, MREMAP_MAYMOVE);
    p[4 * n - 1] = 1;
    munmap(p, 4 * n);
    char *heap = sbrk(100000);
    heap[99999] = 1;
    return brk(heap);
}

/* clang-format off */
#define CASES(X) \
    X(strings) X(gather) X(bits) X(flags) X(code) X(stack) X(memory) X(input) \
    X(jumps) X(signals) X(timers) X(threads) X(processes) X(exec_in_thread) \
    X(killed) X(crash) X(seven) X(sleeper)
/* clang-format on */

int main(int argc, char **argv)
{
    int status = argc > 1 ? 0 : 2;

    for (int i = 1; i < argc && status == 0; i++) {
        status = 2;
#define X(name) \
    if (!strcmp(argv[i], #name)) \
        status = name();
        CASES(X)
#undef X
    }
    return status;
}
