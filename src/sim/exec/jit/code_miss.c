/* SPDX-License-Identifier: MIT */
/* Machine code for groups that are in bounds but no plain hits: misses of one direct-mapped level, as in group_run_direct_mapped; way-hint misses;
 * first uses of a line in an epoch. Rare cases are left to access.c, before anything is changed. */
#include "sim/exec/jit/code.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* Sets read tag and write tag of the entry at rcx, for the line at rdx in that state. */
static void miss_set_tags(struct gen *g, uint8_t state)
{
    for (unsigned i = 0; i < 2; i++)
        if (g->s->cache.allows[state][i])
            emit_memory(&g->e, true, EMIT_STORE, RDX, R13, RCX, ENTRY_AT(tag) + 8 * (int64_t)i);
        else
            emit_store_constant(&g->e, true, R13, RCX, ENTRY_AT(tag) + 8 * (int64_t)i, -1);
}

/* rsi: the line that begins at rdx. */
static void find_line(struct gen *g, size_t slow)
{
    const unsigned page = g->s->cache.shift + LINE_PAGE_BITS,
                   size = (unsigned)__builtin_ctzll(sizeof g->s->memory.lines.page_cache[0]);
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, R8, RDX);
    emit_shift(e, R8, false, page);
    emit_registers(e, EMIT_LOAD, R10, RDX);
    emit_shift(e, R10, false, page - size);
    emit_and_constant(e, R10, (LINE_PAGE_CACHE - 1) << size);
    emit_memory(e, true, EMIT_COMPARE, R8, RBX, R10, AT(memory.lines.page_cache[0].page));
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_registers(e, EMIT_LOAD, RSI, RDX);
    emit_scale(e, RSI, (int)g->s->memory.lines.bits - (int)g->s->cache.shift);
    emit_memory(e, true, EMIT_ADD, RSI, RBX, R10, AT(memory.lines.page_cache[0].origin));
}

/* "Below": the line whose last use is in r9 is not recent. */
static void compare_recent(struct gen *g)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.last));
    size_t long_ago = emit_jump_if(e, IF_BELOW, 0);
    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.now));
    size_t now = emit_jump_if(e, IF_NOT_BELOW, 0);
    emit_at(e, EMIT_LOAD, R11, RBX, AT(recent.rank_origin));
    emit_memory(e, false, EMIT_LOAD, R10, R11, R9 | EMIT_TIMES_4, 0);
    emit_at(e, EMIT_COMPARE, R10, RBX, AT(recent.evicted_below));
    emit_here(e, now);
    emit_here(e, long_ago);
}

/* Jumps to `slow` if the reference rbp + number may be in another time bin. */
static void miss_check_bin(struct gen *g, int64_t number, size_t slow)
{
    unsigned of = RBP;

    if (number >= TIME_BIN_REST)
        emit_at(&g->e, EMIT_LEA, of = R8, RBP, number);
    emit_at(&g->e, EMIT_COMPARE, of, RBX, AT(bin.low));
    emit_jump_if(&g->e, IF_NOT_BELOW, slow);
}

/* Counts the miss in the path counts of its block, and adds its stall cycles to the clock. */
static void miss_count_path(struct gen *g, const struct tb_operand *operand)
{
    if (operand->part == 0) {
        emit_increment(&g->e, RDI, RSP, TBLOCK_AT(fixed_misses));
    } else {
        emit_at(&g->e, EMIT_LOAD, R8, RDI, TBLOCK_AT(path));
        emit_increment(&g->e, R8, RSP, PATH_AT(part[operand->part].fixed_misses));
    }
    emit_add_constant(&g->e, R14, (int32_t)g->s->fill.fixed_stall);
}

void code_count_fixed(struct gen *g, size_t slow)
{
    const int64_t fixed = OPERAND_AT(fixed);
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, R10, R8);
    emit_compare_short(e, R11, RSP, OPERAND_AT(data.stride), 0);
    size_t has_none = emit_jump_if(e, IF_EQUAL, 0);
    emit_call(e, g->s->code.routine.add_offset);
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_here(e, has_none);
    emit_and_constant(e, R10, FIXED_COST_BUCKETS - 1);
    emit_shift(e, R10, true, (unsigned)__builtin_ctzll(sizeof(struct fixed_cost_misses)));
    emit_memory(e, true, EMIT_COMPARE, R8, R11, R10, fixed + (int64_t)offsetof(struct fixed_cost_misses, what));
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_increment(e, R11, R10, fixed + (int64_t)offsetof(struct fixed_cost_misses, count));
    emit_increment(e, RBX, RSP, AT(bin.fixed_misses));
}

/* Counts the miss of the line in rsi by an operand, which it loads into r11; r9: its last use. */
static void miss_count(struct gen *g, const struct tblock *x, const struct tb_operand *operand, size_t slow)
{
    struct emit *e = &g->e;

    miss_check_bin(g, operand - x->operand, slow);
    emit_memory(e, false, EMIT_LOAD, R8, RSI, RSP, LINE_AT(remover));
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    compare_recent(g);
    emit_constant(e, R11, (uintptr_t)operand);
    emit_registers(e, EMIT_ADD_CARRY, R8, R8);
    code_count_fixed(g, slow);
    miss_count_path(g, operand);
}

/* Whether the sample log has room. */
static void check_room(struct gen *g, size_t slow)
{
    emit_at(&g->e, EMIT_LOAD, R8, RBX, AT(log.at));
    emit_at(&g->e, EMIT_COMPARE, R8, RBX, AT(log.end));
    emit_jump_if(&g->e, IF_EQUAL, slow);
}

/* "Above": the set is not logged. */
static void compare_logged(struct gen *g)
{
    struct emit *e = &g->e;

    _Static_assert(LOGGED_SETS_HASH % sizeof(struct l1_entry) == 0, "sets are in rcx as bytes of entries");
    emit_multiply_constant(e, R10, RCX, LOGGED_SETS_HASH / sizeof(struct l1_entry));
    emit_memory(e, false, EMIT_ADD, R10, RBX, RSP, AT(log.sets.offset));
    emit_memory(e, false, EMIT_COMPARE, R10, RBX, RSP, AT(log.sets.limit));
}

/* Adds an entry to the log; r8: its `what`. */
static void miss_log_entry(struct gen *g, int64_t number)
{
    const int64_t log = -(int64_t)sizeof(struct sample_entry); /* log.at is after the entry already */
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RAX, RBX, AT(log.at));
    emit_add_constant(e, RAX, (int32_t)sizeof(struct sample_entry));
    emit_at(e, EMIT_STORE, RAX, RBX, AT(log.at));
    emit_at(e, EMIT_STORE, R8, RAX, log + (int64_t)offsetof(struct sample_entry, what));
    emit_registers(e, EMIT_LOAD, R10, RDX);
    emit_shift(e, R10, false, g->s->cache.shift);
    emit_at(e, EMIT_STORE, R10, RAX, log + (int64_t)offsetof(struct sample_entry, line));
    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(stamp));
    emit_at(e, EMIT_STORE, R10, RAX, log + (int64_t)offsetof(struct sample_entry, last));
    emit_at(e, EMIT_LEA, R10, RBP, number);
    emit_at(e, EMIT_STORE, R10, RAX, log + (int64_t)offsetof(struct sample_entry, number));
}

/* For a sample: a miss by the operand in r11, of the line in rsi. */
static void miss_log(struct gen *g, int64_t number)
{
    struct emit *e = &g->e;

    emit_memory(e, false, EMIT_LOAD, R8, R11, RSP, OPERAND_AT(data.access));
    compare_logged(g);
    size_t is_logged = emit_jump_if(e, IF_NOT_ABOVE, 0);
    emit_at(e, EMIT_LOAD, R10, RBX, AT(log.missed));
    emit_increment(e, R10, R8 | EMIT_TIMES_8, 0);
    emit_memory(e, false, EMIT_LOAD, R10, RSI, RSP, LINE_AT(remover));
    emit_registers(e, EMIT_OR, R10, R10);
    size_t done = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_increment(e, RBX, RSP, AT(log.missed_new));
    size_t is_new = emit_jump(e, 0);
    emit_here(e, is_logged);
    miss_log_entry(g, number);
    emit_memory(e, false, EMIT_LOAD, R10, RSI, RSP, LINE_AT(remover));
    emit_registers(e, EMIT_OR, R10, R10);
    size_t was_here = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_at(e, EMIT_LOAD, R10, RBX, AT(log.new_flag));
    emit_registers(e, EMIT_OR, R10, R8);
    emit_at(e, EMIT_STORE, R10, RAX,
            (int64_t)offsetof(struct sample_entry, what) - (int64_t)sizeof(struct sample_entry));
    emit_here(e, was_here);
    emit_here(e, done);
    emit_here(e, is_new);
}

/* Evicts the line in the entry at rcx, for the operand in r11, whose reference is rbp + number. */
static void miss_evict(struct gen *g, int64_t number, bool is_fast_forward)
{
    struct emit *e = &g->e;

    if (g->s->sample.log)
        miss_log(g, number);
    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(info));
    emit_memory(e, false, EMIT_LOAD, R8, R11, RSP, OPERAND_AT(removal_tag));
    emit_memory(e, false, EMIT_STORE, R8, R10, RSP, LINE_AT(remover));
    emit_memory(e, true, EMIT_LOAD, R8, R13, RCX, ENTRY_AT(stamp));
    emit_at(e, EMIT_STORE, R8, R10, LINE_AT(stamp));
    if (is_fast_forward) { /* unless this iteration has used it, all references have their lines in the next one, too */
        emit_registers(e, EMIT_COMPARE, R8, RBP);
        emit_registers(e, EMIT_SUB_BORROW, R8, R8);
        emit_at(e, EMIT_AND_TO, R8, RBX, AT(run.fast_forward_count));
    }
}

/* Fills the line in rsi into the entry at rcx, for the reference rbp + number. */
static void miss_fill_entry(struct gen *g, bool is_dirty, int64_t number)
{
    emit_memory(&g->e, true, EMIT_STORE, RSI, R13, RCX, ENTRY_AT(info));
    miss_set_tags(g, g->s->fill.state[is_dirty]);
    emit_at(&g->e, EMIT_LEA, R8, RBP, number);
    emit_memory(&g->e, true, EMIT_STORE, R8, R13, RCX, ENTRY_AT(stamp));
}

/* A silent upgrade of the line in rsi, which can be read at rcx; otherwise jumps to `slow`. */
static void write_silently(struct gen *g, size_t slow, size_t back)
{
    const struct exec_blocks *s = g->s;
    uint8_t from = s->fill.state[0], to = s->cache.silent[from];
    struct emit *e = &g->e;

    if (!to || !s->cache.allows[from][0] || !s->cache.allows[to][1]) {
        emit_jump(e, slow);
        return;
    }
    if (!s->cache.state_from_tags) {
        emit_registers(e, EMIT_LOAD, R8, RCX);
        emit_shift(e, R8, false, CODE_ENTRY_BITS);
        emit_constant(e, R10, (uintptr_t)s->cache.level[0].state);
        emit_compare_byte(e, R10, R8, 0, from);
        emit_jump_if(e, IF_NOT_EQUAL, slow);
        emit_store_byte(e, R10, R8, 0, to);
    }
    miss_set_tags(g, to);
    emit_jump(e, back);
}

/* Uses the line in rsi, whose last use is in r9, in the references from rbp up to before rbp + end. */
static void miss_use_line(struct gen *g, int32_t end)
{
    struct emit *e = &g->e;
    size_t done;

    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.now));
    size_t used = emit_jump_if(e, IF_NOT_BELOW, 0);
    emit_call(e, g->s->code.routine.first_use);
    if (g->s->sample.log) {
        size_t full = emit_jump_if(e, IF_NOT_BELOW, 0);
        emit_here(e, used);
        emit_memory(e, false, EMIT_LOAD, R8, RBX, RSP, AT(recent.noted_uses));
        emit_add_constant(e, R8, 1);
        emit_memory(e, false, EMIT_STORE, R8, RBX, RSP, AT(recent.noted_uses));
        emit_memory(e, false, EMIT_COMPARE, R8, RBX, RSP, AT(recent.most_noted));
        used = done = emit_jump_if(e, IF_BELOW, 0);
        emit_here(e, full);
    } else {
        done = emit_jump_if(e, IF_BELOW, 0);
    }
    emit_at(e, EMIT_LEA, R8, RBP, end);
    emit_at(e, EMIT_STORE, R8, RBX, AT(number));
    emit_call(e, g->s->code.routine.end_access);
    emit_add_constant(e, RBP, -end);
    emit_here(e, used);
    emit_here(e, done);
}

/* In iterations that are counted together: saves their number in memory, because r9 is needed, and restores it. */
static void keep_fast_forward(struct gen *g, const struct slow_path *slow_path)
{
    if (slow_path->is_fast_forward)
        emit_at(&g->e, EMIT_STORE, R9, RBX, AT(run.fast_forward_count));
}
static void return_as_it_was(struct gen *g, const struct slow_path *slow_path)
{
    if (slow_path->is_fast_forward)
        emit_at(&g->e, EMIT_LOAD, R9, RBX, AT(run.fast_forward_count));
    code_return_fast_forward(g, slow_path);
}

bool code_has_misses(const struct exec_blocks *s)
{
    return s->cache.state_from_tags && (!s->observer.classify || s->sample.log) && code_fits(s->fill.fixed_stall);
}

void code_miss(struct gen *g, const struct slow_path *slow_path, size_t slow)
{
    const struct base_group *of = slow_path->group;
    const struct tblock *x = slow_path->tblock;
    const struct tb_operand *operand = &x->operand[of->from];
    struct emit *e = &g->e;

    if (!fill_serves_group(g->s, of, operand)) {
        emit_jump(e, slow);
        return;
    }
    find_line(g, slow);
    keep_fast_forward(g, slow_path);
    size_t here = 0;
    if (g->s->sample.log) { /* perhaps there is nothing */
        emit_compare_short(e, R13, RCX, ENTRY_AT(info), 0);
        emit_jump_if(e, IF_EQUAL, slow);
        check_room(g, slow);
    }
    if (of->is_write) { /* what cannot be read is not there */
        emit_memory(e, true, EMIT_COMPARE, RSI, R13, RCX, ENTRY_AT(info));
        here = emit_jump_if(e, IF_EQUAL, 0);
    }
    miss_count(g, x, operand, slow);
    miss_evict(g, of->from, slow_path->is_fast_forward);
    emit_compare_short(e, R13, RCX, ENTRY_AT(tag[1]), -1); /* NO_LINE */
    size_t dirty = emit_jump_if(e, IF_NOT_EQUAL, 0), clean = e->used;
    miss_fill_entry(g, of->is_write, of->from + of->operands - 1);
    miss_use_line(g, of->from + of->operands);
    return_as_it_was(g, slow_path);
    emit_here(e, dirty);
    emit_increment(e, RBX, RSP, AT(fixed_write_backs));
    emit_jump(e, clean);
    if (of->is_write) {
        emit_here(e, here);
        write_silently(g, slow, slow_path->found);
    }
}

/* Fills the line in rsi, which the first level does not have, from the second level; otherwise jumps to `slow`. */
static void take_second(struct gen *g, const struct slow_path *slow_path, size_t slow)
{
    const struct base_group *of = slow_path->group;
    const struct tb_operand *operand = &slow_path->tblock->operand[of->from];
    struct emit *e = &g->e;

    miss_check_bin(g, of->from, slow);
    emit_constant(e, R11, (uintptr_t)operand);
    emit_at(e, EMIT_LEA, R9, RBP, of->from + of->operands - 1);
    emit_call(e, g->s->code.routine.second[of->is_write]);
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    miss_count_path(g, operand);
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    miss_use_line(g, of->from + of->operands);
    code_return(g, slow_path);
}

void code_find(struct gen *g, const struct slow_path *slow_path, size_t slow)
{
    bool is_write = slow_path->group->is_write;
    struct emit *e = &g->e;

    find_line(g, slow);
    emit_memory(e, false, EMIT_LOAD, RCX, RSI, RSP, LINE_AT(entry));
    emit_registers(e, EMIT_OR, RCX, RCX);
    size_t never = emit_jump_if(e, IF_EQUAL, 0);
    emit_add_constant(e, RCX, -1);
    emit_shift(e, RCX, true, CODE_ENTRY_BITS);
    emit_memory(e, true, EMIT_COMPARE, RSI, R13, RCX, ENTRY_AT(info));
    size_t away = emit_jump_if(e, IF_NOT_EQUAL, 0);
    code_way_hint(g, R8);
    emit_memory(e, false, EMIT_STORE, RCX, RBX, R8 | EMIT_TIMES_4, AT(cache.way_hint));
    emit_memory(e, true, EMIT_COMPARE, RDX, R13, RCX, ENTRY_AT(tag) + 8 * (int64_t)is_write);
    emit_jump_if(e, IF_EQUAL, slow_path->found);
    if (is_write)
        write_silently(g, slow, slow_path->found);
    else
        emit_jump(e, slow);
    emit_here(e, never);
    emit_here(e, away);
    if (g->has_second)
        take_second(g, slow_path, slow);
    else
        emit_jump(e, slow);
}

void code_old_epoch(struct gen *g, const struct slow_path *slow_path, size_t slow)
{
    const struct base_group *of = slow_path->group;
    struct emit *e = &g->e;

    if (g->s->sample.log) {
        check_room(g, slow);
        compare_logged(g);
        size_t not_logged = emit_jump_if(e, IF_ABOVE, 0);
        emit_at(e, EMIT_LOAD, R8, RBX, AT(recent.since));
        emit_at(e, EMIT_SUB, R8, RBX, AT(recent.before));
        emit_constant(e, R10, SAMPLE_USE);
        emit_registers(e, EMIT_OR, R8, R10);
        miss_log_entry(g, of->from);
        emit_here(e, not_logged);
    }
    keep_fast_forward(g, slow_path);
    emit_memory(e, true, EMIT_LOAD, RSI, R13, RCX, ENTRY_AT(info));
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    emit_at(e, EMIT_LEA, R8, RBP, of->from + of->operands - 1);
    emit_memory(e, true, EMIT_STORE, R8, R13, RCX, ENTRY_AT(stamp));
    miss_use_line(g, of->from + of->operands);
    return_as_it_was(g, slow_path);
}

/* As miss_key_add_offset. */
void code_make_offset(struct gen *g)
{
    struct emit *e = &g->e;

    emit_push(e, RAX);
    emit_push(e, RDX);
    emit_compare_short(e, R11, RSP, OPERAND_AT(inverse), 0);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_ADD, RAX, R11, OPERAND_AT(disp));
    emit_at(e, EMIT_SUB, RAX, R11, OPERAND_AT(data.origin));
    emit_registers(e, EMIT_LOAD, R10, RAX);
    emit_shift(e, R10, false, 32);
    size_t variable = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_at(e, EMIT_MULTIPLY, RAX, R11, OPERAND_AT(inverse));
    emit_multiply_wide(e, R11, OPERAND_AT(data.stride));
    emit_at(e, EMIT_LEA, R10, RDX, 1);
    emit_shift(e, R10, true, MISS_OFFSET_SHIFT);
    emit_registers(e, EMIT_OR, R8, R10);
    emit_registers(e, EMIT_LOAD, R10, R8);
    emit_shift(e, R10, false, MISS_OFFSET_SHIFT + 2);
    emit_registers(e, EMIT_XOR, R10, R8);
    emit_registers(e, EMIT_COMPARE, RAX, RAX); /* equal */
    size_t done = emit_jump(e, 0);
    emit_here(e, none);
    emit_here(e, variable);
    emit_registers(e, EMIT_OR, RSP, RSP); /* not equal */
    emit_here(e, done);
    emit_pop(e, RDX);
    emit_pop(e, RAX);
    emit_return(e);
}

/* As epoch_shadow_first_use. */
void code_make_first_use(struct gen *g)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, R8, RBX, AT(recent.next));
    emit_memory(e, false, EMIT_STORE, R8, RSI, RSP, LINE_AT(use));
    emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.used_origin));
    emit_memory(e, true, EMIT_STORE, RSI, R10, R8 | EMIT_TIMES_8, 0);
    if (g->s->cache.state_from_tags) {
        emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.used_at_origin));
        emit_memory(e, false, EMIT_STORE, RCX, R10, R8 | EMIT_TIMES_4, 0);
    }
    emit_add_constant(e, R8, 1);
    emit_at(e, EMIT_STORE, R8, RBX, AT(recent.next));
    emit_at(e, EMIT_LOAD, R11, RBX, AT(recent.used_again));
    emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.evicted_below));
    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.last));
    size_t outside = emit_jump_if(e, IF_BELOW, 0);
    emit_at(e, EMIT_LOAD, RAX, RBX, AT(recent.rank_origin));
    emit_memory(e, false, EMIT_LOAD, RAX, RAX, R9 | EMIT_TIMES_4, 0);
    emit_store_byte(e, R11, RAX, 0, 1);
    emit_registers(e, EMIT_COMPARE, RAX, R10);
    size_t in_shadow = emit_jump_if(e, IF_NOT_BELOW, 0);
    emit_here(e, outside);
    emit_compare_short(e, RBX, RSP, AT(recent.ranks), 0);
    size_t no_item = emit_jump_if(e, IF_EQUAL, 0);
    size_t next = e->used;
    emit_compare_byte(e, R11, R10, 0, 0);
    emit_at(e, EMIT_LEA, R10, R10, 1); /* LEA keeps the flags of the comparison */
    emit_jump_if(e, IF_NOT_EQUAL, next);
    emit_at(e, EMIT_STORE, R10, RBX, AT(recent.evicted_below));
    emit_here(e, in_shadow);
    emit_here(e, no_item);
    emit_at(e, EMIT_COMPARE, R8, RBX, AT(recent.end));
    emit_return(e);
}
