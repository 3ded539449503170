/* SPDX-License-Identifier: MIT */
/* Any bytes as a machine file. What is accepted makes a machine, which runs a little. */
#include "fuzz.h"

#include "sim/engine/sim.h"

static const char program[] = "peet text 1\n"
                              "thread 0 process 0 parent 0 ordinal 0 name \"main\"\n"
                              "thread 1 process 0 parent 0 ordinal 0 name \"other\"\n"
                              "block b1 slots 1\n"
                              "  0x1000 4 plain, load 8 [s0], store 8 [s0+0x1000]\n"
                              "0 - b1 0x2000\n"
                              "0 - thread_create 1 @0x1000\n"
                              "0 - mutex_lock 0x5000 @0x1000\n"
                              "0 - b1 0x7000\n"
                              "0 - mutex_unlock 0x5000\n"
                              "0 - thread_join 1 @0x1000\n"
                              "0 - thread_end 0 0\n"
                              "1 - thread_start 0\n"
                              "1 - mutex_lock 0x5000 @0x1000\n"
                              "1 - b1 0x2000\n"
                              "1 - mutex_unlock 0x5000\n"
                              "1 - thread_end 0 0\n"
                              "end\n";
enum { MOST_BYTES = 1 << 22 }; /* of a cache: more only takes time */

/* libconfig 1.5 does not free a string that a syntax error follows. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig\n";
}

static void simulate(const struct machine_config *c)
{
    static struct peet_trace *t;
    struct source *source;
    struct sim *s = NULL;
    struct peet_err err;

    t = t ? t : fuzz_trace(program);
    if (source_open_trace(t, false, &source, &err) < 0)
        abort();
    if (fuzz_check(sim_new(c, source, &s, &err), &err) == 0)
        fuzz_check(sim_run(s, NULL, &err), &err);
    sim_free(s);
    source_free(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine_config c;
    struct peet_err err = { 0 };
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);
    bool is_small = fuzz_check(config_load(&c, path, NULL, 0, &err), &err) == 0 && c.instructions.bytes <= MOST_BYTES;

    for (int i = 0; is_small && i < CONFIG_LEVELS; i++)
        is_small = c.level[i].bytes <= MOST_BYTES;
    if (is_small && c.tlb.entries <= MOST_BYTES)
        simulate(&c);
    close(fd);
    return 0;
}
