/* SPDX-License-Identifier: MIT */
/* Two lists that grow all the time, by the same function for both, so that only its caller says to which list a block belongs; and walks through them, called from two
 * places. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value[6];
};

static __attribute__((noinline)) void *get(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p)
        exit(1);
    return p;
}

static __attribute__((noinline)) long walk(struct node *n, long add)
{
    long sum = 0;

    for (; n; n = n->next)
        sum += n->value[0] += add;
    return sum;
}

static __attribute__((noinline)) long fill(struct node *n, long add)
{
    return walk(n, add) + 1;
}

static __attribute__((noinline)) long sum(struct node *n)
{
    return walk(n, 0) + 2;
}

int main(void)
{
    struct node *all_left = NULL, *all_right = NULL;
    long total = 0;

    for (int i = 0; i < 400; i++) {
        struct node *left = get(sizeof *left);
        *left = (struct node){ all_left, { i } };
        all_left = left;
        struct node *right = get(2 * sizeof *right);
        *right = (struct node){ all_right, { -i } };
        all_right = right;
        total += fill(all_left, i) + sum(all_right);
    }
    printf("%ld\n", total);
    return 0;
}
