/* SPDX-License-Identifier: MIT */
#include "capture/system/cpio.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"

enum { MOST = 64, BYTES = 1 << 20 };

/* A slow and obvious reader, from the format's description. */
struct entry {
    char name[200];
    unsigned mode, major, minor, inode;
    size_t bytes;
    const char *data;
};

static struct entry entry[MOST];
static size_t entries;
static char archive[BYTES];
static size_t archive_bytes;
static char path[220], folder[200];
static struct peet_err err;

static unsigned field(const char *header, int i)
{
    char text[9] = "";

    memcpy(text, header + 6 + 8 * i, 8);
    return (unsigned)strtoul(text, NULL, 16);
}

static bool read_archive(void)
{
    FILE *f = fopen(path, "r");
    size_t at = 0;

    entries = 0;
    if (!CHECK(f != NULL))
        return false;
    archive_bytes = fread(archive, 1, sizeof archive, f);
    fclose(f);
    while (at + 110 <= archive_bytes && entries < MOST) {
        const char *h = archive + at;
        struct entry *e = &entry[entries];
        if (!CHECK(strncmp(h, "070701", 6) == 0) || !CHECK(at % 4 == 0))
            return false;
        snprintf(e->name, sizeof e->name, "%s", h + 110);
        CHECK_EQ(strlen(e->name) + 1, field(h, 11));
        e->inode = field(h, 0);
        e->mode = field(h, 1);
        e->bytes = field(h, 6);
        e->major = field(h, 9);
        e->minor = field(h, 10);
        at = (at + 110 + field(h, 11) + 3) / 4 * 4;
        e->data = archive + at;
        at = (at + e->bytes + 3) / 4 * 4;
        if (strcmp(e->name, "TRAILER!!!") == 0)
            return CHECK_EQ(at, archive_bytes);
        entries++;
    }
    bool has_an_end = false;
    return CHECK(has_an_end);
}

static const struct entry *find(const char *name)
{
    for (size_t i = 0; i < entries; i++)
        if (!strcmp(entry[i].name, name))
            return &entry[i];
    return NULL;
}

static void write_file(const char *name, const char *text, size_t n, mode_t mode)
{
    FILE *f = fopen(name, "w");

    if (!CHECK(f != NULL))
        return;
    CHECK_EQ(fwrite(text, 1, n, f), n);
    fclose(f);
    CHECK_EQ(chmod(name, mode), 0);
}

static void what_was_put_in_comes_out(void)
{
    struct cpio c;
    char source[300], text[300];

    for (size_t n = 0; n < sizeof text; n++)
        text[n] = (char)(n * 7);
    CHECK_EQ(cpio_open(&c, path, &err), 0);
    for (int n = 0; n < 10; n++) { /* all lengths of the last word */
        char name[40];
        snprintf(source, sizeof source, "%s/f%d", folder, n);
        snprintf(name, sizeof name, "/a/%.*s", n + 1, "0123456789");
        write_file(source, text, (size_t)(250 + n), n & 1 ? 0755 : 0600);
        CHECK_EQ(cpio_file(&c, name, source, &err), 0);
    }
    CHECK_EQ(cpio_link(&c, "bin", "usr/bin", &err), 0);
    CHECK_EQ(cpio_device(&c, "dev/console", 5, 1, &err), 0);
    CHECK_EQ(cpio_text(&c, "peet/app", "a\0b", 3, &err), 0);
    CHECK_EQ(cpio_close(&c, &err), 0);
    cpio_release(&c);
    if (!read_archive())
        return;
    for (int n = 0; n < 10; n++) {
        char name[40];
        snprintf(name, sizeof name, "a/%.*s", n + 1, "0123456789");
        const struct entry *e = find(name);
        if (!CHECK(e != NULL))
            continue;
        CHECK_EQ(e->bytes, 250 + n);
        CHECK(memcmp(e->data, text, e->bytes) == 0);
        CHECK_EQ(e->mode, S_IFREG | (n & 1 ? 0755u : 0644u));
    }
    const struct entry *link = find("bin"), *device = find("dev/console"), *app = find("peet/app");
    CHECK(link && link->mode == (S_IFLNK | 0777) && link->bytes == 7 && memcmp(link->data, "usr/bin", 7) == 0);
    CHECK(device && device->mode == (S_IFCHR | 0600) && device->major == 5 && device->minor == 1);
    CHECK(app && app->bytes == 3 && memcmp(app->data, "a\0b", 3) == 0);
}

static void folders_stand_in_front_of_what_is_in_them_and_once(void)
{
    struct cpio c;
    int folders = 0;

    CHECK_EQ(cpio_open(&c, path, &err), 0);
    CHECK_EQ(cpio_text(&c, "/a/b/c/one", "1", 1, &err), 0);
    CHECK_EQ(cpio_text(&c, "a/b/two", "2", 1, &err), 0);
    CHECK_EQ(cpio_folder(&c, "/a/b", &err), 0);
    CHECK_EQ(cpio_folder(&c, "/", &err), 0);
    CHECK_EQ(cpio_close(&c, &err), 0);
    cpio_release(&c);
    if (!read_archive())
        return;
    CHECK_EQ(entries, 5);
    for (size_t i = 0; i < entries; i++) {
        folders += S_ISDIR(entry[i].mode);
        char *slash = strrchr(entry[i].name, '/');
        if (!slash)
            continue;
        *slash = 0;
        const struct entry *parent = find(entry[i].name);
        CHECK(parent && parent < &entry[i] && S_ISDIR(parent->mode));
        *slash = '/';
        for (size_t j = 0; j < i; j++)
            CHECK(entry[i].inode != entry[j].inode);
    }
    CHECK_EQ(folders, 3);
}

static void a_folder_is_put_in_with_all_that_is_in_it(void)
{
    struct cpio c;
    char name[300];

    snprintf(name, sizeof name, "%s/tree", folder);
    mkdir(name, 0755);
    snprintf(name, sizeof name, "%s/tree/inner", folder);
    mkdir(name, 0755);
    snprintf(name, sizeof name, "%s/tree/inner/file", folder);
    write_file(name, "x", 1, 0644);
    snprintf(name, sizeof name, "%s/tree/link", folder);
    unlink(name);
    CHECK_EQ(symlink("inner/file", name), 0);
    snprintf(name, sizeof name, "%s/tree", folder);
    CHECK_EQ(cpio_open(&c, path, &err), 0);
    CHECK_EQ(cpio_tree(&c, "/data", name, &err), 0);
    CHECK_EQ(cpio_close(&c, &err), 0);
    cpio_release(&c);
    if (!read_archive())
        return;
    CHECK_EQ(entries, 4);
    CHECK(find("data") && find("data/inner") && find("data/inner/file"));
    CHECK(find("data/link") && S_ISLNK(find("data/link")->mode));
}

static void equal_contents_are_equal_bytes(void)
{
    static char first[BYTES];
    size_t n = 0;
    char source[300];

    snprintf(source, sizeof source, "%s/same", folder);
    for (int i = 0; i < 2; i++) {
        struct cpio c;
        write_file(source, "same", 4, 0644);
        CHECK_EQ(cpio_open(&c, path, &err), 0);
        CHECK_EQ(cpio_file(&c, "x/y", source, &err), 0);
        CHECK_EQ(cpio_close(&c, &err), 0);
        CHECK_EQ(c.bytes % 4, 0);
        cpio_release(&c);
        CHECK(read_archive());
        if (i == 0)
            memcpy(first, archive, n = archive_bytes);
    }
    CHECK_EQ(n, archive_bytes);
    CHECK(memcmp(first, archive, n) == 0);
}

static void two_files_of_one_name_are_an_error_and_one_twice_is_not(void)
{
    struct cpio c;
    char a[300], b[300];

    snprintf(a, sizeof a, "%s/one", folder);
    snprintf(b, sizeof b, "%s/other", folder);
    write_file(a, "1", 1, 0644);
    write_file(b, "2", 1, 0644);
    CHECK_EQ(cpio_open(&c, path, &err), 0);
    CHECK_EQ(cpio_file(&c, "lib/x", a, &err), 0);
    CHECK_EQ(cpio_file(&c, "/lib/x", a, &err), 0);
    CHECK_EQ(cpio_file(&c, "lib/x", b, &err), PEET_ERR_USAGE);
    CHECK(strstr(err.text, "both ") && strstr(err.text, "/lib/x"));
    CHECK_EQ(cpio_file(&c, "lib", a, &err), PEET_ERR_USAGE);
    CHECK_EQ(cpio_file(&c, "gone", "/no/such/file", &err), PEET_ERR_IO);
    cpio_release(&c);
}

static void where_files_come_from_is_listed(void)
{
    struct cpio c;
    char one[300], list[300], text[1000] = "", expected[1000];

    snprintf(one, sizeof one, "%s/one", folder);
    snprintf(list, sizeof list, "%s/list", folder);
    write_file(one, "1", 1, 0644);
    CHECK_EQ(cpio_open(&c, path, &err), 0);
    CHECK_EQ(cpio_file(&c, "/lib/b", one, &err), 0);
    CHECK_EQ(cpio_file(&c, "lib/a", one, &err), 0);
    CHECK_EQ(cpio_text(&c, "text", "x", 1, &err), 0); /* comes from nowhere */
    CHECK_EQ(cpio_link(&c, "link", "/lib/a", &err), 0);
    CHECK_EQ(cpio_list(&c, list, &err), 0);
    CHECK_EQ(cpio_list(&c, "/no/such/folder/list", &err), PEET_ERR_IO);
    cpio_release(&c);
    FILE *f = fopen(list, "r");
    if (!CHECK(f != NULL))
        return;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    snprintf(expected, sizeof expected, "/lib/a\t%s\n/lib/b\t%s\n", one, one);
    CHECK_EQ((const char *)text, (const char *)expected);
}

int main(void)
{
    const char *tmp = getenv("TMP");

    snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
    snprintf(path, sizeof path, "%s/archive", folder);
    RUN(what_was_put_in_comes_out);
    RUN(folders_stand_in_front_of_what_is_in_them_and_once);
    RUN(a_folder_is_put_in_with_all_that_is_in_it);
    RUN(equal_contents_are_equal_bytes);
    RUN(where_files_come_from_is_listed);
    RUN(two_files_of_one_name_are_an_error_and_one_twice_is_not);
    return check_done();
}
