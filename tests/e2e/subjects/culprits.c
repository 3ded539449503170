/* SPDX-License-Identifier: MIT */
/* Programs whose memory behaviour is known: each has one data object, one line and one cause to blame. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8192, COLUMNS = 24, COLLIDE = 4096, ROUNDS = 20, INCREMENTS = 20000, NODES = 40000 };

/* ---- columns of a matrix that lies row by row ---- */

static double matrix[ROWS][COLUMNS];

static double walk_columns(int first)
{
    double sum = 0;

    matrix[first][first] = 1; /* so that the compiler cannot know that it is all zeros */
    for (int i = 0; i < COLUMNS; i++)
        for (int k = 0; k < ROWS; k++)
            sum += matrix[k][i]; /* blame: matrix */
    return sum;
}

/* ---- two arrays that want the same places of a direct-mapped cache of 128 KB ---- */

static struct {
    double left[COLLIDE];
    char between[128 * 1024 - COLLIDE * sizeof(double)];
    double right[COLLIDE];
} pair __attribute__((aligned(128 * 1024)));

static double add_colliding(int first)
{
    double sum = 0;

    pair.left[first] = pair.right[first] = 1;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < COLLIDE; i++)
            sum += pair.left[i] * pair.right[i]; /* blame: pair */
    return sum;
}

/* ---- neighbours in a line ---- */

static struct {
    volatile long count[8];
} counters __attribute__((aligned(64)));

static void *count_up(void *number)
{
    long mine = (long)(intptr_t)number;

    for (int i = 0; i < INCREMENTS; i++)
        counters.count[mine]++; /* blame: counters */
    return NULL;
}

static double share(void)
{
    pthread_t thread[2];

    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, count_up, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return (double)(counters.count[0] + counters.count[1]);
}

/* ---- a list whose nodes are in no order ---- */

struct node {
    struct node *next;
    long value[15];
};

static struct node *make_list(void)
{
    struct node *nodes = calloc(NODES, sizeof *nodes), *last = nodes;
    uint32_t at = 0;

    for (int i = 1; i < NODES; i++) { /* a step that meets all of them */
        at = (at + 17389) % NODES;
        last->next = &nodes[at];
        last = last->next;
    }
    last->next = NULL;
    return nodes;
}

static double follow(const struct node *list)
{
    double sum = 0;

    for (int round = 0; round < 4; round++)
        for (const struct node *n = list; n; n = n->next) /* blame: nodes */
            sum += 1;
    return sum;
}

int main(int argc, char **argv)
{
    char what = argc > 1 ? argv[1][3] : 'u';       /* one byte, so that it does not matter where arguments lie */
    double r = what == 'u'   ? walk_columns(argc)  /* columns */
               : what == 'l' ? add_colliding(argc) /* collide */
               : what == 'r' ? share()
                             : follow(make_list());

    printf("%.0f\n", r);
    return 0;
}
