/* SPDX-License-Identifier: MIT */
/* Memory maps of the guest's processes: programs and libraries, for names of functions and variables. A process passes the text of its
 * /proc/self/maps by a marker (peet/mark_guest.h). It is copied at once, and the writer thread writes it to the trace. Files are read on the host: the
 * files that peet has put into the guest, or files of symbols= with the same base name. A process without a memory map (other kernels) gets all
 * files of symbols=, at the addresses in the files.
 * Other memory in the map becomes ranges; later mappings are known from system calls (memory.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/file/writer.h"
#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"
#include "peet/mark_guest.h"

enum { PAGE = 4096, VDSO_MAX = 1 << 16 };

/* A memory map that a process has passed. */
struct maps {
    char *text; /* of /proc/self/maps */
    char *vdso; /* copy of the vDSO; NULL: none */
};

/* Protects guest_process.maps, range and ranges. Separate from plugin.lock: a holder of plugin.lock may wait for the writer thread, and that
 * thread takes this lock. */
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    struct guest_file {
        char *name, *here;
    } * at;
    size_t count;
} files;

int maps_open(struct peet_err *err)
{
    char *line = NULL, *tab;
    size_t room = 0;
    FILE *f = fopen(plugin.settings.files, "re");

    if (!f)
        return err_sys(err, errno, "%s: cannot be opened", plugin.settings.files);
    while (getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if ((tab = strchr(line, '\t')) == NULL)
            continue;
        *tab = '\0';
        files.at = mem_room(files.at, files.count, sizeof *files.at);
        files.at[files.count++] = (struct guest_file){ mem_string(line), mem_string(tab + 1) };
        calls_add_file(tab + 1);
    }
    free(line);
    fclose(f);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const char *file_here(void *unused, const char *name)
{
    (void)unused;
    for (size_t i = 0; i < files.count; i++)
        if (strcmp(files.at[i].name, name) == 0)
            return files.at[i].here;
    for (size_t i = 0; i < plugin.settings.symbol_files; i++)
        if (strcmp(base_name(plugin.settings.symbols[i]), base_name(name)) == 0)
            return plugin.settings.symbols[i];
    return NULL;
}

/* ---- from a program ---- */

static void maps_free(struct maps *m)
{
    if (!m)
        return;
    free(m->text);
    free(m->vdso);
    free(m);
}

static struct maps *maps_exchange(struct guest_process *p, struct maps *maps)
{
    pthread_mutex_lock(&maps_lock);
    struct maps *old = p->maps;
    p->maps = maps;
    pthread_mutex_unlock(&maps_lock);
    return old;
}

/* Copies memory page by page. NULL: it cannot be read. */
static char *copy_memory(struct vcpu *v, uint64_t addr, size_t bytes)
{
    char *copy = mem_alloc(bytes + 1, 1);

    for (size_t n = 0, piece; n < bytes; n += piece) {
        piece = PAGE - (size_t)((addr + n) % PAGE);
        piece = piece < bytes - n ? piece : bytes - n;
        if (!vcpu_memory(v, addr + n, copy + n, piece)) {
            free(copy);
            return NULL;
        }
    }
    return copy;
}

static char *copy_vdso(struct vcpu *v, const char *text)
{
    struct mappings m;
    char *copy = NULL;

    mappings_parse(text, &m);
    for (size_t i = 0; i < m.count && !copy; i++)
        if (strcmp(m.at[i].name, "[vdso]") == 0 && m.at[i].end - m.at[i].start <= VDSO_MAX)
            copy = copy_memory(v, m.at[i].start, (size_t)(m.at[i].end - m.at[i].start));
    mappings_release(&m);
    return copy;
}

/* Adds the functions whose calls are events; under plugin.lock. */
static void map_calls(struct guest_process *p, const char *text)
{
    struct mappings m;
    const char *here;

    mappings_parse(text, &m);
    for (size_t i = 0; i < m.count; i++)
        if ((m.at[i].protection & 1) && (here = file_here(NULL, m.at[i].name)) != NULL)
            calls_map(p, here, &m.at[i]);
    mappings_release(&m);
}

void maps_announced(struct vcpu *v)
{
    const struct guest_isa *g = plugin.isa;
    uint64_t number = vcpu_register(v, g->arg[1]), bytes = vcpu_register(v, g->arg[3]);
    uint64_t root = vcpu_register(v, g->root) & g->root_mask;
    char *text = bytes < PEET_MARK_MAPS_ROOM ? copy_memory(v, vcpu_register(v, g->arg[4]), (size_t)bytes) : NULL;

    if (!text)
        return;
    struct maps *maps = mem_alloc(1, sizeof *maps);
    *maps = (struct maps){ text, copy_vdso(v, text) };
    pthread_mutex_lock(&plugin.lock);
    struct guest_process *p = process_of_maps(root, number);
    map_calls(p, text);
    pthread_mutex_unlock(&plugin.lock);
    maps_free(maps_exchange(p, maps));
}

/* ---- to the trace ---- */

static int write_given_modules(struct guest_process *p, struct peet_writer *w, struct peet_err *err)
{
    int r = 0;

    p->is_named = true;
    for (size_t i = 0; i < plugin.settings.symbol_files && r == 0; i++)
        r = modules_write_alone(&p->modules, p->id, plugin.settings.symbols[i], writer_builder(w), err);
    return r;
}

void maps_add(struct guest_process *p, uint64_t addr, uint64_t size, const char *name)
{
    pthread_mutex_lock(&maps_lock);
    p->range = mem_room(p->range, p->ranges, sizeof *p->range);
    p->range[p->ranges++] = (struct peet_range){ p->id, addr, size, 6, name };
    pthread_mutex_unlock(&maps_lock);
}

size_t maps_ranges(struct guest_process *p)
{
    pthread_mutex_lock(&maps_lock);
    size_t n = p->ranges;
    pthread_mutex_unlock(&maps_lock);
    return n;
}

static int write_ranges(struct guest_process *p, size_t ranges, struct peet_writer *w, struct peet_err *err)
{
    int r = 0;

    pthread_mutex_lock(&maps_lock);
    for (; p->ranges_written < ranges && r == 0; p->ranges_written++)
        r = peet_writer_range(w, &p->range[p->ranges_written], err);
    pthread_mutex_unlock(&maps_lock);
    return r;
}

int maps_write(struct guest_process *p, size_t ranges, struct peet_writer *w, struct peet_err *err)
{
    struct mappings m;
    struct maps *maps = maps_exchange(p, NULL);
    int r = write_ranges(p, ranges, w, err);

    if (r == 0 && !maps && !p->is_named)
        r = write_given_modules(p, w, err);
    if (r < 0 || !maps) {
        maps_free(maps);
        return r;
    }
    p->is_named = true;
    mappings_parse(maps->text, &m);
    struct module_scan scan = {
        .process = p->id, .mappings = &m, .ranges = !p->has_ranges, .path = file_here, .vdso = maps->vdso
    };
    p->has_ranges = true;
    r = modules_write(&p->modules, &scan, writer_builder(w), err);
    mappings_release(&m);
    maps_free(maps);
    return r;
}
