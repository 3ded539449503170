/* SPDX-License-Identifier: MIT */
/* Instructions of x86 in litmus tests: MOV, XCHG, the three fences, and what LOCK may precede. Registers and locations have 32 bits. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "litmus/test.h"

/* A kind of operands. */
enum operand_kind {
    OPERAND_MEMORY = 1,
    OPERAND_REGISTER = 2,
    OPERAND_NUMBER = 4,
    OPERAND_SOURCE = OPERAND_REGISTER | OPERAND_NUMBER
};

/* An operand of an instruction. */
struct x86_operand {
    enum operand_kind kind;
    uint32_t index; /* of the location, of the register in its thread */
    int32_t number; /* of a constant */
};

/* The code of a thread that is being read. */
struct x86_reader {
    struct litmus_lexer *l;
    struct litmus_test *t;
    uint32_t thread; /* index */
    struct litmus_instruction instruction;
    struct x86_operand first, second;
};

/* An instruction that the notation has. LOCK-prefixed ones are atomics that store their result in memory. */
struct x86_mnemonic {
    const char *name;
    int (*read)(struct x86_reader *r, const struct x86_mnemonic *m); /* makes the instruction of its operands */
    bool needs_lock;
    unsigned operands; /* number of operands */
    enum litmus_atomic atomic;
    enum order_fence fence;
};

static struct litmus_register *x86_register(struct x86_reader *r, const struct x86_operand *o)
{
    return &r->t->thread[r->thread].reg[o->index];
}

static struct litmus_operand x86_value(struct x86_reader *r, const struct x86_operand *o)
{
    struct litmus_operand number = { .constant = o->number };

    return o->kind == OPERAND_NUMBER ? number : x86_register(r, o)->value;
}

/* The instruction loads; the register has what it read. */
static void x86_loads(struct x86_reader *r, struct litmus_register *reg)
{
    r->instruction.load = r->t->thread[r->thread].loads++;
    if (reg)
        reg->value = (struct litmus_operand){ .is_loaded = true, .load = r->instruction.load };
}

static int x86_mov(struct x86_reader *r, const struct x86_mnemonic *m)
{
    struct litmus_instruction *i = &r->instruction;

    (void)m;
    if (r->first.kind == OPERAND_MEMORY && r->second.kind != OPERAND_MEMORY) {
        i->kind = LITMUS_STORE;
        i->location = r->first.index;
        i->value = x86_value(r, &r->second);
    } else if (r->first.kind == OPERAND_REGISTER && r->second.kind == OPERAND_MEMORY) {
        i->kind = LITMUS_LOAD;
        i->location = r->second.index;
        x86_loads(r, x86_register(r, &r->first));
    } else if (r->first.kind == OPERAND_REGISTER) {
        i->kind = LITMUS_REGISTER;
        x86_register(r, &r->first)->value = x86_value(r, &r->second);
    } else {
        return lex_fail(r->l, r->l->word_line, "expected MOV to or from a register, found '%s'", i->text);
    }
    return 0;
}

static int x86_xchg(struct x86_reader *r, const struct x86_mnemonic *m)
{
    struct litmus_instruction *i = &r->instruction;
    struct x86_operand memory = r->first, reg = r->second;

    if (memory.kind == OPERAND_REGISTER) {
        memory = r->second;
        reg = r->first;
    }
    if (reg.kind != OPERAND_REGISTER || memory.kind == OPERAND_NUMBER)
        return lex_fail(r->l, r->l->word_line, "expected XCHG with a register, found '%s'", i->text);
    if (memory.kind == OPERAND_REGISTER) {
        struct litmus_operand value = x86_register(r, &reg)->value;
        i->kind = LITMUS_REGISTER;
        x86_register(r, &reg)->value = x86_register(r, &memory)->value;
        x86_register(r, &memory)->value = value;
        return 0;
    }
    i->kind = LITMUS_ATOMIC;
    i->location = memory.index;
    i->atomic = m->atomic;
    i->value = x86_register(r, &reg)->value;
    x86_loads(r, x86_register(r, &reg));
    return 0;
}

/* XADD and CMPXCHG leave what they loaded in a register: in their second operand, in EAX. */
static int x86_locked(struct x86_reader *r, const struct x86_mnemonic *m)
{
    struct litmus_instruction *i = &r->instruction;
    bool is_xadd = strcmp(m->name, "XADD") == 0, is_cmpxchg = m->atomic == LITMUS_ATOMIC_cmpxchg;
    struct litmus_register *reg = NULL;

    if (r->first.kind != OPERAND_MEMORY || (m->operands == 2 && r->second.kind == OPERAND_MEMORY)
        || ((is_xadd || is_cmpxchg) && r->second.kind != OPERAND_REGISTER))
        return lex_fail(r->l, r->l->word_line, "expected LOCK %s with a location%s, found '%s'", m->name,
                        m->operands == 1        ? ""
                        : is_xadd || is_cmpxchg ? " and a register"
                                                : " and a register or number",
                        i->text);
    i->kind = LITMUS_ATOMIC;
    i->location = r->first.index;
    i->atomic = m->atomic;
    i->value.constant = 1;
    if (m->operands == 2)
        i->value = x86_value(r, &r->second);
    if (is_cmpxchg) {
        uint32_t eax = test_register(r->t, r->thread, "EAX");
        reg = &r->t->thread[r->thread].reg[eax];
        i->other = reg->value;
    } else if (is_xadd) {
        reg = x86_register(r, &r->second);
    }
    x86_loads(r, reg);
    return 0;
}

static int x86_fence(struct x86_reader *r, const struct x86_mnemonic *m)
{
    r->instruction.kind = LITMUS_FENCE;
    r->instruction.fence = m->fence;
    return 0;
}

static const struct x86_mnemonic MNEMONICS[] = {
    { "MOV", x86_mov, .operands = 2 },
    { "XCHG", x86_xchg, .operands = 2, .atomic = LITMUS_ATOMIC_xchg },
    { "MFENCE", x86_fence, .fence = ORDER_FENCE_FULL },
    { "SFENCE", x86_fence, .fence = ORDER_FENCE_STORES },
    { "LFENCE", x86_fence, .fence = ORDER_FENCE_LOADS },
    { "ADD", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_add },
    { "SUB", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_sub },
    { "INC", x86_locked, true, 1, .atomic = LITMUS_ATOMIC_add },
    { "DEC", x86_locked, true, 1, .atomic = LITMUS_ATOMIC_sub },
    { "AND", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_and },
    { "OR", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_or },
    { "XOR", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_xor },
    { "NOT", x86_locked, true, 1, .atomic = LITMUS_ATOMIC_not },
    { "NEG", x86_locked, true, 1, .atomic = LITMUS_ATOMIC_neg },
    { "XADD", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_add },
    { "CMPXCHG", x86_locked, true, 2, .atomic = LITMUS_ATOMIC_cmpxchg },
};

/* [x], (x), EAX, $1 or 1. */
static int x86_operand(struct x86_reader *r, struct x86_operand *ret)
{
    struct litmus_lexer *l = r->l;
    const char *close = lex_is(l, "[") ? "]" : lex_is(l, "(") ? ")" : NULL;

    if (close) {
        lex_next(l);
        if (l->kind == LEX_NAME && test_register_name(l->word, l->length))
            return lex_fail(l, l->word_line, "addresses in registers are not supported, found '%.*s'", (int)l->length,
                            l->word);
        if (l->kind != LEX_NAME)
            return lex_expected(l, "a location");
        *ret = (struct x86_operand){ .kind = OPERAND_MEMORY, .index = test_location(r->t, l->word, l->length) };
        if (ret->index == UINT32_MAX)
            return lex_fail(l, l->word_line, "more than %d locations", LITMUS_MAX_LOCATIONS);
        lex_next(l);
        return lex_expect(l, close);
    }
    const char *name = l->kind == LEX_NAME ? test_register_name(l->word, l->length) : NULL;
    if (name) {
        *ret = (struct x86_operand){ .kind = OPERAND_REGISTER, .index = test_register(r->t, r->thread, name) };
        lex_next(l);
        return 0;
    }
    bool is_number = lex_accept(l, "$") || l->kind == LEX_NUMBER;
    if (!is_number)
        return lex_expected(l, "an operand: [LOCATION], a register, $NUMBER");
    ret->kind = OPERAND_NUMBER;
    return lex_number(l, &ret->number);
}

/* Whether a word is the mnemonic, or that with an L for 32 bits, up to `length`. */
static bool x86_spells(const char *word, size_t length, const char *name)
{
    size_t n = strlen(name);

    if (length != n && !(length == n + 1 && toupper((unsigned char)word[n]) == 'L'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (toupper((unsigned char)word[i]) != name[i])
            return false;
    return true;
}

/* The mnemonic that is the current word, and in *ret_flags what follows its first full stop. */
static const struct x86_mnemonic *x86_find(const struct litmus_lexer *l, uint32_t *ret_flags)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } SUFFIXES[] = {
        { "", 0 }, { ".ACQ", ORDER_ACQUIRE }, { ".REL", ORDER_RELEASE }, { ".ACQREL", ORDER_ACQUIRE | ORDER_RELEASE }
    };
    const char *stop = memchr(l->word, '.', l->length);
    size_t length = stop ? (size_t)(stop - l->word) : l->length, suffix = l->length - length;

    for (size_t i = 0; i < sizeof MNEMONICS / sizeof *MNEMONICS; i++)
        for (size_t j = 0; x86_spells(l->word, length, MNEMONICS[i].name) && j < sizeof SUFFIXES / sizeof *SUFFIXES;
             j++)
            if (strlen(SUFFIXES[j].name) == suffix && (!suffix || strncasecmp(stop, SUFFIXES[j].name, suffix) == 0)) {
                *ret_flags = SUFFIXES[j].flags;
                return &MNEMONICS[i];
            }
    return NULL;
}

/* An acquire is a load's, a release a store's. */
static int x86_flags(const struct x86_reader *r, bool has_flags, uint32_t line)
{
    const struct litmus_instruction *i = &r->instruction;
    uint32_t may = i->kind == LITMUS_LOAD ? ORDER_ACQUIRE : i->kind == LITMUS_STORE ? ORDER_RELEASE : 0;

    if (i->kind == LITMUS_ATOMIC)
        may = ORDER_ACQUIRE | ORDER_RELEASE;
    if (i->flags && !has_flags)
        return lex_fail(r->l, line, "acquire and release are for tests that begin with PEET, found '%s'", i->text);
    if (i->flags & ~may)
        return lex_fail(r->l, line, "only loads acquire and only stores release, found '%s'", i->text);
    return 0;
}

/* The source from a word to the end of its instruction, blanks as one, without comments. */
static void x86_text(const struct litmus_lexer *l, char *buffer, size_t size)
{
    struct litmus_lexer ahead = *l;
    size_t n = 0;

    buffer[0] = '\0';
    for (const char *before = NULL;
         ahead.kind != LEX_END && ahead.kind != LEX_WRONG && !lex_is(&ahead, "|") && !lex_is(&ahead, ";");) {
        bool blank = before && before != ahead.word;
        int more = snprintf(buffer + n, size - n, "%s%.*s", blank ? " " : "", (int)ahead.length, ahead.word);
        if (more < 0 || (size_t)more >= size - n)
            break;
        n += (size_t)more;
        before = ahead.word + ahead.length;
        lex_next(&ahead);
    }
}

static int x86_unsupported(const struct litmus_lexer *l, uint32_t line, const char *text, const char *why)
{
    return lex_fail(
        l, line,
        "the instruction '%.60s' is not supported%s; supported are MOV, XCHG, MFENCE, SFENCE, LFENCE, and LOCK "
        "with ADD, SUB, INC, DEC, AND, OR, XOR, NOT, NEG, XADD, CMPXCHG, XCHG",
        text, why);
}

int x86_parse(struct litmus_lexer *l, struct litmus_test *t, uint32_t thread, bool has_flags)
{
    struct x86_reader r = { .l = l, .t = t, .thread = thread };
    uint32_t line = l->word_line;
    char text[80];

    if (l->kind != LEX_NAME)
        return lex_expected(l, "an instruction");
    x86_text(l, text, sizeof text);
    r.instruction.text = text;
    bool is_locked = lex_is_name(l, "LOCK");
    if (is_locked)
        lex_next(l);
    if (l->kind != LEX_NAME)
        return lex_expected(l, "an instruction");
    const struct x86_mnemonic *m = x86_find(l, &r.instruction.flags);
    if (!m || (is_locked && !m->needs_lock && m->read != x86_xchg))
        return x86_unsupported(l, line, text, "");
    if (m->needs_lock && !is_locked)
        return x86_unsupported(l, line, text, " without LOCK");
    lex_next(l);
    if (m->operands >= 1 && x86_operand(&r, &r.first) < 0)
        return l->err->code;
    if (m->operands >= 2 && (lex_expect(l, ",") < 0 || x86_operand(&r, &r.second) < 0))
        return l->err->code;
    if (m->read(&r, m) < 0 || x86_flags(&r, has_flags, line) < 0)
        return l->err->code;
    if (is_locked && r.instruction.kind == LITMUS_REGISTER)
        return x86_unsupported(l, line, text, "");
    if (!test_add(t, thread, &r.instruction))
        return lex_fail(l, line, "more than %d accesses and fences in thread %u", LITMUS_MAX_ACCESSES, thread);
    return 0;
}
