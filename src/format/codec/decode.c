/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "format/codec/item_state.h"

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err)
{
    *d = (struct decoder){ .schema = s };
    return item_states_init(&d->states) < 0 ? err_set(err, PEET_ERR_MEMORY, "no memory for a decoder") : 0;
}

void decoder_release(struct decoder *d)
{
    item_states_release(&d->states);
    *d = (struct decoder){ 0 };
}

static struct item_state *decoder_stop(struct decoder *d, const char *fault)
{
    d->fault = fault;
    return NULL;
}

/* The rest of a run that began with a byte of 255. */
static __attribute__((noinline)) bool decoder_long_run(struct decoder *d, uint64_t *run)
{
    struct byte_reader *w = &d->plane[PLANE_RUNS];
    uint8_t byte;

    do {
        if (w->p == w->end) {
            decoder_stop(d, "it has fewer runs than exceptions");
            return false;
        }
        byte = *w->p++;
        *run += byte;
    } while (byte == 255);
    return true;
}

/* The state of the next item of PLANE_ITEMS; its number may have any form. */
static __attribute__((noinline)) struct item_state *decoder_slow_item(struct decoder *d)
{
    return item_states_get(&d->states, d->schema, reader_leb(&d->plane[PLANE_ITEMS]));
}

/* The state of the next item of PLANE_ITEMS. Without branches on the number's length, if it has at most four bytes and the item has
 * occurred. */
static inline struct item_state *decoder_next_item(struct decoder *d)
{
    struct byte_reader *w = &d->plane[PLANE_ITEMS];
    uint32_t bytes = get_le32(w->p), last = ~bytes & 0x80808080;
    size_t n = (size_t)__builtin_ctz(last | 1u << 31) / 8 + 1;

    bytes &= last ^ (last - 1);
    uint32_t number = (bytes & 0x7f) | (bytes >> 1 & 0x3f80) | (bytes >> 2 & 0x1fc000) | (bytes >> 3 & 0xfe00000);
    if (!last || (size_t)(w->end - w->p) < n || number >= d->states.room)
        return decoder_slow_item(d);
    struct item_state *c = d->states.of[number];
    if (!c)
        return decoder_slow_item(d);
    w->p += n;
    return c;
}

/* An exception: decodes the item after `now`, and the run after it. Few branches, since exceptions cannot be predicted. */
static inline struct item_state *decoder_next_exception(struct decoder *d, struct item_state *now,
                                                        struct decoder_step *s, uint64_t *run)
{
    struct byte_reader *tokens = &d->plane[PLANE_TOKENS], *masks = &d->plane[PLANE_MASKS],
                       *runs = &d->plane[PLANE_RUNS];

    if (tokens->p == tokens->end || runs->p == runs->end)
        return decoder_stop(d, "it has fewer exceptions or runs than its items need");
    unsigned token = *tokens->p++, rank = token & 3;
    struct item_state *c = rank == TOKEN_NEW ? decoder_next_item(d) : now->next[rank];
    if (!c || token > (TOKEN_MASK | 3))
        return decoder_stop(d, "it executes an item that is not defined");
    unsigned bytes = token & TOKEN_MASK ? c->mask_bytes : 0;
    uint64_t mask = get_le64(masks->p) & (bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX);
    if ((size_t)(masks->end - masks->p) < bytes || mask & ~c->all)
        return decoder_stop(d, "a mask has bits for slots that are not there");
    masks->p += bytes;
    s->state = c;
    s->before = c->mispredicted;
    s->mispredicted = c->mispredicted = token & TOKEN_MASK ? mask : c->mispredicted;
    item_state_promote(now, c, rank);
    *run = *runs->p++;
    return *run < 255 || decoder_long_run(d, run) ? c : NULL;
}

bool decoder_look(struct decoder *d)
{
    struct decoder_step *s = d->steps, *end = s + (d->left < STEPS ? d->left : STEPS);
    struct item_state *now = d->now;
    uint64_t run = d->run;

    while (s < end && !d->fault) {
        for (; run > 0 && s < end; run--) {
            now = now->next[0];
            *s++ = (struct decoder_step){ now, now->mispredicted, now->mispredicted };
        }
        if (s < end) {
            struct item_state *c = decoder_next_exception(d, now, s, &run);
            now = c ? c : now;
            s += c != NULL;
        }
    }
    d->now = now;
    d->run = run;
    d->left = d->fault ? 0 : d->left - (uint64_t)(s - d->steps);
    d->step = d->steps;
    d->step_end = s;
    return s > d->steps;
}

bool decoder_refill(struct decoder *d, uint64_t mispredicted)
{
    size_t have = (size_t)(d->residual_end - d->residual);
    size_t more = d->in_planes < RESIDUALS ? d->in_planes : RESIDUALS;

    memmove(d->residual_buffer, d->residual, have * sizeof *d->residual_buffer);
    residuals_join(&d->in, more, d->residual_buffer + have);
    d->in_planes -= more;
    d->residual = d->residual_buffer;
    d->residual_end = d->residual_buffer + have + more;
    if (have + more >= (size_t)__builtin_popcountll(mispredicted))
        return true;
    decoder_stop(d, "it has fewer differences than misses");
    d->step = d->step_end;
    d->left = 0;
    return false;
}

int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err)
{
    const uint8_t *const *from = plane + PLANE_CLASSES;
    struct byte_reader *runs = &d->plane[PLANE_RUNS];

    item_states_forget(&d->states);
    d->now = d->states.none;
    d->left = 0;
    d->step = d->step_end = d->steps;
    d->fault = NULL;
    for (int i = 0; i < 4; i++)
        d->plane[i] = (struct byte_reader){ plane[i], plane[i] + size[i], 0 };
    d->in = (struct residual_reader){ from[0], from[1], from[2], from[3], from[4], from[5] };
    d->in_planes = size[PLANE_B0];
    d->residual = d->residual_end = d->residual_buffer;
    if (items > CHUNK_MAX_WORDS + PEET_SLOTS || !residuals_fit(&d->in, size + PLANE_CLASSES, d->in_planes)
        || runs->p == runs->end)
        goto damaged;
    d->run = *runs->p++;
    if (d->run == 255 && !decoder_long_run(d, &d->run))
        goto damaged;
    d->left = items;
    return 0;
damaged:
    d->fault = NULL;
    return err_set(err, PEET_ERR_DAMAGED, "its planes do not fit each other");
}
