/* SPDX-License-Identifier: MIT */
/* usage: similarity [-m FILE] [-w FILE] A B [PROGRAM]
 *        similarity --check
 * How much alike two recordings of a program are, thread by thread, by the addresses of their instructions. A and B are traces, and
 * PROGRAM chooses the process (by the last part of its path) where there are several. Threads stand in the order of the numbers that their
 * marks gave them ("tid 3"), or else in that of the trace.
 *
 * -m FILE: B begins with the program and not with a mark; the addresses of marks stand in FILE, and B is cut there: after the first of them
 * that its thread executes, and before the second, if there is one. -w FILE: ranges of code that waits for others, "FIRST END" in each
 * line. All are hexadecimal.
 *
 * Writes a line for each thread and view: thread, view, n, m, edits, indels, edit similarity, LCS similarity, "exact" or "bound". Edits
 * are insertions, deletions and replacements, D in s = 1 - D / max(n, m); indels are n + m - 2 LCS, and the second similarity is 2 LCS / (n + m). Views:
 *   start  all instructions, B uncut (with -m)      calls       calls and returns alone
 *   all    all instructions                         work        instructions, without the code that waits (with -w)
 *                                                   work_calls  both
 * With -m there is a line for each function that one of the cut streams has more instructions of: thread, "why", its name, how many in A alone,
 * how many in B alone, places not regarded.
 * Beyond LIMIT edits it stops: "bound" says that there are at least that many, and that the similarity is at most this.
 * --check compares what is fast here with what is obvious, on random words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peet/trace.h"

enum { LIMIT = 8000, THREADS = 1024 };

struct stream {
    uint64_t *at; /* addresses, in the order in which they were executed */
    uint8_t *is_call;
    size_t count, room;
};

struct range {
    uint64_t first, end;
};

struct ranges {
    struct range *item;
    size_t count;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "similarity: %s: %s\n", what, why);
    exit(2);
}

static void *grow(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p)
        fail("memory", "there is none");
    return p;
}

/* ---- distances ---- */

struct word {
    const uint64_t *at;
    size_t count;
};

/* The rows that e edits can reach are known for each diagonal; one edit more comes from there or from a diagonal beside it, and continues
 * for free while both words are the same (Ukkonen 1985; Myers 1986 without replacements). Returns the number of edits, or -1: more than
 * limit. */
static int64_t distance(struct word a, struct word b, bool replaces, int64_t limit)
{
    int64_t n = (int64_t)a.count, m = (int64_t)b.count, e = 0, found = -1;
    size_t width = (size_t)(2 * limit + 3);
    int64_t *old = grow(NULL, width * sizeof *old), *reach = grow(NULL, width * sizeof *reach);

    for (size_t i = 0; i < width; i++)
        old[i] = reach[i] = -1;
    for (; e <= limit && found < 0; e++) {
        for (int64_t k = -e; k <= e; k++) {
            const int64_t *o = old + limit + 1 + k; /* diagonal k: column is row + k */
            int64_t row = e == 0 ? 0 : -1;
            if (e && o[0] >= 0)
                row = o[0] + (replaces && o[0] < n && o[0] + k < m);
            if (e && o[-1] >= 0 && o[-1] + k <= m && o[-1] > row)
                row = o[-1];
            if (e && o[1] >= 0 && o[1] < n && o[1] + 1 > row)
                row = o[1] + 1;
            if (row >= 0 && row + k >= 0)
                while (row < n && row + k < m && a.at[row] == b.at[row + k])
                    row++;
            reach[limit + 1 + k] = row + k >= 0 ? row : -1;
            if (row == n && row + k == m)
                found = e;
        }
        int64_t *other = old;
        old = reach;
        reach = other;
    }
    free(old);
    free(reach);
    return found;
}

/* Equal ends cost nothing, in either distance. */
static int64_t trimmed(struct word a, struct word b, bool replaces, int64_t limit)
{
    while (a.count && b.count && a.at[0] == b.at[0])
        a = (struct word){ a.at + 1, a.count - 1 }, b = (struct word){ b.at + 1, b.count - 1 };
    while (a.count && b.count && a.at[a.count - 1] == b.at[b.count - 1])
        a.count--, b.count--;
    if (a.count == 0 || b.count == 0)
        return (int64_t)(a.count + b.count);
    return distance(a, b, replaces, limit);
}

/* Where it is not known: more than the limit, and at least what the lengths differ by. */
static int64_t least(struct word a, struct word b)
{
    int64_t longer = (int64_t)(a.count > b.count ? a.count - b.count : b.count - a.count);

    return longer > LIMIT ? longer : LIMIT + 1;
}

static void compare(unsigned thread, const char *view, struct word a, struct word b)
{
    int64_t edits = trimmed(a, b, true, LIMIT), indels = trimmed(a, b, false, LIMIT);
    bool is_exact = edits >= 0 && indels >= 0;
    size_t most = a.count > b.count ? a.count : b.count, sum = a.count + b.count;

    edits = edits < 0 ? least(a, b) : edits;
    indels = indels < 0 ? least(a, b) : indels;
    printf("%u %s %zu %zu %" PRId64 " %" PRId64 " %.6f %.6f %s\n", thread, view, a.count, b.count, edits, indels,
           most ? 1 - (double)edits / (double)most : 1, sum ? 1 - (double)indels / (double)sum : 1,
           is_exact ? "exact" : "bound");
}

/* The table of all prefixes. */
static int64_t plain_distance(struct word a, struct word b, bool replaces)
{
    static int64_t table[65][65];

    for (size_t i = 0; i <= a.count; i++)
        for (size_t j = 0; j <= b.count; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (int64_t)(i + j);
                continue;
            }
            int64_t best = table[i - 1][j] < table[i][j - 1] ? table[i - 1][j] + 1 : table[i][j - 1] + 1;
            int64_t both = table[i - 1][j - 1] + (a.at[i - 1] == b.at[j - 1] ? 0 : replaces ? 1 : 2);
            table[i][j] = both < best ? both : best;
        }
    return table[a.count][b.count];
}

static int check(void)
{
    uint64_t a[64], b[64];

    for (unsigned round = 0; round < 20000; round++) {
        unsigned letters = 1 + (unsigned)rand() % 5;
        struct word x = { a, (size_t)rand() % 65 }, y = { b, (size_t)rand() % 65 };
        for (unsigned i = 0; i < 64; i++) {
            a[i] = (uint64_t)rand() % letters;
            b[i] = rand() % 4 ? a[i] : (uint64_t)rand() % letters;
        }
        for (int replaces = 0; replaces < 2; replaces++) {
            int64_t limit = rand() % 130, expected = plain_distance(x, y, replaces);
            int64_t is = trimmed(x, y, replaces, limit), whole = distance(x, y, replaces, 128);
            if ((is != expected && (is != -1 || expected <= limit)) || whole != expected) {
                printf("round %u: %" PRId64 " and %" PRId64 ", not %" PRId64 "\n", round, is, whole, expected);
                return 1;
            }
        }
    }
    printf("40000 distances are right\n");
    return 0;
}

/* ---- streams ---- */

static struct ranges read_ranges(const char *path, bool have_ends)
{
    struct ranges r = { 0 };
    struct range x;
    FILE *f = fopen(path, "r");

    if (!f)
        fail(path, "cannot be read");
    while (fscanf(f, "%" SCNx64, &x.first) == 1 && (!have_ends || fscanf(f, "%" SCNx64, &x.end) == 1)) {
        r.item = grow(r.item, (r.count + 1) * sizeof *r.item);
        x.end = have_ends ? x.end : x.first + 1;
        r.item[r.count++] = x;
    }
    if (!feof(f) || r.count == 0)
        fail(path, "hexadecimal addresses were expected");
    fclose(f);
    return r;
}

static bool is_in(const struct ranges *r, uint64_t addr)
{
    for (size_t i = 0; i < r->count; i++)
        if (addr >= r->item[i].first && addr < r->item[i].end)
            return true;
    return false;
}

static void stream_add(struct stream *s, const struct peet_insn *insn)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 1 << 16;
        s->at = grow(s->at, s->room * sizeof *s->at);
        s->is_call = grow(s->is_call, s->room);
    }
    s->at[s->count] = insn->addr;
    s->is_call[s->count++] =
        insn->class == PEET_CL_call || insn->class == PEET_CL_call_indirect || insn->class == PEET_CL_return;
}

static void stream_read(struct stream *s, struct peet_trace *t, uint32_t thread)
{
    struct peet_cursor *cursor;
    struct peet_batch batch;
    struct peet_err err;
    int r;

    if (peet_cursor_open(t, thread, 0, &cursor, &err) < 0)
        fail(peet_trace_path(t), err.text);
    while ((r = peet_cursor_next(cursor, &batch, &err)) > 0)
        for (size_t i = 0; i < batch.count; i++) {
            if (batch.records[i].kind != PEET_BLOCK)
                continue;
            const struct peet_block *b = peet_trace_block(t, batch.records[i].id);
            for (unsigned k = 0; k < b->insns; k++)
                if (!(b->insn[k].flags & PEET_FL_KERNEL))
                    stream_add(s, &b->insn[k]);
        }
    if (r < 0)
        fail(peet_trace_path(t), err.text);
    peet_cursor_free(cursor);
}

/* What of a stream a view has, in separate memory. */
static struct word chosen(const struct stream *s, size_t first, size_t end, bool calls, const struct ranges *without)
{
    uint64_t *at = grow(NULL, (end - first + 1) * sizeof *at);
    size_t count = 0;

    for (size_t i = first; i < end; i++)
        if ((!calls || s->is_call[i]) && (!without || !is_in(without, s->at[i])))
            at[count++] = s->at[i];
    return (struct word){ at, count };
}

static void show(unsigned thread, const char *view, struct word a, struct word b)
{
    compare(thread, view, a, b);
    free((void *)(uintptr_t)a.at);
    free((void *)(uintptr_t)b.at);
}

/* Where B is cut. */
static void find_cut(const struct stream *b, const struct ranges *marks, size_t *ret_first, size_t *ret_end)
{
    size_t first = 0, end = b->count;

    while (first < end && !is_in(marks, b->at[first]))
        first++;
    if (first == end)
        fail("the second trace", "no mark in a thread that the first one has");
    for (size_t i = ++first; i < end; i++)
        if (is_in(marks, b->at[i]))
            end = i;
    *ret_first = first;
    *ret_end = end;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Both streams sorted, so that what one has more of is seen, function by function. */
static void explain(unsigned thread, struct word a, struct word b, const struct peet_trace *t, uint32_t process)
{
    const struct peet_symbol *symbol = NULL;
    uint64_t more_a = 0, more_b = 0;
    size_t i = 0, j = 0;

    qsort((void *)(uintptr_t)a.at, a.count, sizeof *a.at, by_address);
    qsort((void *)(uintptr_t)b.at, b.count, sizeof *b.at, by_address);
    while (i < a.count || j < b.count) {
        if (i < a.count && j < b.count && a.at[i] == b.at[j]) {
            i++, j++;
            continue;
        }
        bool is_a = j == b.count || (i < a.count && a.at[i] < b.at[j]);
        const struct peet_symbol *of = peet_trace_symbol(t, process, is_a ? a.at[i++] : b.at[j++]);
        if (of != symbol && more_a + more_b)
            printf("%u why %s %" PRIu64 " %" PRIu64 "\n", thread, symbol ? symbol->name : "?", more_a, more_b);
        if (of != symbol)
            more_a = more_b = 0;
        symbol = of;
        *(is_a ? &more_a : &more_b) += 1;
    }
    if (more_a + more_b)
        printf("%u why %s %" PRIu64 " %" PRIu64 "\n", thread, symbol ? symbol->name : "?", more_a, more_b);
    free((void *)(uintptr_t)a.at);
    free((void *)(uintptr_t)b.at);
}

static void compare_streams(unsigned thread, const struct stream *a, const struct stream *b, const struct ranges *marks,
                            const struct ranges *waits, const struct peet_trace *of_b, uint32_t process)
{
    size_t first = 0, end = b->count;

    if (marks->count) {
        find_cut(b, marks, &first, &end);
        show(thread, "start", chosen(a, 0, a->count, false, NULL), chosen(b, 0, b->count, false, NULL));
        explain(thread, chosen(a, 0, a->count, false, NULL), chosen(b, first, end, false, NULL), of_b, process);
    }
    for (int waiting = 0; waiting < 1 + (waits->count > 0); waiting++)
        for (int calls = 0; calls < 2; calls++) {
            const struct ranges *without = waiting ? waits : NULL;
            show(thread,
                 waiting ? calls ? "work_calls" : "work"
                 : calls ? "calls"
                         : "all",
                 chosen(a, 0, a->count, calls, without), chosen(b, first, end, calls, without));
        }
}

/* ---- which threads correspond ---- */

static bool is_program(const char *path, const char *program)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, program) == 0;
}

static uint32_t find_process(const struct peet_trace *t, const char *program)
{
    const struct peet_process *p;

    for (size_t i = 0; (p = peet_trace_process(t, i)) != NULL; i++)
        if (!program || is_program(p->program, program))
            return p->id;
    fail(peet_trace_path(t), "that program is not in it");
    return 0;
}

/* The process's threads, by rising numbers; returns how many there are. */
static unsigned find_threads(const struct peet_trace *t, uint32_t process, const struct peet_thread **ret)
{
    const struct peet_thread *thread;
    unsigned count = 0;

    memset(ret, 0, THREADS * sizeof *ret);
    for (size_t i = 0; (thread = peet_trace_thread(t, i)) != NULL; i++) {
        if (thread->process != process)
            continue;
        unsigned number = count++;
        sscanf(thread->name, "tid %u", &number);
        if (number >= THREADS || ret[number])
            fail(peet_trace_path(t), "two threads with one number, or too many");
        ret[number] = thread;
    }
    for (unsigned number = 0, k = 0; number < THREADS; number++)
        if (ret[number])
            ret[k++] = ret[number];
    return count;
}

int main(int argc, char **argv)
{
    static const struct peet_thread *left[THREADS], *right[THREADS];
    struct ranges marks = { 0 }, waits = { 0 };
    struct peet_trace *a, *b;
    struct peet_err err;
    int i = 1;

    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return check();
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
        *(argv[i][1] == 'm' ? &marks : &waits) = read_ranges(argv[i + 1], argv[i][1] != 'm');
    if (argc - i < 2 || argc - i > 3)
        fail("usage", "similarity [-m FILE] [-w FILE] A B [PROGRAM]");
    if (peet_trace_open(argv[i], &a, &err) < 0 || peet_trace_open(argv[i + 1], &b, &err) < 0)
        fail("traces", err.text);
    uint32_t process = find_process(b, argv[i + 2]);
    unsigned count = find_threads(a, find_process(a, argv[i + 2]), left);
    if (count != find_threads(b, process, right))
        fail(argv[i], "not as many threads as in the other trace");
    for (unsigned k = 0; k < count; k++) {
        struct stream x = { 0 }, y = { 0 };
        stream_read(&x, a, left[k]->id);
        stream_read(&y, b, right[k]->id);
        compare_streams(k, &x, &y, &marks, &waits, b, process);
        free(x.at), free(x.is_call), free(y.at), free(y.is_call);
    }
    peet_trace_free(a);
    peet_trace_free(b);
    return 0;
}
