/* SPDX-License-Identifier: MIT */
/* Patterns of instructions and the search for them, per processor (J03, J05, J07, J15); the search against a slow one. */
#include "capture/qemu/pattern.h"
#include "tests/unit/check.h"

static uint64_t random_state = 88172645463325252u;

static unsigned dice(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % n;
}

static struct pattern parsed(const char *text, const char *machine)
{
    struct pattern p = { 0 };
    struct peet_err err = { 0 };

    if (!CHECK_EQ(pattern_parse(text, machine, &p, &err), 0))
        printf("# %s\n", err.text);
    return p;
}

/* An instruction of the thread with this stack pointer. */
static bool feed(struct pattern_search *s, const struct pattern *p, uint64_t pc, uint64_t sp, const char *bytes,
                 size_t n)
{
    return pattern_step(s, p, &(struct pattern_insn){ pc, sp, 0, (const uint8_t *)bytes, n });
}

static void every_machine_has_a_marker_of_one_instruction(void)
{
    static const uint8_t x86[] = { 0x0f, 0x1f, 0x84, 0x00, 0x50, 0x45, 0x45, 0x54 };
    struct pattern_search s = { 0 };
    struct pattern p = parsed("default", "x86_64");

    CHECK(p.is_marker);
    CHECK(pattern_step(&s, &p, &(struct pattern_insn){ 0x1000, 0x7000, 0, x86, sizeof x86 }));
    CHECK(pattern_has(&p, x86, sizeof x86));
    CHECK(!pattern_has(&p, x86 + 4, 1)); /* push %rax is one of its bytes, and nothing else */
    CHECK(parsed("default", "aarch64").alternative[0].length == 4);
    CHECK(parsed("default", "riscv64").alternative[0].length == 4);
}

static void the_papers_pattern_takes_its_number_from_any_register(void)
{
    struct pattern p = parsed("ji", "x86_64");
    struct pattern_search s = { 0 };

    CHECK(!feed(&s, &p, 0x100, 0x7000, "\x89\xf8", 2)); /* mov %edi, %eax */
    CHECK(!feed(&s, &p, 0x102, 0x7000, "\x83\xc0\x00", 3));
    CHECK(feed(&s, &p, 0x105, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s, &p, 0x200, 0x7000, "\x44\x89\xd0", 3)); /* mov %r10d, %eax */
    CHECK(!feed(&s, &p, 0x203, 0x7000, "\x83\xc0\x00", 3));
    CHECK(feed(&s, &p, 0x206, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s, &p, 0x300, 0x7000, "\x89\xc2", 2)); /* mov %eax, %edx: another destination */
    CHECK(!feed(&s, &p, 0x302, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s, &p, 0x305, 0x7000, "\x83\xc0\x00", 3));
}

static void users_give_patterns_as_bytes_with_a_mask(void)
{
    struct pattern p = parsed("hex:90F390/ffffff", "x86_64");
    struct pattern_search s = { 0 };

    CHECK(!p.is_marker);
    CHECK(!feed(&s, &p, 0, 1, "\x90", 1));
    CHECK(feed(&s, &p, 1, 1, "\xf3\x90", 2));
    p = parsed("hex:9000/fff0,cccc", "x86_64");
    CHECK(feed(&s, &p, 0, 1, "\x90\x0f", 2));
    CHECK(!feed(&s, &p, 0, 1, "\x90\x10", 2));
    CHECK(!feed(&s, &p, 5, 1, "\xcc", 1));
    CHECK(feed(&s, &p, 6, 1, "\xcc", 1));
}

static void mistakes_in_a_pattern_are_told(void)
{
    static const char *const wrong[] = {
        "",   "hex:",      "hex:9",   "hex:9g",  "hex:9090/ff", "hex:90/ffff", "hex:90,", "hex:90,91,92,93,94",
        "jj", "hex:90 91", "hex:90/", "default "
    };
    struct peet_err err;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct pattern p = { .alternatives = 77 };
        err.text[0] = '\0';
        CHECK_EQ(pattern_parse(wrong[i], "x86_64", &p, &err), PEET_ERR_USAGE);
        CHECK_EQ(p.alternatives, 77);
        CHECK(strstr(err.text, "hex:BYTES") != NULL);
    }
}

static void an_instruction_in_between_ends_a_match(void)
{
    struct pattern p = parsed("ji", "x86_64");
    struct pattern_search s = { 0 };

    CHECK(!feed(&s, &p, 0x100, 0x7000, "\x89\xf8", 2));
    CHECK(!feed(&s, &p, 0x102, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s, &p, 0x500, 0x7000, "\x90", 1)); /* same thread, elsewhere */
    CHECK(!feed(&s, &p, 0x105, 0x7000, "\x83\xc0\x00", 3));
}

/* J07: both are interrupted in the middle, one by the other, by the kernel, and by a thread whose stack pointer is the same
 * in another address space. */
static void two_threads_on_one_processor_do_not_disturb_each_other(void)
{
    struct pattern p = parsed("ji", "x86_64");
    struct pattern_search s = { 0 };

    CHECK(!feed(&s, &p, 0x100, 0x7000, "\x89\xf8", 2));
    CHECK(!feed(&s, &p, 0xffff800000001000, 0xffffc90000003f00, "\x90", 1));
    CHECK(!feed(&s, &p, 0x100, 0x9000, "\x89\xf8", 2));
    CHECK(!feed(&s, &p, 0x102, 0x9000, "\x83\xc0\x00", 3));
    CHECK(!pattern_step(&s, &p, &(struct pattern_insn){ 0x100, 0x7000, 5, (const uint8_t *)"\x89\xf8", 2 }));
    CHECK(!feed(&s, &p, 0x102, 0x7000, "\x83\xc0\x00", 3));
    CHECK(feed(&s, &p, 0x105, 0x9000, "\x83\xc0\x00", 3));
    CHECK(feed(&s, &p, 0x105, 0x7000, "\x83\xc0\x00", 3));
}

static void processors_do_not_complete_each_others_matches(void)
{
    struct pattern p = parsed("ji", "x86_64");
    struct pattern_search s[2] = { 0 };

    CHECK(!feed(&s[0], &p, 0x100, 0x7000, "\x89\xf8", 2));
    CHECK(!feed(&s[1], &p, 0x102, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s[1], &p, 0x105, 0x7000, "\x83\xc0\x00", 3));
    CHECK(!feed(&s[0], &p, 0x102, 0x7000, "\x83\xc0\x00", 3));
    CHECK(feed(&s[0], &p, 0x105, 0x7000, "\x83\xc0\x00", 3));
}

/* What the search must find: the thread's last instructions, without a gap, are the pattern. */
enum { HISTORY = 8 };

struct history {
    uint64_t pc[HISTORY];
    uint8_t byte[HISTORY];
    unsigned count;
};

static bool slow_step(struct history *h, const struct pattern *p, uint64_t pc, uint8_t byte)
{
    size_t n = p->alternative[0].length;

    memmove(h->pc + 1, h->pc, sizeof h->pc - sizeof *h->pc);
    memmove(h->byte + 1, h->byte, sizeof h->byte - 1);
    h->pc[0] = pc;
    h->byte[0] = byte;
    h->count += h->count < HISTORY;
    if (h->count < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (h->byte[n - 1 - i] != p->alternative[0].byte[i] || h->pc[i] != pc - i)
            return false;
    return true;
}

/* Patterns that begin like their own middles, programs of two instructions, three threads. */
static void the_search_finds_what_a_slow_one_finds(void)
{
    static const char *const texts[] = { "hex:0000", "hex:000001", "hex:00010001", "hex:0000010000", "hex:00" };
    uint64_t found = 0;

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct pattern p = parsed(texts[t], "x86_64");
        struct pattern_search s = { 0 };
        struct history history[3] = { 0 };
        uint64_t pc[3] = { 100, 100, 200 };
        for (int i = 0; i < 100000; i++) {
            unsigned who = dice(3);
            uint8_t byte = (uint8_t)(dice(3) == 0);
            pc[who] = dice(20) == 0 ? 100 + dice(4) : pc[who] + 1;
            bool slow = slow_step(&history[who], &p, pc[who], byte);
            bool fast = pattern_step(&s, &p, &(struct pattern_insn){ pc[who], 1000 + who, 0, &byte, 1 });
            found += fast;
            if (!CHECK_EQ(fast, slow))
                return;
        }
    }
    CHECK(found > 10000);
}

int main(void)
{
    RUN(every_machine_has_a_marker_of_one_instruction);
    RUN(the_papers_pattern_takes_its_number_from_any_register);
    RUN(users_give_patterns_as_bytes_with_a_mask);
    RUN(mistakes_in_a_pattern_are_told);
    RUN(an_instruction_in_between_ends_a_match);
    RUN(two_threads_on_one_processor_do_not_disturb_each_other);
    RUN(processors_do_not_complete_each_others_matches);
    RUN(the_search_finds_what_a_slow_one_finds);
    return check_done();
}
