/* SPDX-License-Identifier: MIT */
/* References that are no plain hits, one at a time. */
#include "base/err.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* ---- a reference ---- */

/* Whether a line was used before, and no level has it. */
static bool is_replaced(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    for (unsigned i = 0; i < s->cache.levels; i++)
        if (line_in_level(s, l, line, i))
            return false;
    return line_was_used(l);
}

/* Whether the observer of a sample cannot classify an access to a line that no level has. */
static inline bool is_unknown(struct exec_blocks *s, uint32_t access, uint32_t path_counts, uint64_t line,
                              unsigned cause)
{
    if (__builtin_expect(s->observer.classify == NULL, 1))
        return false;
    sample_log_flush(s);
    return !s->observer.classify(s->observer.self, s, access, path_counts, line, cause == MISS_cold, s->number);
}

/* The sum over the lines of a reference. */
struct touched {
    uint64_t latency;        /* cycles that the core waits */
    uint64_t hits;           /* those of first-level hits */
    uint64_t bus;            /* those beyond the hits in which the fabric was busy */
    uint64_t misses;         /* lines that were reported as misses */
    uint64_t reported_stall; /* cycles beyond the hits that were reported to the observer */
};

static uint64_t access_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Reports an access to a line, unless it was a plain hit. */
static void report_line(struct exec_blocks *s, const struct exec_outcome *o, uint64_t hit, uint64_t reference,
                        const struct miss_report *m, struct touched *t)
{
    uint64_t stall = o->latency > hit ? o->latency - hit : 0;
    bool is_miss = o->cause != MISS_KINDS;

    if (!is_miss && !o->is_upgrade && stall == 0)
        return;
    miss_buffer_add(s, (uint64_t)m->access << 32 | (m->outcome.removed_by - 1),
                    miss_bucket_class(o->level, o->cause, m->outcome.is_conflict, o->is_upgrade), m->offset, 1, stall);
    time_bin_add(s, reference, is_miss, stall);
    t->misses += is_miss;
    t->reported_stall += stall;
}

/* Executes a reference line by line. m: template of the reports; a lock's reference (s->memory.removal_tag is 0) is not reported. */
static struct touched access_touch(struct exec_blocks *s, uint64_t addr, uint64_t size, enum peet_kind kind,
                                   uint64_t now, struct miss_report *m)
{
    struct touched t = { 0 };
    uint64_t hit = kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency, reference = blocks_references(s);
    uint64_t first = addr >> s->cache.shift,
             more = ((addr & (s->cache.length - 1)) + (size ? size : 1) - 1) >> s->cache.shift;

    for (uint64_t k = 0; k <= more; k++) {
        uint64_t line =
            (first + k) & (UINT64_MAX >> s->cache.shift); /* after the last line of the address space is the first */
        struct exec_line *l = exec_line_at(&s->memory.lines, line);
        m->outcome.is_conflict = is_replaced(s, l, line) && epoch_shadow_has(s, l);
        m->outcome.removed_by = line_remover(l) + 1;
        if (__builtin_expect(s->observer.use != NULL, 0) && line_was_used(l) && !is_replaced(s, l, line))
            sample_log_add_use(s, l, line, 1);
        uint64_t waited = s->memory.counts.waited;
        struct exec_outcome o = blocks_touch(s, l, line, kind, now + t.latency);
        bool unknown = o.cause != MISS_KINDS && s->memory.removal_tag
                       && is_unknown(s, s->memory.removal_tag - 1, m->path_counts, line, o.cause);
        epoch_shadow_note(s, l, line);
        s->number++;
        epoch_shadow_end_access(s);
        t.latency += o.latency;
        t.hits += access_min(o.latency, hit);
        t.bus += access_min(o.latency - access_min(o.latency, hit), s->memory.counts.waited - waited);
        if (s->memory.removal_tag && !unknown)
            report_line(s, &o, hit, reference, m, &t);
    }
    blocks_count_non_program(s, more);
    return t;
}

/* Adds the cycles of a reference to the time of their kinds. */
static void access_spend(struct exec_blocks *s, const struct touched *t)
{
    s->time.compute += t->hits;
    s->time.bus += t->bus;
    s->time.stall += t->latency - t->hits - t->bus;
}

/* A reference of an operand, at the cycle `now`. Returns its cycles. */
static uint64_t operand_refer(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand, uint64_t addr,
                              uint64_t size, uint64_t now)
{
    uint64_t hit = operand->kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;
    struct tb_path_counts *part = &x->path->part[operand->part];
    struct miss_report m = { .access = operand->data.access,
                             .path_counts = part->path_counts,
                             .offset = member_offset(&operand->data, addr) };

    s->memory.removal_tag = operand->data.access + 1;
    struct touched t = access_touch(s, addr, size, (enum peet_kind)operand->kind, now, &m);
    access_spend(s, &t);
    part->misses += t.misses;
    part->stall += t.reported_stall;
    if (t.hits != hit) { /* several lines, or a faster outer level; one hit was reported */
        s->observer.references(s->observer.self, operand->data.access, 0, 0, t.hits - hit);
        s->observer.runs(s->observer.self, part->path_counts, 0, t.hits - hit, 0, 0);
    }
    return t.latency;
}

/* Fills a line into the only level, with fixed miss cost. Returns its entry. */
static inline uint32_t put_fixed_cost(struct exec_blocks *s, struct exec_line *l, uint64_t line, bool is_write)
{
    struct exec_level *level = &s->cache.level[0];
    uint32_t e = level->ways == 1 ? (uint32_t)(line & level->mask) : l1_victim(s, line);
    struct l1_entry *at = &s->cache.first[e];
    struct exec_line *victim = at->info;
    uint8_t state = s->fill.state[is_write];

    if (__builtin_expect(victim != NULL, 1)) {
        victim->stamp = at->stamp;
        victim->remover = s->memory.removal_tag;
        s->fixed_write_backs += s->cache.is_dirty[l1_state(s, e)];
    } else {
        level->full[level->filled++] = e;
    }
    l1_set_tags(s, at, line, state);
    at->stamp = s->number;
    at->info = l;
    level->line[e] = line;
    level->state[e] = state;
    line_enters_l1(s, l, e);
    s->fill.fixed_misses[is_write][line_was_used(l)]++;
    return e;
}

/* A reference that misses in the only level. Returns the entry of the line after the fill. */
static inline uint32_t miss_fixed_cost(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand,
                                       struct exec_line *l, uint64_t addr)
{
    uint64_t line = addr >> s->cache.shift, key = (uint64_t)operand->data.access << 32 | line_remover(l);
    unsigned cause = line_was_used(l) ? MISS_replaced : MISS_cold;
    bool is_conflict = epoch_shadow_has(s, l);
    const struct l1_entry *at = &s->cache.first[line & s->cache.level[0].mask];
    bool is_logged = s->sample.log && at->info;

    s->memory.removal_tag = operand->data.access + 1;
    s->time.clock += s->fill.fixed_stall;
    if (is_logged)
        sample_log_add(s, line, at->stamp, operand->data.access | (l->remover ? 0 : s->log.new_flag));
    uint32_t e = put_fixed_cost(s, l, line, operand->is_write);
    bool unknown =
        !is_logged && is_unknown(s, operand->data.access, x->path->part[operand->part].path_counts, line, cause);
    epoch_shadow_note(s, l, line);
    if (unknown)
        return e;
    miss_buffer_add(s, key, miss_bucket_class(LEVEL_BEYOND, cause, is_conflict, false),
                    member_offset(&operand->data, addr), 1, s->fill.fixed_stall);
    time_bin_add(s, blocks_references(s), 1, s->fill.fixed_stall);
    x->path->part[operand->part].fixed_misses++;
    return e;
}

/* Subtracts a reference that was counted here, because the execution of its block counts it as a hit. */
static inline void uncount_hit(struct exec_blocks *s, const struct tb_operand *operand)
{
    s->memory.counts.reads -= operand->kind != PEET_STORE;
    s->memory.counts.writes -= operand->is_write;
    s->memory.counts.hits[0]--;
    s->memory.counts.stall -= operand->kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;
}

/* A read that hits in the second level. Returns its cycles beyond a first-level hit. */
static inline uint64_t refer_second(struct exec_blocks *s, struct tblock *x, const struct tb_operand *operand,
                                    struct exec_line *l, uint64_t addr, uint64_t now)
{
    uint64_t stall = s->cache.level[1].latency - s->cache.level[0].latency;
    uint64_t key = (uint64_t)operand->data.access << 32 | line_remover(l), line = addr >> s->cache.shift;

    s->memory.removal_tag = operand->data.access + 1;
    sample_log_add_use(s, l, line, 1);
    blocks_fill_from_l2(s, l, line, now);
    epoch_shadow_note(s, l, line);
    if (stall) {
        miss_buffer_add(s, key, miss_bucket_class(1, MISS_KINDS, false, false), member_offset(&operand->data, addr), 1,
                        stall);
        time_bin_add(s, blocks_references(s), 0, stall);
        x->path->part[operand->part].stall += stall;
    }
    return stall;
}

/* A reference to a line that no level has, with variable miss cost. Returns the entry of the first level that has the line then. */
static inline uint32_t miss_variable_cost(struct exec_blocks *s, struct tblock *x, const struct tb_operand *operand,
                                          struct exec_line *l, uint64_t addr)
{
    uint64_t line = addr >> s->cache.shift, key = (uint64_t)operand->data.access << 32 | line_remover(l);
    uint64_t waited = s->memory.counts.waited, hit = s->cache.level[0].latency;
    bool is_conflict = epoch_shadow_has(s, l);

    s->memory.removal_tag = operand->data.access + 1;
    struct exec_outcome o = blocks_touch(s, l, line, (enum peet_kind)operand->kind, s->time.clock + operand->issued);
    bool unknown = is_unknown(s, operand->data.access, x->path->part[operand->part].path_counts, line, o.cause);
    epoch_shadow_note(s, l, line);
    uint64_t stall = o.latency - hit;
    waited = access_min(stall, s->memory.counts.waited - waited);
    s->time.bus += waited;
    s->time.stall += stall - waited;
    s->time.clock += stall;
    uncount_hit(s, operand);
    if (!unknown) {
        struct tb_path_counts *part = &x->path->part[operand->part];
        miss_buffer_add(s, key, miss_bucket_class(LEVEL_BEYOND, o.cause, is_conflict, false),
                        member_offset(&operand->data, addr), 1, stall);
        time_bin_add(s, blocks_references(s), 1, stall);
        part->misses++;
        part->stall += stall;
    }
    return line_in_l1(s, l, line) - 1;
}

/* Does a reference that is no plain hit; the execution of its block counts it as a hit. Returns the cycles beyond that. */
static uint64_t refer_operand(struct exec_blocks *s, struct tblock *x, struct tb_operand *operand, uint64_t addr,
                              uint64_t now)
{
    if (s->cache.fixed_miss_cost && addr >> s->cache.shift == (addr + operand->size - 1) >> s->cache.shift
        && operand->kind != PEET_PREFETCH) {
        struct exec_line *l = exec_line_at(&s->memory.lines, addr >> s->cache.shift);
        if (!line_in_l1(s, l, addr >> s->cache.shift)) {
            miss_fixed_cost(s, x, operand, l, addr);
            s->number++;
            epoch_shadow_end_access(s);
            return 0;
        }
    }
    if (s->cache.has_second && operand->kind == PEET_LOAD
        && addr >> s->cache.shift == (addr + operand->size - 1) >> s->cache.shift) {
        struct exec_line *l = exec_line_at(&s->memory.lines, addr >> s->cache.shift);
        if (!line_in_l1(s, l, addr >> s->cache.shift) && l->entry[1]) {
            uint64_t stall = refer_second(s, x, operand, l, addr, now);
            s->number++;
            epoch_shadow_end_access(s);
            return stall;
        }
    }
    uint64_t hit = operand->kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;
    uint64_t stall = operand_refer(s, x, operand, addr, operand->size, now);

    uncount_hit(s, operand);
    s->time.compute -= hit;
    return stall - hit;
}

/* A hit of a line that is used for the first time in the epoch. */
static __attribute__((noinline)) void use_old(struct exec_blocks *s, struct l1_entry *at, uint64_t line)
{
    epoch_shadow_use(s, at->info, line);
    at->stamp = s->number++;
    epoch_shadow_end_access(s);
}

/* Touches an entry of the first level. */
static inline void touch_entry(struct exec_blocks *s, struct l1_entry *at, uint64_t line)
{
    if (__builtin_expect(at->stamp < s->recent.since, 0))
        use_old(s, at, line);
    else
        at->stamp = s->number++;
}

/* Whether a reference hits in the first level without transaction; stamps the line then. */
static inline bool operand_hits(struct exec_blocks *s, const struct tb_operand *operand, uint64_t addr)
{
    uint64_t line = addr >> s->cache.shift;
    uint32_t e = l1_lookup(s, line, operand->is_write);

    if (e == UINT32_MAX || (addr + operand->size - 1) >> s->cache.shift != line
        || (!l1_tag_matches(s, e, line, operand->is_write)
            && !(operand->is_write && blocks_silent_upgrade(s, e, line))))
        return false;
    touch_entry(s, &s->cache.first[e], line);
    return true;
}

static void run_operand(struct exec_blocks *s, struct tblock *x, unsigned i, uint64_t base)
{
    struct tb_operand *operand = &x->operand[i];
    uint64_t addr = base + (uint64_t)operand->disp;

    if (!operand_hits(s, operand, addr))
        s->time.clock += refer_operand(s, x, operand, addr, s->time.clock + operand->issued);
}

void group_run(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base)
{
    struct base_group *owner = &x->group[g->owner];

    if (!base_in_bounds(x, owner, base))
        base_group_bind(s, x, owner, base);
    for (unsigned i = g->from; i < g->from + g->operands; i++)
        run_operand(s, x, i, base);
}

/* Executes all operands of a group but the first, which was a miss, and after which the group was counted as a whole. */
static __attribute__((noinline)) void run_rest(struct exec_blocks *s, struct tblock *x, struct base_group *g,
                                               uint64_t base)
{
    s->number -= g->operands - 1u;
    s->cache.first[s->cache.level[0].mask & (base + g->first) >> s->cache.shift].stamp = s->number - 1;
    epoch_shadow_end_access(s);
    for (unsigned i = g->from + 1u; i < g->from + g->operands; i++)
        run_operand(s, x, i, base);
}

/* Whether a line in the second level can be used by all operands of a group after its fill into the first level. */
static inline bool is_usable(const struct exec_blocks *s, const struct base_group *g, const struct exec_line *l)
{
    unsigned state = s->cache.level[1].state[l->entry[1] - 1];

    return !g->is_write || s->cache.allows[state][1]
           || (s->cache.silent[state] && s->cache.allows[s->cache.silent[state]][1]);
}

static inline bool is_nowhere(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    return !line_in_l1(s, l, line) && (s->cache.levels < 2 || !l->entry[1]) && (s->cache.levels < 3 || !l->entry[2]);
}

void group_run_hint_miss(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base)
{
    struct tb_operand *operand = &x->operand[g->from];
    uint64_t addr = base + (uint64_t)operand->disp, line = addr >> s->cache.shift;
    struct exec_line *l = exec_line_at(&s->memory.lines, line);
    uint32_t e = line_in_l1(s, l, line) - 1;

    if (e != UINT32_MAX && (l1_tag_matches(s, e, line, g->is_write) || blocks_silent_upgrade(s, e, line))) {
        if (s->cache.first[e].stamp < s->recent.since)
            epoch_shadow_use(s, l, line);
    } else if (e == UINT32_MAX && s->cache.fixed_miss_cost && fill_serves_group(s, g, operand)) {
        e = miss_fixed_cost(s, x, operand, l, addr);
    } else if (e == UINT32_MAX && s->cache.has_second && l->entry[1] && is_usable(s, g, l)) {
        s->time.clock += refer_second(s, x, operand, l, addr, s->time.clock + operand->issued);
        e = line_in_l1(s, l, line) - 1;
    } else if (is_nowhere(s, l, line) && s->fill.memory_not_faster && fill_serves_group(s, g, operand)) {
        e = miss_variable_cost(s, x, operand, l, addr);
    } else {
        group_run(s, x, g, base);
        return;
    }
    if (g->is_write && !l1_tag_matches(s, e, line, true))
        blocks_silent_upgrade(s, e, line);
    way_hint_set(s, line, e);
    s->number += g->operands;
    s->cache.first[e].stamp = s->number - 1; /* all others have found it */
    epoch_shadow_end_access(s);
}

/* A group in a set that is still empty in this window of a sample: it may be a hit. */
static inline void run_unknown(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base,
                               struct exec_line *l)
{
    const struct tb_operand *operand = &x->operand[g->from];
    uint64_t line = (base + g->first) >> s->cache.shift, is_new = line_was_used(l) ? 0 : SAMPLE_MAYBE_COLD;

    s->memory.removal_tag = operand->data.access + 1;
    s->time.clock += s->fill.fixed_stall;
    uint32_t e = put_fixed_cost(s, l, line, operand->is_write);
    sample_log_add(s, line, x->path->part[operand->part].path_counts, SAMPLE_UNKNOWN | is_new | operand->data.access);
    epoch_shadow_note(s, l, line);
    s->number += g->operands;
    s->cache.first[e].stamp = s->number - 1;
    if (g->is_write && !operand->is_write && !blocks_silent_upgrade(s, e, line))
        run_rest(s, x, g, base);
    else
        epoch_shadow_end_access(s);
}

void group_run_direct_mapped(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base)
{
    struct tb_operand *operand = &x->operand[g->from];
    uint64_t line = (base + g->first) >> s->cache.shift;
    struct exec_line *l = exec_line_at(&s->memory.lines, line);
    uint32_t e = (uint32_t)(line & s->cache.level[0].mask), access = operand->data.access;
    struct l1_entry *at = &s->cache.first[e];
    struct exec_line *victim = at->info;

    uint64_t what = (uint64_t)l->remover << 1 | !epoch_shadow_has(s, l);
    if (!victim && s->sample.log && (s->log.new_flag || line_was_used(l))) {
        run_unknown(s, x, g, base, l);
        return;
    }
    if (__builtin_expect(victim == l || !victim || !miss_key_add_offset(operand, base, &what), 0)) {
        group_run_hint_miss(s, x, g, base);
        return;
    }
    miss_buffer_count_fixed(s, x, operand, what);
    if (s->sample.log) {
        sample_log_add(s, line, at->stamp, access | (l->remover ? 0 : s->log.new_flag));
        s->recent.noted_uses++;
    }
    victim->stamp = at->stamp;
    victim->remover = access + 1;
    s->fixed_write_backs += s->cache.is_dirty[l1_state(s, e)];
    uint8_t state = s->cache.level[0].state[e] = s->fill.state[operand->is_write];
    at->info = l; /* level[0].line is not read with state_from_tags */
    l1_set_tags(s, at, line, state);
    s->number += g->operands;
    at->stamp = s->number - 1;
    if (!line_used_in_epoch(s, l))
        epoch_shadow_first_use(s, l, line);
    if (g->is_write && !operand->is_write && !blocks_silent_upgrade(s, e, line))
        run_rest(s, x, g, base);
    else
        epoch_shadow_end_access(s);
}

int tblock_run_varying(struct exec_blocks *s, struct tblock *x, const struct peet_block *b, struct peet_err *err)
{
    uint64_t stall = 0, hits = 0;

    for (unsigned i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        struct tb_operand *operand = &x->operand[i];
        uint64_t bytes = operand_bytes(o, s->src);
        uint64_t addr = s->src[operand->base] + (s->src[operand->index] << operand->scale) + (uint64_t)operand->disp;
        if (bytes >= OPERAND_MAX_BYTES)
            return err_set(err, PEET_ERR_DAMAGED, "an operand of 4 GiB or more");
        addr -= o->down && bytes ? bytes - o->size : 0;
        for (uint64_t here; bytes > 0; bytes -= here, addr += here) {
            here = bytes < PEET_MAX_SIZE ? bytes : PEET_MAX_SIZE;
            if (!operand_is_bound(s, operand, addr))
                operand_bind(s, x, operand, addr);
            operand->extra++;
            hits += operand->kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;
            stall += operand_refer(s, x, operand, addr, here, s->time.clock + x->cost.instructions + stall);
        }
    }
    s->observer.runs(s->observer.self, x->path->part[0].path_counts, 0, hits, 0, 0);
    s->time.clock += x->cost.instructions + stall;
    x->runs++;
    return 0;
}

/* ---- library code, locks and barriers ---- */

/* A reference of a lock, which is not reported. */
static uint64_t touch_non_program(struct exec_blocks *s, const struct peet_record *r)
{
    struct miss_report unused = { 0 };

    s->memory.removal_tag = 0;
    blocks_count_non_program(s, 1); /* it is no reference of the program */
    struct touched t = access_touch(s, r->addr, r->size, (enum peet_kind)r->kind, s->time.clock, &unused);
    access_spend(s, &t);
    return t.latency;
}

/* The last block may have been skipped, so that no path is bound to it. */
uint32_t blocks_path_counts(struct exec_blocks *s, uint32_t thread)
{
    const struct block_thread *t = thread < s->threads.count ? &s->threads.thread[thread] : NULL;
    const struct tblock *last = t ? t->last : NULL;

    if (!last)
        return UINT32_MAX;
    if (last->path && last->path->node == t->node)
        return last->path->part[last->parts - 1].path_counts;
    return s->observer.path_counts(s->observer.self, t->node, last->part[last->parts - 1].head.id);
}

/* Finds the object of a reference of library code, unless it is the object of the last one. */
static void find_data(struct exec_blocks *s, uint32_t thread, uint32_t insn, uint64_t addr, uint64_t call_site)
{
    struct libcall_misses *m = &s->libcall;
    const struct object_bounds *d = &m->data;

    if (m->thread == thread && m->call_site == call_site && m->insn == insn && m->version == s->observer.changes->count
        && !d->on_path && addr - d->start < d->end - d->start)
        return;
    struct object_bounds data;
    s->observer.object(s->observer.self, thread, insn, call_site, addr, &data);
    if (data.access != m->data.access)
        miss_buffer_flush_libcall(s);
    m->data = data;
    m->thread = thread;
    m->call_site = call_site;
    m->insn = insn;
    m->version = s->observer.changes->count;
    blocks_check_map_version(s);
}

/* A reference of library code that misses in the only level. */
static uint64_t libcall_miss_fixed_cost(struct exec_blocks *s, const struct peet_record *r, struct exec_line *l)
{
    struct libcall_misses *m = &s->libcall;
    uint64_t line = r->addr >> s->cache.shift, key = (uint64_t)m->data.access << 32 | line_remover(l);
    uint64_t how =
        miss_bucket_class(LEVEL_BEYOND, line_was_used(l) ? MISS_replaced : MISS_cold, epoch_shadow_has(s, l), false);
    bool is_write = r->kind == PEET_STORE || r->kind == PEET_UPDATE;

    put_fixed_cost(s, l, line, is_write);
    epoch_shadow_note(s, l, line);
    miss_buffer_add(s, key, how, member_offset(&m->data, m->addr), 1, s->fill.fixed_stall);
    time_bin_add(s, blocks_references(s), 1, s->fill.fixed_stall);
    s->number++;
    epoch_shadow_end_access(s);
    s->memory.counts.reads += r->kind != PEET_STORE; /* as if it were found, which blocks_flush_fixed_misses knows */
    s->memory.counts.writes += is_write;
    s->memory.counts.hits[0]++;
    s->memory.counts.stall += s->cache.level[0].latency;
    s->time.compute += s->cache.level[0].latency;
    m->misses++;
    m->stall += s->fill.fixed_stall;
    return s->cache.level[0].latency + s->fill.fixed_stall;
}

/* A reference of library code that hits in the first level. */
static uint64_t libcall_hit(struct exec_blocks *s, const struct peet_record *r)
{
    uint64_t hit = s->cache.level[0].latency;

    s->memory.counts.reads += r->kind != PEET_STORE;
    s->memory.counts.writes += r->kind == PEET_STORE || r->kind == PEET_UPDATE;
    s->memory.counts.hits[0]++;
    s->memory.counts.stall += hit;
    s->time.compute += hit;
    return hit;
}

/* Any other reference of library code. Returns its cycles; *ret_hits: those of first-level hits. */
static uint64_t libcall_touch(struct exec_blocks *s, const struct peet_record *r, uint64_t *ret_hits)
{
    struct libcall_misses *m = &s->libcall;
    struct miss_report miss = { .access = m->data.access,
                                .path_counts = m->path_counts,
                                .offset = member_offset(&m->data, m->addr) };
    struct touched t = access_touch(s, r->addr, r->size, (enum peet_kind)r->kind, s->time.clock, &miss);

    access_spend(s, &t);
    m->misses += t.misses;
    m->stall += t.reported_stall;
    *ret_hits = t.hits;
    return t.latency;
}

/* A reference of library code or of a lock; data: address of the object. Returns its cycles. */
static uint64_t refer_for(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t data,
                          uint64_t call_site, uint64_t issue)
{
    struct libcall_misses *m = &s->libcall;
    uint64_t hits = s->cache.level[0].latency;
    uint32_t path_counts = blocks_path_counts(s, thread);

    s->binding.thread = thread;
    find_data(s, thread, r->id, data, call_site);
    m->addr = data;
    s->memory.removal_tag = m->data.access + 1;
    if (path_counts != m->path_counts) {
        miss_buffer_flush_libcall(s);
        m->path_counts = path_counts;
    }
    uint64_t first = r->addr >> s->cache.shift, last = (r->addr + (r->size ? r->size : 1) - 1) >> s->cache.shift, stall;
    bool is_write = r->kind == PEET_STORE || r->kind == PEET_UPDATE, is_one = first == last && r->kind != PEET_PREFETCH;
    uint32_t e = is_one ? l1_lookup(s, first, is_write) : UINT32_MAX;
    if (e != UINT32_MAX && l1_tag_matches(s, e, first, is_write) && s->cache.first[e].stamp >= s->recent.since) {
        s->cache.first[e].stamp = s->number++;
        stall = libcall_hit(s, r);
    } else if (is_one && s->cache.fixed_miss_cost && !s->observer.classify
               && !line_in_l1(s, exec_line_at(&s->memory.lines, first), first)) {
        stall = libcall_miss_fixed_cost(s, r, exec_line_at(&s->memory.lines, first));
    } else {
        stall = libcall_touch(s, r, &hits);
    }
    m->references++;
    m->writes += is_write;
    m->compute += issue + hits;
    if (s->observer.classify) /* samples may end here */
        miss_buffer_flush_libcall(s);
    s->time.references = blocks_references(s);
    return stall;
}

uint64_t blocks_libcall_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t call_site,
                               uint64_t issue)
{
    return refer_for(s, thread, r, r->addr, call_site, issue);
}

uint64_t blocks_sync_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t data,
                            uint64_t call_site, uint64_t issue)
{
    return s->observer.classify ? touch_non_program(s, r) : refer_for(s, thread, r, data, call_site, issue);
}
