/* SPDX-License-Identifier: MIT */
/* Any bytes as rules that move data (map/remap.h), for a program with variables, blocks and names; and, as the last bytes
 * of the input say, for any blocks and names. */
#include "fuzz.h"

#include "map/remap.h"

static const char program[] = "peet text 1\n"
                              "process 1 parent 0 program \"p\" command \"p\"\n"
                              "module process 1 path \"/p\" build \"\" bias 0\n"
                              "  segment 0x400000 0x8000 offset 0 r-x\n"
                              "  symbol 0x401000 64 code \"main\"\n"
                              "  symbol 0x404000 4096 data \"table\"\n"
                              "  symbol 0xfffffffffffff000 8192 data \"last\"\n"
                              "thread 0 process 1 parent 0 ordinal 0 name \"main\"\n"
                              "0 - thread_end 0 0\n"
                              "end\n";

struct fuzz_event { /* at the end of the input */
    uint8_t kind;
    uint64_t arg[3];
} __attribute__((packed));

static void use(struct remap *r, const uint8_t *data, size_t size)
{
    uint64_t sum = 0;

    for (size_t at = 0; at + sizeof(struct fuzz_event) <= size; at += sizeof(struct fuzz_event)) {
        struct fuzz_event x;
        memcpy(&x, data + at, sizeof x);
        struct peet_event e = { .kind = x.kind % PEET_EVENT_KINDS, .site = 0x401010 };
        memcpy(e.arg, x.arg, sizeof x.arg);
        remap_event(r, 1, &e);
        for (int i = 0; i < 3; i++)
            sum += remap_addr(r, 1, x.arg[i]) + remap_addr(r, 1, x.arg[i] + 7);
    }
    for (size_t i = 0; remap_unused(r, i); i++)
        sum++;
    if (sum == 42)
        putchar('!');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct peet_trace *t;
    struct remap *r = NULL;
    struct peet_err err = { 0 };
    char path[FUZZ_PATH];
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL; /* events are after the first zero */
    size_t rules = zero ? (size_t)(zero - data) : size;
    int fd = fuzz_file(data, rules, path);

    t = t ? t : fuzz_trace(program);
    if (fuzz_check(remap_read(path, t, &r, &err), &err) == 0)
        use(r, data + rules, size - rules);
    remap_free(r);
    close(fd);
    return 0;
}
