/* SPDX-License-Identifier: MIT */
/* One function makes lists for two others; only their callers distinguish the data. A list grows in a third place, and stays whose it was. */
#include <stdio.h>
#include <stdlib.h>

struct list {
    long *value;
    long room, count;
};

static struct list *make_list(long room)
{
    struct list *list = malloc(sizeof *list);

    if (!list || !(list->value = calloc((size_t)room, sizeof *list->value)))
        abort();
    list->room = room;
    list->count = 0;
    return list;
}

static void add(struct list *list, long value)
{
    if (list->count == list->room) {
        list->room *= 2;
        list->value = realloc(list->value, (size_t)list->room * sizeof *list->value);
        if (!list->value)
            abort();
    }
    list->value[list->count++] = value;
}

static long sum(const struct list *list)
{
    long sum = 0;

    for (long i = 0; i < list->count; i++)
        sum += list->value[i];
    return sum;
}

static struct list *orders(void)
{
    return make_list(16);
}

static struct list *customers(void)
{
    return make_list(1000);
}

int main(void)
{
    struct list *many = orders(), *few = customers();
    long all = 0;

    for (long i = 0; i < 50000; i++)
        add(many, i);
    for (long i = 0; i < 1000; i++)
        add(few, i);
    for (int i = 0; i < 3; i++)
        all += sum(many) + sum(few);
    printf("%ld\n", all);
    return 0;
}
