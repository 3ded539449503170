/* SPDX-License-Identifier: MIT */
/* Instructions of x86-64: their classes, where their operands are, and the blocks that are made of them. */
#include "capture/x86/insn.h"

#include <stdlib.h>

#include "base/map.h"
#include "capture/x86/layout.h"
#include "tests/unit/check.h"

enum { AT = 0x1000 };

/* rax is 0x10000, rcx 0x20000, and so on; two of them are small, to be indices and counts. */
static struct x86_state state(void)
{
    struct x86_state s = { .rip = AT, .fs_base = 0x7f0000, .gs_base = 0x5f0000 };

    for (unsigned i = 0; i < X86_GPRS; i++)
        s.gpr[i] = 0x10000 * (i + 1);
    return s;
}

/* "48 8b 00" */
static struct x86_insn decode(const char *hex)
{
    uint8_t bytes[X86_MAX_BYTES] = { 0 };
    struct x86_insn x;
    size_t n = 0;

    for (char *end; n < sizeof bytes; n++, hex = end) {
        unsigned long byte = strtoul(hex, &end, 16);
        if (end == hex)
            break;
        bytes[n] = (uint8_t)byte;
    }
    x86_decode(bytes, n, AT, &x);
    CHECK_EQ(x.insn.length, n);
    return x;
}

/* ---- decoding ---- */

static const struct {
    const char *hex;
    int class;
    unsigned flags;
} CLASSES[] = {
    { "48 89 e5", PEET_CL_plain, 0 },                    /* mov %rsp, %rbp */
    { "48 6b 03 05", PEET_CL_mul, 0 },                   /* imul $5, (%rbx), %rax */
    { "48 f7 f9", PEET_CL_div, 0 },                      /* idiv %rcx */
    { "f2 0f 58 00", PEET_CL_fp, 0 },                    /* addsd (%rax), %xmm0 */
    { "dd 00", PEET_CL_fp, 0 },                          /* fldl (%rax) */
    { "f2 0f 5e c1", PEET_CL_fpdiv, 0 },                 /* divsd %xmm1, %xmm0 */
    { "d9 fa", PEET_CL_fpdiv, 0 },                       /* fsqrt */
    { "66 0f 58 c1", PEET_CL_vector, 0 },                /* addpd %xmm1, %xmm0 */
    { "f2 0f 10 00", PEET_CL_plain, 0 },                 /* movsd (%rax), %xmm0 */
    { "0f 85 fa ff ff ff", PEET_CL_branch, 0 },          /* jne . */
    { "e9 fb ff ff ff", PEET_CL_jump, 0 },               /* jmp . */
    { "ff e0", PEET_CL_jump_indirect, 0 },               /* jmp *%rax */
    { "e8 fb ff ff ff", PEET_CL_call, 0 },               /* call . */
    { "67 e8 fa ff ff ff", PEET_CL_call, 0 },            /* addr32 call . */
    { "ff 10", PEET_CL_call_indirect, 0 },               /* call *(%rax) */
    { "c3", PEET_CL_return, 0 },                         /* ret */
    { "0f 05", PEET_CL_syscall, 0 },                     /* syscall */
    { "cd 80", PEET_CL_syscall, 0 },                     /* int $0x80 */
    { "0f ae f0", PEET_CL_fence, PEET_FL_FENCE_FULL },   /* mfence */
    { "0f ae e8", PEET_CL_fence, PEET_FL_FENCE_LL },     /* lfence */
    { "0f ae f8", PEET_CL_fence, PEET_FL_FENCE_SS },     /* sfence */
    { "f3 90", PEET_CL_pause, 0 },                       /* pause */
    { "0f 1f 04 00", PEET_CL_nop, 0 },                   /* nopl (%rax,%rax) */
    { "f3 0f 1e fa", PEET_CL_nop, 0 },                   /* endbr64 */
    { "0f 0b", PEET_CL_trap, 0 },                        /* ud2 */
    { "cc", PEET_CL_trap, 0 },                           /* int3 */
    { "f0 48 0f b1 0b", PEET_CL_plain, PEET_FL_ATOMIC }, /* lock cmpxchg %rcx, (%rbx) */
    { "48 87 03", PEET_CL_plain, PEET_FL_ATOMIC },       /* xchg %rax, (%rbx) */
    { "f3 48 a5", PEET_CL_plain, PEET_FL_STRING },       /* rep movsq */
};

static void an_instruction_has_the_class_and_flags_of_its_kind(void)
{
    for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0]; i++) {
        struct x86_insn x = decode(CLASSES[i].hex);
        if (!CHECK_EQ(x.insn.class, CLASSES[i].class) || !CHECK_EQ(x.insn.flags, CLASSES[i].flags))
            printf("# in %s\n", CLASSES[i].hex);
        bool is_direct = x.insn.class == PEET_CL_branch || x.insn.class == PEET_CL_jump || x.insn.class == PEET_CL_call;
        CHECK_EQ(x.insn.target, is_direct ? AT : 0);
        CHECK_EQ(x.ends_block,
                 (x.insn.class >= PEET_CL_branch && x.insn.class <= PEET_CL_syscall) || x.insn.class == PEET_CL_trap);
    }
}

static void what_nobody_knows_is_a_trap_of_one_byte(void)
{
    uint8_t bytes[] = { 0xf0, 0xff, 0xff };
    struct x86_insn x;

    x86_decode(bytes, sizeof bytes, AT, &x);
    CHECK(x.special == X86_UNKNOWN && x.insn.length == 1 && x.insn.class == PEET_CL_trap && x.ends_block
          && x.memories == 0);
    x86_decode(bytes, 0, AT, &x);
    CHECK(x.special == X86_UNKNOWN);
    x86_decode((uint8_t[]){ 0x48, 0x8b }, 2, AT, &x); /* cut off */
    CHECK(x.special == X86_UNKNOWN);
}

/* Up to two references, in order. */
static const struct {
    const char *hex;
    struct {
        int kind;
        unsigned size;
        uint64_t addr;
    } m[2];
} REFERENCES[] = {
    { "50", { { PEET_STORE, 8, 0x4fff8 } } },                                     /* push %rax */
    { "ff 77 08", { { PEET_LOAD, 8, 0x80008 }, { PEET_STORE, 8, 0x4fff8 } } },    /* push 8(%rdi) */
    { "8f 44 24 08", { { PEET_LOAD, 8, 0x50000 }, { PEET_STORE, 8, 0x50010 } } }, /* pop 8(%rsp): the new rsp */
    { "e8 fb ff ff ff", { { PEET_STORE, 8, 0x4fff8 } } },                         /* call . */
    { "67 e8 fa ff ff ff", { { PEET_STORE, 8, 0x4fff8 } } },                      /* addr32 call . */
    { "ff 10", { { PEET_LOAD, 8, 0x10000 }, { PEET_STORE, 8, 0x4fff8 } } },       /* call *(%rax) */
    { "c3", { { PEET_LOAD, 8, 0x50000 } } },                                      /* ret */
    { "c9", { { PEET_LOAD, 8, 0x60000 } } },                                      /* leave */
    { "c8 10 00 00", { { PEET_STORE, 8, 0x4fff8 } } },                            /* enter $16, $0 */
    { "9c", { { PEET_STORE, 8, 0x4fff8 } } },                                     /* pushfq */
    { "48 8d 43 04", { { 0 } } },                                                 /* lea 4(%rbx), %rax */
    { "0f 1f 04 00", { { 0 } } },                                                 /* nopl (%rax,%rax) */
    { "0f ae 38", { { 0 } } },                                                    /* clflush (%rax) */
    { "0f 18 08", { { PEET_PREFETCH, 1, 0x10000 } } },                            /* prefetcht0 (%rax) */
    { "48 0f 45 03", { { PEET_LOAD, 8, 0x40000 } } },                             /* cmovne (%rbx), %rax */
    { "f0 48 0f b1 0b", { { PEET_UPDATE, 8, 0x40000 } } },                        /* lock cmpxchg %rcx, (%rbx) */
    { "48 01 4c d8 f0", { { PEET_UPDATE, 8, 0x10000 + 8 * 0x40000 - 16 } } },     /* add %rcx, -16(%rax,%rbx,8) */
    { "48 0f a3 03", { { PEET_LOAD, 8, 0x40000 + 0x10000 / 8 } } },               /* bt %rax, (%rbx) */
    { "0f ab 0b", { { PEET_UPDATE, 4, 0x40000 + 0x20000 / 8 } } },                /* bts %ecx, (%rbx) */
    { "d7", { { PEET_LOAD, 1, 0x40000 } } },                                      /* xlat */
    { "a4", { { PEET_LOAD, 1, 0x70000 }, { PEET_STORE, 1, 0x80000 } } },          /* movsb */
    { "f3 a6", { { PEET_LOAD, 1, 0x70000 }, { PEET_LOAD, 1, 0x80000 } } },        /* repe cmpsb */
    { "64 48 8b 04 25 28 00 00 00", { { PEET_LOAD, 8, 0x7f0028 } } },             /* mov %fs:0x28, %rax */
    { "65 48 8b 03", { { PEET_LOAD, 8, 0x630000 } } },                            /* mov %gs:(%rbx), %rax */
    { "48 8b 05 00 01 00 00", { { PEET_LOAD, 8, AT + 7 + 0x100 } } },             /* mov 0x100(%rip), %rax */
    { "67 8b 04 4b", { { PEET_LOAD, 4, 0x80000 } } },                             /* mov (%ebx,%ecx,2), %eax */
};

static void operands_are_found_where_the_registers_say_loads_first(void)
{
    struct x86_state s = state();

    for (size_t i = 0; i < sizeof REFERENCES / sizeof REFERENCES[0]; i++) {
        struct x86_insn x = decode(REFERENCES[i].hex);
        unsigned n = REFERENCES[i].m[0].kind ? REFERENCES[i].m[1].kind ? 2 : 1 : 0;
        bool ok = CHECK_EQ(x.memories, n);
        for (unsigned j = 0; ok && j < n; j++)
            ok = CHECK_EQ(x.memory[j].kind, REFERENCES[i].m[j].kind)
                 && CHECK_EQ(x.memory[j].size, REFERENCES[i].m[j].size)
                 && CHECK_EQ(x86_address(&x.memory[j], &s), REFERENCES[i].m[j].addr);
        if (!ok)
            printf("# in %s\n", REFERENCES[i].hex);
    }
}

static void narrow_addresses_and_bit_numbers_wrap_as_the_processor_does(void)
{
    struct x86_state s = state();
    struct x86_insn narrow = decode("67 8b 04 4b"), bit = decode("0f ab 0b"), byte = decode("d7");

    s.gpr[X86_RBX] = 0xfffffff0u;
    s.gpr[X86_RCX] = 0x100000010;
    CHECK_EQ(x86_address(&narrow.memory[0], &s), 0x10);
    s.gpr[X86_RBX] = 0x1000;
    s.gpr[X86_RCX] = 0xffffffff; /* bit -1: of the word before */
    CHECK_EQ(x86_address(&bit.memory[0], &s), 0xffc);
    s.gpr[X86_RAX] = 0x1234;
    CHECK_EQ(x86_address(&byte.memory[0], &s), 0x1034);
}

static void a_repeated_string_has_elements(void)
{
    struct x86_insn up = decode("f3 48 a5"), scan = decode("f2 ae"), narrow = decode("67 f3 ab"), once = decode("a4");

    CHECK(up.is_repeated && up.memories == 2 && up.memory[0].form == X86_REPEATED && up.memory[0].size == 8
          && !up.narrow_count);
    CHECK(scan.is_repeated && scan.memories == 1 && scan.memory[0].size == 1);
    CHECK(narrow.is_repeated && narrow.narrow_count && narrow.memory[0].narrow);
    CHECK(!once.is_repeated && once.memory[0].form == X86_PLAIN);
    CHECK(scan.changes >> X86_RDI & 1 && scan.changes >> X86_RCX & 1);
}

static void put32(uint8_t *at, unsigned i, uint32_t v)
{
    memcpy(at + (size_t)i * 4, &v, 4);
}

static void gathers_and_masked_moves_touch_what_their_masks_say(void)
{
    struct x86_state s = state();
    struct x86_vectors *v = calloc(1, sizeof *v);
    struct x86_insn half = decode("c4 e2 69 91 04 88"), full = decode("c4 e2 6d 90 04 88"),
                    store = decode("c4 e2 75 8e 00");
    struct x86_insn bytes = decode("66 0f f7 c1"), mm = decode("0f f7 c1"), wide = decode("62 f1 7f 49 6f 08");
    struct x86_insn gather = decode("62 f2 7d 49 90 04 88"), scatter = decode("62 f2 7d 42 a0 04 88");

    for (unsigned i = 0; i < 16; i++) {
        put32(v->zmm[1], i, i % 2 ? 0 - i : i * 100);
        put32(v->zmm[17], i, i);
    }
    put32(v->zmm[2], 0, 0x80000000);
    put32(v->zmm[2], 3, 0xffffffff);
    put32(v->zmm[2], 5, 0x7fffffff);
    CHECK(full.needs_vectors && full.memory[0].form == X86_GATHERED && full.memory[0].elements == 8);
    CHECK_EQ(x86_mask(&full.memory[0], v), 9);
    CHECK_EQ(x86_element(&full.memory[0], &s, v, 2), 0x10000 + 4 * 200);
    CHECK_EQ(x86_element(&full.memory[0], &s, v, 3), 0x10000 - 12);
    CHECK(half.memory[0].elements == 2 && half.memory[0].index_size == 8 && half.memory[0].size == 4);
    CHECK_EQ(x86_element(&half.memory[0], &s, v, 1), 0x10000 + 4 * (200 + ((uint64_t)(0u - 3u) << 32)));
    CHECK(store.memory[0].kind == PEET_STORE && store.memory[0].form == X86_MASKED && store.memory[0].elements == 8);
    CHECK_EQ(x86_mask(&store.memory[0], v), 0xaa); /* the odd ones are negative */
    CHECK(bytes.memory[0].elements == 16 && bytes.memory[0].size == 1 && bytes.memory[0].base == X86_RDI);
    v->mm[1][7] = 0x80;
    CHECK(mm.memory[0].elements == 8 && x86_mask(&mm.memory[0], v) == 0x80);
    v->k[1] = 0x8000000000000003;
    v->k[2] = 0xffff0005;
    CHECK(wide.memory[0].elements == 64 && x86_mask(&wide.memory[0], v) == v->k[1]);
    CHECK(gather.memory[0].elements == 16 && gather.memory[0].index == 1 && x86_mask(&gather.memory[0], v) == 3);
    CHECK(scatter.memory[0].kind == PEET_STORE && scatter.memory[0].index == 17
          && x86_mask(&scatter.memory[0], v) == 5);
    free(v);
}

static void known_changes_of_registers_are_told(void)
{
    static const struct {
        const char *hex;
        uint8_t to, from;
        int64_t add;
    } MOVES[] = {
        { "50", X86_RSP, X86_RSP, -8 },                      /* push %rax */
        { "c9", X86_RSP, X86_RBP, 8 },                       /* leave */
        { "48 89 e5", X86_RBP, X86_RSP, 0 },                 /* mov %rsp, %rbp */
        { "48 83 ec 20", X86_RSP, X86_RSP, -32 },            /* sub $32, %rsp */
        { "48 83 c1 80", X86_RCX, X86_RCX, -128 },           /* add $-128, %rcx */
        { "48 ff ca", X86_RDX, X86_RDX, -1 },                /* dec %rdx */
        { "31 c0", X86_RAX, X86_NONE, 0 },                   /* xor %eax, %eax */
        { "b8 07 00 00 80", X86_RAX, X86_NONE, 0x80000007 }, /* mov $0x80000007, %eax */
        { "48 c7 c0 f9 ff ff ff", X86_RAX, X86_NONE, -7 },   /* mov $-7, %rax */
        { "48 8d 43 04", X86_RAX, X86_RBX, 4 },              /* lea 4(%rbx), %rax */
    };

    for (size_t i = 0; i < sizeof MOVES / sizeof MOVES[0]; i++) {
        struct x86_insn x = decode(MOVES[i].hex);
        if (!CHECK(x.moves == 1 && x.move[0].to == MOVES[i].to && x.move[0].from == MOVES[i].from
                   && x.move[0].add == MOVES[i].add))
            printf("# in %s\n", MOVES[i].hex);
        CHECK(x.changes >> MOVES[i].to & 1);
    }
    CHECK_EQ(decode("5c").moves, 0);                     /* pop %rsp: not known */
    CHECK_EQ(decode("01 c0").changes, 1);                /* add %eax, %eax: the whole of rax */
    CHECK_EQ(decode("b4 01").changes, 1);                /* mov $1, %ah */
    CHECK_EQ(decode("f3 48 0f ae d0").ends_block, true); /* wrfsbase %rax */
}

/* Whatever the bytes, what comes out can be put into a schema. */
static void no_bytes_make_an_instruction_that_no_schema_takes(void)
{
    uint64_t random = 88172645463325252u;
    uint8_t bytes[X86_MAX_BYTES];
    struct x86_insn x;
    unsigned known = 0;

    for (unsigned i = 0; i < 300000; i++) {
        for (unsigned j = 0; j < sizeof bytes; j++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            bytes[j] = (uint8_t)(random >> 32);
        }
        x86_decode(bytes, sizeof bytes, AT, &x);
        known += x.special != X86_UNKNOWN;
        bool ok = x.insn.length >= 1 && x.insn.length <= X86_MAX_BYTES && x.insn.class < PEET_CLASS_COUNT;
        for (unsigned j = 0; j < x.memories; j++)
            ok = ok && x.memory[j].size >= 1 && x.memory[j].size < 10000 && x.memory[j].elements <= X86_MAX_ELEMENTS
                 && x.memory[j].kind >= PEET_LOAD && x.memory[j].kind <= PEET_PREFETCH && x.memory[j].base <= X86_NONE;
        for (unsigned j = 0; j < x.moves; j++)
            ok = ok && x.move[j].to < X86_GPRS && x.changes >> x.move[j].to & 1;
        if (!CHECK(ok))
            return;
    }
    CHECK(known > 100000);
}

/* ---- blocks ---- */

/* Goes down from `from` over instructions, which have to live as long as the layout. */
static struct x86_node *walk(struct x86_layout *l, struct x86_node *from, const struct x86_insn *x, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!CHECK_EQ(x86_layout_step(l, from, &x[i], 0, &from), 1))
            return NULL;
    return from;
}

static void operands_share_the_slot_of_a_register_that_changes_by_constants(void)
{
    struct x86_layout l = { 0 };
    const struct x86_insn x[] = {
        decode("55"),          /* push %rbp */
        decode("48 89 e5"),    /* mov %rsp, %rbp */
        decode("48 83 ec 20"), /* sub $32, %rsp */
        decode("48 89 7d f8"), /* mov %rdi, -8(%rbp) */
        decode("48 8b 45 f8"), /* mov -8(%rbp), %rax */
        decode("48 8b 00"),    /* mov (%rax), %rax */
        decode("48 8b 00"),    /* mov (%rax), %rax */
        decode("c9"),          /* leave */
        decode("c3"),          /* ret */
    };
    struct x86_node *n = walk(&l, NULL, x, 9);

    if (n) {
        CHECK_EQ(n->slots, 3); /* rsp, and rax twice */
        CHECK_EQ(n->operands, 7);
        CHECK_EQ(n->operand[0].base, PEET_SRC_SLOT); /* ret takes what the first push left: rsp */
        CHECK_EQ(n->operand[0].disp, 0);
        CHECK_EQ(n->parent->operand[0].disp, -8);
        CHECK(walk(&l, NULL, x, 9) == n); /* the same row is the same block */
        struct x86_insn other = decode("c3");
        struct x86_node *another;
        CHECK(x86_layout_step(&l, n->parent, &other, 0, &another) == 1 && another != n);
    }
    x86_layout_release(&l);
}

static void constants_need_no_slots(void)
{
    struct x86_layout l = { 0 };
    const struct x86_insn x[] = {
        decode("48 8b 05 00 01 00 00"),       /* mov 0x100(%rip), %rax */
        decode("b8 00 20 00 00"),             /* mov $0x2000, %eax */
        decode("48 8b 00"),                   /* mov (%rax), %rax */
        decode("64 48 8b 04 25 28 00 00 00"), /* mov %fs:0x28, %rax */
    };
    struct x86_node *n = walk(&l, NULL, x, 4);

    if (n) {
        CHECK_EQ(n->slots, 0);
        CHECK_EQ(n->operand[0].base, PEET_SRC_REGISTER + X86_FS_REGISTER);
        CHECK_EQ(n->parent->operand[0].disp, 0x2000);
    }
    x86_layout_release(&l);
}

static void a_block_that_is_full_takes_no_more(void)
{
    struct x86_layout l = { 0 };
    const struct x86_insn chase = decode("48 8b 00"), plain = decode("48 89 e5");
    struct x86_node *n = NULL;

    for (int i = 0; i < PEET_SLOTS; i++)
        CHECK_EQ(x86_layout_step(&l, n, &chase, 0, &n), 1);
    struct x86_node *last = n;
    CHECK_EQ(x86_layout_step(&l, n, &chase, 0, &n), 0);
    CHECK(n == last && n->slots == PEET_SLOTS);
    CHECK_EQ(x86_layout_step(&l, n, &plain, 0, &n), 1); /* what needs no slot has room */
    for (n = NULL; n == NULL || n->depth < 4096;)
        if (!CHECK_EQ(x86_layout_step(&l, n, &plain, 0, &n), 1))
            break;
    CHECK_EQ(x86_layout_step(&l, n, &plain, 0, &n), 0);
    x86_layout_release(&l);
}

/* x86_node_fill asserts that slots and registers lead to the same addresses. */
static void slots_of_an_execution_lead_to_its_addresses(void)
{
    struct x86_layout l = { .record_values = true };
    struct x86_state s = state();
    struct x86_execution m = { .before = &s, .count = 3, .value = { { 42, 43 } } };
    const struct x86_insn store = decode("48 01 4c d8 f0"), string = decode("f3 48 a5");
    struct x86_node *n = NULL;
    uint64_t slot[PEET_SLOTS];

    CHECK_EQ(x86_layout_step(&l, NULL, &store, 0, &n), 1);
    struct x86_reference_sum t = x86_node_fill(n, &m, slot);
    CHECK(t.references == 1 && t.lowest == 0x10000 + 8 * 0x40000 - 16);
    CHECK(n->slots == 2 && slot[0] == t.lowest && slot[1] == 42 && n->operand[0].value == PEET_SRC_SLOT + 1);
    CHECK_EQ(x86_layout_step(&l, n, &string, X86_DOWN, &n), 1);
    t = x86_node_fill(n, &m, slot);
    CHECK(t.references == 2 && n->operand[0].down && n->operand[0].size_src == n->operand[1].size_src);
    CHECK_EQ(slot[n->operand[0].size_src - PEET_SRC_SLOT], 3);
    m.count = 0;
    CHECK_EQ(x86_node_fill(n, &m, slot).references, 0);
    x86_layout_release(&l);
}

int main(void)
{
    RUN(an_instruction_has_the_class_and_flags_of_its_kind);
    RUN(what_nobody_knows_is_a_trap_of_one_byte);
    RUN(operands_are_found_where_the_registers_say_loads_first);
    RUN(narrow_addresses_and_bit_numbers_wrap_as_the_processor_does);
    RUN(a_repeated_string_has_elements);
    RUN(gathers_and_masked_moves_touch_what_their_masks_say);
    RUN(known_changes_of_registers_are_told);
    RUN(no_bytes_make_an_instruction_that_no_schema_takes);
    RUN(operands_share_the_slot_of_a_register_that_changes_by_constants);
    RUN(constants_need_no_slots);
    RUN(a_block_that_is_full_takes_no_more);
    RUN(slots_of_an_execution_lead_to_its_addresses);
    return check_done();
}
