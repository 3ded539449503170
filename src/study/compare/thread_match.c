/* SPDX-License-Identifier: MIT */
#include "study/compare/thread_match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const matched_by_names[] = { "no partner", "creation", "content", "--thread" };

/* ---- order of creation ---- */

/* A thread, and its number in the order of creation. */
struct numbered_thread {
    const struct peet_thread *thread;
    unsigned number; /* that its mark gave it; or UINT32_MAX */
    size_t at;       /* index in the trace */
};

static int numbered_thread_order(const void *a, const void *b)
{
    const struct numbered_thread *x = a, *y = b;

    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : (x->at > y->at) - (x->at < y->at);
}

size_t threads_of_process(const struct peet_trace *t, uint32_t process, const struct peet_thread ***ret)
{
    struct numbered_thread *list = NULL;
    const struct peet_thread *thread;
    size_t count = 0;

    for (size_t i = 0; (thread = peet_trace_thread(t, i)); i++) {
        if (thread->process != process)
            continue;
        list = mem_room(list, count, sizeof *list);
        list[count] = (struct numbered_thread){ thread, UINT32_MAX, i };
        sscanf(thread->name, "tid %u", &list[count++].number);
    }
    if (count)
        qsort(list, count, sizeof *list, numbered_thread_order);
    *ret = mem_alloc(count + 1, sizeof **ret);
    for (size_t i = 0; i < count; i++)
        (*ret)[i] = list[i].thread;
    free(list);
    return count;
}

/* Whether threads have the same place in the tree of creations. The streams are those of all threads of a process, and one without a thread. */
static bool threads_have_equal_births(const struct event_stream *a, const struct peet_thread *x,
                                      const struct event_stream *b, const struct peet_thread *y, unsigned depth)
{
    if (x->parent == 0 || y->parent == 0 || depth > 64)
        return x->parent == y->parent;
    if (x->ordinal != y->ordinal)
        return false;
    const struct event_stream *p = a, *q = b;
    while (p->thread && p->thread->id != x->parent)
        p++;
    while (q->thread && q->thread->id != y->parent)
        q++;
    return p->thread && q->thread && threads_have_equal_births(a, p->thread, b, q->thread, depth + 1);
}

/* ---- content ---- */

/* A possible pair, and what its threads have in common. */
struct candidate_pair {
    size_t a, b;
    double likeness; /* of counts of events: 2 × common / sum */
};

static int candidate_pair_order(const void *a, const void *b)
{
    const struct candidate_pair *x = a, *y = b;

    if (x->likeness < y->likeness || x->likeness > y->likeness)
        return x->likeness > y->likeness ? -1 : 1;
    return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

static double streams_likeness(const struct event_stream *a, const struct event_stream *b, uint32_t *count,
                               uint32_t classes)
{
    uint64_t common = 0, sum = a->count + b->count;

    memset(count, 0, classes * sizeof *count);
    for (size_t i = 0; i < a->count; i++)
        count[a->at[i]]++;
    for (size_t i = 0; i < b->count; i++)
        if (count[b->at[i]]) {
            count[b->at[i]]--;
            common++;
        }
    return sum ? 2 * (double)common / (double)sum : 1;
}

/* ---- pairs ---- */

struct thread_matching {
    const struct event_stream *a, *b;
    size_t a_count, b_count;
    bool *a_done, *b_done;
    struct thread_pair *pair;
    size_t pairs;
};

static void thread_matching_add(struct thread_matching *m, size_t a, size_t b, enum matched_by by)
{
    m->pair[m->pairs++] = (struct thread_pair){ a, b, by };
    if (a != SIZE_MAX)
        m->a_done[a] = true;
    if (b != SIZE_MAX)
        m->b_done[b] = true;
}

/* Whether a trace says which threads created others. */
static bool streams_have_births(const struct event_stream *s, size_t count)
{
    size_t i = 0;

    while (i < count && s[i].thread->parent == 0)
        i++;
    return count < 2 || i < count;
}

static void thread_matching_by_creation(struct thread_matching *m)
{
    bool has_births = streams_have_births(m->a, m->a_count) && streams_have_births(m->b, m->b_count);

    for (size_t i = 0; i < m->a_count; i++)
        for (size_t j = 0; j < m->b_count && !m->a_done[i]; j++)
            if (!m->b_done[j]
                && (has_births ? threads_have_equal_births(m->a, m->a[i].thread, m->b, m->b[j].thread, 0) : i == j))
                thread_matching_add(m, i, j, MATCHED_BY_CREATION);
}

static void thread_matching_by_content(struct thread_matching *m, uint32_t classes)
{
    uint32_t *count = mem_alloc((size_t)classes + 1, sizeof *count);
    struct candidate_pair *list = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->a_count; i++)
        for (size_t j = 0; j < m->b_count && !m->a_done[i]; j++)
            if (!m->b_done[j]) {
                list = mem_room(list, n, sizeof *list);
                list[n++] = (struct candidate_pair){ i, j, streams_likeness(&m->a[i], &m->b[j], count, classes) };
            }
    if (n)
        qsort(list, n, sizeof *list, candidate_pair_order);
    for (size_t k = 0; k < n; k++)
        if (!m->a_done[list[k].a] && !m->b_done[list[k].b])
            thread_matching_add(m, list[k].a, list[k].b, MATCHED_BY_CONTENT);
    free(list);
    free(count);
}

static int thread_pair_order(const void *a, const void *b)
{
    const struct thread_pair *x = a, *y = b;

    return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

size_t threads_match(const struct event_stream *a, size_t a_count, const struct event_stream *b, size_t b_count,
                     uint32_t classes, bool by_content, struct thread_pair *ret, size_t known)
{
    struct thread_matching m = { .a = a, .b = b, .a_count = a_count, .b_count = b_count, .pair = ret };

    m.a_done = mem_alloc(a_count + 1, sizeof *m.a_done);
    m.b_done = mem_alloc(b_count + 1, sizeof *m.b_done);
    for (size_t i = 0; i < known; i++)
        thread_matching_add(&m, ret[i].a, ret[i].b, MATCHED_BY_OPTION);
    if (known == 0) {
        if (!by_content)
            thread_matching_by_creation(&m);
        thread_matching_by_content(&m, classes);
        for (size_t i = 0; i < a_count; i++)
            if (!m.a_done[i])
                thread_matching_add(&m, i, SIZE_MAX, MATCHED_NOT);
        for (size_t j = 0; j < b_count; j++)
            if (!m.b_done[j])
                thread_matching_add(&m, SIZE_MAX, j, MATCHED_NOT);
    }
    if (m.pairs)
        qsort(ret, m.pairs, sizeof *ret, thread_pair_order);
    free(m.a_done);
    free(m.b_done);
    return m.pairs;
}
