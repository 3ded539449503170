/* SPDX-License-Identifier: MIT */
#include "capture/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "format/schema/schema_builder.h"
#include "base/mem.h"

#define PAGE ((uint64_t)4096)

enum { PATH_ROOM = 4400, VDSO_MAX = 1 << 20, BUILD_ID_MAX = 64 };

/* ---- /proc/PID/maps ---- */

static bool parse_mapping(char *line, struct mappings *m, struct mapping *ret)
{
    char access[5];
    int name = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &ret->start, &ret->end, access, &ret->offset,
               &name)
            < 4
        || !name)
        return false;
    line[strcspn(line, "\n")] = '\0';
    ret->protection = (access[0] == 'r' ? 4u : 0u) | (access[1] == 'w' ? 2u : 0u) | (access[2] == 'x' ? 1u : 0u);
    ret->shared = access[3] == 's';
    ret->name = arena_string(&m->names, line + name, strlen(line + name));
    return ret->name != NULL;
}

char *process_program(pid_t pid)
{
    char link[64], path[4096];

    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return mem_string(path);
}

char *process_command(pid_t pid)
{
    enum { MOST = 1 << 16 };
    char path[64], *text = mem_alloc(1, MOST + 1);

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, MOST);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i + 1 < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return text;
}

static void take_line(char *line, struct mappings *m)
{
    struct mapping next;

    if (!parse_mapping(line, m, &next))
        return;
    m->at = mem_room(m->at, m->count, sizeof *m->at);
    m->at[m->count++] = next;
}

void mappings_parse(const char *text, struct mappings *ret)
{
    *ret = (struct mappings){ 0 };
    while (*text) {
        size_t n = strcspn(text, "\n");
        char *line = mem_alloc(n + 1, 1);
        memcpy(line, text, n);
        take_line(line, ret);
        free(line);
        text += n + (text[n] == '\n');
    }
}

int mappings_read(pid_t pid, struct mappings *ret, struct peet_err *err)
{
    struct mappings m = { 0 };
    char path[64];
    char *line = NULL;
    size_t room = 0;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return err_sys(err, errno, "%s: cannot open", path);
    while (getline(&line, &room, f) > 0)
        take_line(line, &m);
    free(line);
    fclose(f);
    *ret = m;
    return 0;
}

void mappings_release(struct mappings *m)
{
    free(m->at);
    arena_release(&m->names);
    *m = (struct mappings){ 0 };
}

/* ---- ELF ---- */

/* A module that is being read. */
struct reading {
    Elf *elf;
    uint64_t bias; /* run-time address minus address in the file */
    struct peet_segment *segment;
    struct peet_symbol *symbol;
    size_t segments, symbols;
    char build_id[2 * BUILD_ID_MAX + 1]; /* lower-case hexadecimal; "": it has none */
};

static int compare_symbols(const void *a, const void *b)
{
    const struct peet_symbol *x = a, *y = b;

    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_symbol(struct reading *x, const GElf_Sym *sym, const char *name)
{
    unsigned type = GELF_ST_TYPE(sym->st_info);

    if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || !name || !*name)
        return;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT)
        return;
    x->symbol = mem_room(x->symbol, x->symbols, sizeof *x->symbol);
    x->symbol[x->symbols++] = (struct peet_symbol){ sym->st_value + x->bias, sym->st_size, name, type != STT_OBJECT };
}

/* The names stay in the file's image, and live as long as x->elf. */
static void read_symbols(struct reading *x)
{
    size_t kept = 0;

    for (Elf_Scn *section = NULL; (section = elf_nextscn(x->elf, section));) {
        GElf_Shdr header;
        GElf_Sym sym;
        if (!gelf_getshdr(section, &header) || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        for (int i = 0; data && gelf_getsym(data, i, &sym); i++)
            add_symbol(x, &sym, elf_strptr(x->elf, header.sh_link, sym.st_name));
    }
    if (x->symbols == 0)
        return;
    qsort(x->symbol, x->symbols, sizeof *x->symbol, compare_symbols);
    for (size_t i = 0; i < x->symbols; i++) /* a symbol in both tables counts once */
        if (kept == 0 || compare_symbols(&x->symbol[kept - 1], &x->symbol[i]) != 0)
            x->symbol[kept++] = x->symbol[i];
    x->symbols = kept;
}

static void read_build_id(struct reading *x, const GElf_Phdr *p)
{
    Elf_Data *data =
        elf_getdata_rawchunk(x->elf, (int64_t)p->p_offset, p->p_filesz, p->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    GElf_Nhdr note;
    size_t name, content;

    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &content)) > 0;) {
        const uint8_t *bytes = (const uint8_t *)data->d_buf + content;
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4
            || memcmp((const char *)data->d_buf + name, "GNU", 4) != 0 || note.n_descsz > BUILD_ID_MAX)
            continue;
        for (unsigned i = 0; i < note.n_descsz; i++)
            snprintf(x->build_id + 2 * (size_t)i, 3, "%02x", bytes[i]);
    }
}

static void add_segment(struct reading *x, const GElf_Phdr *p)
{
    uint32_t protection = (p->p_flags & PF_X ? 1u : 0u) | (p->p_flags & PF_W ? 2u : 0u) | (p->p_flags & PF_R ? 4u : 0u);

    x->segment = mem_room(x->segment, x->segments, sizeof *x->segment);
    x->segment[x->segments++] = (struct peet_segment){ p->p_vaddr + x->bias, p->p_memsz, p->p_offset, protection };
}

/* The difference between addresses at run time and in the file, from one mapping of code. */
static bool find_load_bias(struct reading *x, const struct mapping *code, bool is_memory)
{
    size_t n;
    GElf_Phdr p;

    if (elf_kind(x->elf) != ELF_K_ELF || elf_getphdrnum(x->elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!gelf_getphdr(x->elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
            continue;
        uint64_t offset =
            is_memory ? p.p_offset : code->offset; /* an image in memory has its segments at their addresses */
        if (offset >= (p.p_offset & ~(PAGE - 1)) && offset < p.p_offset + p.p_filesz) {
            x->bias = code->start + (p.p_offset - offset) - p.p_vaddr;
            return true;
        }
    }
    return false;
}

static void read_segments(struct reading *x)
{
    size_t n;
    GElf_Phdr p;

    for (size_t i = 0; elf_getphdrnum(x->elf, &n) == 0 && i < n; i++) {
        if (!gelf_getphdr(x->elf, (int)i, &p))
            continue;
        if (p.p_type == PT_LOAD && p.p_memsz)
            add_segment(x, &p);
        if (p.p_type == PT_NOTE && !x->build_id[0])
            read_build_id(x, &p);
    }
}

static void reading_release(struct reading *x)
{
    free(x->segment);
    free(x->symbol);
    elf_end(x->elf);
}

/* Finds the code segment with this address, and sets offset, code and bytes. */
static bool find_code_segment(Elf *elf, uint64_t addr, struct module_function *ret)
{
    size_t n, size;
    GElf_Phdr p;
    const char *file = elf_rawfile(elf, &size);

    for (size_t i = 0; file && elf_getphdrnum(elf, &n) == 0 && i < n; i++) {
        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X) || addr < p.p_vaddr
            || addr - p.p_vaddr >= p.p_filesz || p.p_offset > size || p.p_filesz > size - p.p_offset)
            continue;
        ret->addr = addr;
        ret->offset = p.p_offset + (addr - p.p_vaddr);
        ret->code = (const uint8_t *)file + ret->offset;
        ret->bytes = p.p_filesz - (addr - p.p_vaddr);
        return true;
    }
    return false;
}

static void each_function(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                          void (*each)(void *context, const struct module_function *f), void *context)
{
    Elf_Data *data = elf_getdata(section, NULL);
    struct module_function f;
    GElf_Sym sym;

    for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
        f.name = elf_strptr(elf, header->sh_link, sym.st_name);
        if (f.name && GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF
            && find_code_segment(elf, sym.st_value, &f))
            each(context, &f);
    }
}

void module_functions(const char *path, void (*each)(void *context, const struct module_function *f), void *context)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    GElf_Shdr header;

    if (fd < 0)
        return;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    for (Elf_Scn *section = NULL; elf_kind(elf) == ELF_K_ELF && (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
            each_function(elf, section, &header, each, context);
    elf_end(elf);
    close(fd);
}

/* ---- modules ---- */

void modules_release(struct modules *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->written[i].path);
    free(m->written);
    *m = (struct modules){ 0 };
}

static bool is_written(const struct modules *m, const char *path, uint64_t bias)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->written[i].bias == bias && !strcmp(m->written[i].path, path))
            return true;
    return false;
}

/* Memory of modules, which is no range. */
struct covered {
    struct peet_segment *at;
    size_t count;
};

static void cover_range(struct covered *c, const struct reading *x)
{
    for (size_t i = 0; i < x->segments; i++) {
        c->at = mem_room(c->at, c->count, sizeof *c->at);
        c->at[c->count++] = x->segment[i];
    }
}

static bool is_covered(const struct covered *c, const struct mapping *m)
{
    for (size_t i = 0; i < c->count; i++) {
        uint64_t first = c->at[i].start & ~(PAGE - 1), end = (c->at[i].start + c->at[i].size + PAGE - 1) & ~(PAGE - 1);
        if (m->start >= first && m->end <= end)
            return true;
    }
    return false;
}

/* Writes the module of a code mapping whose file is x->elf. code: NULL: the file is mapped at the addresses in it. path: in the trace. */
static int write_module(struct modules *m, const struct module_scan *scan, const struct mapping *code, const char *path,
                        struct reading *x, struct covered *covered, struct schema_builder *b, struct peet_err *err)
{
    if (code && !find_load_bias(x, code, code->name[0] == '['))
        return 0;
    read_segments(x);
    cover_range(covered, x);
    if (is_written(m, path, x->bias))
        return 0;
    read_symbols(x);
    struct peet_module module = { .process = scan->process,
                                  .path = path,
                                  .build_id = x->build_id,
                                  .bias = x->bias,
                                  .segments = (uint32_t)x->segments,
                                  .symbols = (uint32_t)x->symbols,
                                  .segment = x->segment,
                                  .symbol = x->symbol };
    int r = schema_builder_module(b, &module, err);
    if (r < 0)
        return r;
    m->written = mem_room(m->written, m->count, sizeof *m->written);
    m->written[m->count++] = (struct module_key){ mem_string(path), x->bias };
    return 0;
}

static int write_file(struct modules *m, const struct module_scan *scan, const struct mapping *code,
                      struct covered *covered, struct schema_builder *b, struct peet_err *err)
{
    char path[PATH_ROOM];
    struct reading x = { 0 };
    const char *here = scan->pid ? code->name : scan->path(scan->context, code->name);

    if (!here
        || (size_t)(scan->pid ? snprintf(path, sizeof path, "/proc/%d/root%s", (int)scan->pid, here)
                              : snprintf(path, sizeof path, "%s", here))
               >= sizeof path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    x.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    int r = write_module(m, scan, code, here, &x, covered, b, err);
    reading_release(&x);
    close(fd);
    return r;
}

static bool read_vdso(const struct module_scan *scan, const struct mapping *code, char *image, size_t size)
{
    struct iovec to = { image, size }, from = { (void *)(uintptr_t)code->start, size };

    if (scan->pid)
        return process_vm_readv(scan->pid, &to, 1, &from, 1, 0) == (ssize_t)size;
    if (scan->vdso)
        memcpy(image, scan->vdso, size);
    return scan->vdso != NULL;
}

/* Writes the vDSO, which has no file. */
static int write_vdso(struct modules *m, const struct module_scan *scan, const struct mapping *code,
                      struct covered *covered, struct schema_builder *b, struct peet_err *err)
{
    size_t size = (size_t)(code->end - code->start);
    struct reading x = { 0 };
    int r = 0;

    if (size > VDSO_MAX)
        return 0;
    char *image = mem_alloc(1, size);
    if (read_vdso(scan, code, image, size)) {
        x.elf = elf_memory(image, size);
        r = write_module(m, scan, code, code->name, &x, covered, b, err);
        reading_release(&x);
    }
    free(image);
    return r;
}

int modules_write_alone(struct modules *m, uint32_t process, const char *path, struct schema_builder *b,
                        struct peet_err *err)
{
    struct module_scan scan = { .process = process };
    struct covered covered = { 0 };
    struct reading x = { 0 };

    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "%s: cannot open", path);
    x.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    int r = elf_kind(x.elf) == ELF_K_ELF ? write_module(m, &scan, NULL, path, &x, &covered, b, err)
                                         : err_set(err, PEET_ERR_FORMAT, "%s: is not an ELF file", path);
    reading_release(&x);
    free(covered.at);
    close(fd);
    return r;
}

static int modules_write_ranges(const struct module_scan *scan, const struct covered *covered, struct schema_builder *b,
                                struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < scan->mappings->count; i++) {
        const struct mapping *m = &scan->mappings->at[i];
        struct peet_range range = { scan->process, m->start, m->end - m->start, m->protection, m->name };
        if (!is_covered(covered, m))
            r = schema_builder_range(b, &range, err);
    }
    return r;
}

int modules_write(struct modules *m, const struct module_scan *scan, struct schema_builder *b, struct peet_err *err)
{
    struct covered covered = { 0 };
    int r = 0;

    elf_version(EV_CURRENT);
    for (size_t i = 0; r == 0 && i < scan->mappings->count; i++) {
        const struct mapping *code = &scan->mappings->at[i];
        if (!(code->protection & 1))
            continue;
        if (code->name[0] == '/')
            r = write_file(m, scan, code, &covered, b, err);
        else if (!strcmp(code->name, "[vdso]"))
            r = write_vdso(m, scan, code, &covered, b, err);
    }
    if (r == 0 && scan->ranges)
        r = modules_write_ranges(scan, &covered, b, err);
    free(covered.at);
    return r;
}
