/* SPDX-License-Identifier: MIT */
/* Pending counts: reported when their operand is bound to another path or object, and at the end. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

void miss_buffer_flush_variable(struct exec_blocks *s, const struct tb_operand *operand, struct variable_cost_misses *f)
{
    uint32_t remover = (uint32_t)(f->what >> 1);
    uint64_t key = (uint64_t)operand->data.access << 32 | ((remover & ~REMOVER_UNKNOWN) - 1);
    unsigned cause = remover ? MISS_replaced : MISS_cold;

    if (f->count)
        miss_buffer_add(s, key, miss_bucket_class(LEVEL_BEYOND, cause, !(f->what & 1), false),
                        (f->what >> MISS_OFFSET_SHIFT) - 1, f->count, f->stall);
    s->memory.counts.misses += f->count;
    s->memory.counts.causes[cause] += f->count;
    s->memory.counts.hits[0] -= f->count; /* as what they were counted with their runs */
    s->memory.counts.stall += f->stall;
    f->count = f->stall = 0;
}

static void flush_operand(struct exec_blocks *s, const struct tblock *x, struct tb_operand *operand)
{
    uint64_t references = (x->is_varying ? 0 : x->runs - operand->since) + operand->extra;
    uint64_t latency = operand->kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;

    if (operand->has_data && references)
        s->observer.references(s->observer.self, operand->data.access, references, operand->is_write ? references : 0,
                               references * latency);
    operand->since = x->runs;
    operand->extra = 0;
    for (uint32_t left = operand->fixed_used; left; left &= left - 1) {
        struct fixed_cost_misses *m = &operand->fixed[__builtin_ctz(left)];
        if (m->count)
            miss_buffer_flush_fixed(s, operand, m);
    }
    for (unsigned i = 0; operand->has_variable && i < VARIABLE_COST_BUCKETS; i++)
        miss_buffer_flush_variable(s, operand, &operand->variable[i]);
    operand->has_variable = false;
}

/* Adds the executions since the last binding to the path counts of the bound path. */
static void count_path(struct tblock *x)
{
    if (x->path) {
        x->path->runs += x->runs - x->runs_at_bind;
        x->path->part[0].fixed_misses += x->fixed_misses;
    }
    x->runs_at_bind = x->runs;
    x->fixed_misses = 0;
}

static void report_path(struct exec_blocks *s, struct tb_path *p)
{
    const struct tblock *x = p->tblock;

    for (unsigned i = 0; i < x->parts; i++) {
        struct tb_path_counts *l = &p->part[i];
        l->misses += s->cache.fixed_miss_cost ? l->fixed_misses : 0;
        l->stall += l->fixed_misses * s->fill.fixed_stall;
        if (p->runs | l->misses | l->stall)
            s->observer.runs(s->observer.self, l->path_counts, p->runs, p->runs * x->part[i].cycles, l->misses,
                             l->stall);
        l->misses = l->stall = l->fixed_misses = 0;
    }
    p->runs = 0;
}

static struct tb_path *make_path(struct exec_blocks *s, struct tblock *x, uint32_t node)
{
    struct tb_path **known = map_put(&s->translated.paths, x->number, node);

    assert(known); /* these tables are small beside what is simulated */
    struct tb_path *p = *known;
    if (p)
        return p;
    p = arena_alloc(&s->translated.arena, sizeof *p + x->parts * sizeof *p->part);
    assert(p);
    *p = (struct tb_path){ .tblock = x, .node = node, .next = s->translated.all_paths };
    for (unsigned i = 0; i < x->parts; i++)
        p->part[i] = (struct tb_path_counts){ .path_counts =
                                                  s->observer.path_counts(s->observer.self, node, x->part[i].head.id) };
    return *known = s->translated.all_paths = p;
}

static void take_path(struct exec_blocks *s, struct tblock *x)
{
    uint64_t key = (uint64_t)x->number << 32 | s->binding.node, k = key * EXEC_HASH_FACTOR >> (64 - PATH_CACHE_BITS);

    count_path(x);
    if (s->translated.path_cache[k].key != key) {
        s->translated.path_cache[k].path = make_path(s, x, s->binding.node);
        s->translated.path_cache[k].key = key;
    }
    x->path = s->translated.path_cache[k].path;
}

static void flush_bucket(struct exec_blocks *s, struct miss_bucket *m)
{
    const struct miss_report miss = { .access = (uint32_t)(m->key >> 32),
                                      .outcome = { .removed_by = (uint32_t)m->key + 1,
                                                   .level = (uint8_t)m->how,
                                                   .cause = (uint8_t)(m->how >> 8),
                                                   .is_conflict = m->how >> 16 & 1,
                                                   .is_upgrade = m->how >> 24 & 1 },
                                      .offset = m->offset,
                                      .count = m->count,
                                      .stall = m->stall };

    if (m->count)
        s->observer.miss(s->observer.self, &miss);
    m->count = m->stall = 0;
}

void miss_buffer_add(struct exec_blocks *s, uint64_t key, uint64_t how, uint64_t offset, uint64_t count, uint64_t stall)
{
    uint64_t hash = (key ^ offset << 20 ^ how << 40) * 0x9e3779b97f4a7c15u;
    struct miss_bucket *bucket = &s->pending.bucket[hash >> (64 - MISS_BUCKET_BITS)];

    if (bucket->key != key || bucket->offset != offset || bucket->how != how) {
        flush_bucket(s, bucket);
        bucket->key = key;
        bucket->offset = offset;
        bucket->how = how;
    }
    bucket->count += count;
    bucket->stall += stall;
}

void miss_buffer_flush_fixed(struct exec_blocks *s, const struct tb_operand *operand, struct fixed_cost_misses *m)
{
    uint32_t remover = (uint32_t)(m->what >> 1);
    uint64_t key = (uint64_t)operand->data.access << 32 | ((remover & ~REMOVER_UNKNOWN) - 1);
    uint64_t offset = (m->what >> MISS_OFFSET_SHIFT) - 1, how = miss_bucket_class(1, MISS_KINDS, false, false);

    if (s->cache.fixed_miss_cost) {
        s->fill.fixed_misses[operand->is_write][remover != 0] += m->count;
        how = miss_bucket_class(LEVEL_BEYOND, remover ? MISS_replaced : MISS_cold, !(m->what & 1), false);
    } else {
        s->fill.l2_hits += m->count;
    }
    if (m->count)
        miss_buffer_add(s, key, how, offset, m->count, m->count * s->fill.fixed_stall);
    m->count = 0;
}

void miss_buffer_flush_libcall(struct exec_blocks *s)
{
    struct libcall_misses *m = &s->libcall;

    if (m->references) {
        s->observer.references(s->observer.self, m->data.access, m->references, m->writes, m->compute);
        s->observer.runs(s->observer.self, m->path_counts, 0, m->compute, m->misses, m->stall);
    }
    m->references = m->writes = m->compute = m->misses = m->stall = 0;
}

void sample_log_flush(struct exec_blocks *s)
{
    assert(s->log.at <= s->log.end);
    if (s->log.at != s->sample.log)
        s->observer.log(s->observer.self, s->sample.log, (size_t)(s->log.at - s->sample.log));
    s->log.at = s->sample.log;
}

void sample_log_report_misses(struct exec_blocks *s)
{
    if (!s->log.missed || s->log.sets.limit == UINT32_MAX) /* all sets are logged */
        return;
    s->observer.misses(s->observer.self, s->log.missed, s->sample.missed_room, s->log.new_flag ? s->log.missed_new : 0);
    memset(s->log.missed, 0, s->sample.missed_room * sizeof *s->log.missed);
    s->log.missed_new = 0;
}

void time_bin_end(struct exec_blocks *s, uint64_t reference)
{
    s->bin.end = s->observer.time_bin(s->observer.self, reference,
                                      s->pending.bin_misses + (s->cache.fixed_miss_cost ? s->bin.fixed_misses : 0),
                                      s->pending.bin_stall + s->bin.fixed_misses * s->fill.fixed_stall);
    s->pending.bin_misses = s->pending.bin_stall = s->bin.fixed_misses = 0;
    uint64_t end = s->bin.end + s->non_program_touches;
    s->bin.low = end > TIME_BIN_REST ? end - TIME_BIN_REST : 0;
}

/* Adds the pending executions of a block to the counts, as if all references had hit. uncount_hit and the flushes of misses subtract those that missed. */
static void count_runs(struct exec_blocks *s, struct tblock *x)
{
    uint64_t runs = x->runs - x->counted,
             stall = (x->cost.all_hit - x->cost.instructions) * runs; /* of hits, which is compute */

    x->counted = x->runs;
    s->time.compute += x->cost.instructions * runs;
    s->time.instructions += x->insns * runs;
    if (x->is_varying)
        return;
    for (unsigned k = PEET_LOAD; k <= PEET_PREFETCH; k++) {
        s->memory.counts.reads += k == PEET_STORE ? 0 : x->kinds[k] * runs;
        s->memory.counts.writes += k == PEET_STORE || k == PEET_UPDATE ? x->kinds[k] * runs : 0;
    }
    s->memory.counts.hits[0] += x->operands * runs;
    s->memory.counts.stall += stall;
    s->time.compute += stall;
}

void blocks_flush(struct exec_blocks *s)
{
    for (struct tblock *x = s->translated.tblocks; x; x = x->next) {
        for (unsigned i = 0; i < x->operands; i++)
            flush_operand(s, x, &x->operand[i]);
        count_path(x);
        count_runs(s, x);
    }
    for (struct tb_path *p = s->translated.all_paths; p; p = p->next)
        report_path(s, p);
    miss_buffer_flush_libcall(s);
    sample_log_flush(s);
    sample_log_report_misses(s);
    blocks_flush_fixed_misses(s);
    for (unsigned i = 0; i < MISS_BUCKETS; i++)
        flush_bucket(s, &s->pending.bucket[i]);
    time_bin_end(s, blocks_references(s));
    lone_bus_end(s);
}

void blocks_counts(const struct exec_blocks *s, struct memory_counts *ret)
{
    *ret = s->memory.counts;
}

/* Drops all cached object bounds of a block. */
static void drop_all_bounds(const struct exec_blocks *s, struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++)
        x->extent[x->group[i].extent].span = 0;
    for (unsigned i = 0; i < x->operands; i++)
        x->operand[i].data.end = x->operand[i].data.start; /* empty bounds */
    x->bound.process_switches = s->binding.process_switches;
}

/* Drops the bounds of a block that overlap an address range which was changed since the block was bound. */
static void drop_changed_bounds(const struct exec_blocks *s, struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        const struct base_group *g = &x->group[i];
        struct base_bounds *e = &x->extent[g->extent];
        uint64_t start = e->low + g->least, end = e->low + e->span + g->most;
        if (g->owner == i && e->span
            && (end <= start || change_log_overlaps(s->observer.changes, x->bound.version, start, end)))
            e->span = 0;
    }
    x->bound.version = s->binding.version;
}

/* Drops the bounds of a block that hold only on the path on which they were found. */
static void drop_path_bounds(struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        const struct base_group *g = &x->group[i];
        for (unsigned k = g->from; k < g->from + (unsigned)g->operands; k++)
            if (x->operand[k].data.on_path) {
                x->operand[k].is_dropped = true;
                x->extent[x->group[g->owner].extent].span = 0;
            }
    }
}

/* Binds a block to the current path. The bounds in force were valid on the old one; on the new one they are if it had the same last time. */
static void change_path(struct exec_blocks *s, struct tblock *x)
{
    if (x->path)
        x->path->stack_version = x->stack.version;
    take_path(s, x);
    if (x->path->stack_version != x->stack.version)
        drop_path_bounds(x);
}

/* Notes that an operand is bound to other bytes, if they hold only on a path. */
static void note_path_bounds(struct tblock *x, struct tb_operand *operand, const struct object_bounds *now)
{
    const struct object_bounds *old = &operand->data;
    bool is_same = operand->has_data && now->access == old->access && now->start == old->start && now->end == old->end;

    x->stack.version += (now->on_path || old->on_path) && !(is_same && now->on_path == old->on_path);
    operand->is_dropped = false;
}

/* Reports the counts of a block on its old path, and binds it to the current path and map version. */
void tblock_rebind(struct exec_blocks *s, struct tblock *x)
{
    if (x->bound.process_switches != s->binding.process_switches)
        drop_all_bounds(s, x);
    if (x->bound.version != s->binding.version)
        drop_changed_bounds(s, x);
    if (!x->path || x->path->node != s->binding.node)
        change_path(s, x);
    x->current = s->binding.current;
}

void operand_bind(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand, uint64_t addr)
{
    struct object_bounds now;

    s->observer.object(s->observer.self, s->binding.thread, operand->insn, 0, addr, &now);
    if (!operand->has_data || now.access != operand->data.access) /* data of one kind come one after the other */
        flush_operand(s, x, operand);
    if (now.stride != operand->data.stride) /* a division takes long */
        operand->inverse = now.stride && now.stride <= MISS_STRIDE_MAX ? UINT64_MAX / now.stride + 1 : 0;
    note_path_bounds(x, operand, &now);
    operand->data = now;
    operand->removal_tag = now.access + 1;
    operand->has_data = true;
    operand->map_version = s->observer.changes->count;
    if (s->sample.log)
        s->log.missed = mem_reach(s->log.missed, &s->sample.missed_room, now.access, sizeof *s->log.missed);
    blocks_check_map_version(s);
}

void base_group_bind(struct exec_blocks *s, struct tblock *x, struct base_group *owner, uint64_t base)
{
    uint64_t below = UINT64_MAX, above = UINT64_MAX, version = s->binding.version;

    for (struct base_group *g = owner; g < x->group + x->groups; g++)
        for (unsigned i = g->from; &x->group[g->owner] == owner && i < g->from + g->operands; i++) {
            struct tb_operand *operand = &x->operand[i];
            uint64_t addr = base + (uint64_t)operand->disp;
            const struct object_bounds *d = &operand->data;
            if (!operand_is_bound(s, operand, addr))
                operand_bind(s, x, operand, addr);
            below = addr - d->start < below ? addr - d->start : below;
            above = d->end - addr < above ? d->end - addr : above;
        }
    x->extent[owner->extent] = (struct base_bounds){ base - below, below + above ? below + above : UINT64_MAX };
    if (s->binding.version != version)
        drop_changed_bounds(s, x); /* operand_bind changed the map: bounds that were found before may be outdated */
}
