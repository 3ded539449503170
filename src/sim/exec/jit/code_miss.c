/* SPDX-License-Identifier: MIT */
/* Machine code for groups that are not easy only for where their lines are: misses, if there is one level and it is direct-mapped, as in solo_run_direct; lines that are not where they
 * were guessed to be; and lines that were not used for a while. All that is not as it is mostly is left to refer.c, before anything was changed. */
#include "sim/exec/jit/code.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* The entry at rcx as a line in that state, which begins at rdx, can be seen. */
static void show(struct gen *g, uint8_t state)
{
    for (unsigned i = 0; i < 2; i++)
        if (g->s->seen_as[state][i])
            emit_memory(&g->e, true, EMIT_STORE, RDX, R13, RCX, ENTRY_AT(seen) + 8 * (int64_t)i);
        else
            emit_store_constant(&g->e, true, R13, RCX, ENTRY_AT(seen) + 8 * (int64_t)i, -1);
}

/* rsi: the line that begins at rdx. */
static void find_line(struct gen *g, size_t slow)
{
    const unsigned page = g->s->shift + SOLO_PAGE_BITS, size = (unsigned)__builtin_ctzll(sizeof g->s->lines.near[0]);
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, R8, RDX);
    emit_shift(e, R8, false, page);
    emit_registers(e, EMIT_LOAD, R10, RDX);
    emit_shift(e, R10, false, page - size);
    emit_and_constant(e, R10, (SOLO_PAGES_NEAR - 1) << size);
    emit_memory(e, true, EMIT_COMPARE, R8, RBX, R10, AT(lines.near[0].page));
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_registers(e, EMIT_LOAD, RSI, RDX);
    emit_scale(e, RSI, (int)g->s->lines.bits - (int)g->s->shift);
    emit_memory(e, true, EMIT_ADD, RSI, RBX, R10, AT(lines.near[0].origin));
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
    emit_at(e, EMIT_COMPARE, R10, RBX, AT(recent.gone));
    emit_here(e, now);
    emit_here(e, long_ago);
}

/* Leaves it to `slow` if the reference with that number from rbp on may be in another window of time. */
static void see_window(struct gen *g, int64_t number, size_t slow)
{
    unsigned of = RBP;

    if (number >= SOLO_WINDOW_REST)
        emit_at(&g->e, EMIT_LEA, of = R8, RBP, number);
    emit_at(&g->e, EMIT_COMPARE, of, RBX, AT(window_low));
    emit_jump_if(&g->e, IF_NOT_BELOW, slow);
}

/* Counts it for the block, and the time that it took. */
static void count_leaf(struct gen *g, const struct solo_site *site)
{
    if (site->part == 0) {
        emit_increment(&g->e, RDI, RSP, STRETCH_AT(lean));
    } else {
        emit_at(&g->e, EMIT_LOAD, R8, RDI, STRETCH_AT(path));
        emit_increment(&g->e, R8, RSP, PATH_AT(part[site->part].lean));
    }
    emit_add_constant(&g->e, R14, (int32_t)g->s->lean_stall);
}

void code_count_memo(struct gen *g, size_t slow)
{
    const int64_t memo = SITE_AT(memo);
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, R10, R8);
    emit_compare_short(e, R11, RSP, SITE_AT(data.stride), 0);
    size_t has_none = emit_jump_if(e, IF_EQUAL, 0);
    emit_call(e, g->s->code.offset);
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_here(e, has_none);
    emit_and_constant(e, R10, SOLO_MEMOS - 1);
    emit_shift(e, R10, true, (unsigned)__builtin_ctzll(sizeof(struct solo_memo)));
    emit_memory(e, true, EMIT_COMPARE, R8, R11, R10, memo + (int64_t)offsetof(struct solo_memo, what));
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    emit_increment(e, R11, R10, memo + (int64_t)offsetof(struct solo_memo, count));
    emit_increment(e, RBX, RSP, AT(window_lean));
}

/* Counts the miss by a site, which is in r11 then, of the line in rsi; r9: its last use. */
static void count(struct gen *g, const struct solo_stretch *x, const struct solo_site *site, size_t slow)
{
    struct emit *e = &g->e;

    see_window(g, site - x->site, slow);
    emit_memory(e, false, EMIT_LOAD, R8, RSI, RSP, LINE_AT(lost));
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    compare_recent(g);
    emit_constant(e, R11, (uintptr_t)site);
    emit_registers(e, EMIT_ADD_CARRY, R8, R8);
    code_count_memo(g, slow);
    count_leaf(g, site);
}

/* For a sample: whether there is room for what it is told. */
static void check_room(struct gen *g, size_t slow)
{
    emit_at(&g->e, EMIT_LOAD, R8, RBX, AT(seen_at));
    emit_at(&g->e, EMIT_COMPARE, R8, RBX, AT(seen_end));
    emit_jump_if(&g->e, IF_EQUAL, slow);
}

/* "Above": it is not told of the set. */
static void compare_choice(struct gen *g)
{
    struct emit *e = &g->e;

    _Static_assert(SOLO_CHOICE_HASH % sizeof(struct solo_entry) == 0, "sets are in rcx as bytes of entries");
    emit_multiply_constant(e, R10, RCX, SOLO_CHOICE_HASH / sizeof(struct solo_entry));
    emit_memory(e, false, EMIT_ADD, R10, RBX, RSP, AT(choice.turn));
    emit_memory(e, false, EMIT_COMPARE, R10, RBX, RSP, AT(choice.limit));
}

/* What it is told, with what that is in r8. */
static void see(struct gen *g, int64_t number)
{
    const int64_t seen = -(int64_t)sizeof(struct solo_seen); /* it is behind it already */
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RAX, RBX, AT(seen_at));
    emit_add_constant(e, RAX, (int32_t)sizeof(struct solo_seen));
    emit_at(e, EMIT_STORE, RAX, RBX, AT(seen_at));
    emit_at(e, EMIT_STORE, R8, RAX, seen + (int64_t)offsetof(struct solo_seen, what));
    emit_registers(e, EMIT_LOAD, R10, RDX);
    emit_shift(e, R10, false, g->s->shift);
    emit_at(e, EMIT_STORE, R10, RAX, seen + (int64_t)offsetof(struct solo_seen, line));
    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(stamp));
    emit_at(e, EMIT_STORE, R10, RAX, seen + (int64_t)offsetof(struct solo_seen, last));
    emit_at(e, EMIT_LEA, R10, RBP, number);
    emit_at(e, EMIT_STORE, R10, RAX, seen + (int64_t)offsetof(struct solo_seen, number));
}

/* For a sample: a miss by the site in r11, of the line in rsi. */
static void see_miss(struct gen *g, int64_t number)
{
    struct emit *e = &g->e;

    emit_memory(e, false, EMIT_LOAD, R8, R11, RSP, SITE_AT(data.cell));
    compare_choice(g);
    size_t told = emit_jump_if(e, IF_NOT_ABOVE, 0);
    emit_at(e, EMIT_LOAD, R10, RBX, AT(missed));
    emit_increment(e, R10, R8 | EMIT_TIMES_8, 0);
    emit_memory(e, false, EMIT_LOAD, R10, RSI, RSP, LINE_AT(lost));
    emit_registers(e, EMIT_OR, R10, R10);
    size_t done = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_increment(e, RBX, RSP, AT(missed_new));
    size_t is_new = emit_jump(e, 0);
    emit_here(e, told);
    see(g, number);
    emit_memory(e, false, EMIT_LOAD, R10, RSI, RSP, LINE_AT(lost));
    emit_registers(e, EMIT_OR, R10, R10);
    size_t was_here = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_at(e, EMIT_LOAD, R10, RBX, AT(seen_new));
    emit_registers(e, EMIT_OR, R10, R8);
    emit_at(e, EMIT_STORE, R10, RAX, (int64_t)offsetof(struct solo_seen, what) - (int64_t)sizeof(struct solo_seen));
    emit_here(e, was_here);
    emit_here(e, done);
    emit_here(e, is_new);
}

/* What was in the entry goes, for the site in r11, whose reference has that number from rbp on. */
static void push_out(struct gen *g, int64_t number, bool is_even)
{
    struct emit *e = &g->e;

    if (g->s->seen)
        see_miss(g, number);
    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(record));
    emit_memory(e, false, EMIT_LOAD, R8, R11, RSP, SITE_AT(loses));
    emit_memory(e, false, EMIT_STORE, R8, R10, RSP, LINE_AT(lost));
    emit_memory(e, true, EMIT_LOAD, R8, R13, RCX, ENTRY_AT(stamp));
    emit_at(e, EMIT_STORE, R8, R10, LINE_AT(stamp));
    if (is_even) { /* unless this trip has used it, all references have their lines in the next one, too */
        emit_registers(e, EMIT_COMPARE, R8, RBP);
        emit_registers(e, EMIT_SUB_BORROW, R8, R8);
        emit_at(e, EMIT_AND_TO, R8, RBX, AT(even));
    }
}

/* The line in rsi comes. */
static void put(struct gen *g, bool is_dirty, int64_t number)
{
    emit_memory(&g->e, true, EMIT_STORE, RSI, R13, RCX, ENTRY_AT(record));
    show(g, g->s->lean_state[is_dirty]);
    emit_at(&g->e, EMIT_LEA, R8, RBP, number);
    emit_memory(&g->e, true, EMIT_STORE, R8, R13, RCX, ENTRY_AT(stamp));
}

/* The line in rsi, which can be read at rcx, is written, and nobody has to know; else `slow`. */
static void write_silently(struct gen *g, size_t slow, size_t back)
{
    const struct solo *s = g->s;
    uint8_t from = s->lean_state[0], to = s->silent[from];
    struct emit *e = &g->e;

    if (!to || !s->seen_as[from][0] || !s->seen_as[to][1]) {
        emit_jump(e, slow);
        return;
    }
    if (!s->is_plain) {
        emit_registers(e, EMIT_LOAD, R8, RCX);
        emit_shift(e, R8, false, CODE_ENTRY_BITS);
        emit_constant(e, R10, (uintptr_t)s->level[0].state);
        emit_compare_byte(e, R10, R8, 0, from);
        emit_jump_if(e, IF_NOT_EQUAL, slow);
        emit_store_byte(e, R10, R8, 0, to);
    }
    show(g, to);
    emit_jump(e, back);
}

/* The line in rsi, whose last use is in r9, is used by references up to before that one. */
static void use(struct gen *g, int32_t end)
{
    struct emit *e = &g->e;
    size_t done;

    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.now));
    size_t used = emit_jump_if(e, IF_NOT_BELOW, 0);
    emit_call(e, g->s->code.anew);
    if (g->s->seen) {
        size_t full = emit_jump_if(e, IF_NOT_BELOW, 0);
        emit_here(e, used);
        emit_memory(e, false, EMIT_LOAD, R8, RBX, RSP, AT(recent.told));
        emit_add_constant(e, R8, 1);
        emit_memory(e, false, EMIT_STORE, R8, RBX, RSP, AT(recent.told));
        emit_memory(e, false, EMIT_COMPARE, R8, RBX, RSP, AT(recent.tell));
        used = done = emit_jump_if(e, IF_BELOW, 0);
        emit_here(e, full);
    } else {
        done = emit_jump_if(e, IF_BELOW, 0);
    }
    emit_at(e, EMIT_LEA, R8, RBP, end);
    emit_at(e, EMIT_STORE, R8, RBX, AT(number));
    emit_call(e, g->s->code.interval);
    emit_add_constant(e, RBP, -end);
    emit_here(e, used);
    emit_here(e, done);
}

/* In trips that are made together: how many are not made anew, in memory, for r9 is needed; and back. */
static void keep_even(struct gen *g, const struct detour *detour)
{
    if (detour->is_even)
        emit_at(&g->e, EMIT_STORE, R9, RBX, AT(even));
}
static void return_as_it_was(struct gen *g, const struct detour *detour)
{
    if (detour->is_even)
        emit_at(&g->e, EMIT_LOAD, R9, RBX, AT(even));
    code_return_even(g, detour);
}

bool code_has_misses(const struct solo *s)
{
    return s->is_plain && (!s->watch.knows || s->seen) && code_fits(s->lean_stall);
}

void code_miss(struct gen *g, const struct detour *detour, size_t slow)
{
    const struct solo_group *of = detour->group;
    const struct solo_stretch *x = detour->stretch;
    const struct solo_site *site = &x->site[of->from];
    struct emit *e = &g->e;

    if (!solo_is_enough(g->s, of, site)) {
        emit_jump(e, slow);
        return;
    }
    find_line(g, slow);
    keep_even(g, detour);
    size_t here = 0;
    if (g->s->seen) { /* perhaps there is nothing */
        emit_compare_short(e, R13, RCX, ENTRY_AT(record), 0);
        emit_jump_if(e, IF_EQUAL, slow);
        check_room(g, slow);
    }
    if (of->is_write) { /* what cannot be read is not there */
        emit_memory(e, true, EMIT_COMPARE, RSI, R13, RCX, ENTRY_AT(record));
        here = emit_jump_if(e, IF_EQUAL, 0);
    }
    count(g, x, site, slow);
    push_out(g, of->from, detour->is_even);
    emit_compare_short(e, R13, RCX, ENTRY_AT(seen[1]), -1); /* SOLO_NONE */
    size_t dirty = emit_jump_if(e, IF_NOT_EQUAL, 0), clean = e->used;
    put(g, of->is_write, of->from + of->sites - 1);
    use(g, of->from + of->sites);
    return_as_it_was(g, detour);
    emit_here(e, dirty);
    emit_increment(e, RBX, RSP, AT(lean_write_backs));
    emit_jump(e, clean);
    if (of->is_write) {
        emit_here(e, here);
        write_silently(g, slow, detour->found);
    }
}

/* The line in rsi, which the first cache does not have, if the second one does. */
static void take_second(struct gen *g, const struct detour *detour, size_t slow)
{
    const struct solo_group *of = detour->group;
    const struct solo_site *site = &detour->stretch->site[of->from];
    struct emit *e = &g->e;

    see_window(g, of->from, slow);
    emit_constant(e, R11, (uintptr_t)site);
    emit_at(e, EMIT_LEA, R9, RBP, of->from + of->sites - 1);
    emit_call(e, g->s->code.second[of->is_write]);
    emit_jump_if(e, IF_NOT_EQUAL, slow);
    count_leaf(g, site);
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    use(g, of->from + of->sites);
    code_return(g, detour);
}

void code_find(struct gen *g, const struct detour *detour, size_t slow)
{
    bool is_write = detour->group->is_write;
    struct emit *e = &g->e;

    find_line(g, slow);
    emit_memory(e, false, EMIT_LOAD, RCX, RSI, RSP, LINE_AT(entry));
    emit_registers(e, EMIT_OR, RCX, RCX);
    size_t never = emit_jump_if(e, IF_EQUAL, 0);
    emit_add_constant(e, RCX, -1);
    emit_shift(e, RCX, true, CODE_ENTRY_BITS);
    emit_memory(e, true, EMIT_COMPARE, RSI, R13, RCX, ENTRY_AT(record));
    size_t away = emit_jump_if(e, IF_NOT_EQUAL, 0);
    code_guess(g, R8);
    emit_memory(e, false, EMIT_STORE, RCX, RBX, R8 | EMIT_TIMES_4, AT(guess));
    emit_memory(e, true, EMIT_COMPARE, RDX, R13, RCX, ENTRY_AT(seen) + 8 * (int64_t)is_write);
    emit_jump_if(e, IF_EQUAL, detour->found);
    if (is_write)
        write_silently(g, slow, detour->found);
    else
        emit_jump(e, slow);
    emit_here(e, never);
    emit_here(e, away);
    if (g->has_second)
        take_second(g, detour, slow);
    else
        emit_jump(e, slow);
}

void code_stale(struct gen *g, const struct detour *detour, size_t slow)
{
    const struct solo_group *of = detour->group;
    struct emit *e = &g->e;

    if (g->s->seen) {
        check_room(g, slow);
        compare_choice(g);
        size_t untold = emit_jump_if(e, IF_ABOVE, 0);
        emit_at(e, EMIT_LOAD, R8, RBX, AT(recent.since));
        emit_at(e, EMIT_SUB, R8, RBX, AT(recent.before));
        emit_constant(e, R10, SOLO_USES);
        emit_registers(e, EMIT_OR, R8, R10);
        see(g, of->from);
        emit_here(e, untold);
    }
    keep_even(g, detour);
    emit_memory(e, true, EMIT_LOAD, RSI, R13, RCX, ENTRY_AT(record));
    emit_memory(e, false, EMIT_LOAD, R9, RSI, RSP, LINE_AT(use));
    emit_at(e, EMIT_LEA, R8, RBP, of->from + of->sites - 1);
    emit_memory(e, true, EMIT_STORE, R8, R13, RCX, ENTRY_AT(stamp));
    use(g, of->from + of->sites);
    return_as_it_was(g, detour);
}

/* As solo_memo_offset. */
void code_make_offset(struct gen *g)
{
    struct emit *e = &g->e;

    emit_push(e, RAX);
    emit_push(e, RDX);
    emit_compare_short(e, R11, RSP, SITE_AT(inverse), 0);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_ADD, RAX, R11, SITE_AT(disp));
    emit_at(e, EMIT_SUB, RAX, R11, SITE_AT(data.origin));
    emit_registers(e, EMIT_LOAD, R10, RAX);
    emit_shift(e, R10, false, 32);
    size_t far = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_at(e, EMIT_MULTIPLY, RAX, R11, SITE_AT(inverse));
    emit_multiply_wide(e, R11, SITE_AT(data.stride));
    emit_at(e, EMIT_LEA, R10, RDX, 1);
    emit_shift(e, R10, true, SOLO_OFFSET_AT);
    emit_registers(e, EMIT_OR, R8, R10);
    emit_registers(e, EMIT_LOAD, R10, R8);
    emit_shift(e, R10, false, SOLO_OFFSET_AT + 2);
    emit_registers(e, EMIT_XOR, R10, R8);
    emit_registers(e, EMIT_COMPARE, RAX, RAX); /* equal */
    size_t done = emit_jump(e, 0);
    emit_here(e, none);
    emit_here(e, far);
    emit_registers(e, EMIT_OR, RSP, RSP); /* not equal */
    emit_here(e, done);
    emit_pop(e, RDX);
    emit_pop(e, RAX);
    emit_return(e);
}

/* As solo_use_anew. */
void code_make_anew(struct gen *g)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, R8, RBX, AT(recent.next));
    emit_memory(e, false, EMIT_STORE, R8, RSI, RSP, LINE_AT(use));
    emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.used_origin));
    emit_memory(e, true, EMIT_STORE, RSI, R10, R8 | EMIT_TIMES_8, 0);
    if (g->s->is_plain) {
        emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.used_at_origin));
        emit_memory(e, false, EMIT_STORE, RCX, R10, R8 | EMIT_TIMES_4, 0);
    }
    emit_add_constant(e, R8, 1);
    emit_at(e, EMIT_STORE, R8, RBX, AT(recent.next));
    emit_at(e, EMIT_LOAD, R11, RBX, AT(recent.again));
    emit_at(e, EMIT_LOAD, R10, RBX, AT(recent.gone));
    emit_at(e, EMIT_COMPARE, R9, RBX, AT(recent.last));
    size_t outside = emit_jump_if(e, IF_BELOW, 0);
    emit_at(e, EMIT_LOAD, RAX, RBX, AT(recent.rank_origin));
    emit_memory(e, false, EMIT_LOAD, RAX, RAX, R9 | EMIT_TIMES_4, 0);
    emit_store_byte(e, R11, RAX, 0, 1);
    emit_registers(e, EMIT_COMPARE, RAX, R10);
    size_t inside = emit_jump_if(e, IF_NOT_BELOW, 0);
    emit_here(e, outside);
    emit_compare_short(e, RBX, RSP, AT(recent.ranks), 0);
    size_t nobody = emit_jump_if(e, IF_EQUAL, 0);
    size_t next = e->used;
    emit_compare_byte(e, R11, R10, 0, 0);
    emit_at(e, EMIT_LEA, R10, R10, 1); /* which leaves what was compared */
    emit_jump_if(e, IF_NOT_EQUAL, next);
    emit_at(e, EMIT_STORE, R10, RBX, AT(recent.gone));
    emit_here(e, inside);
    emit_here(e, nobody);
    emit_at(e, EMIT_COMPARE, R8, RBX, AT(recent.end));
    emit_return(e);
}
