/* SPDX-License-Identifier: MIT */
/* Address spaces (map/spaces.h), by themselves and on machines: processes share what they share in frames of physical memory, and nothing else. */
#include "map/spaces.h"

#include "sim/engine/sim.h"
#include "tests/unit/text.h"

/* ---- numbers of address spaces ---- */

static struct spaces spaces_with(unsigned processes)
{
    struct spaces s;
    struct peet_err err;
    uint32_t space;

    spaces_init(&s, NULL);
    for (unsigned i = 0; i < processes; i++)
        fine(spaces_of(&s, 10 * i + 7, &space, &err), &err);
    return s;
}

static void the_first_process_keeps_its_addresses(void)
{
    struct spaces s = spaces_with(2);

    CHECK_EQ(spaces_addr(&s, 0, 0x7fff12345678), 0x7fff12345678);
    CHECK(spaces_addr(&s, 1, 0x7fff12345678) != 0x7fff12345678);
    CHECK(spaces_translate(&s));
    spaces_release(&s);
    s = spaces_with(1);
    CHECK(!spaces_translate(&s));
    spaces_release(&s);
}

static void no_address_of_a_process_is_one_of_another(void)
{
    struct spaces s = spaces_with(SPACES_MOST);
    const uint64_t top = ((uint64_t)1 << SPACE_BITS) - 1;
    uint32_t space;

    for (uint32_t i = 1; i < SPACES_MOST; i++) {
        CHECK(spaces_addr(&s, i, 0) > spaces_addr(&s, i - 1, top));
        CHECK_EQ(spaces_untag(&s, spaces_addr(&s, i, 0x401000), &space), 0x401000);
        CHECK_EQ(space, i);
    }
    CHECK_EQ(spaces_addr(&s, SPACES_MOST - 1, top) >> 59, 0); /* where the machine's own words begin */
    spaces_release(&s);
}

static void the_kernel_is_the_same_in_all_processes(void)
{
    struct spaces s = spaces_with(3);

    CHECK_EQ(spaces_addr(&s, 2, 0xffff888000001000), 0xffff888000001000);
    spaces_release(&s);
}

static void an_address_beyond_those_of_programs_is_of_the_first_process(void)
{
    struct spaces s = spaces_with(3);
    uint32_t space;

    CHECK_EQ(spaces_untag(&s, 0x7ff0000000001000, &space), 0x7ff0000000001000);
    CHECK_EQ(space, 0);
    CHECK_EQ(spaces_untag(&s, 0xffff888000001000, &space), 0xffff888000001000);
    CHECK_EQ(space, 0);
    spaces_release(&s);
}

static void more_processes_than_there_are_numbers_are_an_error(void)
{
    struct spaces s = spaces_with(SPACES_MOST);
    struct peet_err err;
    uint32_t space;

    CHECK_EQ(spaces_of(&s, 7, &space, &err), 0); /* which is known */
    CHECK(spaces_of(&s, 1, &space, &err) < 0);
    CHECK(strstr(err.text, "processes") != NULL);
    spaces_release(&s);
}

/* ---- frames ---- */

static void tell_page(struct spaces *s, uint32_t space, uint64_t page, uint64_t frame)
{
    spaces_event(s, space, &(struct peet_event){ .kind = PEET_EV_page, .args = 2, .arg = { page, frame } });
}

static void a_page_is_where_its_frame_is(void)
{
    struct spaces s = spaces_with(2);

    s.by_frame = true;
    tell_page(&s, 0, 0x10, 0x99);
    tell_page(&s, 1, 0x20, 0x99);
    CHECK_EQ(spaces_addr(&s, 0, 0x10123), 0x99123);
    CHECK_EQ(spaces_addr(&s, 1, 0x20123), 0x99123);
    tell_page(&s, 1, 0x20, 0x77); /* written to, after a fork */
    CHECK_EQ(spaces_addr(&s, 1, 0x20123), 0x77123);
    CHECK_EQ(spaces_addr(&s, 0, 0x10123), 0x99123);
    spaces_release(&s);
}

static void a_page_without_a_frame_is_private(void)
{
    struct spaces s = spaces_with(2);

    s.by_frame = true;
    tell_page(&s, 0, 0x10, 0x20);
    CHECK(spaces_addr(&s, 1, 0x10123) != spaces_addr(&s, 0, 0x10123));
    CHECK(spaces_addr(&s, 0, 0x20123) != spaces_addr(&s, 0, 0x10123)); /* page 0x20 is not frame 0x20 */
    CHECK(spaces_addr(&s, 1, 0x20123) != spaces_addr(&s, 0, 0x20123));
    spaces_release(&s);
}

/* ---- on machines ---- */

static char *text;
static size_t text_size;
static FILE *out;

/* Programs that execute the same code at the same addresses. Block 1 loads 8 bytes, block 2 stores them. */
static void program_begin(unsigned processes)
{
    out = open_memstream(&text, &text_size);
    fputs("peet text 1\n", out);
    for (unsigned i = 1; i <= processes; i++)
        fprintf(out, "process %u parent %u program \"/bin/p%u\" command \"p\"\n", i, i, i);
    for (unsigned i = 1; i <= processes; i++)
        fprintf(out, "thread %u process %u parent %u ordinal 0 name \"t\"\n", i, i, i);
    fputs("block b1 slots 1\n  0x401000 4 plain, load 8 [s0]\nblock b2 slots 1\n  0x401004 4 plain, store 8 [s0]\n",
          out);
}

/* A thread loads and stores each line of that many bytes, `times` times. */
static void sweep(unsigned thread, uint64_t from, uint64_t bytes, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        for (uint64_t addr = from; addr < from + bytes; addr += 64)
            fprintf(out, "%u - b1 %#" PRIx64 "\n%u - b2 %#" PRIx64 "\n", thread, addr, thread, addr);
}

static void run(unsigned processes, const char *machine, const char *cpus, struct sim_result *ret)
{
    struct machine_config config;
    struct peet_trace *t;
    struct source *source;
    struct sim *sim;
    struct peet_err err;

    for (unsigned i = 1; i <= processes; i++)
        fprintf(out, "%u - thread_end 0 0\n", i);
    fputs("end\n", out);
    fclose(out);
    bool ok = import(text, "a") && fine(peet_trace_open(path_of("a"), &t, &err), &err)
              && fine(config_load(&config, machine, &cpus, 1, &err), &err)
              && fine(source_open_trace(t, true, &source, &err), &err)
              && fine(sim_new(&config, source, &sim, &err), &err) && fine(sim_run(sim, NULL, &err), &err);
    free(text);
    if (!ok)
        abort();
    sim_result(sim, ret);
    sim_free(sim);
    source_free(source);
    peet_trace_free(t);
}

static uint64_t misses(const struct sim_result *r)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < r->cpus; i++)
        sum += r->memory[i].misses;
    return sum;
}

static void two_processes_share_no_lines(void)
{
    static const char *const machines[] = { "modern", "sato1999", "shallow-bus" };

    for (unsigned i = 0; i < 3; i++) {
        struct sim_result alone, both;
        program_begin(1);
        sweep(1, 0x10000, 0x4000, 3);
        run(1, machines[i], "cpus=2", &alone);
        program_begin(2);
        sweep(1, 0x10000, 0x4000, 3);
        sweep(2, 0x10000, 0x4000, 3);
        run(2, machines[i], "cpus=2", &both);
        CHECK_EQ(misses(&both), 2 * misses(&alone));
        CHECK_EQ(alone.programs, 0);
        CHECK_EQ(both.programs, 2);
        for (unsigned k = 0; k < both.programs; k++) {
            CHECK_EQ(both.program[k].memory.misses, misses(&alone));
            CHECK_EQ(both.program[k].memory.causes[MISS_cold], alone.memory[0].causes[MISS_cold]);
            CHECK_EQ(both.program[k].account.instructions, alone.instructions);
            CHECK(both.program[k].finished >= alone.cycles); /* later if they wait for the same fabric */
            CHECK_EQ(both.memory[k].invalidations, 0);
        }
        sim_result_release(&alone);
        sim_result_release(&both);
    }
}

/* Pages from 0x10 on are in those frames from `first` on. */
static void say_frames(unsigned thread, uint64_t pages, uint64_t first)
{
    for (uint64_t i = 0; i < pages; i++)
        fprintf(out, "%u - page %#" PRIx64 " %#" PRIx64 "\n", thread, 0x10 + i, first + i);
}

static void processes_share_the_lines_of_frames_that_both_have(void)
{
    struct sim_result r;

    program_begin(2);
    say_frames(1, 4, 0x500);
    say_frames(2, 2, 0x500);
    say_frames(2, 4, 0x700);                         /* which take the place of those two */
    fprintf(out, "2 - page %#x %#x\n", 0x30, 0x500); /* another address of the first one's page */
    sweep(1, 0x10000, 0x4000, 1);
    sweep(2, 0x10000, 0x4000, 1);
    run(2, "sato1999", "cpus=2", &r);
    CHECK(r.by_frame);
    CHECK_EQ(misses(&r), 2 * 0x4000 / 64);
    CHECK_EQ(r.memory[0].invalidations + r.memory[1].invalidations, 0);
    sim_result_release(&r);

    program_begin(2);
    say_frames(1, 1, 0x500);
    fprintf(out, "2 - page %#x %#x\n", 0x30, 0x500);
    sweep(1, 0x10000, 0x1000, 4);
    sweep(2, 0x30000, 0x1000, 4);
    run(2, "sato1999", "cpus=2", &r);
    CHECK(r.memory[0].invalidations + r.memory[1].invalidations > 0);
    CHECK(r.memory[0].causes[MISS_true_sharing] + r.memory[1].causes[MISS_true_sharing] > 0);
    sim_result_release(&r);
}

static void a_reference_across_two_pages_goes_to_both_frames(void)
{
    struct sim_result r;

    program_begin(2);
    say_frames(1, 2, 0x500);
    fprintf(out, "1 - page 0x11 0x800\n1 - b2 0x10ffc\n"); /* bytes of frames 0x500 and 0x800 */
    fprintf(out, "1 - b1 0x10ff8\n1 - b1 0x11000\n");
    run(2, "sato1999", "cpus=1", &r);
    CHECK_EQ(misses(&r), 2);
    sim_result_release(&r);
}

static void locks_of_two_processes_are_two_locks(void)
{
    struct sim_result r;

    program_begin(2);
    for (unsigned i = 1; i <= 2; i++) {
        fprintf(out, "%u - mutex_lock 0x5000\n", i);
        sweep(i, 0x10000, 0x1000, 1);
        fprintf(out, "%u - mutex_unlock 0x5000\n", i);
    }
    run(2, "sato1999", "cpus=2", &r);
    CHECK_EQ(r.sync_objects, 2);
    for (unsigned i = 0; i < r.sync_objects; i++) {
        CHECK_EQ(r.sync_object[i].addr, 0x5000);
        CHECK_EQ(r.sync_object[i].uses, 1);
    }
    CHECK(r.cycles < r.sync_object[0].held + r.sync_object[1].held); /* side by side */
    CHECK(r.sync_object[0].process != r.sync_object[1].process);
    sim_result_release(&r);

    program_begin(2); /* a lock in memory that both share, at different addresses */
    fprintf(out, "1 - page 0x5 0x500\n2 - page 0x6 0x500\n");
    for (unsigned i = 1; i <= 2; i++) {
        fprintf(out, "%u - mutex_lock %#x\n", i, i == 1 ? 0x5000 : 0x6000);
        sweep(i, 0x10000, 0x1000, 1);
        fprintf(out, "%u - mutex_unlock %#x\n", i, i == 1 ? 0x5000 : 0x6000);
    }
    run(2, "sato1999", "cpus=2", &r);
    CHECK_EQ(r.sync_objects, 1);
    CHECK_EQ(r.sync_object[0].uses, 2);
    CHECK(r.cycles >= r.sync_object[0].held); /* one after the other */
    sim_result_release(&r);
}

static void evictions_know_both_programs(void)
{
    struct sim_result r;

    program_begin(
        2); /* the second begins on the only processor when the first has ended, and fills its cache of 64 KB */
    sweep(1, 0x10000, 0x10000, 1);
    sweep(2, 0x10000, 0x10000, 1);
    run(2, "sato1999", "cpus=1", &r);
    CHECK_EQ(r.evictions[0].private + r.evictions[1].private, 0);
    CHECK_EQ(r.evictions[2].private, 0x10000 / 64);
    CHECK_EQ(r.evictions[3].private, 0);
    CHECK_EQ(r.program[1].memory.misses, 0x10000 / 64);
    sim_result_release(&r);
}

/* Time of programs is time of hardware contexts, and none is counted twice or left out but idle time. */
static void times_of_programs_add_up_to_those_of_processors(void)
{
    struct sim_result r;
    uint64_t programs = 0, places = 0;

    program_begin(3);
    for (unsigned i = 1; i <= 3; i++)
        sweep(i, 0x10000 * i, 0x3000 * i, i);
    run(3, "modern", "cpus=2", &r);
    for (unsigned i = 0; i < r.programs; i++)
        for (unsigned k = 0; k < TIME_COUNT; k++)
            programs += r.program[i].account.time[k];
    for (unsigned i = 0; i < r.hw_threads; i++)
        for (unsigned k = 0; k < TIME_COUNT; k++)
            places += k == TIME_idle ? 0 : r.hw_thread[i].time[k];
    CHECK(places > 0);
    CHECK_EQ(programs, places);
    CHECK_EQ(r.program[0].memory.misses + r.program[1].memory.misses + r.program[2].memory.misses, misses(&r));
    sim_result_release(&r);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(the_first_process_keeps_its_addresses);
    RUN(no_address_of_a_process_is_one_of_another);
    RUN(the_kernel_is_the_same_in_all_processes);
    RUN(an_address_beyond_those_of_programs_is_of_the_first_process);
    RUN(more_processes_than_there_are_numbers_are_an_error);
    RUN(a_page_is_where_its_frame_is);
    RUN(a_page_without_a_frame_is_private);
    RUN(two_processes_share_no_lines);
    RUN(processes_share_the_lines_of_frames_that_both_have);
    RUN(a_reference_across_two_pages_goes_to_both_frames);
    RUN(locks_of_two_processes_are_two_locks);
    RUN(evictions_know_both_programs);
    RUN(times_of_programs_add_up_to_those_of_processors);
    return end();
}
