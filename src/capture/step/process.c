/* SPDX-License-Identifier: MIT */
/* Processes of the recorded program: forked ones, and new ones after exec. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "format/file/writer.h"
#include "base/mem.h"
#include "capture/step/step.h"

/* ---- memory ---- */

bool process_has_code(const struct tracee_process *p, uint64_t start, uint64_t size)
{
    for (size_t i = 0; i < p->codes; i++)
        if (start < p->code[i].end && size > 0 && start + (size - 1) >= p->code[i].start)
            return true;
    return false;
}

static void find_code_areas(struct tracee_process *p, const struct mappings *m)
{
    p->codes = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct mapping *x = &m->at[i];
        if (!(x->protection & 1))
            continue;
        p->code = mem_room(p->code, p->codes, sizeof *p->code);
        p->code[p->codes++] = (struct code_area){ x->start, x->end, x->shared || x->protection & 2 };
    }
    p->generation++;
}

/* The kernel grows the stack down to its limit, or to the next mapping below it. */
static void find_first_stack(struct tracee_process *p, const struct mappings *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct rlimit limit;
        if (strcmp(m->at[i].name, "[stack]") != 0)
            continue;
        p->stack_low = m->at[i].start;
        p->stack_limit = i ? m->at[i - 1].end : 0;
        if (prlimit(p->pid, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < m->at[i].end - p->stack_limit)
            p->stack_limit = m->at[i].end - limit.rlim_cur;
    }
}

int process_scan(struct stepper *r, struct tracee_process *p, bool is_new)
{
    struct mappings m;
    int result = mappings_read(p->pid, &m, r->err);

    if (result < 0)
        return 0; /* it has ended; the stop for that comes later */
    find_code_areas(p, &m);
    if (is_new)
        find_first_stack(p, &m);
    struct module_scan scan = { .pid = p->pid, .process = p->id, .mappings = &m, .ranges = is_new };
    result = modules_write(&p->modules, &scan, writer_builder(r->writer), r->err);
    mappings_release(&m);
    return result;
}

/* ---- life ---- */

int process_new(struct stepper *r, pid_t pid, uint32_t parent, struct tracee_process **ret)
{
    char path[64];
    struct tracee_process *p = mem_alloc(1, sizeof *p);
    char *program = process_program(pid), *command = process_command(pid);

    p->pid = pid;
    p->id = r->next_process++;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    p->memory = open(path, O_RDWR | O_CLOEXEC);
    struct peet_process defined = { p->id, parent ? parent : p->id, program, command };
    int result = peet_writer_process(r->writer, &defined, r->err);
    free(program);
    free(command);
    if (result == 0)
        result = process_scan(r, p, true);
    r->processes.value_size = sizeof p;
    struct tracee_process **place = result == 0 ? map_put(&r->processes, (uint64_t)pid, 0) : NULL;
    if (result == 0 && !place)
        result = err_set(r->err, PEET_ERR_MEMORY, "no memory for a process");
    if (result < 0) {
        process_free(p);
        return result;
    }
    *place = *ret = p;
    r->ret->processes++;
    return 0;
}

void process_free(struct tracee_process *p)
{
    if (!p)
        return;
    if (p->memory >= 0)
        close(p->memory);
    map_release(&p->insns);
    modules_release(&p->modules);
    free(p->code);
    free(p);
}
