/* SPDX-License-Identifier: MIT */
/* Files of instrumented programs: schema, bytes of the code, function symbols. Their contents are input: invalid data are an error or
 * ignored, never trusted. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mem.h"
#include "capture/recorder/live.h"

enum { PATH_ROOM = 4200, ENTRY_HEAD = 24 };

void module_free(struct live_module *m)
{
    if (!m)
        return;
    if (m->image)
        munmap(m->image, m->size);
    free(m->path);
    free(m->items);
    free(m->range);
    free(m->functions);
    free(m);
}

const uint8_t *module_bytes(const struct live_module *m, uint64_t address, size_t *ret_left)
{
    const Elf64_Ehdr *e = (const void *)m->image;
    uint64_t at = address - m->bias;

    if (e->e_phoff > m->size || e->e_phentsize != sizeof(Elf64_Phdr)
        || (m->size - e->e_phoff) / sizeof(Elf64_Phdr) < e->e_phnum)
        return NULL;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, m->image + e->e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && p.p_offset <= m->size && p.p_filesz <= m->size - p.p_offset && at >= p.p_vaddr
            && at - p.p_vaddr < p.p_filesz) {
            *ret_left = (size_t)(p.p_filesz - (at - p.p_vaddr));
            return m->image + p.p_offset + (at - p.p_vaddr);
        }
    }
    return NULL;
}

/* ---- entries ---- */

bool module_entry(const struct live_module *m, uint64_t key, struct live_entry *ret)
{
    if (key < m->schema || key >= m->schema_end || (key - m->schema) % RAW_ALIGN || m->schema_end - key < ENTRY_HEAD)
        return false;
    const uint8_t *p = m->entries + (key - m->schema);
    if (get_le32(p) < RAW_BLOCK || get_le32(p) > RAW_LOOP_EXIT)
        return false;
    *ret = (struct live_entry){ .kind = get_le32(p),
                                .start = key + 4 + (uint64_t)(int64_t)(int32_t)get_le32(p + 4),
                                .insns = (unsigned)(p[8] | p[9] << 8),
                                .slots = (unsigned)(p[10] | p[11] << 8),
                                .flags = get_le32(p + 12),
                                .parent = get_le32(p + 16) ? key + (uint64_t)(int64_t)(int32_t)get_le32(p + 16) : 0,
                                .rest = p + ENTRY_HEAD,
                                .end = m->entries + (m->schema_end - m->schema) };
    return ret->insns > 0 && ret->slots <= PEET_SLOTS;
}

static int compare_rows(const void *a, const void *b)
{
    const struct live_block_range *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_functions(const void *a, const void *b)
{
    const struct live_function *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

size_t module_functions_up_to(const struct live_module *m, uint64_t address)
{
    size_t low = 0, high = m->function_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Advances past the slots of an entry. */
static void skip_slots(const struct live_entry *e, struct byte_reader *w)
{
    for (unsigned i = 0; i < e->slots; i++) {
        reader_leb(w);
        reader_bytes(w, 3);
    }
}

bool module_loop(const struct live_entry *e, struct live_loop *ret)
{
    struct byte_reader w = { e->rest, e->end, 0 };

    *ret = (struct live_loop){ 0 };
    for (unsigned i = 0; i < e->insns; i++)
        reader_leb(&w);
    skip_slots(e, &w);
    if (e->kind == RAW_LOOP) {
        uint64_t blocks = reader_leb(&w);
        for (uint64_t i = 0; i < blocks && !w.bad; i++) {
            uint64_t insns = reader_leb(&w);
            if (i < LIVE_LOOP_BLOCKS)
                ret->insns[i] = (unsigned)insns;
        }
        ret->blocks = blocks <= LIVE_LOOP_BLOCKS ? (unsigned)blocks : 0;
        uint64_t jumps = reader_leb(&w);
        ret->jumps = w;
        for (uint64_t i = 0; i < jumps && !w.bad; i++)
            reader_leb(&w);
        ret->jump_count = jumps;
        ret->copies = w;
        for (unsigned i = 0; i < e->insns; i++)
            reader_leb(&w);
    }
    ret->rest = w;
    return !w.bad && (e->kind != RAW_LOOP || ret->blocks > 0);
}

bool module_next_entry(const struct live_module *m, uint64_t *key, struct live_entry *ret)
{
    for (; *key + ENTRY_HEAD <= m->schema_end; *key += RAW_ALIGN) {
        struct live_loop loop;
        if (!module_entry(m, *key, ret) || !module_loop(ret, &loop))
            continue;
        if (ret->flags & RAW_IN_PREDECESSOR)
            reader_leb(&loop.rest);
        if (loop.rest.bad)
            continue;
        uint64_t used = (uint64_t)(loop.rest.p - (ret->rest - ENTRY_HEAD));
        *key += (used + RAW_ALIGN - 1) / RAW_ALIGN * RAW_ALIGN;
        return true;
    }
    return false;
}

/* Adds the range of the next n instructions of an entry. */
static void add_range(struct live_module *m, const struct live_entry *e, struct byte_reader *w, unsigned n)
{
    struct live_block_range row = { 0 };

    for (unsigned i = 0; i < n; i++) {
        row.last = e->start + reader_leb(w);
        row.start = i ? row.start : row.last;
    }
    m->range = mem_room(m->range, m->ranges, sizeof *m->range);
    m->range[m->ranges++] = row;
}

/* Adds the ranges of all blocks. Entries are contiguous, each aligned. */
static void find_ranges(struct live_module *m)
{
    struct live_entry e;
    struct live_loop loop;

    for (uint64_t key = m->schema; module_next_entry(m, &key, &e);) {
        struct byte_reader w = { e.rest, e.end, 0 };
        m->levels |= 1u << (e.flags & RAW_CALLS_ONLY    ? LEVEL_calls
                            : e.flags & RAW_NO_OPERANDS ? LEVEL_blocks
                                                        : LEVEL_memory);
        if (e.kind == RAW_BLOCK)
            add_range(m, &e, &w, e.insns);
        if (e.kind == RAW_LOOP && module_loop(&e, &loop))
            for (unsigned i = 0; i < loop.blocks; i++)
                add_range(m, &e, &w, loop.insns[i]);
    }
    if (m->ranges)
        qsort(m->range, m->ranges, sizeof *m->range, compare_rows);
}

/* ---- the file ---- */

/* A string of the file; "" where there is none. */
static const char *string_at(const struct live_module *m, Elf *elf, size_t section, uint64_t offset)
{
    GElf_Shdr h;

    if (!gelf_getshdr(elf_getscn(elf, section), &h) || h.sh_type != SHT_STRTAB || h.sh_offset > m->size
        || h.sh_size > m->size - h.sh_offset || offset >= h.sh_size)
        return "";
    const char *text = (const char *)m->image + h.sh_offset + offset;
    return memchr(text, 0, h.sh_size - offset) ? text : "";
}

/* Whether a library belongs to the compiler or the C library, which are not built with peet cc. */
static bool is_of_system(const char *library)
{
    static const char *const those[] = { "libc.",      "libm.",      "libpthread.", "libdl.",       "librt.",
                                         "libgcc_s.",  "libstdc++.", "libgomp.",    "libgfortran.", "libquadmath.",
                                         "libatomic.", "ld-linux",   NULL };

    for (size_t i = 0; those[i]; i++)
        if (!strncmp(library, those[i], strlen(those[i])))
            return true;
    return false;
}

static void module_read_dynamic(struct live_module *m, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn d;

    for (int i = 0; data && gelf_getdyn(data, i, &d); i++)
        if (d.d_tag == DT_NEEDED && !is_of_system(string_at(m, elf, header->sh_link, d.d_un.d_val)))
            m->needs_others = true;
}

static void add_functions(struct live_module *m, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym sym;

    for (int i = 0; data && header->sh_entsize && i < (int)(header->sh_size / header->sh_entsize); i++) {
        if (!gelf_getsym(data, i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC)
            continue;
        const char *name = string_at(m, elf, header->sh_link, sym.st_name);
        m->needs_others |= sym.st_shndx == SHN_UNDEF && !strcmp(name, "dlopen");
        if (sym.st_shndx == SHN_UNDEF)
            continue;
        m->functions = mem_room(m->functions, m->function_count, sizeof *m->functions);
        m->functions[m->function_count++] = (struct live_function){ sym.st_value + m->bias, sym.st_size, name };
    }
}

/* False: the file has no schema, as most libraries. */
static bool find_schema(struct live_module *m, Elf *elf)
{
    size_t names;
    GElf_Shdr h;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        const char *name = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (name && !strcmp(name, RAW_SECTION) && h.sh_type == SHT_PROGBITS && h.sh_offset <= m->size
            && h.sh_size <= m->size - h.sh_offset) {
            m->schema = h.sh_addr + m->bias;
            m->schema_end = m->schema + h.sh_size;
            m->entries = m->image + h.sh_offset;
        }
    }
    return m->entries != NULL;
}

static void read_sections(struct live_module *m, Elf *elf)
{
    GElf_Shdr h;

    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        if (!gelf_getshdr(s, &h))
            continue;
        if (h.sh_type == SHT_SYMTAB || h.sh_type == SHT_DYNSYM)
            add_functions(m, elf, s, &h);
        if (h.sh_type == SHT_DYNAMIC)
            module_read_dynamic(m, elf, s, &h);
    }
    if (m->function_count)
        qsort(m->functions, m->function_count, sizeof *m->functions, compare_functions);
}

static bool module_find_bias(struct live_module *m, Elf *elf, const struct mapping *code)
{
    GElf_Phdr p;
    size_t n;

    if (elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && (p.p_flags & PF_X)
            && code->offset >= (p.p_offset & ~(uint64_t)4095) && code->offset < p.p_offset + p.p_filesz) {
            m->bias = code->start - (p.p_vaddr + code->offset - p.p_offset);
            return true;
        }
    return false;
}

static bool map_file(struct live_module *m, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
        return false;
    void *image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (image == MAP_FAILED)
        return false;
    m->image = image;
    m->size = (size_t)st.st_size;
    m->device = st.st_dev;
    m->inode = st.st_ino;
    return true;
}

static bool module_read(struct live_module *m, const struct mapping *code)
{
    Elf *elf = elf_memory((char *)m->image, m->size);
    bool ok = elf && module_find_bias(m, elf, code) && find_schema(m, elf);

    if (ok) {
        read_sections(m, elf);
        find_ranges(m);
    }
    elf_end(elf);
    return ok;
}

int module_open(pid_t pid, const struct mapping *code, struct live_module **ret, struct peet_err *err)
{
    char path[PATH_ROOM];

    *ret = NULL;
    if ((size_t)snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, code->name) >= sizeof path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct live_module *m = mem_alloc(1, sizeof *m);
    elf_version(EV_CURRENT);
    bool ok = map_file(m, fd) && module_read(m, code);
    close(fd);
    if (ok) {
        m->path = mem_string(code->name);
        m->items = calloc((size_t)(m->schema_end - m->schema) / RAW_ALIGN + 1, sizeof *m->items);
        if (m->items) {
            *ret = m;
            return 0;
        }
        module_free(m);
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for its schema", code->name);
    }
    module_free(m);
    return 0;
}
