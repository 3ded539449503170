/* SPDX-License-Identifier: MIT */
/* The QEMU plugin of `peet record --system`: exact traces of the threads in a guest that make themselves known
 * (Ji et al., NPC 2013; peet/mark.h).
 *
 *     qemu-system-x86_64 … -plugin libpeet-qemu.so,out=FILE[,key=value…]
 *
 *     out=FILE          the trace, or the counts; needed
 *     mode=trace        …a trace of all blocks and references (the default)
 *     mode=count        …counts per thread alone, as JSON
 *     pattern=default   …the pattern by which a thread marks itself: the marker of peet/mark.h
 *     pattern=ji        …the paper's three instructions
 *     pattern=hex:…     …BYTES[/MASK][:BYTES[/MASK]…] in hexadecimal digits, each an alternative
 *     k=N               pages from the stack pointer at the pattern to the stack's bottom (1)
 *     page=BYTES        of a page (4096)
 *     stack=BYTES       of a stack (8388608); k and stack are used if they are given, or if the pattern does not give the stack
 *     grows=down|up     where to stacks grow (down)
 *     physical=on|off   physical addresses (on)
 *     kernel=on|off     records kernel code that runs on the stacks of target threads, labelled (off); slow
 *     files=FILE        lines of a path in the guest, a tabulator and the same file here, for the names of functions
 *     symbols=FILE      an ELF file for the names of a guest whose files are not listed; may be given several times
 *     apps=N            number of applications; the card of a mark has the application's number, which gives the process's number
 *     os=linux|other    system for numbers of system calls and frames of signals (linux)
 *     console=FILE      the guest's output, and
 *     answer=FIFO       …its input: programs ask before they mark themselves (ask.c), and no code is instrumented until one does.
 *                       Without these two, the plugin looks for patterns from the beginning. That makes a guest up to 1.3 times
 *                       as slow: once QEMU calls a plugin at translation, it stores the value of each access
 *     report=FILE       results, as lines of key=value: when the first thread marks itself, from time to time, and at the end
 *                       (over=1). Keys: armed, over, processes, threads, instructions, references, lost (instructions or
 *                       references that could not be recorded), blocks, odd, stale, and any number of warning and error
 *
 * Only patterns are instrumented until the first one is found, or a program asks; then all code is translated again.
 * Assumes that QEMU has a thread for each processor, or one for all; and a Linux guest for signals and ends of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern int qemu_plugin_version;
EXPORTED int qemu_plugin_version = QEMU_INTERFACE;
EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

enum { STOP_NANOSECONDS = 50000000 }; /* QEMU stops a processor within microseconds; on a busy machine later */

struct plugin plugin = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- translation ---- */

/* A register of the processor that translates a block; its value is that at the block's beginning. */
struct early {
    const char *name;
    struct qemu_plugin_register *handle;
};

static bool read_early(struct early *r, const char *name, uint64_t *ret)
{
    static _Thread_local struct qemu_bytes *bytes;

    if (!bytes)
        bytes = g_byte_array_new();
    if (!r->name) {
        struct qemu_array *all = qemu_plugin_get_registers();
        const struct qemu_register *at = (const struct qemu_register *)(void *)all->data;
        for (unsigned i = 0; i < all->len; i++)
            if (strcmp(at[i].name, name) == 0)
                r->handle = at[i].handle;
        r->name = name;
    }
    g_byte_array_set_size(bytes, 0);
    int n = r->handle ? qemu_plugin_read_register(r->handle, bytes) : 0;
    *ret = 0;
    if (n > 0)
        memcpy(ret, bytes->data, n < 8 ? (size_t)n : 8);
    return n > 0;
}

static bool is_user_code(void)
{
    static _Thread_local struct early level;
    uint64_t value;

    return read_early(&level, plugin.isa->level, &value) && plugin.isa->is_user(value);
}

/* Whether the block is unreported. Callers exclude blocks with patterns: a target executes the instructions after one. */
static bool plan_unreported(struct block *b, const struct qemu_plugin_tb *tb)
{
    static _Thread_local struct early root;
    uint64_t value;

    return read_early(&root, plugin.isa->root, &value) && unreported_plan(b, tb, value & plugin.isa->root_mask);
}

static void watch_accesses(struct qemu_plugin_insn *insn, struct block_insn *s)
{
    const struct guest_insn *g = &s->guest;
    int accesses = (g->loads ? QEMU_LOADS : 0) | (g->stores ? QEMU_STORES : 0);
    bool physical = plugin.settings.physical;

    if (accesses == 0)
        return;
    if (g->access == GUEST_REPEATED && s->block->repeats)
        qemu_plugin_register_vcpu_mem_cb(insn, on_repeated_access, QEMU_NO_REGISTERS, accesses, s);
    else if (g->access == GUEST_WIDE)
        qemu_plugin_register_vcpu_mem_cb(insn, on_first_access, QEMU_NO_REGISTERS, accesses, s);
    else
        qemu_plugin_register_vcpu_mem_cb(insn, physical ? on_access : on_virtual_access, QEMU_NO_REGISTERS, accesses,
                                         s);
}

static void watch_kernel(struct qemu_plugin_tb *tb)
{
    struct block *b = block_new(tb, true);

    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_kernel_block, QEMU_READS_REGISTERS, QEMU_ALWAYS, plugin.word_state,
                                              0, b);
    for (uint32_t i = 0; i < b->insns; i++)
        watch_accesses(qemu_plugin_tb_get_insn(tb, i), &b->insn[i]);
}

static void translate_kernel(struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    uint8_t bytes[GUEST_BYTES] = { 0 };
    size_t size = qemu_plugin_insn_size(last);

    if (plugin.settings.kernel && !plugin.settings.counts)
        watch_kernel(tb);
    else
        qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, plugin.settings.counts ? on_counted_kernel : on_kernel,
                                                  QEMU_READS_REGISTERS, QEMU_EQ, plugin.word_state, STATE_TARGET, NULL);
    size = size < sizeof bytes ? size : sizeof bytes;
    qemu_plugin_insn_data(last, bytes, size);
    if (plugin.isa->leaves_kernel(bytes, size))
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(last, QEMU_STORE, plugin.word_state, STATE_UNKNOWN);
}

/* Patterns are looked for in all user code, before and after the first one is found. */
void watch_pattern(struct qemu_plugin_insn *insn, struct block_insn *s)
{
    struct candidate *c = mem_alloc(1, sizeof *c);

    c->insn = s;
    c->length = qemu_plugin_insn_size(insn);
    c->length = c->length < sizeof c->bytes ? c->length : sizeof c->bytes;
    qemu_plugin_insn_data(insn, c->bytes, c->length);
    if (!pattern_has(&plugin.settings.pattern, c->bytes, c->length)) {
        free(c);
        return;
    }
    qemu_plugin_register_vcpu_insn_exec_cb(insn, plugin.settings.counts ? on_counted_pattern : on_pattern,
                                           QEMU_READS_REGISTERS, c);
}

static bool has_pattern(const struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint8_t bytes[GUEST_BYTES];

    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        size_t size = qemu_plugin_insn_size(insn);
        if (size > sizeof bytes
            || (plugin.settings.pattern.is_marker && size != plugin.settings.pattern.alternative[0].length))
            continue;
        qemu_plugin_insn_data(insn, bytes, size);
        if (pattern_has(&plugin.settings.pattern, bytes, size))
            return true;
    }
    return false;
}

static void translate_user(struct qemu_plugin_tb *tb, bool is_armed, bool may_mark)
{
    struct block *b = block_new(tb, false);
    bool is_unreported = is_armed && !may_mark && plan_unreported(b, tb);

    if (is_armed)
        qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, is_unreported ? on_unreported_block : on_block,
                                                  QEMU_READS_REGISTERS, QEMU_NE, plugin.word_state, STATE_OTHER, b);
    if (is_armed && calls_may_begin(tb))
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, 0), on_call, QEMU_READS_REGISTERS, NULL);
    for (uint32_t i = 0; i < b->insns; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (may_mark)
            watch_pattern(insn, &b->insn[i]);
        if (!is_unreported || !b->insn[i].is_computable)
            watch_accesses(insn, &b->insn[i]);
    }
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
    bool is_armed = atomic_load_explicit(&plugin.is_armed, memory_order_relaxed);
    bool is_high = qemu_plugin_tb_vaddr(tb) >> 63; /* the kernel's half; in the other one firmware may be, too */

    (void)id;
    if (!is_armed && plugin.settings.answer) {
        plugin_arm();
        return;
    }
    if (is_high && !is_armed)
        return;
    bool may_mark = !is_high && has_pattern(tb);
    if (!is_armed && !may_mark)
        return;
    if (is_high || !is_user_code()) {
        if (is_armed)
            translate_kernel(tb);
    } else if (plugin.settings.counts) {
        translate_counted(tb, is_armed, may_mark);
    } else {
        translate_user(tb, is_armed, may_mark);
    }
}

/* ---- beginning and end ---- */

static void on_exit_of_qemu(uint64_t id, void *user)
{
    struct peet_err err = { 0 };

    (void)id;
    (void)user;
    threads_finish();
    report_write(false);
    if (plugin.settings.counts)
        counts_write(&err);
    else
        output_close();
    report_write(true);
}

static void ask_qemu(uint64_t id, bool looks)
{
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
    if (looks)
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
}

/* Called by QEMU while all processors are stopped. Programs that wait are answered now; all code is translated again before they run. */
static void ask_again(uint64_t id)
{
    ask_qemu(id, true);
    if (!atomic_exchange(&plugin.is_ready, true) && plugin.settings.answer)
        ask_answer();
}

static void on_idle(uint64_t id, unsigned cpu)
{
    (void)id;
    (void)cpu;
    plugin_arm();
}

/* Only a processor's thread can discard translations: the first that translates code or is idle. */
void plugin_look(void)
{
    qemu_plugin_register_vcpu_idle_cb(plugin.id, on_idle);
    qemu_plugin_register_vcpu_tb_trans_cb(plugin.id, on_translation);
}

/* QEMU stops the processors one after the other. A thread that marks itself during that, on a processor that still runs, would execute old
 * translations; so it waits here until its processor is stopped, too. Programs that ask need not wait: they are answered afterwards. */
void plugin_arm(void)
{
    if (!atomic_exchange(&plugin.is_armed, true)) {
        report_write(false);
        plugin_retranslate();
    } else if (!atomic_load(&plugin.is_ready) && !plugin.settings.answer) {
        nanosleep(&(struct timespec){ .tv_nsec = STOP_NANOSECONDS }, NULL);
    }
}

void plugin_retranslate(void)
{
    qemu_plugin_reset(plugin.id, ask_again);
}

/* ---- options ---- */

static int wrong_value(const char *key, const char *value, const char *expected, struct peet_err *err)
{
    return err_set(err, PEET_ERR_USAGE, "%s=%s: expected %s", key, value, expected);
}

static int parse_positive(const char *key, const char *value, uint64_t *ret, struct peet_err *err)
{
    char *end;
    uint64_t n = strtoull(value, &end, 0);

    if (*value == '\0' || *end || n == 0)
        return wrong_value(key, value, "a number above 0", err);
    *ret = n;
    return 0;
}

static int parse_either(const char *key, const char *value, const char *no, const char *yes, bool *ret,
                        struct peet_err *err)
{
    char expected[64];

    snprintf(expected, sizeof expected, "%s or %s", no, yes);
    if (strcmp(value, no) != 0 && strcmp(value, yes) != 0)
        return wrong_value(key, value, expected, err);
    *ret = strcmp(value, yes) == 0;
    return 0;
}

/* QEMU separates options by commas; so a pattern's alternatives are separated by colons. */
static int parse_pattern(const char *value, struct peet_err *err)
{
    char *text = mem_string(value);

    for (char *p = text + (strncmp(text, "hex:", 4) == 0 ? 4 : 0); *p; p++)
        *p = *p == ':' ? ',' : *p;
    int r = pattern_parse(text, plugin.isa->name, &plugin.settings.pattern, err);
    free(text);
    return r;
}

static int parse_option(const char *key, const char *value, struct peet_err *err)
{
    struct settings *s = &plugin.settings;

    if (strcmp(key, "out") == 0)
        s->out = mem_string(value);
    else if (strcmp(key, "report") == 0)
        s->report = mem_string(value);
    else if (strcmp(key, "files") == 0)
        s->files = mem_string(value);
    else if (strcmp(key, "symbols") == 0) {
        s->symbols = mem_room(s->symbols, s->symbol_files, sizeof *s->symbols);
        s->symbols[s->symbol_files++] = mem_string(value);
        calls_add_file(value);
    } else if (strcmp(key, "os") == 0)
        return parse_either(key, value, "linux", "other", &s->other_os, err);
    else if (strcmp(key, "console") == 0)
        s->console = mem_string(value);
    else if (strcmp(key, "answer") == 0)
        s->answer = mem_string(value);
    else if (strcmp(key, "mode") == 0)
        return parse_either(key, value, "trace", "count", &s->counts, err);
    else if (strcmp(key, "physical") == 0)
        return parse_either(key, value, "off", "on", &s->physical, err);
    else if (strcmp(key, "kernel") == 0)
        return parse_either(key, value, "off", "on", &s->kernel, err);
    else if (strcmp(key, "grows") == 0)
        return parse_either(key, value, "down", "up", &s->window.up, err);
    else if (strcmp(key, "pattern") == 0)
        return parse_pattern(value, err);
    else if (strcmp(key, "apps") == 0)
        return parse_positive(key, value, &s->applications, err);
    else if (strcmp(key, "page") == 0)
        return parse_positive(key, value, &s->window.page, err);
    else if (strcmp(key, "k") == 0 || strcmp(key, "stack") == 0) {
        s->given_stack = true;
        return parse_positive(key, value, *key == 'k' ? &s->window.pages : &s->window.stack, err);
    } else
        return err_set(
            err, PEET_ERR_USAGE,
            "%s: no such option; expected out, report, files, symbols, os, apps, console, answer, mode, pattern, k, page, stack, grows, "
            "physical or kernel",
            key);
    return 0;
}

static int parse_options(int argc, char **argv, struct peet_err *err)
{
    int r = parse_pattern("default", err);

    plugin.settings.window = (struct window_config){ .page = 4096, .stack = 8 << 20, .pages = 1 };
    plugin.settings.physical = true;
    plugin.settings.all_unreported = getenv("PEET_TEST_FOREIGN") != NULL;
    plugin.settings.stack_only = getenv("PEET_TEST_STACK_ONLY") != NULL;
    for (int i = 0; i < argc && r == 0; i++) {
        char *option = mem_string(argv[i]), *equals = strchr(option, '=');
        if (equals)
            *equals = '\0';
        r = parse_option(option, equals ? equals + 1 : "on", err);
        free(option);
    }
    if (r == 0 && !plugin.settings.out)
        r = err_set(err, PEET_ERR_USAGE, "no output; give out=FILE");
    if (r == 0 && !plugin.settings.console != !plugin.settings.answer)
        r = err_set(err, PEET_ERR_USAGE, "console=FILE and answer=FIFO need each other; give both, or none");
    return r;
}

static int check_qemu(const struct qemu_info *info, struct peet_err *err)
{
    plugin.isa = guest_find(info->target_name);
    if (!plugin.isa)
        return err_set(err, PEET_ERR_USAGE, "guests of %s are not known; those of x86_64, aarch64 and riscv64 are",
                       info->target_name);
    if (!info->system_emulation)
        return err_set(err, PEET_ERR_USAGE, "this is QEMU's user mode; use qemu-system-%s", info->target_name);
    if (info->version.cur < QEMU_INTERFACE)
        return err_set(err, PEET_ERR_USAGE,
                       "this QEMU has version %d of the plugin interface, which lacks registers; QEMU "
                       "10.0 or newer is needed",
                       info->version.cur);
    return 0;
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
    struct peet_err err = { 0 };

    _Static_assert((sizeof(struct vcpu) & (sizeof(struct vcpu) - 1)) == 0, "QEMU multiplies by this");
    plugin.id = id;
    if (check_qemu(info, &err) < 0 || parse_options(argc, argv, &err) < 0
        || (plugin.settings.files && maps_open(&err) < 0) || (plugin.settings.answer && ask_open(&err) < 0)
        || (!plugin.settings.counts && output_open(&err) < 0)) {
        char *text = mem_format("libpeet-qemu.so: %s\n", err.text);
        fputs(text, stderr); /* QEMU itself only says that it failed */
        free(text);
        return -1;
    }
    plugin.last_process = (uint32_t)plugin.settings.applications;
    plugin.score = qemu_plugin_scoreboard_new(sizeof(struct vcpu));
    plugin.word_state = (struct qemu_word){ plugin.score, offsetof(struct vcpu, state) };
    plugin.word_count = (struct qemu_word){ plugin.score, offsetof(struct vcpu, count) };
    plugin.word_counted = (struct qemu_word){ plugin.score, offsetof(struct vcpu, counted) };
    ask_qemu(id, !plugin.settings.answer);
    report_write(false);
    return 0;
}
