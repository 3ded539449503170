/* SPDX-License-Identifier: MIT */
/* The instrumenting assembler: how text is cut, how a compiler is called, and that schema and code agree. Whether
 * programs still work is for tests/e2e/cc.sh. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/asm/unit.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

static void scan(struct asm_text *t, const char *text)
{
    asm_text_scan(t, "x.s", text, strlen(text));
}

static bool is_text(const struct asm_statement *s, const char *text)
{
    return s->length == strlen(text) && !memcmp(s->text, text, s->length);
}

static void text_is_cut_at_newlines_semicolons_and_behind_labels(void)
{
    struct asm_text t;

    scan(&t, "\t.text\nf: nop; ret # what; not\n\t.string \"a;b#\\\"c:\"\n#APP\n\tlock; incl (%rax)\n#NO_APP\n");
    if (!CHECK_EQ(t.statements, 6))
        return;
    CHECK_EQ(t.statement[1].kind, ASM_LABEL);
    CHECK(is_text(&t.statement[2], "nop"));
    CHECK(is_text(&t.statement[3], "ret"));
    CHECK_EQ(t.statement[4].kind, ASM_DIRECTIVE);
    CHECK(is_text(&t.statement[5], "lock; incl (%rax)"));
    CHECK(t.statement[5].is_inline_asm && !t.statement[3].is_inline_asm);
    CHECK_EQ(t.insns, 3);
    asm_text_release(&t);
}

static void names_are_told_from_registers_numbers_and_modifiers(void)
{
    const char text[] = "foo@PLT, %fs:bar@tpoff(%rax), $.L5-0x1f, 12(%rip), .", *at = text, *name;
    const char *const expected[] = { "foo", "bar", ".L5" };
    size_t length, n = 0;

    while ((name = asm_next_name(&at, text + strlen(text), &length))) {
        if (!CHECK(n < 3))
            return;
        CHECK(length == strlen(expected[n]) && !memcmp(name, expected[n], length));
        n++;
    }
    CHECK_EQ(n, 3);
}

static void symbols_and_sections_are_as_directives_say(void)
{
    struct asm_text t;

    scan(&t, "\t.section .text._Zf,\"axG\",@progbits,_Zf,comdat\n\t.weak _Zf\n\t.type _Zf, @function\n_Zf:\n\tret\n"
             "\t.data\nd:\t.quad _Zf\n\t.text\n\t.type i, @gnu_indirect_function\n\t.set i, r\n\t.ident \"GCC: 12\"\n");
    const struct asm_symbol *f = &t.symbol[asm_symbol_find(&t, "_Zf", 3)], *i = &t.symbol[asm_symbol_find(&t, "i", 1)];
    CHECK(f->is_function && f->is_weak && f->is_global && f->statement != ASM_NONE);
    CHECK(i->is_indirect && i->alias == asm_symbol_find(&t, "r", 1));
    CHECK_EQ(asm_symbol_find(&t, "none", 4), ASM_NONE);
    const struct asm_section *s = &t.section[t.statement[f->statement].section];
    CHECK(s->is_code && s->group && s->group_length == 3);
    CHECK(t.is_gcc && !t.uses_reserved && !t.is_intel_syntax);
    asm_text_release(&t);
}

/* ---- planning ---- */

static void ignore(const char *text)
{
    (void)text;
}

static const char LOOP[] =
    "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tpushq %rbx\n\tmovq %rdi, %rbx\n.L2:\n\tmovl (%rbx), %eax\n"
    "\taddl 4(%rbx), %eax\n\taddq $8, %rbx\n\tcmpq %rsi, %rbx\n\tjne .L2\n\tcall g\n\tpopq %rbx\n\tret\n"
    "\t.size f, .-f\n\t.ident \"GCC: 12\"\n";

static bool plan(struct asm_unit *u, const char *text)
{
    struct peet_err err = { 0 };

    scan(&u->text, text);
    u->insn = calloc(u->text.insns + 1, sizeof *u->insn);
    if (!CHECK(u->insn) || !CHECK_EQ(asm_unit_assemble(u, &err), 0))
        return false;
    asm_unit_find_functions(u);
    asm_unit_find_references(u);
    asm_unit_find_copies(u);
    asm_unit_find_flags(u);
    return CHECK_EQ(asm_unit_plan(u, &err), 0);
}

static void release(struct asm_unit *u)
{
    asm_text_release(&u->text);
    x86_layout_release(&u->layout);
    free(u->insn);
    free(u->function);
    free(u->block);
}

static void blocks_end_at_labels_jumps_and_calls_and_carry_the_stack_pointer(void)
{
    static const uint32_t first[] = { 0, 2, 7, 8 }, slots[] = { 1, 2, 0, 1 };
    static const bool carried[] = { false, true, true, false };
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };

    if (plan(&u, LOOP) && CHECK_EQ(u.blocks, 4))
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(u.block[i].first, first[i]);
            CHECK_EQ(u.block[i].sp_in_register, carried[i]);
            CHECK_EQ(u.block[i].parent, ASM_NONE);
            CHECK_EQ(u.block[i].pass != NULL, i == 1);
            CHECK_EQ(u.block[i].node->slots, slots[i]);
        }
    CHECK_EQ(u.functions, 1);
    CHECK(u.function && u.function[0].has_stub);
    release(&u);
}

static void brute_force_has_a_slot_for_each_operand(void)
{
    struct asm_options o = { .assembler = "as", .warn = ignore, .all_addresses = true };
    struct asm_unit u = { .options = &o };

    if (plan(&u, LOOP) && CHECK_EQ(u.blocks, 4)) {
        CHECK_EQ(u.block[0].node->slots, 2);
        CHECK_EQ(u.block[1].node->slots, 2);
        CHECK_EQ(u.block[2].node->slots, 3);
        CHECK_EQ(u.block[3].node->slots, 3);
    }
    release(&u);
}

static void every_label_that_is_used_is_written_once(void)
{
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };
    char *text = NULL, label[32];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (plan(&u, LOOP) && CHECK(out)) {
        asm_unit_emit(&u, out);
        fclose(out);
        for (unsigned i = 0; i < u.text.insns; i++) {
            snprintf(label, sizeof label, "\n.LpeetI%u:\n", i);
            const char *at = strstr(text, label);
            CHECK(at && !strstr(at + 1, label));
        }
        CHECK(strstr(text, "\tmovq\t%rbx, 8(%r15)\n.LpeetI2:\n"));
        CHECK(strstr(text, "\tjne .LpeetC2\n.LpeetX1:\n\tmovq\t%rbx, 16(%r15)\n\tleaq\t24(%r15), %r15\n"));
        CHECK(strstr(text, "\tmovq\t%r15, %fs:peet_rt_cursor@tpoff\n.LpeetI9:\n\tret\n"));
    }
    free(text);
    release(&u);
}

static void blocks_that_one_way_leads_to_go_on_in_a_record(void)
{
    static const char text[] =
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tmovl (%rdi), %eax\n\ttestl %eax, %eax\n\tje .L2\n"
        "\tmovl 4(%rdi), %eax\n\tmovl (%rsi), %ecx\n.L3:\n\tret\n.L2:\n\tmovl 8(%rdi), %eax\n\tjmp .L3\n"
        "\t.size f, .-f\n\t.ident \"GCC: 12\"\n";
    static const uint32_t parent[] = { ASM_NONE, 0, ASM_NONE, 0 };
    static const unsigned slots[] = { 2, 3, 0, 2 }, reach[] = { 3, 3, 0, 2 };
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };

    if (plan(&u, text) && CHECK_EQ(u.blocks, 4))
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(u.block[i].parent, parent[i]);
            CHECK_EQ(u.block[i].node->slots, slots[i]);
            CHECK_EQ(u.block[i].max_slots, reach[i]);
        }
    release(&u);
}

/* ---- plain copies ---- */

/* What is written for a text, to be freed. */
static char *written(const char *source, enum asm_model model)
{
    struct asm_options o = { .assembler = "as", .warn = ignore, .model = model };
    struct asm_unit u = { .options = &o };
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (plan(&u, source) && CHECK(out))
        asm_unit_emit(&u, out);
    if (out)
        fclose(out);
    release(&u);
    return text;
}

static void a_plain_copy_has_labels_tables_and_frames_of_its_own(void)
{
    static const char source[] =
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n.LFB0:\n\t.cfi_startproc\n\t.cfi_lsda 0x3,.LLSDA0\n"
        "\t.loc 1 2 3 view .LVU1\n\tmovq $f, %rax\n\tcall g\n\tcall f\n\tcall h\n\tjmp *.L4(,%rdi,8)\n"
        "\t.section .rodata\n\t.align 8\n.L4:\n\t.quad .L5\n\t.text\n.L5:\n#APP\n1:\n\tjne 1b\n#NO_APP\n\tret\n\t.cfi_endproc\n"
        ".LFE0:\n\t.section .gcc_except_table,\"a\"\n.LLSDA0:\n\t.uleb128 .L5-.LFB0\n\t.text\n\t.size f, .-f\n"
        "\t.type g, @function\ng:\n\tret\n\t.size g, .-g\n\t.ident \"GCC: 12\"\n";
    static const char copy[] =
        "\t.cfi_endproc\n\t.pushsection .text\n\t.previous\n\t.p2align 4\n.LpeetPf:\n.LpeetP.LFB0:\n\t.cfi_startproc\n"
        "\t.cfi_lsda 0x3,.LpeetP.LLSDA0\n\t.loc 1 2 3\n\tmovq $f, %rax\n\tcall .LpeetPg\n\tcall .LpeetPf\n"
        "\tcall h\n\tjmp *.LpeetP.L4(,%rdi,8)\n\t.section .rodata\n\t.align 8\n.LpeetP.L4:\n\t.quad .LpeetP.L5\n"
        "\t.text\n.LpeetP.L5:\n1:\n\tjne 1b\n\tret\n\t.cfi_endproc\n.LpeetP.LFE0:\n\t.section .gcc_except_table,\"a\"\n"
        ".LpeetP.LLSDA0:\n\t.uleb128 .LpeetP.L5-.LpeetP.LFB0\n\t.text\n\t.popsection\n.LFE0:\n";
    char *text = written(source, ASM_EXECUTABLE);

    if (!CHECK(text && strstr(text, copy)))
        printf("# %s\n", text ? text : "");
    CHECK(text && strstr(text, ".LpeetF0:\n\tcmpb\t$0, peet_rt_on(%rip)\n\tje\t.LpeetPf\n"));
    free(text);
}

static void a_constant_table_of_labels_stands_twice_too(void)
{
    static const char source[] =
        "\t.text\n\t.type f, @function\nf:\n\tjmp *t(,%rdi,8)\n.L1:\n\tret\n\t.size f, .-f\n\t.type g, @function\ng:\n"
        "\tcall f\n\tret\n\t.size g, .-g\n\t.section .rodata\n\t.align 16\nt:\n\t.quad .L1\n\t.quad 0\n\t.text\n"
        "\t.ident \"GCC: 12\"\n";
    char *text = written(source, ASM_EXECUTABLE);

    CHECK(text && strstr(text, "f:\n\tcmpb\t$0, peet_rt_on(%rip)\n\tje\t.LpeetPf\n"));
    CHECK(text && strstr(text, ".LpeetPf:\n\tjmp *.LpeetPt(,%rdi,8)\n.LpeetP.L1:\n\tret\n"));
    CHECK(
        text
        && strstr(text, "\t.section .rodata\n\t.balign 32\n.LpeetPt:\n\t.quad .LpeetP.L1\n\t.quad 0\n\t.popsection\n"));
    CHECK(text && strstr(text, ".LpeetPg:\n\tcall f\n"));
    free(text);
}

/* The reason for which a function made of this has one copy, "" if it has two. */
static const char *why_one(const char *body, const char *outside)
{
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };
    char text[1024];
    const char *why = NULL;

    snprintf(text, sizeof text,
             "\t.text\n\t.type f, @function\nf:\n\tnop\n%s\tret\n\t.size f, .-f\n%s\t.ident \"GCC: 12\"\n", body,
             outside);
    if (plan(&u, text))
        why = u.function[0].why_one_copy ? u.function[0].why_one_copy : "";
    CHECK(!why || !*why || u.function[0].has_stub); /* others' plain copies call it so */
    release(&u);
    return why ? why : "nothing can be planned";
}

static void what_others_know_of_a_function_keeps_it_from_standing_twice(void)
{
    static const struct {
        const char *why, *body, *outside;
    } CASES[] = {
        { "", ".L1:\n\tjne .L1\n", "\t.data\n\t.quad f\n" },
        { "", ".L1:\n", "\t.section .debug_info\n\t.quad .L1\n" },
        { "others refer to a label in it", ".L1:\n", "\t.data\n\t.quad .L1\n" },
        { "others refer to a label in it", ".L1:\n", "\t.text\n\t.type g, @function\ng:\n\tjmp .L1\n\t.size g, .-g\n" },
        { "", ".L1:\n\tjmp *t(,%rax,8)\n", "\t.section .rodata\nt:\n\t.quad .L1\n\t.size t, 8\n" },
        { "others refer to a table of its labels", ".L1:\n\tjmp *t(,%rax,8)\n",
          "\t.section .rodata\nt:\n\t.quad .L1\n\t.data\n\t.quad t\n" },
        { "others refer to a label in it", ".L1:\n", "\t.section .rodata\n\t.globl t\nt:\n\t.quad .L1\n" },
        { "it takes the address of a label", ".L1:\n\tleaq .L1(%rip), %rax\n", "" },
        { "others can reach a label in it", "\t.globl x\nx:\n", "" },
        { "it has directives that may mean something else if they stand twice", "\t.set x, 1\n", "" },
        { "it has directives that may mean something else if they stand twice",
          "#APP\n\t.pushsection .note\n\t.long 1\n\t.popsection\n#NO_APP\n", "" },
        { "it has data of its own", "\t.section .mine\n\t.long 1\n\t.text\n", "" },
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *why = why_one(CASES[i].body, CASES[i].outside);
        if (!CHECK(!strcmp(why, CASES[i].why)))
            printf("# %s%s: %s\n", CASES[i].body, CASES[i].outside, why);
    }
}

/* Whether a loop of these instructions is summarised, and if so how many values it says. */
static int values_of_loop(const char *body)
{
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };
    char text[1024];
    int values = -1;

    snprintf(
        text, sizeof text,
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tnop\n.L2:\n%s\tret\n\t.size f, .-f\n\t.ident \"GCC: 12\"\n",
        body);
    if (plan(&u, text) && CHECK_EQ(u.blocks, 3))
        values = u.block[1].pass ? (int)u.block[1].pass->loop->values : 0;
    release(&u);
    return values;
}

static void loops_are_summarised_if_all_that_they_do_grows_by_as_much_in_each_trip(void)
{
    static const struct {
        int values; /* 0: it is not summarised */
        const char *body;
    } LOOPS[] = {
        { 2, "\taddl (%rdi), %eax\n\taddq $4, %rdi\n\tcmpq %rsi, %rdi\n\tjne .L2\n" },
        { 2, "\taddq $4, %rdi\n\taddl -4(%rdi), %eax\n\tsubl $1, %ecx\n\tjne .L2\n" }, /* rdi counts */
        { 2, "\taddl (%rdi), %eax\n\tsubl $1, %ecx\n\tjne .L2\n" },
        { 3, "\taddl (%rdi), %eax\n\taddq %rdx, %rdi\n\tdecq %rcx\n\tjne .L2\n" },
        { 3, "\taddl (%rdi,%rdx,8), %eax\n\taddq %rsi, %rdx\n\taddq $1, %rcx\n\tcmpq %rcx, %r8\n\tjne .L2\n" },
        { 2, "\tmovq 8(%rsp), %r8\n\taddl (%r8,%rcx,4), %eax\n\taddq $1, %rcx\n\tcmpq %rsi, %rcx\n\tjne .L2\n" },
        { 0, "\tmovq (%rsi), %r8\n\taddl (%r8,%rcx,4), %eax\n\taddq $1, %rcx\n\tcmpq %rsi, %rcx\n\tjne .L2\n" },
        { 0, "\tmovq %rcx, 8(%rsp)\n\tmovq 8(%rsp), %r8\n\taddl (%r8), %eax\n\tdecq %rcx\n\tjne .L2\n" },
        { 0, "\tmovl (%rdi), %eax\n\ttestl %eax, %eax\n\tje .L2\n" },                  /* waits */
        { 0, "\taddq $1, %rdx\n\tmovl (%rdi), %eax\n\ttestl %eax, %eax\n\tje .L2\n" }, /* and counts besides */
        { 0, "\taddq $1, %rdx\n\tcmpl $0, (%rdi)\n\tje .L2\n" },
        { 0, "\taddq $1, %rdx\n\tpause\n\tcmpq %rdx, %rsi\n\tjne .L2\n" },
        { 0, "\tmovq (%rdi), %rdi\n\tdecq %rcx\n\tjne .L2\n" }, /* follows pointers */
        { 0, "\tlock addl $1, (%rdi)\n\tdecq %rcx\n\tjne .L2\n" },
        { 0, "\tpushq %rcx\n\tdecq %rcx\n\tjne .L2\n" },
        { 0, "\taddl (%rdi), %eax\n\timulq $3, %rdi\n\tdecq %rcx\n\tjne .L2\n" },
        { 0, "\taddl (%rdi), %eax\n\taddq %rdi, %rdi\n\tdecq %rcx\n\tjne .L2\n" },
    };

    for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++)
        if (!CHECK_EQ(values_of_loop(LOOPS[i].body), LOOPS[i].values))
            printf("# the loop: %s\n", LOOPS[i].body);
}

/* The loop's address and counter follow from what the block before it said. */
static void a_loop_is_told_with_the_blocks_around_it(void)
{
    static const char text[] =
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tnop\n"
        ".L1:\n\tmovl (%rdi), %eax\n\tleaq 8(%rdi), %rdx\n"
        ".L2:\n\taddl (%rdx), %ecx\n\taddq $4, %rdx\n\tcmpq %rsi, %rdx\n\tjne .L2\n"
        "\taddl (%rdx), %ecx\n\taddl 4(%rdi), %ecx\n\taddq $64, %rdi\n\tsubl $1, %r8d\n\tjne .L1\n"
        "\tret\n\t.size f, .-f\n\t.ident \"GCC: 12\"\n";
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };

    if (plan(&u, text) && CHECK_EQ(u.blocks, 5)) {
        CHECK(u.block[2].pass && !u.block[1].pass && !u.block[3].pass);
        CHECK_EQ(u.block[1].parent, ASM_NONE);
        CHECK_EQ(u.block[2].parent, 1);
        CHECK_EQ(u.block[3].parent, 2);
        CHECK_EQ(u.block[1].node->slots, 1);
        CHECK_EQ(u.block[2].node->slots, 2); /* and the counter's last value */
        CHECK_EQ(u.block[3].node->slots,
                 3); /* what was %rdi has grown with the loop, so it is said again; %rdx is known */
        CHECK_EQ(u.block[1].max_slots, 3);
    }
    release(&u);
}

/* The inner one stands first, so it is found first; the way around it leads through its head. */
static void a_block_is_in_one_loop(void)
{
    static const char text[] =
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tjmp .L3\n"
        ".L1:\n\taddl (%rdx), %eax\n\tcmpq %rdx, %r8\n\tje .L3\n\taddq $4, %rdx\n\tcmpq %rdx, %r9\n\tjne .L1\n\tret\n"
        ".L3:\n\taddq $8, %rdx\n\tcmpq %rdx, %r10\n\tjne .L1\n\tret\n\t.size f, .-f\n\t.ident \"GCC: 12\"\n";
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };

    if (plan(&u, text) && CHECK_EQ(u.blocks, 6)) {
        CHECK(u.block[1].loop && u.block[1].loop == u.block[2].loop && u.block[1].loop->block[0] == 1);
        CHECK(!u.block[4].loop);
    }
    release(&u);
}

static void a_block_without_slots_is_told_by_those_that_go_on_to_it(void)
{
    static const char text[] =
        "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tnop\n"
        ".L1:\n\tmovl (%rdi), %eax\n\ttestl %eax, %eax\n\tjne .L3\n\tmovl (%rsi), %eax\n"
        ".L3:\n\taddq $4, %rdi\n\tsubq $1, %rcx\n\tjne .L1\n\tret\n\t.size f, .-f\n\t.ident \"GCC: 12\"\n";
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct asm_unit u = { .options = &o };

    if (plan(&u, text) && CHECK_EQ(u.blocks, 5)) {
        CHECK(u.block[3].is_shared && !u.block[1].is_shared && !u.block[2].is_shared);
        CHECK_EQ(u.block[1].shared_branch, 3);
        CHECK_EQ(u.block[1].shared_next, ASM_NONE);
        CHECK(u.block[2].shared_next == 3 && u.block[2].next_is_only);
        CHECK_EQ(u.block[4].parent, ASM_NONE); /* after a shared block, records begin */
    }
    release(&u);
}

/* ---- the copy that counts ---- */

static void a_nest_of_loops_looks_in_each_of_them_where_flags_mean_nothing(void)
{
    static const char text[] = "\t.text\n\t.globl f\n\t.type f, @function\nf:\n\tmovq %rdi, %r8\n\tcmpq %rsi, %rdi\n"
                               ".L1:\n\tleaq 8(%r8), %rdx\n\tsete %al\n.L2:\n\tleaq -800(%rdx), %rcx\n\tjmp .L3\n"
                               ".L4:\n\tmovq (%rcx), %rcx\n.L3:\n\taddl (%rcx), %r9d\n\tjs .L4\n"
                               "\tsubl $1, %r10d\n\tjne .L2\n\tsubl $1, %r11d\n\tjne .L1\n\tret\n"
                               "\t.size f, .-f\n\t.ident \"GCC: 12\"\n";
    char *is = written(text, ASM_EXECUTABLE);

    CHECK(is && strstr(is, ".LpeetW.L1:\n.LpeetL1:\n\tleaq 8(%r8), %rdx\n")); /* sete looks at cmpq, or at subl */
    CHECK(is && strstr(is, ".LpeetW.L2:\n.LpeetL2:\n\ttestq\t%r15, %r15\n\tjns\t.LpeetY2\n\tleaq -800(%rdx), %rcx\n"));
    CHECK(is && strstr(is, ".LpeetW.L3:\n.LpeetL4:\n\taddq\t$1, %r15\n\tjns\t.LpeetY4\n\taddl (%rcx), %r9d\n"));
    free(is);
}

/* Instructions, and what they do with flags. */
enum { KEEPS, READS, KILLS, GOES, MAY_GO };
static const struct {
    const char *text; /* if a label is its end, a number is missing */
    int does;
} STEPS[] = { { "leaq 1(%rax), %rax", KEEPS },
              { "movq (%rax), %rax", KEEPS },
              { "incq %rax", KEEPS }, /* but for some */
              { "shrq %cl, %rax", KEEPS },
              { "rep stosb", KEEPS },
              { "jmp .L", GOES },
              { "jrcxz .L", MAY_GO },
              { "adcq $1, %rax", READS },
              { "je .L", READS },
              { "cmpq %rax, %rdx", KILLS },
              { "call g", KILLS },
              { "jmp g", KILLS },
              { "ret", KILLS } };
enum { KINDS = sizeof STEPS / sizeof *STEPS, FLAG_STEPS = 24 };

struct steps {
    uint64_t state;
    unsigned step[FLAG_STEPS], to[FLAG_STEPS];
};

/* A function of such instructions. Every other one has few that read or kill. */
static char *draw_steps(struct steps *s, bool has_few)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    fputs("\t.text\n\t.globl f\n\t.type f, @function\nf:\n", out);
    for (unsigned i = 0; i < FLAG_STEPS; i++) {
        s->step[i] = (unsigned)draw(&s->state, has_few && draw(&s->state, 4) ? 7 : KINDS);
        s->to[i] = (unsigned)draw(&s->state, FLAG_STEPS);
        if (i + 1 == FLAG_STEPS)
            s->step[i] = KINDS - 1;
        const char *step = STEPS[s->step[i]].text;
        fprintf(out, ".L%u:\n\t%s", i, step);
        if (step[strlen(step) - 1] == 'L')
            fprintf(out, "%u", s->to[i]);
        fputs("\n", out);
    }
    fputs("\t.size f, .-f\n\t.ident \"GCC: 12\"\n", out);
    fclose(out);
    return text;
}

/* Whether a way leads from here to one that reads, and to none that kills before. */
static bool leads_to_reader(const struct steps *s, unsigned at, bool *seen)
{
    int does = STEPS[s->step[at]].does;

    if (seen[at])
        return false;
    seen[at] = true;
    if (does == READS || does == KILLS)
        return does == READS;
    return (does != KEEPS && leads_to_reader(s, s->to[at], seen)) || (does != GOES && leads_to_reader(s, at + 1, seen));
}

static void flags_are_needed_where_a_way_leads_to_who_looks_at_them(void)
{
    struct asm_options o = { .assembler = "as", .warn = ignore };
    struct steps s = { .state = 1 };
    unsigned needed = 0;

    for (unsigned round = 0; round < 40; round++) {
        struct asm_unit u = { .options = &o };
        char *text = draw_steps(&s, round % 2);
        bool is_fine = plan(&u, text);
        for (unsigned i = 0; is_fine && i < FLAG_STEPS; i++) {
            bool seen[FLAG_STEPS] = { false }, should = leads_to_reader(&s, i, seen);
            if (!CHECK_EQ(u.insn[i].needs_flags, should))
                printf("# instruction %u of\n%s", i, text);
            needed += should;
        }
        free(text);
        release(&u);
    }
    CHECK(needed > 100 && needed < 40 * FLAG_STEPS - 100);
}

/* ---- the driver ---- */

static bool has(char **list, const char *word)
{
    for (; *list; list++)
        if (strstr(*list, word))
            return true;
    return false;
}

static char **drive(const char *compiler, int n, const char *const *word)
{
    struct asm_driver d = { .compiler = compiler, .folder = "/lib/peet", .warn = ignore };
    char *argument[8], **list = NULL;
    struct peet_err err;

    for (int i = 0; i < n; i++)
        argument[i] = strdup(word[i]);
    int r = asm_driver_arguments(&d, n, argument, &list, &err);
    for (int i = 0; i < n; i++)
        free(argument[i]);
    CHECK(r == 0 || (r == PEET_ERR_USAGE && !list));
    return list;
}

#define DRIVE(...) \
    drive("gcc", (int)(sizeof(const char *[]){ __VA_ARGS__ } / sizeof(char *)), (const char *[]){ __VA_ARGS__ })

static void the_runtime_is_linked_where_the_compiler_links_an_executable(void)
{
    char **links = DRIVE("-O2", "x.c", "-o", "x"), **compiles = DRIVE("-c", "x.c"),
         **shares = DRIVE("-shared", "-fPIC", "x.c");
    char **asks = DRIVE("-o", "x", "--version");

    CHECK(has(links, "libpeet-rt.a") && has(links, "-ffixed-r15") && has(links, "-B/lib/peet"));
    CHECK(!has(compiles, "libpeet-rt.a") && has(compiles, "-ffixed-r14"));
    CHECK(!has(shares, "libpeet-rt.a") && has(shares, "--peet-library"));
    CHECK(!has(asks, "libpeet-rt.a") && !has(asks, "-Wl"));
    asm_arguments_free(links);
    asm_arguments_free(compiles);
    asm_arguments_free(shares);
    asm_arguments_free(asks);
}

static void the_last_option_about_the_kind_of_code_wins(void)
{
    char **library = DRIVE("-fno-pie", "-fPIC", "x.c"), **absolute = DRIVE("-fPIC", "-fno-pic", "x.c"),
         **lto = DRIVE("-flto=4", "x.c");

    CHECK(has(library, "--peet-library") && !has(library, "--peet-absolute"));
    CHECK(has(absolute, "--peet-absolute") && !has(absolute, "--peet-library"));
    CHECK(has(lto, "-fno-lto"));
    asm_arguments_free(library);
    asm_arguments_free(absolute);
    asm_arguments_free(lto);
}

static void clang_is_refused(void)
{
    CHECK(!drive("/usr/bin/clang-14", 1, (const char *[]){ "x.c" }));
    CHECK(!drive("ccache clang", 1, (const char *[]){ "x.c" }));
}

int main(void)
{
    RUN(text_is_cut_at_newlines_semicolons_and_behind_labels);
    RUN(names_are_told_from_registers_numbers_and_modifiers);
    RUN(symbols_and_sections_are_as_directives_say);
    RUN(blocks_end_at_labels_jumps_and_calls_and_carry_the_stack_pointer);
    RUN(brute_force_has_a_slot_for_each_operand);
    RUN(blocks_that_one_way_leads_to_go_on_in_a_record);
    RUN(loops_are_summarised_if_all_that_they_do_grows_by_as_much_in_each_trip);
    RUN(a_loop_is_told_with_the_blocks_around_it);
    RUN(a_block_is_in_one_loop);
    RUN(a_block_without_slots_is_told_by_those_that_go_on_to_it);
    RUN(every_label_that_is_used_is_written_once);
    RUN(a_plain_copy_has_labels_tables_and_frames_of_its_own);
    RUN(a_constant_table_of_labels_stands_twice_too);
    RUN(what_others_know_of_a_function_keeps_it_from_standing_twice);
    RUN(a_nest_of_loops_looks_in_each_of_them_where_flags_mean_nothing);
    RUN(flags_are_needed_where_a_way_leads_to_who_looks_at_them);
    RUN(the_runtime_is_linked_where_the_compiler_links_an_executable);
    RUN(the_last_option_about_the_kind_of_code_wins);
    RUN(clang_is_refused);
    return check_done();
}
