/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "format/contexts.h"

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err)
{
    *d = (struct decoder){ .schema = s };
    return contexts_init(&d->contexts) < 0 ? err_set(err, PEET_ERR_MEMORY, "no memory for a decoder") : 0;
}

void decoder_release(struct decoder *d)
{
    contexts_release(&d->contexts);
    *d = (struct decoder){ 0 };
}

struct context *decoder_stop(struct decoder *d, const char *fault)
{
    d->fault = fault;
    d->left = 0;
    return NULL;
}

bool decoder_long_run(struct decoder *d)
{
    struct window *w = &d->plane[PLANE_RUNS];
    uint8_t byte;

    do {
        if (w->p == w->end) {
            decoder_stop(d, "it has fewer runs than exceptions");
            return false;
        }
        byte = *w->p++;
        d->run += byte;
    } while (byte == 255);
    return true;
}

struct context *decoder_new(struct decoder *d)
{
    return contexts_get(&d->contexts, d->schema, window_leb(&d->plane[PLANE_ITEMS]));
}

bool decoder_refill(struct decoder *d, uint64_t missed)
{
    size_t have = (size_t)(d->difference_end - d->difference);
    size_t more = d->in_planes < DIFFERENCES ? d->in_planes : DIFFERENCES;

    memmove(d->differences, d->difference, have * sizeof *d->differences);
    differences_join(&d->in, more, d->differences + have);
    d->in_planes -= more;
    d->difference = d->differences;
    d->difference_end = d->differences + have + more;
    if (have + more >= (size_t)__builtin_popcountll(missed))
        return true;
    decoder_stop(d, "it has fewer differences than misses");
    return false;
}

int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err)
{
    const uint8_t *const *from = plane + PLANE_CLASSES;
    struct window *runs = &d->plane[PLANE_RUNS];

    contexts_forget(&d->contexts);
    d->now = d->contexts.none;
    d->left = 0;
    d->fault = NULL;
    for (int i = 0; i < 4; i++)
        d->plane[i] = (struct window){ plane[i], plane[i] + size[i], 0 };
    d->in = (struct difference_in){ from[0], from[1], from[2], from[3], from[4], from[5] };
    d->in_planes = size[PLANE_B0];
    d->difference = d->difference_end = d->differences;
    if (items > CHUNK_MAX_WORDS + PEET_SLOTS || !differences_fit(&d->in, size + PLANE_CLASSES, d->in_planes)
        || runs->p == runs->end)
        goto damaged;
    d->run = *runs->p++;
    if (d->run == 255 && !decoder_long_run(d))
        goto damaged;
    d->left = items;
    return 0;
damaged:
    d->fault = NULL;
    return err_set(err, PEET_ERR_DAMAGED, "its planes do not fit each other");
}
