/* SPDX-License-Identifier: MIT */
/* The kind of kernel in a file. Linux has a header for each architecture (Documentation/arch/…/boot.rst); as an ELF file it has its
 * banner. Other kernels get no command line and no initramfs of peet's. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "capture/system/system.h"

/* A row of bytes at an offset that only a Linux kernel has. */
static const struct kernel_sign {
    size_t at, bytes;
    const char *sign;
} KERNEL_SIGNS[] = {
    { 0x202, 4, "HdrS" },        /* x86: bzImage */
    { 56, 4, "ARM\x64" },        /* aarch64: Image */
    { 56, 4, "RSC\x05" },        /* riscv64: Image */
    { 4, 4, "zimg" },            /* one that EFI unpacks */
    { 0, 2, "\x1f\x8b" },        /* packed by gzip: no other kernel that QEMU takes is */
    { 0, 4, "\x28\xb5\x2f\xfd" } /* by zstd */
};

static const char KERNEL_BANNER[] = "Linux version ";

static bool kernel_has_sign(const char *file, size_t size)
{
    for (size_t i = 0; i < sizeof KERNEL_SIGNS / sizeof *KERNEL_SIGNS; i++) {
        const struct kernel_sign *s = &KERNEL_SIGNS[i];
        if (s->at + s->bytes <= size && memcmp(file + s->at, s->sign, s->bytes) == 0)
            return true;
    }
    return size > SELFMAG && memcmp(file, ELFMAG, SELFMAG) == 0
           && memmem(file, size, KERNEL_BANNER, sizeof KERNEL_BANNER - 1);
}

int kernel_is_linux(const char *path, bool *ret, struct peet_err *err)
{
    struct stat st = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool there = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    void *file = there && st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    int why = fd < 0 ? errno : !there ? EINVAL : !st.st_size ? ENODATA : errno;

    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED)
        return err_sys(err, why, "--kernel %s: cannot be read", path);
    *ret = kernel_has_sign(file, (size_t)st.st_size);
    munmap(file, (size_t)st.st_size);
    return 0;
}
