/* SPDX-License-Identifier: MIT */
/* The search keeps a set of partial matches, so that it also finds a pattern which begins like its middle. */
#include "capture/qemu/pattern.h"

#include <string.h>

#include "base/err.h"

/* A marker that --pattern can name, for a machine. */
struct known_pattern {
    const char *machine, *name, *text;
};

/* clang-format off */
static const struct known_pattern known[] = {
    /* nopl 0x54454550(%rax,%rax,1); movz xzr, #0x4545, lsl #48; slti zero, s1, 0x455 */
    { "x86_64",  "default", "0f1f840050454554" },
    { "aarch64", "default", "bfa8e8d2" },
    { "riscv64", "default", "13a05445" },
    /* mov REGISTER, %eax; add $0, %eax; add $0, %eax; the register may be one of r8d to r15d */
    { "x86_64",  "ji", "89c083c00083c000/ffc7ffffffffffff,4489c083c00083c000/ffffc7ffffffffffff" },
    /* mov w0, REGISTER; add w0, w0, #0; add w0, w0, #0 */
    { "aarch64", "ji", "e003002a0000001100000011/ffffe0ffffffffffffffffff" },
    /* addi a0, REGISTER, 0; addi a0, a0, 0; addi a0, a0, 0, none of them compressed */
    { "riscv64", "ji", "130500001305050013050500/ff7ff0ffffffffffffffffff" },
};
/* clang-format on */

static int pattern_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses bytes up to the first character that is no digit. Returns their number, or -1. */
static int parse_bytes(const char **text, uint8_t *into)
{
    int n = 0;

    for (const char *p = *text;; p += 2, n++) {
        int high = pattern_hex_digit(p[0]);
        if (high < 0) {
            *text = p;
            return n;
        }
        int low = pattern_hex_digit(p[1]);
        if (low < 0 || n == PATTERN_BYTES)
            return -1;
        into[n] = (uint8_t)(high << 4 | low);
    }
}

static int parse_alternative(const char **text, struct pattern_alternative *c)
{
    int n = parse_bytes(text, c->byte);

    if (n <= 0)
        return -1;
    c->length = (size_t)n;
    memset(c->mask, 0xff, c->length);
    if (**text == '/') {
        ++*text;
        if (parse_bytes(text, c->mask) != n)
            return -1;
    }
    for (int i = 0; i < n; i++)
        c->byte[i] &= c->mask[i];
    return 0;
}

static int parse_alternatives(const char *text, struct pattern *ret)
{
    for (ret->alternatives = 0; ret->alternatives < PATTERN_ALTERNATIVES; text++) {
        if (parse_alternative(&text, &ret->alternative[ret->alternatives]) < 0)
            return -1;
        ret->alternatives++;
        if (*text != ',')
            return *text == '\0' ? 0 : -1;
    }
    return -1;
}

int pattern_parse(const char *text, const char *machine, struct pattern *ret, struct peet_err *err)
{
    struct pattern p = { .is_marker = strcmp(text, "default") == 0 };
    const char *bytes = strncmp(text, "hex:", 4) == 0 ? text + 4 : NULL;

    for (size_t i = 0; !bytes && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].machine, machine) == 0 && strcmp(known[i].name, text) == 0)
            bytes = known[i].text;
    if (!bytes || parse_alternatives(bytes, &p) < 0)
        return err_set(err, PEET_ERR_USAGE,
                       "pattern '%s': expected default, ji, or hex:BYTES[/MASK] with at most %d bytes as pairs of "
                       "hexadecimal digits, a mask of the same length, and at most %d of them with commas between",
                       text, PATTERN_BYTES, PATTERN_ALTERNATIVES);
    *ret = p;
    return 0;
}

size_t pattern_fits(const struct pattern_alternative *c, size_t at, const uint8_t *bytes, size_t length)
{
    if (length == 0 || length > c->length - at)
        return 0;
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] & c->mask[at + i]) != c->byte[at + i])
            return 0;
    return length;
}

bool pattern_has(const struct pattern *p, const uint8_t *bytes, size_t length)
{
    if (p->is_marker)
        return length == p->alternative[0].length && pattern_fits(&p->alternative[0], 0, bytes, length);
    for (unsigned i = 0; i < p->alternatives; i++)
        for (size_t at = 0; at < p->alternative[i].length; at++)
            if (pattern_fits(&p->alternative[i], at, bytes, length))
                return true;
    return false;
}

static void begin_partial(struct pattern_search *s, struct pattern_partial partial)
{
    for (unsigned i = 0; i < PATTERN_SEARCHES; i++)
        if (s->partial[i].at == 0) {
            s->partial[i] = partial;
            return;
        }
    s->partial[s->next] = partial;
    s->next = (s->next + 1) % PATTERN_SEARCHES;
}

/* Continues the partial matches of the instruction's thread, and ends those that it does not continue. True: one is complete. */
static bool step_partials(struct pattern_search *s, const struct pattern *p, const struct pattern_insn *insn)
{
    bool is_whole = false;

    for (unsigned i = 0; i < PATTERN_SEARCHES; i++) {
        struct pattern_partial *q = &s->partial[i];
        if (q->at == 0 || q->sp != insn->sp || q->space != insn->space)
            continue;
        const struct pattern_alternative *c = &p->alternative[q->alternative];
        size_t n = q->pc == insn->pc ? pattern_fits(c, q->at, insn->bytes, insn->length) : 0;
        size_t at = n ? q->at + n : 0;
        is_whole = is_whole || at == c->length;
        q->at = at == c->length ? 0 : (uint8_t)at;
        q->pc = insn->pc + insn->length;
    }
    return is_whole;
}

bool pattern_step(struct pattern_search *s, const struct pattern *p, const struct pattern_insn *insn)
{
    bool is_whole = step_partials(s, p, insn);

    for (unsigned i = 0; i < p->alternatives; i++) {
        size_t n = pattern_fits(&p->alternative[i], 0, insn->bytes, insn->length);
        if (n && n == p->alternative[i].length)
            is_whole = true;
        else if (n)
            begin_partial(
                s, (struct pattern_partial){ insn->pc + insn->length, insn->sp, insn->space, (uint8_t)i, (uint8_t)n });
    }
    return is_whole;
}
