/* SPDX-License-Identifier: MIT */
/* The paper's method on a machine of a few lines (J01, J02, J06, J19): processes with page tables, a scheduler that interrupts anywhere,
 * a kernel, a pager that evicts every page that is not locked. The machine knows whose each instruction is; the
 * extractor has to find out. */
#include "capture/qemu/extract.h"
#include "tests/unit/check.h"

enum { CORES = 4, PROCESSES = 4, THREADS_EACH = 4, STEPS = 400000, WORDS = 12 };

static uint64_t random_state = 88172645463325252u;

static unsigned dice(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % n;
}

/* Every stack has two pages: the bottom one, which targets lock, and the one below it. */
struct thread {
    bool is_target, is_locked, has_begun; /* begun: it has executed the pattern */
    uint64_t bottom, frame[2];
    uint64_t pc, sp, executed, extracted;
};

struct process {
    struct thread thread[THREADS_EACH];
};

static struct process machine[PROCESSES];
static uint64_t next_frame = 0x100000;

/* What follows the pattern is a loop. */
static const struct {
    const char *bytes;
    size_t length;
} program[WORDS] = {
    { "\x90", 1 },         { "\x89\xf8", 2 },     { "\x83\xc0\x00", 3 }, { "\x83\xc0\x00", 3 },
    { "\x50", 1 },         { "\x83\xc0\x00", 3 }, { "\x89\xf8", 2 },     { "\x83\xc0\x00", 3 },
    { "\x48\x89\xd8", 3 }, { "\x5b", 1 },         { "\x89\xf8", 2 },     { "\xeb\xf0", 2 },
};

static uint64_t length_up_to(uint64_t index)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < index; i++)
        sum += program[i].length;
    return sum;
}

static bool translate(void *context, uint64_t addr, uint64_t *ret)
{
    const struct process *p = context;

    for (int i = 0; i < THREADS_EACH; i++)
        for (uint64_t page = 0; page < 2; page++)
            if (addr >> 12 == (p->thread[i].bottom >> 12) - page) {
                *ret = p->thread[i].frame[page] + addr % 4096;
                return true;
            }
    return false;
}

/* The same addresses in every process; of processes 0 and 1 all threads are targets, of 2 one, of 3 none. */
static void start(struct process *p, int number)
{
    for (int i = 0; i < THREADS_EACH; i++) {
        uint64_t bottom = 0x7f0000000000 - (uint64_t)i * 0x10000 - 1;
        p->thread[i] = (struct thread){ .is_target = number < 2 || (number == 2 && i == 1),
                                        .bottom = bottom,
                                        .frame = { next_frame + 4096, next_frame + 8192 },
                                        .sp = bottom - 255 };
        next_frame += 8192;
    }
}

static void evict(struct process *p)
{
    struct thread *t = &p->thread[dice(THREADS_EACH)];

    t->frame[1] = next_frame += 4096;
    if (!t->is_locked)
        t->frame[0] = next_frame += 4096;
}

/* Executes an instruction of a thread. Returns whether the extractor names the thread exactly if it is a target after its pattern. */
static bool execute(struct extractor *x, unsigned core, struct process *p, struct thread *t, uint64_t tid)
{
    uint64_t index = t->pc;
    bool skips = !t->is_target && index >= 1 && index <= 3;
    struct extract_insn insn = { core,
                                 0x400000 + length_up_to(index),
                                 t->sp,
                                 (const uint8_t *)(skips ? "\x31\xc0\x90" : program[index].bytes),
                                 program[index].length,
                                 { translate, p },
                                 tid };

    t->is_locked = t->is_locked || t->is_target;
    struct target *found = extract(x, &insn);
    bool expected = t->has_begun;
    t->has_begun = t->has_begun || (t->is_target && index == 3);
    t->executed += expected;
    t->extracted += found && found->tid == tid;
    t->pc = index + 1 == WORDS ? 4 : index + 1;
    if (t->has_begun && index == 4) /* deeper, or back */
        t->sp = t->bottom - 255 - 512 * dice(12);
    return CHECK_EQ(found != NULL, expected) && (!found || CHECK_EQ(found->tid, tid));
}

static void a_kernel_instruction(struct extractor *x, unsigned core)
{
    struct extract_insn insn = {
        core, 0xffffffff81000000, 0xffffc90000003f00u, (const uint8_t *)"\x83\xc0\x00", 3, { translate, &machine[0] },
        99
    };

    CHECK(extract(x, &insn) == NULL);
}

static void every_instruction_is_given_to_its_thread_and_to_no_other(void)
{
    struct extractor x = { .window = { .page = 4096, .stack = 0x10000, .pages = 1 } };
    uint64_t executed = 0, extracted = 0;

    CHECK_EQ(pattern_parse("ji", "x86_64", &x.pattern, NULL), 0);
    for (int i = 0; i < PROCESSES; i++)
        start(&machine[i], i);
    for (int step = 0; step < STEPS; step++) {
        unsigned core = dice(CORES), index = dice(PROCESSES * THREADS_EACH);
        struct process *p = &machine[index / THREADS_EACH];
        struct thread *t = &p->thread[index % THREADS_EACH];
        if (!t->has_begun) /* within a pattern a thread may not change cores, nor share one with a thread of the same stack pointer */
            core = index / THREADS_EACH;
        if (!execute(&x, core, p, t, index))
            break;
        if (dice(10) == 0)
            a_kernel_instruction(&x, core);
        if (dice(50) == 0)
            evict(&machine[dice(PROCESSES)]);
    }
    for (int i = 0; i < PROCESSES * THREADS_EACH; i++) {
        executed += machine[i / THREADS_EACH].thread[i % THREADS_EACH].executed;
        extracted += machine[i / THREADS_EACH].thread[i % THREADS_EACH].extracted;
    }
    CHECK_EQ(extracted, executed); /* 0 foreign, 0 missing */
    CHECK(executed > STEPS / 3);
    CHECK_EQ(x.targets.count, 9);
    extractor_release(&x);
}

/* J06: without the lock the pager moves the page, and the thread is lost. */
static void a_bottom_page_that_is_not_locked_loses_the_thread(void)
{
    struct extractor x = { .window = { .page = 4096, .stack = 0x10000, .pages = 1 } };
    struct process *p = &machine[0];
    struct thread *t = &p->thread[0];

    CHECK_EQ(pattern_parse("ji", "x86_64", &x.pattern, NULL), 0);
    start(p, 0);
    for (int i = 0; i < 20; i++)
        execute(&x, 0, p, t, 5);
    CHECK(t->extracted > 10);
    t->frame[0] += 0x100000;
    struct extract_insn insn = { 0, 0x400000, t->sp, (const uint8_t *)"\x90", 1, { translate, p }, 5 };
    CHECK(extract(&x, &insn) == NULL);
    extractor_release(&x);
}

int main(void)
{
    RUN(every_instruction_is_given_to_its_thread_and_to_no_other);
    RUN(a_bottom_page_that_is_not_locked_loses_the_thread);
    return check_done();
}
