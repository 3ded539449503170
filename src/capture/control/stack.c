/* SPDX-License-Identifier: MIT */
#include "capture/control/stack.h"

#include <assert.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "capture/modules.h"

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16, WORD = 8 };
enum rule_kind { RULE_NONE, RULE_FRAME, RULE_FIRST };

/* How the caller of a frame is found at one address of code: a row of the call frame information. */
struct frame_rule {
    uint8_t kind;  /* enum rule_kind */
    bool of_bp;    /* the frame is found by %rbp, else by %rsp */
    bool keeps_bp; /* %rbp has the caller's value */
    int32_t frame; /* bytes from that register's value to the canonical frame address (CFA) */
    int32_t bp;    /* bytes from the CFA to where %rbp was saved; unless keeps_bp */
};

/* An ELF file that has code mapped in this process. */
struct unwind_file {
    uint64_t start, end; /* addresses of its code */
    uint64_t bias;       /* difference between addresses in memory and in the file */
    int fd;              /* -1: not open */
    Elf *elf;
    Dwarf_CFI *cfi;
};

/* The call frame information of all code, read when it is needed. */
struct stack_rules {
    struct unwind_file *file;
    size_t files;     /* elements of `file` */
    struct map rules; /* struct frame_rule, by address */
};

struct stack_rules *stack_rules_new(void)
{
    struct stack_rules *s = mem_alloc(1, sizeof *s);

    s->rules.value_size = sizeof(struct frame_rule);
    elf_version(EV_CURRENT);
    return s;
}

void stack_rules_free(struct stack_rules *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->files; i++) {
        elf_end(s->file[i].elf); /* and its cfi with it */
        if (s->file[i].fd >= 0)
            close(s->file[i].fd);
    }
    free(s->file);
    map_release(&s->rules);
    free(s);
}

/* ---- files ---- */

static void unwind_file_open(struct unwind_file *f, const struct mapping *m)
{
    GElf_Phdr h;
    size_t count;

    f->fd = open(m->name, O_RDONLY | O_CLOEXEC);
    f->elf = f->fd >= 0 ? elf_begin(f->fd, ELF_C_READ_MMAP, NULL) : NULL;
    if (!f->elf || elf_getphdrnum(f->elf, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (gelf_getphdr(f->elf, (int)i, &h) && h.p_type == PT_LOAD && h.p_offset <= m->offset + (m->end - m->start)
            && h.p_offset + h.p_filesz > m->offset && h.p_flags & PF_X) {
            f->bias = m->start - m->offset - (h.p_vaddr - h.p_offset);
            f->cfi = dwarf_getcfi_elf(f->elf);
            return;
        }
}

/* The file whose code is at pc. NULL: none, or it has no readable call frame information. */
static const struct unwind_file *unwind_file_find(struct stack_rules *s, uint64_t pc)
{
    struct mappings m;
    struct peet_err err;

    for (size_t i = 0; i < s->files; i++)
        if (pc >= s->file[i].start && pc < s->file[i].end)
            return s->file[i].cfi ? &s->file[i] : NULL;
    if (mappings_read(getpid(), &m, &err) < 0)
        return NULL;
    struct unwind_file *f = NULL;
    for (size_t i = 0; i < m.count; i++) {
        if (pc < m.at[i].start || pc >= m.at[i].end)
            continue;
        s->file = mem_room(s->file, s->files, sizeof *s->file);
        f = &s->file[s->files++];
        *f = (struct unwind_file){ .start = m.at[i].start, .end = m.at[i].end, .fd = -1 };
        if (m.at[i].name[0] == '/')
            unwind_file_open(f, &m.at[i]);
    }
    mappings_release(&m);
    return f && f->cfi ? f : NULL;
}

/* ---- rules ---- */

static bool find_bp(Dwarf_Frame *frame, struct frame_rule *ret)
{
    Dwarf_Op memory[3], *op;
    size_t ops;

    if (dwarf_frame_register(frame, REG_BP, memory, &op, &ops) != 0)
        return false;
    ret->keeps_bp = ops == 0;
    if (ops == 0)
        return true;
    if (ops > 2 || op[0].atom != DW_OP_call_frame_cfa || (ops == 2 && op[1].atom != DW_OP_plus_uconst))
        return false;
    ret->bp = ops == 2 ? (int32_t)op[1].number : 0;
    return true;
}

/* Whether the frame is a thread's first: its return address is undefined. */
static bool is_outermost(Dwarf_Frame *frame)
{
    Dwarf_Op memory[3], *op;
    size_t ops;

    return dwarf_frame_register(frame, REG_RA, memory, &op, &ops) == 0 && ops == 0 && op != NULL;
}

static struct frame_rule make_rule(struct stack_rules *s, uint64_t pc)
{
    const struct unwind_file *f = unwind_file_find(s, pc);
    struct frame_rule r = { 0 };
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *op;
    size_t ops;

    if (!f || dwarf_cfi_addrframe(f->cfi, pc - f->bias, &frame) != 0)
        return r;
    if (is_outermost(frame))
        r.kind = RULE_FIRST;
    else if (dwarf_frame_cfa(frame, &op, &ops) == 0 && ops == 1 && op[0].atom == DW_OP_bregx
             && (op[0].number == REG_SP || op[0].number == REG_BP) && find_bp(frame, &r)) {
        r.kind = RULE_FRAME;
        r.of_bp = op[0].number == REG_BP;
        r.frame = (int32_t)op[0].number2;
    }
    free(frame);
    return r;
}

static struct frame_rule frame_rule_at(struct stack_rules *s, uint64_t pc)
{
    const struct frame_rule *known = map_find(&s->rules, pc, 0);

    if (known)
        return *known;
    struct frame_rule r = make_rule(s, pc);
    struct frame_rule *keep = map_put(&s->rules, pc, 0);
    assert(keep);
    *keep = r;
    return r;
}

static uint64_t stack_read_word(uint64_t address)
{
    return *(const uint64_t *)(uintptr_t)address;
}

bool stack_up(struct stack_rules *s, struct stack_frame *p)
{
    struct frame_rule r = frame_rule_at(s, p->is_caller ? p->pc - 1 : p->pc);
    uint64_t frame = (r.of_bp ? p->bp : p->sp) + (uint64_t)(int64_t)r.frame;

    p->is_first = r.kind == RULE_FIRST;
    if (r.kind != RULE_FRAME || frame <= p->sp || frame % WORD)
        return false;
    p->bp = r.keeps_bp ? p->bp : stack_read_word(frame + (uint64_t)(int64_t)r.bp);
    p->pc = stack_read_word(frame - WORD);
    p->sp = frame;
    p->is_caller = true;
    return p->pc != 0;
}
