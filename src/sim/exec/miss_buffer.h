/* SPDX-License-Identifier: MIT */
/* Pending misses, and operands bound to data objects (miss_buffer.c). */
#ifndef SIM_EXEC_MISS_BUFFER_H
#define SIM_EXEC_MISS_BUFFER_H

#include "sim/exec/exec_state.h"

/* The path or the map version has changed since the block was bound: reports its counts, and binds it again. */
void tblock_rebind(struct exec_blocks *s, struct tblock *x);
/* Whether an operand is bound to the data object at that address. */
static inline bool operand_is_bound(const struct exec_blocks *s, struct tb_operand *operand, uint64_t addr)
{
    const struct object_bounds *d = &operand->data;

    return operand->has_data && !operand->is_dropped && addr - d->start < d->end - d->start
           && change_log_revalidate(s->observer.changes, &operand->map_version, d->start, d->end);
}
/* Binds an operand to its data object; binds all operands with the base of a leader. */
void operand_bind(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand, uint64_t addr);
void base_group_bind(struct exec_blocks *s, struct tblock *x, struct base_group *owner, uint64_t base);
/* Adds equal misses to their bucket; the parameters are as in struct miss_bucket. */
void miss_buffer_add(struct exec_blocks *s, uint64_t key, uint64_t how, uint64_t offset, uint64_t count,
                     uint64_t stall);
void miss_buffer_flush_fixed(struct exec_blocks *s, const struct tb_operand *operand, struct fixed_cost_misses *m);
void miss_buffer_flush_libcall(struct exec_blocks *s);
/* Reports the time bin that ends before that reference. */
void time_bin_end(struct exec_blocks *s, uint64_t reference);

static inline uint64_t miss_bucket_class(unsigned level, unsigned cause, bool is_conflict, bool is_upgrade)
{
    return level | cause << 8 | (unsigned)is_conflict << 16 | (unsigned)is_upgrade << 24;
}

/* Adds misses and stall cycles of a reference to its time bin. */
static inline void time_bin_add(struct exec_blocks *s, uint64_t reference, uint64_t misses, uint64_t stall)
{
    if (__builtin_expect(reference >= s->bin.end, 0))
        time_bin_end(s, reference);
    s->pending.bin_misses += misses;
    s->pending.bin_stall += stall;
}

static inline uint64_t member_offset(const struct object_bounds *d, uint64_t addr)
{
    return d->stride ? (addr - d->origin) % d->stride : UINT64_MAX;
}

/* Adds the member offset of an operand to the key of a miss counter, if its object has members. False: the distance from the object's start, or its
 * stride, has too many bits. The remainder of a 32-bit number by the stride is computed from its fraction of 2^64 (D. Lemire and others, 2019). */
static inline bool miss_key_add_offset(const struct tb_operand *operand, uint64_t base, uint64_t *what)
{
    const struct object_bounds *d = &operand->data;
    uint64_t distance = base + (uint64_t)operand->disp - d->origin;

    if (d->stride == 0)
        return true;
    if (distance > UINT32_MAX || d->stride > MISS_STRIDE_MAX)
        return false;
    uint64_t offset = (uint64_t)((unsigned __int128)(operand->inverse * distance) * d->stride >> 64);
    *what |= (offset + 1) << MISS_OFFSET_SHIFT;
    return true;
}

void miss_buffer_flush_variable(struct exec_blocks *s, const struct tb_operand *operand,
                                struct variable_cost_misses *f);
/* A reference that missed in all levels, and waited `stall` cycles beyond a first-level hit. */
static inline void miss_buffer_count_variable(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand,
                                              uint64_t what, uint64_t stall)
{
    struct tb_path_counts *part = &x->path->part[operand->part];
    struct variable_cost_misses *f = &operand->variable[miss_bucket_index(what) % VARIABLE_COST_BUCKETS];

    if (__builtin_expect(f->what != what, 0)) {
        miss_buffer_flush_variable(s, operand, f);
        f->what = what;
    }
    operand->has_variable = true;
    f->count++;
    f->stall += stall;
    time_bin_add(s, blocks_references(s), 1, stall);
    part->misses++;
    part->stall += stall;
}

/* A reference that waits fill.fixed_stall cycles beyond a first-level hit. */
static inline void miss_buffer_count_fixed(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand,
                                           uint64_t what)
{
    unsigned number = miss_bucket_index(what);
    struct fixed_cost_misses *fixed = &operand->fixed[number];

    if (__builtin_expect(fixed->what != what, 0)) {
        miss_buffer_flush_fixed(s, operand, fixed);
        fixed->what = what;
        operand->fixed_used |= UINT32_C(1) << number;
    }
    fixed->count++;
    if (__builtin_expect(blocks_references(s) >= s->bin.end, 0))
        time_bin_end(s, blocks_references(s));
    s->bin.fixed_misses++;
    x->path->part[operand->part].fixed_misses++;
    s->time.clock += s->fill.fixed_stall;
}

#endif
