/* SPDX-License-Identifier: MIT */
/* Machine code that follows calls and returns (map/call_path.h), for a translated block that was on this path before. All other cases are left to
 * tblock_enter. */
#include "sim/exec/jit/code.h"

/* After the block in rdi was entered: the address at which its call stores the return address. */
static void code_set_slot(struct gen *g, const struct tblock *x)
{
    const struct tb_operand *o = &x->operand[x->stack.slot];
    struct emit *e = &g->e;

    code_load_base(g, &(struct base_group){ .base = o->base, .index = o->index, .scale = o->scale });
    code_sum(g, RAX, RAX, (uint64_t)o->disp);
    emit_at(e, EMIT_LOAD, RCX, RBX, AT(path.calls));
    emit_at(e, EMIT_LOAD, RCX, RCX, CALLS_AT(last));
    emit_at(e, EMIT_STORE, RAX, RCX, CALL_AT(slot));
}

void code_enter(struct gen *g, struct tblock *x)
{
    struct emit *e = &g->e;

    if (x->stack.has_entry) {
        code_load(g, RAX, PEET_SRC_SLOT);
        emit_at(e, EMIT_STORE, RAX, RBX, AT(path.stack_pointer));
    }
    emit_constant(e, RDI, (uintptr_t)x);
    if (x->exit >= PATH_CALLS) {
        emit_call(e, g->s->code.routine.enter[x->exit]);
        if (x->stack.slot != NO_OPERAND)
            code_set_slot(g, x);
        return;
    }
    struct slow_path *slow_path = code_slow_path(g, SLOW_PATH_ENTER, x, NULL);
    emit_at(e, EMIT_LOAD, RAX, RBX, AT(path.fast_entry));
    emit_at(e, EMIT_COMPARE, RAX, RDI, TBLOCK_AT(current));
    code_slow_path_if(g, slow_path, IF_NOT_EQUAL);
    if (x->exit == PATH_JUMPS) {
        emit_at(e, EMIT_LOAD, RAX, RBX, AT(path.calls));
        emit_store_byte(e, RAX, RSP, CALLS_AT(exit), PATH_JUMPS);
        emit_store_constant(e, true, RBX, RSP, AT(path.fast_entry), -1); /* NO_LINE */
    }
    emit_at(e, EMIT_STORE, RDI, RBX, AT(path.last));
    slow_path->back = e->used;
}

/* Slow exits of a fast entry. */
struct slow_exits {
    size_t exit[16];
    unsigned exits;
};

static void slow_exit_if(struct gen *g, struct slow_exits *slow, enum emit_condition c)
{
    slow->exit[slow->exits++] = emit_jump_if(&g->e, c, 0);
}

/* As tblock_rebind, if only the path of the block in rdi has changed, and the path cache has it. */
static void enter_take_path(struct gen *g, struct slow_exits *slow)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, R8, RDI, TBLOCK_AT(path));
    emit_registers(e, EMIT_OR, R8, R8);
    slow_exit_if(g, slow, IF_EQUAL);
    emit_at(e, EMIT_LOAD, R10, RDI, TBLOCK_AT(current));
    emit_registers(e, EMIT_XOR, R10, RDX);
    emit_shift(e, R10, false, 32);
    slow_exit_if(g, slow, IF_NOT_EQUAL);
    emit_memory(e, false, EMIT_LOAD, R10, RDI, RSP, TBLOCK_AT(number));
    emit_shift(e, R10, true, 32);
    emit_memory(e, false, EMIT_LOAD, RCX, RBX, RSP, AT(binding.node));
    emit_registers(e, EMIT_OR, RCX, R10);
    emit_constant(e, R10, EXEC_HASH_FACTOR);
    emit_registers(e, EMIT_MULTIPLY, R10, RCX);
    emit_shift(e, R10, false, 64 - PATH_CACHE_BITS);
    emit_shift(e, R10, true, (unsigned)__builtin_ctzll(sizeof g->s->translated.path_cache[0]));
    emit_memory(e, true, EMIT_COMPARE, RCX, RBX, R10, AT(translated.path_cache[0].key));
    slow_exit_if(g, slow, IF_NOT_EQUAL);
    emit_memory(e, true, EMIT_LOAD, R10, RBX, R10, AT(translated.path_cache[0].path));
    emit_memory(e, false, EMIT_LOAD, RCX, RDI, RSP, TBLOCK_AT(stack.version)); /* as change_path */
    emit_memory(e, false, EMIT_COMPARE, RCX, R10, RSP, PATH_AT(stack_version));
    slow_exit_if(g, slow, IF_NOT_EQUAL);
    emit_memory(e, false, EMIT_STORE, RCX, R8, RSP, PATH_AT(stack_version));
    emit_at(e, EMIT_LOAD, RCX, RDI, TBLOCK_AT(runs));
    emit_registers(e, EMIT_LOAD, R11, RCX);
    emit_at(e, EMIT_SUB, R11, RDI, TBLOCK_AT(runs_at_bind));
    emit_at(e, EMIT_ADD_TO, R11, R8, PATH_AT(runs));
    emit_at(e, EMIT_STORE, RCX, RDI, TBLOCK_AT(runs_at_bind));
    emit_at(e, EMIT_LOAD, R11, RDI, TBLOCK_AT(fixed_misses));
    emit_registers(e, EMIT_OR, R11, R11);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_ADD_TO, R11, R8, PATH_AT(part[0].fixed_misses));
    emit_store_constant(e, true, RDI, RSP, TBLOCK_AT(fixed_misses), 0);
    emit_here(e, none);
    emit_at(e, EMIT_STORE, R10, RDI, TBLOCK_AT(path));
    emit_at(e, EMIT_STORE, RDX, RDI, TBLOCK_AT(current));
}

/* rdx: what `current` is for the translated block in rdi; rax: the thread's calls. */
static void enter_arrive(struct gen *g, struct slow_exits *slow)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RAX, RBX, AT(path.calls));
    emit_at(e, EMIT_LOAD, RDX, RBX, AT(binding.current));
    emit_compare_byte(e, RAX, RSP, CALLS_AT(exit), PATH_NEXT);
    size_t on = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_LOAD, R10, RDI, TBLOCK_AT(entry.addr));
    emit_at(e, EMIT_LOAD, RCX, RAX, CALLS_AT(top));
    emit_compare_byte(e, RAX, RSP, CALLS_AT(exit), PATH_CALLS);
    size_t jumps = emit_jump_if(e, IF_BELOW, 0), calls = emit_jump_if(e, IF_EQUAL, 0);
    emit_compare_byte(e, RAX, RSP, CALLS_AT(exit), PATH_RETURNS);
    slow_exit_if(g, slow, IF_NOT_EQUAL);
    emit_at(e, EMIT_LOAD, R8, RAX, CALLS_AT(last));
    emit_at(e, EMIT_COMPARE, R10, R8, CALL_AT(back));
    slow_exit_if(g, slow, IF_NOT_EQUAL);
    size_t libcall = emit_jump(e, 0);
    emit_here(e, jumps);
    emit_at(e, EMIT_COMPARE, R10, RCX, CALL_AT(back));
    slow_exit_if(g, slow, IF_EQUAL);
    size_t stays = emit_jump(e, 0);
    emit_here(e, calls);
    emit_at(e, EMIT_LOAD, R8, RAX, CALLS_AT(last));
    emit_at(e, EMIT_COMPARE, R10, R8, CALL_AT(back));
    size_t returned = emit_jump_if(e, IF_EQUAL, 0);
    emit_compare_byte(e, RDI, RSP, TBLOCK_AT(entry.is_function), false);
    slow_exit_if(g, slow, IF_EQUAL);
    size_t called = emit_jump(e, 0);
    emit_here(e, returned); /* what it called was not recorded */
    emit_at(e, EMIT_LEA, R8, RCX, sizeof(struct path_call));
    emit_at(e, EMIT_COMPARE, R8, RAX, CALLS_AT(end)); /* perhaps some were too deep */
    slow_exit_if(g, slow, IF_NOT_BELOW);
    emit_add_constant(e, RCX, -(int32_t)sizeof(struct path_call));
    emit_at(e, EMIT_STORE, RCX, RAX, CALLS_AT(top));
    emit_store_byte(e, RAX, RSP, CALLS_AT(exit), PATH_NEXT); /* the call has returned */
    emit_here(e, libcall);
    emit_here(e, called);
    emit_at(e, EMIT_LOAD, RDX, RBX, AT(binding.base));
    emit_memory(e, false, EMIT_LOAD, RCX, RCX, RSP, CALL_AT(node));
    emit_memory(e, false, EMIT_STORE, RCX, RBX, RSP, AT(binding.node));
    emit_registers(e, EMIT_OR, RDX, RCX);
    emit_at(e, EMIT_STORE, RDX, RBX, AT(binding.current));
    emit_here(e, on);
    emit_here(e, stays);
    emit_at(e, EMIT_COMPARE, RDX, RDI, TBLOCK_AT(current));
    size_t same = emit_jump_if(e, IF_EQUAL, 0);
    enter_take_path(g, slow);
    emit_here(e, same);
}

/* As paths_call. */
static void enter_call(struct gen *g, struct slow_exits *slow)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RCX, RDI, TBLOCK_AT(path));
    emit_memory(e, false, EMIT_LOAD, R10, RCX, RSP, PATH_AT(callee));
    emit_registers(e, EMIT_OR, R10, R10);
    slow_exit_if(g, slow, IF_EQUAL);
    emit_at(e, EMIT_LOAD, RCX, RAX, CALLS_AT(top));
    emit_add_constant(e, RCX, sizeof(struct path_call));
    emit_at(e, EMIT_COMPARE, RCX, RAX, CALLS_AT(end));
    slow_exit_if(g, slow, IF_NOT_BELOW);
    emit_at(e, EMIT_STORE, RCX, RAX, CALLS_AT(top));
    emit_at(e, EMIT_STORE, RCX, RAX, CALLS_AT(last));
    emit_memory(e, false, EMIT_STORE, R10, RCX, RSP, CALL_AT(node));
    emit_at(e, EMIT_LOAD, R8, RDI, TBLOCK_AT(call.site));
    emit_at(e, EMIT_STORE, R8, RCX, CALL_AT(site));
    emit_at(e, EMIT_LOAD, R8, RDI, TBLOCK_AT(call.back));
    emit_at(e, EMIT_STORE, R8, RCX, CALL_AT(back));
}

/* As paths_return. */
static void enter_return(struct gen *g, struct slow_exits *slow)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RCX, RAX, CALLS_AT(top));
    emit_at(e, EMIT_COMPARE, RCX, RAX, CALLS_AT(call));
    slow_exit_if(g, slow, IF_EQUAL);
    emit_at(e, EMIT_LEA, R8, RCX, sizeof(struct path_call));
    emit_at(e, EMIT_COMPARE, R8, RAX, CALLS_AT(end)); /* perhaps some were too deep */
    slow_exit_if(g, slow, IF_NOT_BELOW);
    emit_at(e, EMIT_STORE, RCX, RAX, CALLS_AT(last));
    emit_add_constant(e, RCX, -(int32_t)sizeof(struct path_call));
    emit_at(e, EMIT_STORE, RCX, RAX, CALLS_AT(top));
}

void code_make_enter(struct gen *g, enum path_exit how)
{
    struct slow_exits slow = { .exits = 0 };
    struct emit *e = &g->e;

    enter_arrive(g, &slow);
    if (how == PATH_CALLS)
        enter_call(g, &slow);
    else if (how == PATH_RETURNS)
        enter_return(g, &slow);
    emit_store_byte(e, RAX, RSP, CALLS_AT(exit), (uint8_t)how);
    emit_at(e, EMIT_STORE, RDI, RBX, AT(path.last));
    if (how == PATH_NEXT)
        emit_at(e, EMIT_STORE, RDX, RBX, AT(path.fast_entry));
    else
        emit_store_constant(e, true, RBX, RSP, AT(path.fast_entry), -1); /* NO_LINE */
    emit_return(e);
    for (unsigned i = 0; i < slow.exits; i++)
        emit_here(e, slow.exit[i]);
}
