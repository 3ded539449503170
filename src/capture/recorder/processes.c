/* SPDX-License-Identifier: MIT */
/* Recorded processes: their stacks, their mappings, and the instrumented files among these. */
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "capture/recorder/live.h"
#include "format/schema/schema_builder.h"

/* The kernel grows the stack down to its limit, or to the next mapping below it. */
static void process_find_stack(struct live_process *p, const struct mappings *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct rlimit limit;
        if (strcmp(m->at[i].name, "[stack]") != 0)
            continue;
        p->stack_high = m->at[i].end;
        p->stack_low = i ? m->at[i - 1].end : 0;
        if (prlimit(p->pid, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < p->stack_high - p->stack_low)
            p->stack_low = p->stack_high - limit.rlim_cur;
    }
}

/* The memory shared with the recorder is not the program's. */
static void leave_out_buffers(struct mappings *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++)
        if (strncmp(m->at[i].name, LIVE_MEMORY, sizeof LIVE_MEMORY - 1) != 0)
            m->at[kept++] = m->at[i];
    m->count = kept;
}

/* Removes the simulator's libraries in this process. The dynamic linker and the vDSO are the program's, too. */
static int leave_out_library(struct dl_phdr_info *library, size_t size, void *context)
{
    uint64_t low = UINT64_MAX, high = 0, page = 4096;
    struct mappings *m = context;
    size_t kept = 0;

    (void)size;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &library->dlpi_phdr[i];
        uint64_t start = library->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
        if (p->p_type != PT_LOAD)
            continue;
        low = start < low ? start : low;
        high = end > high ? end : high;
    }
    low &= -page;
    high = (high + page - 1) & -page;
    if (low == getauxval(AT_BASE) || low == getauxval(AT_SYSINFO_EHDR))
        return 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->at[i].start < low || m->at[i].end > high)
            m->at[kept++] = m->at[i];
    m->count = kept;
    return 0;
}

static int write_level(struct recorder *s, enum level level, struct peet_err *err)
{
    enum level most = s->config->level && s->config->level < level ? s->config->level : level;

    s->levels.built |= 1u << level;
    if (s->levels.recorded >> most & 1)
        return 0;
    s->levels.recorded |= 1u << most;
    return schema_builder_meta(s->schema, "level", level_name(most), err);
}

/* Writes the levels before the first record, so that a truncated trace has them, too. */
static int write_levels(struct recorder *s, const struct live_process *p, struct peet_err *err)
{
    unsigned levels = p->modules ? 0 : 1u << LEVEL_events;
    int r = 0;

    for (size_t i = 0; i < p->modules; i++)
        levels |= p->module[i]->levels;
    for (int i = LEVEL_events; r == 0 && i < LEVEL_END; i++)
        if (levels >> i & 1)
            r = write_level(s, (enum level)i, err);
    return r;
}

int processes_scan(struct recorder *s, struct live_process *p, bool is_new, struct peet_err *err)
{
    struct mappings m;

    if (mappings_read(p->pid, &m, err) < 0)
        return 0; /* it has ended */
    if (is_new)
        process_find_stack(p, &m);
    leave_out_buffers(&m);
    if (p->pid == getpid()) /* the simulator runs in it */
        dl_iterate_phdr(leave_out_library, &m);
    struct module_scan tell = { .pid = p->pid, .process = p->number, .mappings = &m, .ranges = is_new };
    int r = modules_write(&p->modules_written, &tell, s->schema, err);
    if (r == 0)
        r = code_scan(&s->code, p->pid, &m, &p->module, &p->modules, err);
    mappings_release(&m);
    return r < 0 ? r : write_levels(s, p, err);
}

struct live_process *processes_find(struct recorder *s, uint32_t number)
{
    for (size_t i = s->processes; i-- > 0;)
        if (s->process[i]->number == number)
            return s->process[i];
    return NULL;
}

static uint32_t process_of_thread(struct recorder *s, uint32_t number)
{
    for (uint32_t i = 0; i < RAW_THREADS; i++)
        if (s->thread[i].number == number)
            return s->thread[i].process->number;
    return 0;
}

int processes_add(struct recorder *s, const struct raw_thread *t)
{
    struct live_process *p = mem_alloc(1, sizeof *p);
    char *program = process_program(t->pid), *command = process_command(t->pid);
    uint32_t parent = t->parent != t->number ? process_of_thread(s, t->parent) : 0;

    p->number = t->number;
    p->pid = t->pid;
    s->process = mem_room(s->process, s->processes, sizeof *s->process);
    s->process[s->processes++] = p;
    s->ret->processes++;
    struct peet_process defined = { p->number, parent ? parent : p->number, program, command };
    int r = schema_builder_process(s->schema, &defined, s->err);
    free(program);
    free(command);
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->code_lock);
    r = processes_scan(s, p, true, s->err);
    pthread_mutex_unlock(&s->code_lock);
    return r;
}

void processes_release(struct recorder *s)
{
    for (size_t i = 0; i < s->processes; i++) {
        modules_release(&s->process[i]->modules_written);
        free(s->process[i]->module);
        free(s->process[i]);
    }
    free(s->process);
}
