/* SPDX-License-Identifier: MIT */
/* Any bytes as a program that peet cc built: its ELF file is read as the recorder does, and all blocks of its schema are
 * planned and defined. What does not begin as an ELF file is the schema of a small one: 2 bytes say how much of the rest
 * is code. */
#include "fuzz.h"

#include <elf.h>

#include "base/err.h"
#include "capture/recorder/live.h"
#include "format/schema/schema_builder.h"

enum { CODE = 0x1000, SCHEMA = 0x2000, NAMES = 0x100, MOST = 0x1000, ENTRIES = 400 };

/* Code at 0x1000 and the schema at 0x2000, in the file and in memory. */
static size_t make_elf(const uint8_t *data, size_t size, uint8_t *ret)
{
    static const char names[] = "\0" RAW_SECTION "\0.names";
    size_t code = size >= 2 ? (size_t)(data[0] | data[1] << 8) : 0, rest = size >= 2 ? size - 2 : 0;

    code = code < rest ? code : rest;
    code = code < MOST ? code : MOST;
    size_t schema = rest - code < MOST ? rest - code : MOST;
    Elf64_Ehdr e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                     .e_type = ET_DYN,
                     .e_machine = EM_X86_64,
                     .e_version = EV_CURRENT,
                     .e_phoff = sizeof e,
                     .e_shoff = 0x200,
                     .e_ehsize = sizeof e,
                     .e_phentsize = sizeof(Elf64_Phdr),
                     .e_phnum = 1,
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_shnum = 3,
                     .e_shstrndx = 2 };
    Elf64_Phdr p = { .p_type = PT_LOAD,
                     .p_flags = PF_R | PF_X,
                     .p_offset = CODE,
                     .p_vaddr = CODE,
                     .p_filesz = SCHEMA + MOST - CODE,
                     .p_memsz = SCHEMA + MOST - CODE,
                     .p_align = 0x1000 };
    Elf64_Shdr s[3] = {
        [1] = { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addr = SCHEMA, .sh_offset = SCHEMA, .sh_size = schema },
        [2] = { .sh_name = sizeof RAW_SECTION + 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof names }
    };

    memset(ret, 0, SCHEMA + MOST);
    memcpy(ret, &e, sizeof e);
    memcpy(ret + sizeof e, &p, sizeof p);
    memcpy(ret + NAMES, names, sizeof names);
    memcpy(ret + 0x200, s, sizeof s);
    if (size >= 2) {
        memcpy(ret + CODE, data + 2, code);
        memcpy(ret + SCHEMA, data + 2 + code, schema);
    }
    return SCHEMA + MOST;
}

static void define_all(struct live_module *m)
{
    struct live_code c = { 0 };
    struct live_entry e;
    struct peet_err err = { 0 };
    struct schema_builder builder;
    unsigned n = 0;

    code_init(&c, LEVEL_NONE);
    if (schema_builder_init(&builder, NULL, NULL, &err) < 0)
        abort();
    c.schema = &builder;
    for (uint64_t key = m->schema; key + RAW_ALIGN <= m->schema_end && n < ENTRIES; key += RAW_ALIGN) {
        uint64_t site, next;
        if (!module_entry(m, key, &e))
            continue;
        n++;
        fuzz_check(code_define(&c, m, key, &m->items[(key - m->schema) / RAW_ALIGN], &err), &err);
        code_call(m, e.start, &site, &next);
    }
    code_release(&c);
    schema_builder_release(&builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t elf[SCHEMA + MOST];
    bool is_elf = size >= 4 && !memcmp(data, "\177ELF", 4);
    char path[FUZZ_PATH];
    size_t bytes = is_elf ? size : make_elf(data, size, elf);
    int fd = fuzz_file(is_elf ? data : elf, bytes, path);
    struct mapping code = {
        .start = 0x10000 + CODE, .end = 0x10000 + SCHEMA + MOST, .offset = CODE, .protection = 5, .name = path
    };
    struct live_module *m;
    struct peet_err err = { 0 };

    if (fuzz_check(module_open(getpid(), &code, &m, &err), &err) == 0 && m) {
        define_all(m);
        module_free(m);
    }
    close(fd);
    return 0;
}
