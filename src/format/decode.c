/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

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
    free(d->difference);
    *d = (struct decoder){ 0 };
}

/* How many of the n differences have more than 2, 3 and 4 bytes. */
static void count_classes(const uint8_t *classes, size_t n, size_t count[3])
{
    static const uint64_t LOW = 0x5555555555555555;

    count[0] = count[1] = count[2] = 0;
    for (size_t i = 0; i < n; i += 32) {
        uint8_t bytes[8] = { 0 };
        size_t rest = n - i < 32 ? n - i : 32;
        memcpy(bytes, classes + i / 4, (rest + 3) / 4);
        uint64_t word = get_le64(bytes) & (rest < 32 ? ((uint64_t)1 << 2 * rest) - 1 : UINT64_MAX);
        uint64_t low = word & LOW, high = word >> 1 & LOW;
        count[0] += (size_t)__builtin_popcountll(low | high);
        count[1] += (size_t)__builtin_popcountll(high);
        count[2] += (size_t)__builtin_popcountll(low & high);
    }
}

/* Puts the bytes of the differences together again; false when the planes do not fit each other. Planes may be read up
 * to 4 bytes past their end. */
static bool join(uint64_t *out, size_t n, const uint8_t *const plane[PLANES], const size_t size[PLANES])
{
    const uint8_t *classes = plane[PLANE_CLASSES], *b0 = plane[PLANE_B0], *b1 = plane[PLANE_B1];
    const uint8_t *b2 = plane[PLANE_B2], *b3 = plane[PLANE_B3], *high = plane[PLANE_HIGH];
    size_t count[3];

    if (size[PLANE_B1] != n || size[PLANE_CLASSES] != (n + 3) / 4)
        return false;
    count_classes(classes, n, count);
    if (size[PLANE_B2] != count[0] || size[PLANE_B3] != count[1] || size[PLANE_HIGH] != 4 * count[2])
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned class = classes[i / 4] >> i % 4 * 2 & 3;
        uint64_t more2 = class > 0, more3 = class > 1, more4 = class > 2;
        uint64_t v = b0[i] | (uint64_t)b1[i] << 8 | (*b2 & (0 - more2)) << 16 | (*b3 & (0 - more3)) << 24;
        b2 += more2;
        b3 += more3;
        if (more4) {
            v |= (uint64_t)get_le32(high) << 32;
            high += 4;
        }
        out[i] = (uint64_t)unzigzag(v);
    }
    return true;
}

/* The length of the next run; false when the plane is used up. */
static bool next_run(struct decoder *d)
{
    struct window *w = &d->plane[PLANE_RUNS];
    uint8_t byte;

    d->run = 0;
    do {
        if (w->p == w->end)
            return false;
        byte = *w->p++;
        d->run += byte;
    } while (byte == 255);
    return true;
}

int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err)
{
    size_t n = size[PLANE_B0];

    contexts_forget(&d->contexts);
    d->now = d->contexts.none;
    d->left = 0;
    d->fault = NULL;
    if (n > d->difference_room) {
        free(d->difference);
        d->difference_room = 0;
        d->difference = malloc((n + SLOT_PAD) * sizeof *d->difference);
        if (!d->difference)
            return err_set(err, PEET_ERR_MEMORY, "no memory for %zu differences", n);
        d->difference_room = n;
    }
    for (int i = 0; i < 4; i++)
        d->plane[i] = (struct window){ plane[i], plane[i] + size[i], 0 };
    if (items > CHUNK_MAX_WORDS + PEET_SLOTS || !join(d->difference, n, plane, size) || !next_run(d))
        return err_set(err, PEET_ERR_DAMAGED, "its planes do not fit each other");
    d->difference_now = d->difference;
    d->difference_end = d->difference + n;
    d->left = items;
    return 0;
}

static struct context *stop(struct decoder *d, const char *fault)
{
    d->fault = fault;
    d->left = 0;
    return NULL;
}

struct context *decoder_exception(struct decoder *d, uint64_t *ret_missed, uint64_t *ret_missed_before)
{
    struct window *tokens = &d->plane[PLANE_TOKENS], *masks = &d->plane[PLANE_MASKS];
    struct context *c;

    if (tokens->p == tokens->end)
        return stop(d, "it has fewer exceptions than runs");
    unsigned token = *tokens->p++, rank = token & 3;
    if (rank == TOKEN_NEW) {
        uint64_t number = window_leb(&d->plane[PLANE_ITEMS]);
        c = number < d->contexts.room ? d->contexts.of[number] : NULL;
        if (!c)
            c = contexts_get(&d->contexts, d->schema, number);
    } else {
        c = d->now->next[rank];
    }
    if (!c || !c->item || token > (TOKEN_MASK | 3))
        return stop(d, "it executes an item that is not defined");
    *ret_missed = *ret_missed_before = c->missed;
    if (token & TOKEN_MASK) {
        uint64_t missed = 0;
        const uint8_t *bytes = window_bytes(masks, (c->slots + 7) / 8);
        for (unsigned i = 0; bytes && i < c->slots; i += 8)
            missed |= (uint64_t)bytes[i / 8] << i;
        if (!bytes || (c->slots < 64 && missed >> c->slots))
            return stop(d, "a mask has bits for slots that are not there");
        *ret_missed = c->missed = missed;
        c->misses = (uint32_t)__builtin_popcountll(missed);
    }
    contexts_promote(d->now, c, rank);
    if (!next_run(d))
        return stop(d, "it has fewer runs than exceptions");
    return c;
}
