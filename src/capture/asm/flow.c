/* SPDX-License-Identifier: MIT */
/* Functions, mentions of symbols, and inline assembly. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/asm/unit.h"

static const char DATA[] =
    " .byte .2byte .4byte .8byte .value .short .hword .word .long .int .quad .octa .dc.a .uleb128 .sleb128 "
    ".ascii .asciz .string .zero .skip .space .fill .float .double ";

bool asm_is_recorded(const struct asm_unit *u, uint32_t function)
{
    return function != ASM_NONE && !u->function[u->function[function].family].why_unrecorded;
}

static void leave_unrecorded(struct asm_unit *u, uint32_t function, const char *why)
{
    struct asm_function *head = &u->function[u->function[function].family];

    if (!head->why_unrecorded)
        head->why_unrecorded = why;
}

/* ---- functions ---- */

/* The function of which "name.cold" is the cold part. GCC writes it first. */
static uint32_t cold_family(struct asm_unit *u, uint32_t symbol)
{
    const struct asm_symbol *y = &u->text.symbol[symbol];
    const char *cold = memmem(y->name, y->length, ".cold", 5);
    uint32_t whole = cold ? asm_symbol_find(&u->text, y->name, (size_t)(cold - y->name)) : ASM_NONE;

    return whole == ASM_NONE ? ASM_NONE : u->text.symbol[whole].function;
}

static uint32_t flow_add_function(struct asm_unit *u, uint32_t symbol)
{
    uint32_t number = (uint32_t)u->functions, family = cold_family(u, symbol);

    u->function = mem_room(u->function, u->functions, sizeof *u->function);
    u->function[u->functions++] = (struct asm_function){ .symbol = symbol,
                                                         .end = ASM_NONE,
                                                         .family = family == ASM_NONE ? number : family,
                                                         .is_cold = family != ASM_NONE,
                                                         .why_one_copy = "not examined" };
    u->text.symbol[symbol].function = number;
    return number;
}

/* Whether the statement begins the sequence that computes a thread-local variable's address by a call. */
static bool begins_tls_sequence(const struct asm_statement *s)
{
    static const char *const marks[] = { "@tlsgd", "@tlsld", "@tlsdesc", "@TLSGD", "@TLSLD", "@TLSDESC" };

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (memmem(s->text, s->length, marks[i], strlen(marks[i])))
            return true;
    return false;
}

/* Why an instruction of a recorded function is not recorded; NULL: it is. */
static const char *why_opaque(const struct asm_unit *u, const struct asm_insn *in)
{
    const struct x86_insn *x = &in->x;

    if (u->options->all_addresses && asm_is_rewritten_by_linkers(u, in))
        return "linkers may rewrite it";
    for (unsigned i = 0; i < x->memories; i++) {
        const struct x86_memory *m = &x->memory[i];
        bool is_masked = m->form == X86_MASKED || m->form == X86_GATHERED;
        if (m->form == X86_BIT || m->form == X86_BYTE || (is_masked && m->mask_kind == X86_MASK_K)
            || (m->form == X86_GATHERED && (m->narrow || m->segment != X86_FLAT)))
            return "its operands cannot be computed by lea and mov";
        if (m->segment == X86_GS)
            return "it uses %gs";
    }
    uint8_t opcode = x->bytes[x->insn.length - 1] & 0xfe;
    if (x->is_repeated && (opcode == 0xa6 || opcode == 0xae)) /* cmps, scas */
        return "its number of repetitions is known only afterwards";
    return NULL;
}

bool asm_is_rewritten_by_linkers(const struct asm_unit *u, const struct asm_insn *in)
{
    const struct asm_statement *s = &u->text.statement[in->statement];

    return memmem(s->text, s->length, "@gottpoff", 9) || memmem(s->text, s->length, "@GOTTPOFF", 9);
}

static void note_target(struct asm_unit *u, struct asm_insn *in, const struct asm_statement *s)
{
    const char *end = s->text + s->length, *at = end;
    size_t length;
    uint8_t class = in->x.insn.class;

    if (class != PEET_CL_branch && class != PEET_CL_jump && class != PEET_CL_call)
        return;
    while (at > s->text && at[-1] != ' ' && at[-1] != '\t')
        at--;
    bool is_sum = memchr(at, '+', (size_t)(end - at)) || memchr(at, '-', (size_t)(end - at));
    const char *name = asm_next_name(&at, end, &length);
    if (!name || is_sum)
        leave_unrecorded(u, in->function, "a jump or call goes to an address that is not a label");
    else
        in->target = asm_symbol_at(&u->text, name, length);
}

/* ---- asm statements of the program ---- */

/* Whether a statement of inline assembly can be instrumented like the compiler's code. */
static bool is_understood(const struct asm_unit *u, const struct asm_statement *s)
{
    if (s->insn == ASM_NONE) /* the compiler's directives for debuggers */
        return asm_is(s, ".loc") || (s->length > 4 && !memcmp(s->text, ".cfi", 4))
               || (s->kind == ASM_LABEL && s->length > 2 && !memcmp(s->text, ".L", 2));
    const struct x86_insn *x = &u->insn[s->insn].x;
    bool transfers = x->insn.class >= PEET_CL_branch && x->insn.class <= PEET_CL_return;
    return x->special != X86_UNKNOWN && !transfers && !memchr(s->text, '\n', s->length);
}

/* Whether the statement jumps to a label of the compiler: asm goto. */
static bool jumps_to_label(const struct asm_unit *u, const struct asm_statement *s)
{
    uint8_t class = s->insn == ASM_NONE ? PEET_CL_plain : u->insn[s->insn].x.insn.class;

    return (class == PEET_CL_branch || class == PEET_CL_jump) && memmem(s->text, s->length, ".L", 2);
}

/* Examines a group of inline-assembly statements in a function. If one of them cannot be instrumented, none is. */
static void check_inline_asm(struct asm_unit *u, uint32_t first, uint32_t function)
{
    struct asm_statement *s = u->text.statement;
    uint32_t end = first;
    bool understood = true;

    for (; end < u->text.statements && s[end].is_inline_asm; end++) {
        understood &= is_understood(u, &s[end]);
        if (jumps_to_label(u, &s[end]))
            leave_unrecorded(u, function, "its inline assembly jumps to labels outside");
    }
    if (understood)
        return;
    s[first].uninterpreted_begins = s[end - 1].uninterpreted_ends = function;
    u->function[u->function[function].family].has_uninterpreted = true;
    for (uint32_t i = first; i < end; i++)
        if (s[i].insn != ASM_NONE)
            u->insn[s[i].insn].is_opaque = u->insn[s[i].insn].is_uninterpreted = true;
}

/* ---- all functions ---- */

static void note_insn(struct asm_unit *u, struct asm_statement *s, uint32_t function, bool *in_tls_sequence)
{
    struct asm_insn *in = &u->insn[s->insn];

    in->statement = (uint32_t)(s - u->text.statement);
    in->function = function;
    in->target = in->block = ASM_NONE;
    if (function == ASM_NONE || in->is_uninterpreted)
        return;
    if (in->x.special == X86_UNKNOWN)
        leave_unrecorded(u, function, "it has an instruction that is not known");
    note_target(u, in, s);
    *in_tls_sequence |= begins_tls_sequence(s);
    in->is_opaque = in->in_tls_sequence = *in_tls_sequence;
    *in_tls_sequence &= in->x.insn.class != PEET_CL_call && in->x.insn.class != PEET_CL_call_indirect;
}

/* Walks over the statements. At most one function is open in each section. */
void asm_unit_find_functions(struct asm_unit *u)
{
    uint32_t *open = mem_alloc(u->text.sections, sizeof *open);
    bool in_tls_sequence = false;

    memset(open, 0xff, u->text.sections * sizeof *open);
    for (uint32_t i = 0; i < u->text.statements; i++) {
        struct asm_statement *s = &u->text.statement[i];
        uint32_t *now = &open[s->section];
        if (!u->text.section[s->section].is_code)
            continue;
        if (s->kind == ASM_LABEL && u->text.symbol[s->symbol].is_function) {
            *now = flow_add_function(u, s->symbol);
        } else if (s->kind == ASM_DIRECTIVE && asm_is(s, ".size") && *now != ASM_NONE) {
            u->function[*now].end = i;
            *now = ASM_NONE;
        }
        if (s->is_inline_asm && *now != ASM_NONE && (i == 0 || !s[-1].is_inline_asm))
            check_inline_asm(u, i, *now);
        if (s->insn != ASM_NONE)
            note_insn(u, s, *now, &in_tls_sequence);
        else if (*now != ASM_NONE && !in_tls_sequence && !s->is_inline_asm && s->kind == ASM_DIRECTIVE
                 && asm_is_one_of(s, DATA))
            leave_unrecorded(u, *now, "it has data between its instructions");
    }
    for (size_t i = 0; i < u->functions; i++)
        if (u->function[i].end == ASM_NONE)
            leave_unrecorded(u, (uint32_t)i, "it has no .size");
    free(open);
}

/* ---- references ---- */

/* Notes symbols that are mentioned other than as targets of direct calls and jumps of instrumented functions. */
static void note_mentions(struct asm_unit *u, const char *at, const char *end, bool from_code)
{
    const char *name;
    size_t length;

    while ((name = asm_next_name(&at, end, &length))) {
        uint32_t symbol = asm_symbol_find(&u->text, name, length);
        if (symbol == ASM_NONE)
            continue;
        struct asm_symbol *y = &u->text.symbol[symbol];
        y->address_taken = y->is_target = true;
        /* for __builtin_longjmp; jumps to such labels store the cursor */
        y->is_landing_pad |= from_code && !y->is_function;
        u->has_stored_labels |= y->is_landing_pad && y->statement != ASM_NONE
                                && u->text.section[u->text.statement[y->statement].section].is_code;
        if (y->alias != ASM_NONE)
            u->text.symbol[y->alias].address_taken = true;
    }
}

/* In a table of call sites, the first name of "landing pad - function" is the landing pad. Labels of ranges (.LEH…) are
 * skipped. */
static void note_landing_pad(struct asm_unit *u, const struct asm_statement *s)
{
    const char *at = s->text + asm_word(s), *name;
    size_t length;

    if (!(name = asm_next_name(&at, s->text + s->length, &length)) || (length > 4 && !memcmp(name, ".LEH", 4)))
        return;
    uint32_t symbol = asm_symbol_find(&u->text, name, length);
    if (symbol != ASM_NONE)
        u->text.symbol[symbol].is_landing_pad = u->text.symbol[symbol].is_target = true;
}

static void note_insn_mentions(struct asm_unit *u, const struct asm_statement *s)
{
    const struct asm_insn *in = &u->insn[s->insn];
    const char *operands = s->text + asm_operands(s), *end = s->text + s->length;

    if (in->target == ASM_NONE || !asm_is_recorded(u, in->function)) {
        note_mentions(u, operands, end, asm_is_recorded(u, in->function));
        return;
    }
    struct asm_symbol *y = &u->text.symbol[in->target];
    y->is_target = true;
    if (y->alias != ASM_NONE)
        u->text.symbol[y->alias].address_taken = true;
}

void asm_unit_find_references(struct asm_unit *u)
{
    for (size_t i = 0; i < u->text.symbols; i++)
        if (u->text.symbol[i].alias != ASM_NONE) {
            struct asm_symbol *to = &u->text.symbol[u->text.symbol[i].alias];
            to->address_taken = to->is_target = true;
            if (u->text.symbol[i].is_indirect && to->function != ASM_NONE)
                leave_unrecorded(u, to->function, "it chooses among functions before the program begins");
        }
    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        const struct asm_section *in = &u->text.section[s->section];
        if (s->insn != ASM_NONE)
            note_insn_mentions(u, s);
        else if (s->kind == ASM_DIRECTIVE && in->is_exception_table && asm_is(s, ".uleb128"))
            note_landing_pad(u, s);
        else if (s->kind == ASM_DIRECTIVE && !in->is_debug && !in->is_exception_table && asm_is_one_of(s, DATA))
            note_mentions(u, s->text + asm_word(s), s->text + s->length, false);
    }
    for (size_t i = 0; i < u->functions; i++) {
        struct asm_function *f = &u->function[i];
        const struct asm_symbol *y = &u->text.symbol[f->symbol];
        f->has_stub =
            asm_is_recorded(u, (uint32_t)i) && !f->is_cold && (y->is_global || y->is_weak || y->address_taken);
    }
    for (size_t i = 0; i < u->text.insns; i++)
        if (why_opaque(u, &u->insn[i]))
            u->insn[i].is_opaque = true;
}

uint32_t asm_local_target(const struct asm_unit *u, uint32_t symbol)
{
    const struct asm_symbol *y = &u->text.symbol[symbol];

    if (y->function == ASM_NONE || u->function[y->function].is_cold || !asm_is_recorded(u, y->function))
        return ASM_NONE;
    if (y->is_weak || (y->is_global && u->options->model == ASM_LIBRARY))
        return ASM_NONE; /* another definition may win */
    if (u->function[y->function].has_label_table)
        return ASM_NONE; /* what it executes first depends on whether the program is recorded */
    return y->function;
}
