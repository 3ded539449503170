/* SPDX-License-Identifier: MIT */
/* The bytes of each instruction, from the real assembler. A copy of the text gets a label before and after each
 * instruction; the labels' values in the object say where its bytes are. So no table of instructions is needed here. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/unit.h"

extern char **environ;

int asm_run(char *const *argv, struct peet_err *err)
{
    pid_t pid;
    int status, r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);

    if (r)
        return err_sys(err, r, "cannot run '%s'", argv[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "cannot wait for '%s'", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

FILE *asm_temporary_file(char **ret_path, struct peet_err *err)
{
    const char *folder = getenv("TMPDIR");
    char *path = mem_format("%s/peet-as-XXXXXX.s", folder && *folder ? folder : "/tmp");
    int fd = mkstemps(path, 2);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

    if (!out) {
        err_sys(err, errno, "cannot make a temporary file '%s'", path);
        free(path);
        return NULL;
    }
    *ret_path = path;
    return out;
}

static void write_labelled_copy(const struct asm_unit *u, FILE *out)
{
    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        if (u->text.section[s->section].is_debug || asm_is(s, ".loc"))
            continue; /* not needed, and slow to assemble */
        if (s->insn == ASM_NONE)
            fprintf(out, "%.*s\n", (int)s->length, s->text);
        else
            fprintf(out, ".LpeetI%u: %.*s\n.LpeetE%u:\n", s->insn, (int)s->length, s->text, s->insn);
    }
}

/* Reads one of these labels: the beginning or end of instruction *ret_insn. */
static bool parse_insn_label(const char *name, size_t insns, bool *ret_end, uint32_t *ret_insn)
{
    char *end;

    if (strncmp(name, ".LpeetI", 7) != 0 && strncmp(name, ".LpeetE", 7) != 0)
        return false;
    uint64_t n = strtoull(name + 7, &end, 10);
    *ret_end = name[6] == 'E';
    *ret_insn = (uint32_t)n;
    return *end == 0 && n < insns;
}

/* The bytes of an instruction in the object file. */
struct insn_bytes {
    uint64_t start, end; /* offsets in the section */
    size_t section;      /* its number in the object file */
};

static void find_insn_bytes(const struct asm_unit *u, Elf *elf, struct insn_bytes *bytes)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr head;
    GElf_Sym symbol;
    bool is_end;
    uint32_t insn;

    while ((scn = elf_nextscn(elf, scn))) {
        Elf_Data *data = elf_getdata(scn, NULL);
        if (!gelf_getshdr(scn, &head) || head.sh_type != SHT_SYMTAB || !data || !head.sh_entsize)
            continue;
        for (size_t i = 0; i < head.sh_size / head.sh_entsize && gelf_getsym(data, (int)i, &symbol); i++) {
            const char *name = elf_strptr(elf, head.sh_link, symbol.st_name);
            if (!name || !parse_insn_label(name, u->text.insns, &is_end, &insn))
                continue;
            *(is_end ? &bytes[insn].end : &bytes[insn].start) = symbol.st_value;
            bytes[insn].section = symbol.st_shndx;
        }
    }
}

/* A statement that is no single instruction, such as a macro, becomes an unknown one. */
static void decode_insn(struct asm_insn *insn, Elf *elf, const struct insn_bytes *bytes)
{
    Elf_Scn *scn = bytes->section ? elf_getscn(elf, bytes->section) : NULL;
    Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
    bool is_valid = data && data->d_buf && bytes->start < bytes->end && bytes->end <= data->d_size;

    x86_decode(is_valid ? (const uint8_t *)data->d_buf + bytes->start : (const uint8_t *)"",
               is_valid ? bytes->end - bytes->start : 0, bytes->start, &insn->x);
    if (!is_valid || insn->x.insn.length != bytes->end - bytes->start)
        insn->x.special = X86_UNKNOWN;
}

static int read_assembled_copy(struct asm_unit *u, const char *path, struct peet_err *err)
{
    int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf;

    if (fd < 0)
        return err_sys(err, errno, "%s", path);
    elf_version(EV_CURRENT);
    if (!(elf = elf_begin(fd, ELF_C_READ_MMAP, NULL))) {
        r = err_set(err, PEET_ERR_FORMAT, "%s: %s", path, elf_errmsg(-1));
    } else {
        struct insn_bytes *bytes = mem_alloc(u->text.insns + 1, sizeof *bytes);
        find_insn_bytes(u, elf, bytes);
        for (size_t i = 0; i < u->text.insns; i++)
            decode_insn(&u->insn[i], elf, &bytes[i]);
        free(bytes);
        elf_end(elf);
    }
    close(fd);
    return r;
}

int asm_unit_assemble(struct asm_unit *u, struct peet_err *err)
{
    char *source;
    FILE *out = asm_temporary_file(&source, err);

    if (!out)
        return err->code;
    char *object = mem_string(source);
    object[strlen(object) - 1] = 'o';
    write_labelled_copy(u, out);
    char *argv[] = {
        mem_string(u->options->assembler), mem_string("--64"), mem_string("-L"), mem_string("-o"), object, source, NULL
    };
    int r = fclose(out) ? err_sys(err, errno, "%s", source) : asm_run(argv, err);
    if (r > 0)
        r = err_set(err, PEET_ERR_FORMAT, "%s: %s cannot assemble a copy of it with labels", u->text.file, argv[0]);
    if (r == 0)
        r = read_assembled_copy(u, object, err);
    for (unsigned i = 0; i < 4; i++)
        free(argv[i]);
    unlink(source);
    unlink(object);
    free(source);
    free(object);
    return r;
}
