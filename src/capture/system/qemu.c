/* SPDX-License-Identifier: MIT */
/* QEMU's command line. One machine per architecture, with a serial port as its console and nothing else that a kernel would have to find.
 * Not microvm for x86_64: without ACPI it silently has one processor. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/qemu/pattern.h"
#include "capture/system/system.h"

enum { USUAL_MEMORY_MIB = 1024, LEAST_MEMORY_MIB = 128, MOST_CPUS = 255 };

/* A machine that QEMU emulates. */
struct machine {
    const char *arch, *machine, *cpu; /* instruction set; values of -machine and -cpu */
    const char *console;              /* the kernel's name of the serial line */
    const char *kernel;               /* more of the kernel's command line */
};

static const struct machine machines[] = {
    { "x86_64", "q35", "max", "ttyS0", " tsc=reliable no_timer_check" },
    { "aarch64", "virt,gic-version=3", "max,pauth-impdef=on", "ttyAMA0",
      "" }, /* the real signatures cost most of the time */
    { "riscv64", "virt", "rv64", "ttyS0", "" },
};

const char *const GUEST_ARCH_NAMES[] = {
#define X(name, machine, triplet) #name,
    GUEST_ARCHES(X)
#undef X
        NULL,
};

const char *guest_arch(const struct system_config *config)
{
    static struct utsname own;

    if (config->arch)
        return config->arch;
    if (!own.machine[0] && uname(&own) < 0)
        return "x86_64";
    return own.machine;
}

static const struct machine *qemu_machine(const struct system_config *c)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (!strcmp(machines[i].arch, guest_arch(c)))
            return &machines[i];
    return NULL;
}

/* As a value in a list with commas: these are doubled. To be freed. */
static char *comma_safe(const char *s)
{
    char *out = mem_alloc(2 * strlen(s) + 1, 1), *p = out;

    for (; *s; s++) {
        *p++ = *s;
        if (*s == ',')
            *p++ = ',';
    }
    return out;
}

static void qemu_add_value(char **list, const char *key, const char *value)
{
    char *safe = comma_safe(value), *longer = mem_format("%s,%s=%s", *list, key, safe);

    free(*list);
    free(safe);
    *list = longer;
}

static void add_number(char **list, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (value)
        qemu_add_value(list, key, text);
}

static void add_plugin(const struct system_config *c, const struct guest_files *files, struct words *ret)
{
    char *list = comma_safe(files->plugin);

    qemu_add_value(&list, "out", files->trace);
    qemu_add_value(&list, "report", files->report);
    if (files->list)
        qemu_add_value(&list, "files", files->list);
    for (size_t i = 0; i < c->symbols.count; i++)
        qemu_add_value(&list, "symbols", c->symbols.item[i]);
    if (c->is_other)
        qemu_add_value(&list, "os", "other");
    if (files->answer) {
        qemu_add_value(&list, "console", files->console);
        qemu_add_value(&list, "answer", files->answer);
    }
    add_number(&list, "apps", files->apps);
    if (c->count)
        qemu_add_value(&list, "mode", "count");
    if (c->plugin.pattern)
        qemu_add_value(&list, "pattern", c->plugin.pattern);
    add_number(&list, "k", c->plugin.k);
    add_number(&list, "page", c->plugin.page);
    add_number(&list, "stack", c->plugin.stack);
    if (c->plugin.grows)
        qemu_add_value(&list, "grows", c->plugin.grows);
    if (c->plugin.include_kernel)
        qemu_add_value(&list, "kernel", "on");
    if (c->plugin.no_physical)
        qemu_add_value(&list, "physical", "off");
    words_add(ret, "-plugin");
    words_add(ret, "%s", list);
    free(list);
}

/* The file system is in memory twice while it is unpacked, and may take half of it in the end. */
static uint64_t memory_for_files(uint64_t initrd_bytes)
{
    return 3 * (initrd_bytes >> 20);
}

static void add_kernel(const struct system_config *c, bool aslr, const struct emulator *e,
                       const struct guest_files *files, const struct machine *m, struct words *ret)
{
    const char *initrd = files->initrd ? files->initrd : c->initrd;

    words_add(ret, "-kernel");
    words_add(ret, "%s", e->kernel);
    if (initrd) {
        words_add(ret, "-initrd");
        words_add(ret, "%s", initrd);
    }
    if (c->is_other && !c->append)
        return;
    words_add(ret, "-append");
    if (c->is_other) {
        words_add(ret, "%s", c->append);
        return;
    }
    words_add(ret, "console=%s%s%s%s%s%s%s", m->console, c->is_own ? "" : " quiet loglevel=4 mitigations=off nokaslr",
              m->kernel, " panic=-1", aslr ? "" : " norandmaps", c->append ? " " : "", c->append ? c->append : "");
}

static void add_machine(const struct system_config *c, const struct machine *m, const struct guest_files *files,
                        struct words *ret)
{
    uint64_t cpus = c->cpus ? c->cpus : 1, mib = c->memory ? (c->memory + (1 << 20) - 1) >> 20
                                                           : USUAL_MEMORY_MIB + memory_for_files(files->initrd_bytes);

    words_add(ret, "-accel");
    words_add(ret, "tcg,thread=%s", c->deterministic ? "single" : "multi");
    words_add(ret, "-machine");
    words_add(ret, "%s", m->machine);
    words_add(ret, "-cpu");
    words_add(ret, "%s", m->cpu);
    words_add(ret, "-smp");
    words_add(ret, "%llu", (unsigned long long)cpus);
    words_add(ret, "-m");
    words_add(ret, "%lluM", (unsigned long long)mib);
    if (c->deterministic) { /* time is counted in instructions, and chance is always the same */
        words_add(ret, "-icount");
        words_add(ret, "shift=4,sleep=off");
        words_add(ret, "-rtc");
        words_add(ret, "base=2000-01-01T00:00:00,clock=vm");
        words_add(ret, "-seed");
        words_add(ret, "1");
    }
}

/* Adds the user's words last: QEMU uses the last of several equal options. */
static int add_given(const struct system_config *c, struct words *ret, struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; i < c->qemu_args.count && r == 0; i++) {
        struct words words = { 0 };
        r = words_split("--qemu-arg", c->qemu_args.item[i], &words, err);
        for (size_t k = 0; k < words.count; k++)
            words_add(ret, "%s", words.item[k]);
        words_release(&words);
    }
    return r;
}

int qemu_check(const struct system_config *c, struct peet_err *err)
{
    struct pattern pattern;
    struct words given = { 0 };
    int r = add_given(c, &given, err);

    words_release(&given);
    if (r < 0)
        return r;
    if (c->deterministic && c->cpus > 1)
        return err_set(err, PEET_ERR_USAGE,
                       "--deterministic works with one processor only, for several do not take turns in the same "
                       "way each time: leave out --cpus, or --deterministic");
    if (c->cpus > MOST_CPUS)
        return err_set(err, PEET_ERR_USAGE, "--cpus: a guest can have %d processors at most", (int)MOST_CPUS);
    if (!qemu_machine(c))
        return err_set(err, PEET_ERR_USAGE, "there are no guests of %s: say --arch x86_64, aarch64 or riscv64",
                       guest_arch(c));
    if (c->image && !c->kernel && strcmp(guest_arch(c), "x86_64") != 0)
        return err_set(err, PEET_ERR_USAGE, "--image of an %s guest needs --kernel, too", guest_arch(c));
    return c->plugin.pattern ? pattern_parse(c->plugin.pattern, guest_arch(c), &pattern, err) : 0;
}

int qemu_command(const struct system_config *c, bool aslr, const struct emulator *e, const struct guest_files *files,
                 struct words *ret, struct peet_err *err)
{
    const struct machine *m = qemu_machine(c);
    int r = qemu_check(c, err);

    if (r < 0)
        return r;
    uint64_t least = c->is_other ? 1 : LEAST_MEMORY_MIB + memory_for_files(files->initrd_bytes);
    if (c->memory && c->memory >> 20 < least)
        return err_set(err, PEET_ERR_USAGE, "--memory: this guest, with its files, needs %llum at least",
                       (unsigned long long)least);
    words_add(ret, "%s", e->qemu);
    for (size_t i = 0; i < e->data.count; i++) {
        words_add(ret, "-L");
        words_add(ret, "%s", e->data.item[i]);
    }
    add_machine(c, m, files, ret);
    static const char *const plain[] = { "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        words_add(ret, "%s", plain[i]);
    char *list = mem_string("file,id=console");
    qemu_add_value(&list, "path", files->console); /* a file never keeps the guest waiting */
    if (files->answer)
        qemu_add_value(&list, "input-path", files->answer);
    words_add(ret, "-chardev");
    words_add(ret, "%s", list);
    free(list);
    words_add(ret, "-serial");
    words_add(ret, "chardev:console");
    if (e->kernel)
        add_kernel(c, aslr, e, files, m, ret);
    if (c->image) {
        list = mem_string("if=virtio,snapshot=on"); /* the user's system stays as it is */
        qemu_add_value(&list, "file", c->image);
        words_add(ret, "-drive");
        words_add(ret, "%s", list);
        free(list);
    }
    if (files->plugin)
        add_plugin(c, files, ret);
    return add_given(c, ret, err);
}
