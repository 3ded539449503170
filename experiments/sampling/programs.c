/* SPDX-License-Identifier: MIT */
/* usage: programs NAME SIZE
 * Twelve small programs in one, for experiments/sampling-truth: what they do to memory changes from phase to phase, or is rare, or is the same all the time. Deterministic; the number
 * of references grows about linearly with SIZE, one million each. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void *room(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p)
        exit(2);
    return p;
}

/* ---- lists that are followed from node to node: of three sizes, one after the other ---- */

struct node {
    struct node *next;
    long value[7];
};

static long follow(size_t nodes, size_t steps)
{
    struct node *node = room(nodes, sizeof *node);
    uint32_t *order = room(nodes, sizeof *order);
    long sum = 0;

    for (size_t i = 0; i < nodes; i++)
        order[i] = (uint32_t)i;
    for (size_t i = nodes - 1; i > 0; i--) {
        size_t k = draw(i + 1);
        uint32_t other = order[i];
        order[i] = order[k];
        order[k] = other;
    }
    for (size_t i = 0; i < nodes; i++)
        node[order[i]].next = &node[order[(i + 1) % nodes]];
    const struct node *at = node;
    for (size_t i = 0; i < steps; i++) {
        at = at->next;
        sum += at->value[1];
    }
    free(node);
    free(order);
    return sum;
}

static double run_chase(size_t size)
{
    long sum = 0;

    sum += follow(5000 * size, 200000 * size);
    sum += follow(2000, 150000 * size);
    return (double)(sum + follow(1500 * size, 100000 * size));
}

/* ---- products of matrices, as they are written down ---- */

static double multiply(const double *a, const double *b, double *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    return c[n + 1];
}

static double run_matrix(size_t size)
{
    size_t n = (size_t)cbrt(500000.0 * (double)size);
    double *a = room(n * n, sizeof *a), *b = room(n * n, sizeof *b), *c = room(n * n, sizeof *c);

    for (size_t i = 0; i < n * n; i++) {
        a[i] = (double)i;
        b[i] = (double)(i ^ 5);
    }
    double result = multiply(a, b, c, n);
    free(a);
    free(b);
    free(c);
    return result;
}

/* ---- a hash table that grows ---- */

static size_t find_slot(const uint64_t *table, size_t slots, uint64_t key)
{
    size_t at = key * 0x9e3779b97f4a7c15u >> 20 & (slots - 1);

    while (table[at] && table[at] != key)
        at = (at + 1) & (slots - 1);
    return at;
}

static double run_hash(size_t size)
{
    size_t slots = 64, count = 0, keys = 180000 * size;
    uint64_t *table = room(slots, sizeof *table);

    for (size_t i = 0; i < keys; i++) {
        uint64_t key = draw(keys / 4) + 1;
        size_t at = find_slot(table, slots, key);
        count += table[at] == 0;
        table[at] = key;
        if (2 * count <= slots)
            continue;
        uint64_t *larger = room(2 * slots, sizeof *larger);
        for (size_t k = 0; k < slots; k++)
            if (table[k])
                larger[find_slot(larger, 2 * slots, table[k])] = table[k];
        free(table);
        table = larger;
        slots *= 2;
    }
    free(table);
    return (double)count;
}

/* ---- a stencil on ever coarser grids ---- */

static double relax(size_t n, unsigned times)
{
    double *from = room(n * n, sizeof *from), *to = room(n * n, sizeof *to);

    for (unsigned k = 0; k < times; k++) {
        for (size_t i = 1; i + 1 < n; i++)
            for (size_t j = 1; j + 1 < n; j++)
                to[i * n + j] =
                    .25 * (from[i * n + j - 1] + from[i * n + j + 1] + from[i * n - n + j] + from[i * n + n + j]) + 1;
        double *other = from;
        from = to;
        to = other;
    }
    double result = from[n * n / 2];
    free(from);
    free(to);
    return result;
}

static double run_stencil(size_t size)
{
    size_t n = (size_t)sqrt(12000.0 * (double)size);
    double result = 0;

    for (unsigned round = 0; round < 2; round++)
        for (size_t k = n; k > 16; k /= 2)
            result += relax(k, 6);
    return result;
}

/* ---- quicksort, and then searches ---- */

static void sort(uint64_t *a, int64_t low, int64_t high)
{
    if (low >= high)
        return;
    uint64_t pivot = a[(low + high) / 2];
    int64_t i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            uint64_t other = a[i];
            a[i++] = a[j];
            a[j--] = other;
        }
    }
    sort(a, low, j);
    sort(a, i, high);
}

static double run_sort(size_t size)
{
    size_t n = 18000 * size;
    uint64_t *a = room(n, sizeof *a);
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        a[i] = draw(UINT64_MAX);
    sort(a, 0, (int64_t)n - 1);
    for (size_t i = 0; i < n / 2; i++) {
        uint64_t key = draw(UINT64_MAX);
        size_t low = 0, high = n;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (a[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        sum += (double)low;
    }
    free(a);
    return sum;
}

/* ---- breadth first through a graph ---- */

static double run_graph(size_t size)
{
    enum { DEGREE = 8, SEARCHES = 6 };
    size_t n = 9000 * size;
    uint32_t *edge = room(n * DEGREE, sizeof *edge), *queue = room(n, sizeof *queue);
    unsigned char *visited = room(n, 1);
    double sum = 0;

    for (size_t i = 0; i < n * DEGREE; i++)
        edge[i] = (uint32_t)draw(n);
    for (uint32_t search = 0; search < SEARCHES; search++) {
        size_t head = 0, tail = 0;
        memset(visited, 0, n);
        queue[tail++] = search * 7;
        visited[search * 7] = 1;
        while (head < tail) {
            const uint32_t *to = &edge[(size_t)queue[head++] * DEGREE];
            for (unsigned k = 0; k < DEGREE; k++)
                if (!visited[to[k]]) {
                    visited[to[k]] = 1;
                    queue[tail++] = to[k];
                }
        }
        sum += (double)tail;
    }
    free(edge);
    free(queue);
    free(visited);
    return sum;
}

/* ---- a cache of things by key: a tree to find them, a list to forget the one that was not used for longest ---- */

struct entry {
    struct entry *less, *more, *newer, *older;
    uint64_t key;
};

static struct entry *newest, *oldest;

static void take_out(struct entry *e)
{
    *(e->newer ? &e->newer->older : &newest) = e->older;
    *(e->older ? &e->older->newer : &oldest) = e->newer;
}

static void put_first(struct entry *e)
{
    e->newer = NULL;
    e->older = newest;
    *(newest ? &newest->newer : &oldest) = e;
    newest = e;
}

static double run_tree(size_t size)
{
    size_t lookups = 14000 * size, keys = 2000 * size, found = 0;
    struct entry *root = NULL;

    for (size_t i = 0; i < lookups; i++) {
        uint64_t key = draw(4) ? draw(keys / 16) * 16 : draw(keys); /* some are wanted more often */
        struct entry **at = &root;
        while (*at && (*at)->key != key)
            at = key * 0x9e3779b97f4a7c15u < (*at)->key * 0x9e3779b97f4a7c15u ? &(*at)->less : &(*at)->more;
        found += *at != NULL;
        if (*at) {
            take_out(*at);
        } else {
            *at = room(1, sizeof **at);
            (*at)->key = key;
        }
        put_first(*at);
    }
    return (double)found + (oldest ? (double)oldest->key : 0);
}

/* ---- words of a text, counted ---- */

struct word {
    struct word *next;
    unsigned count;
    char text[20];
};

static double run_words(size_t size)
{
    enum { BUCKETS = 1 << 14 };
    size_t length = 250000 * size, words = 0;
    char *text = room(length + 1, 1);
    struct word **bucket = room(BUCKETS, sizeof *bucket);

    for (size_t i = 0; i < length;) {
        uint64_t word = draw(draw(8) ? 300 : 40000), letters = 2 + word % 9;
        for (uint64_t k = 0; k < letters && i < length; k++)
            text[i++] = (char)('a' + (word * 7 + k * (word % 13)) % 26);
        if (i < length)
            text[i++] = ' ';
    }
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, " ");
        uint32_t hash = 2166136261u;
        for (size_t i = 0; i < bytes; i++)
            hash = (hash ^ (unsigned char)at[i]) * 16777619u;
        struct word **w = &bucket[hash % BUCKETS];
        while (*w && (strncmp((*w)->text, at, bytes) || (*w)->text[bytes]))
            w = &(*w)->next;
        if (!*w) {
            *w = room(1, sizeof **w);
            memcpy((*w)->text, at, bytes);
            words++;
        }
        (*w)->count++;
        at += bytes + (at[bytes] != 0);
    }
    free(text);
    return (double)words;
}

/* ---- strides that double from pass to pass ---- */

static double run_strides(size_t size)
{
    unsigned bits = 10;

    while ((uint64_t)(bits + 1) * ((uint64_t)5 << bits) < 800000 * size)
        bits++;
    size_t n = (size_t)1 << bits;
    double *re = room(n, sizeof *re), *im = room(n, sizeof *im);
    for (size_t i = 0; i < n; i++)
        re[i] = (double)(i * 2654435761u % 1000);
    for (size_t half = 1; half < n; half *= 2)
        for (size_t k = 0; k < half; k++) {
            double c = cos(M_PI * (double)k / (double)half), s = sin(M_PI * (double)k / (double)half);
            for (size_t i = k; i < n; i += 2 * half) {
                double x = re[i + half] * c - im[i + half] * s, y = re[i + half] * s + im[i + half] * c;
                re[i + half] = re[i] - x;
                im[i + half] = im[i] - y;
                re[i] += x;
                im[i] += y;
            }
        }
    double result = re[1] + im[n / 2];
    free(re);
    free(im);
    return result;
}

/* ---- a sparse system, solved step by step ---- */

static double run_sparse(size_t size)
{
    enum { ROW = 7, STEPS = 12 };
    size_t n = 3000 * size;
    uint32_t *column = room(n * ROW, sizeof *column);
    double *value = room(n * ROW, sizeof *value), *x = room(n, sizeof *x), *y = room(n, sizeof *y), error = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ROW; k++) { /* most are near, some anywhere */
            column[i * ROW + k] = (uint32_t)(k < 5 ? (i + k * 3) % n : draw(n));
            value[i * ROW + k] = 0.1;
        }
    for (unsigned step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < n; i++) {
            double sum = 1;
            for (size_t k = i * ROW; k < (i + 1) * ROW; k++)
                sum += value[k] * x[column[k]];
            y[i] = sum;
        }
        error = 0;
        for (size_t i = 0; i < n; i++) {
            error += (y[i] - x[i]) * (y[i] - x[i]);
            x[i] = y[i];
        }
    }
    free(column);
    free(value);
    free(x);
    free(y);
    return error;
}

/* ---- a ring that is filled and emptied, and what comes out is merged ---- */

static double run_merge(size_t size)
{
    enum { RING = 1 << 12 };
    size_t n = 32768;
    static uint32_t ring[RING];

    while (n * (size_t)log2((double)n) * 4 < 700000 * size)
        n *= 2;
    uint32_t *from = room(n, sizeof *from), *to = room(n, sizeof *to);
    for (size_t done = 0; done < n; done += RING) {
        for (size_t i = 0; i < RING; i++)
            ring[(done + i * 5) % RING] = (uint32_t)draw(UINT32_MAX);
        for (size_t i = 0; i < RING; i++)
            from[done + i] = ring[i];
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t a = low, b = low + width;
            for (size_t i = low; i < low + 2 * width; i++)
                to[i] = b == low + 2 * width || (a < low + width && from[a] <= from[b]) ? from[a++] : from[b++];
        }
        uint32_t *other = from;
        from = to;
        to = other;
    }
    double result = from[n / 2];
    free(from);
    free(to);
    return result;
}

/* ---- blocks of many sizes that come and go ---- */

static double run_churn(size_t size)
{
    size_t live = 1500 * size, turns = 60000 * size;
    unsigned char **block = room(live, sizeof *block);
    double sum = 0;

    for (size_t i = 0; i < turns; i++) {
        size_t at = draw(live), bytes = 16 + draw(draw(20) ? 100 : 2000);
        if (block[at])
            sum += block[at][0];
        free(block[at]);
        block[at] = room(1, bytes);
        for (size_t k = 0; k < bytes; k += 32)
            block[at][k] = (unsigned char)i;
    }
    for (size_t i = 0; i < live; i++)
        free(block[i]);
    free(block);
    return sum;
}

static const struct {
    const char *name;
    double (*run)(size_t size);
} PROGRAMS[] = {
    { "chase", run_chase }, { "matrix", run_matrix }, { "hash", run_hash },       { "stencil", run_stencil },
    { "sort", run_sort },   { "graph", run_graph },   { "tree", run_tree },       { "words", run_words },
    { "strides", run_strides }, { "sparse", run_sparse }, { "merge", run_merge }, { "churn", run_churn },
};

int main(int argc, char **argv)
{
    long size = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

    for (size_t i = 0; size > 0 && i < sizeof PROGRAMS / sizeof *PROGRAMS; i++)
        if (!strcmp(argv[1], PROGRAMS[i].name)) {
            printf("%g\n", PROGRAMS[i].run((size_t)size));
            return 0;
        }
    fprintf(stderr, "usage: programs NAME SIZE\n");
    return 2;
}
