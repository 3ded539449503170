/* SPDX-License-Identifier: MIT */
/* usage: build/tests/oracle/litmus TESTS SEED [FILE.litmus…]
 * The built-in litmus tests, files, and random tests of up to 4 threads and 4 instructions: the explorer and the axioms find the same
 * outcomes under every model. Prints the first test for which they do not. */
#include <inttypes.h>
#include <stdio.h>

#include "litmus/explore.h"
#include "litmus/test.h"
#include "sim/order/order.h"
#include "tests/oracle/axioms.h"
#include "tests/unit/random.h"

#define X(name) #name,
static const char *const MODELS[] = { MEMORY_ORDERS(X) };
#undef X
_Static_assert(sizeof MODELS / sizeof MODELS[0] == AXIOMS_MODELS,
               "axioms.h has each order of the registry, in the same order");

static const char *const NAMES[] = { "EAX", "EBX", "ECX", "EDX" };

/* What random tests rarely meet: fences that order nothing here; loads that read a store of their thread before an earlier load of the
 * same location performs; atomics that read such a store while another thread stores there. */
static const char *const DIRECTED[] = {
    "Rx LF Wy1 | Ry LF Wx1",         "Rx SF Wy1 | Ry SF Wx1",
    "Wx1 SF Ry | Wy1 LF Rx",         "Rx Wx2 Rx.acq Ry | Wy1 Wx1.rel",
    "Wx1 Xx2 Ry | Wy1 F Wx3 Rx",     "Xx1 Xx2 Ry | Wy1 F Xx3 Rx",
    "Wx1 Wx2 Rx Ry | Wy1 F Rx Rx",   "Xx1.rel Xx2.acq | Xx3.acqrel Rx",
    "Wx1 SF Xy2 Rz | Wz1 SF Wy1 Rx", NULL,
};

static uint64_t outcomes_seen, states_seen;

/* One instruction that has at most one load, into the register of that number. Returns whether it loads. */
static bool write_instruction(FILE *out, uint64_t *state, uint64_t locations, unsigned loads)
{
    char location = (char)('x' - 2 + (char)draw(state, locations)); /* v, w, x, y */
    const char *reg = NAMES[loads], *other = NAMES[draw(state, 4)];
    static const char *const LOAD[] = { "", "", "", ".ACQ" }, *const STORE[] = { "", "", "", ".REL" };
    static const char *const ATOMIC[] = { "", "", ".ACQ", ".REL", ".ACQREL" };
    static const char *const LOCKED[] = { "ADD", "SUB", "AND", "OR", "XOR" }, *const UNARY[] = { "INC", "DEC", "NOT",
                                                                                                 "NEG" };
    const char *load = LOAD[draw(state, 4)], *store = STORE[draw(state, 4)], *atomic = ATOMIC[draw(state, 5)];
    unsigned value = 1 + (unsigned)draw(state, 3);

    switch (draw(state, 24)) {
    case 0: fputs("MFENCE", out); return false;
    case 1: fputs("SFENCE", out); return false;
    case 2: fputs("LFENCE", out); return false;
    case 3: fprintf(out, "XCHG%s [%c],%s", atomic, location, reg); return true;
    case 4: fprintf(out, "LOCK XADD%s [%c],%s", atomic, location, reg); return true;
    case 5: fprintf(out, "LOCK CMPXCHG%s [%c],%s", atomic, location, other); return true;
    case 6: fprintf(out, "LOCK %s%s [%c],$%u", LOCKED[draw(state, 5)], atomic, location, value); return true;
    case 7: fprintf(out, "LOCK %s%s [%c]", UNARY[draw(state, 4)], atomic, location); return true;
    case 8: fprintf(out, "MOV%s [%c],%s", store, location, other); return false;
    case 9: fprintf(out, "MOV %s,$%u", other, value); return false;
    default: break;
    }
    bool loading = draw(state, 2);
    if (loading)
        fprintf(out, "MOV%s %s,[%c]", load, reg, location);
    else
        fprintf(out, "MOV%s [%c],$%u", store, location, value);
    return loading;
}

/* A test in the standard format; to be freed. */
static char *write_test(uint64_t *state)
{
    char *text = NULL, cell[4][4][64] = { 0 };
    size_t size;
    uint64_t threads = 2 + draw(state, 3), locations = 1 + draw(state, 4), most = 1 + draw(state, 4), rows = 0;
    FILE *out = open_memstream(&text, &size);

    for (uint64_t u = 0; u < threads; u++) {
        uint64_t n = 1 + draw(state, most);
        unsigned loads = 0;
        rows = n > rows ? n : rows;
        for (uint64_t i = 0; i < n; i++) {
            FILE *one = fmemopen(cell[u][i], sizeof cell[u][i], "w");
            loads += write_instruction(one, state, locations, loads);
            fclose(one);
        }
    }
    fprintf(out, "PEET random\n{ v=0; w=5; 0:EAX=7; 1:EBX=1; }\n");
    for (uint64_t u = 0; u < threads; u++)
        fprintf(out, " P%d %c", (int)u, u + 1 < threads ? '|' : ';');
    for (uint64_t i = 0; i < rows; i++) {
        fputc('\n', out);
        for (uint64_t u = 0; u < threads; u++)
            fprintf(out, " %s %c", cell[u][i], u + 1 < threads ? '|' : ';');
    }
    fprintf(out, "\nlocations [");
    for (char c = 'v'; c < (char)('v' + (char)locations); c++)
        fprintf(out, "%c;", c);
    for (uint64_t u = 0; u < threads; u++)
        for (int r = 0; r < 4; r++)
            fprintf(out, "%d:%s;", (int)u, NAMES[r]);
    fprintf(out, "]\nexists (true)\n");
    fclose(out);
    return text;
}

static bool is_same(struct axioms *x, int model, const struct litmus_test *t)
{
    struct explore_config config = { .order = order_find(MODELS[model]) };
    struct litmus_outcomes o;
    struct peet_err err;

    axioms_run(x, (enum axioms_model)model);
    if (litmus_explore(t, &config, &o, &err) < 0) {
        puts(err.text);
        return false;
    }
    bool same =
        o.count == x->outcomes && o.count && !memcmp(o.value, x->outcome, o.count * t->observables * sizeof *o.value);
    if (!same)
        printf("under %s the explorer finds %zu outcomes, the axioms %zu\n", MODELS[model], o.count, x->outcomes);
    outcomes_seen += o.count;
    states_seen += o.states;
    litmus_outcomes_release(&o);
    return same;
}

/* Whether both agree about a test under all models; the test is freed. */
static bool agree(struct litmus_test *t)
{
    static struct axioms x;
    bool same = true;

    axioms_init(&x, t);
    for (int m = 0; m < AXIOMS_MODELS; m++)
        same &= is_same(&x, m, t);
    axioms_release(&x);
    litmus_free(t);
    return same;
}

/* All registers and locations are parts of the outcome. */
static struct litmus_test *observe_all(struct litmus_test *t)
{
    for (uint32_t i = 0; i < t->locations; i++)
        test_observe(t, false, 0, i);
    for (uint32_t u = 0; u < t->threads; u++)
        for (uint32_t i = 0; i < t->thread[u].registers; i++)
            test_observe(t, true, u, i);
    return t;
}

static bool verdict(bool ok, const char *what)
{
    printf("%s the explorer agrees with the axioms about %s\n", ok ? "ok" : "not ok", what);
    return ok;
}

static bool agree_about_short_ones(void)
{
    struct litmus_test *t;
    struct peet_err err;
    bool ok = true;

    for (const struct litmus_builtin *b = litmus_builtins; ok && b->name; b++)
        ok = litmus_parse_short(b->name, b->program, b->condition, &t, &err) == 0 && agree(t);
    for (size_t i = 0; ok && DIRECTED[i]; i++)
        ok = litmus_parse_short(DIRECTED[i], DIRECTED[i], "true", &t, &err) == 0 && agree(observe_all(t));
    return verdict(ok, "the built-in tests and rare cases");
}

static bool agree_about_files(char **path)
{
    struct litmus_test *t;
    struct peet_err err;

    for (; *path; path++)
        if (litmus_read(*path, &t, &err) < 0 || !agree(t))
            return verdict(false, *path);
    return verdict(true, "files");
}

static bool agree_about_random_ones(uint64_t tests, uint64_t state)
{
    struct litmus_test *t;
    struct peet_err err = { 0 };
    bool ok = true;

    for (uint64_t n = 0; ok && n < tests; n++) {
        char *text = write_test(&state);
        ok = litmus_parse(text, strlen(text), "random", &t, &err) == 0 && agree(t);
        if (!ok)
            printf("%s\n%s", err.text, text);
        free(text);
    }
    printf("# %" PRIu64 " tests, %" PRIu64 " outcomes, %" PRIu64 " states\n", tests, outcomes_seen, states_seen);
    return verdict(ok, "random tests under all models");
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: litmus TESTS SEED [FILE.litmus...]\n", stderr);
        return 2;
    }
    bool ok = agree_about_short_ones();
    ok &= agree_about_files(argv + 3);
    ok &= agree_about_random_ones(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    return ok ? 0 : 1;
}
