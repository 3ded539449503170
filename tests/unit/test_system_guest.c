/* SPDX-License-Identifier: MIT */
/* Command lines of applications and of QEMU, what guests and the plugin say. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "capture/system/system.h"
#include "tests/unit/check.h"

static struct peet_err err;

static uint64_t seed = 1;
static unsigned chance(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* ---- words ---- */

static char *random_line(void)
{
    static const char letters[] = "ab  ''\"\"\\=-/";
    static char line[20];
    size_t n = chance(sizeof line);

    for (size_t j = 0; j < n; j++)
        line[j] = letters[chance(sizeof letters - 1)];
    while (n && line[n - 1] == '\\') /* a shell would wait for the next line */
        n--;
    line[n] = 0;
    return line;
}

/* A shell is the oracle: it says all words of all lines that we could cut, one per line; the others it refuses, too. */
static void words_are_cut_as_a_shell_does(void)
{
    char script[300], ask[400], answer[100], *line;
    int refused = 0;
    struct words expected = { 0 }, w;
    const char *tmp = getenv("TMP");

    snprintf(script, sizeof script, "%s/words.sh", tmp ? tmp : "/tmp");
    FILE *f = fopen(script, "w");
    if (!CHECK(f != NULL))
        return;
    fprintf(f, "say() { echo \"$#\"; printf '%%s\\n' \"$@\"; }\n");
    for (int i = 0; i < 5000; i++) {
        line = random_line();
        if (words_split("--app", line, &w, &err) == 0) {
            fprintf(f, "say %s\n", w.count ? line : "''");
            words_add(&expected, "%zu", w.count ? w.count : 1);
            for (size_t j = 0; j < w.count || j == 0; j++)
                words_add(&expected, "%s", w.count ? w.item[j] : "");
            words_release(&w);
        } else if (refused++ < 40) {
            snprintf(ask, sizeof ask, "%s.no", script);
            FILE *no = fopen(ask, "w");
            fprintf(no, "echo %s\n", line);
            fclose(no);
            snprintf(ask, sizeof ask, "sh -n %s.no 2>/dev/null", script);
            CHECK(system(ask) != 0);
        }
    }
    fclose(f);
    snprintf(ask, sizeof ask, "sh %s", script);
    f = popen(ask, "r");
    size_t n = 0;
    for (; fgets(answer, sizeof answer, f) && n < expected.count; n++) {
        answer[strcspn(answer, "\n")] = 0;
        CHECK_EQ((const char *)answer, (const char *)expected.item[n]);
    }
    CHECK_EQ(n, expected.count);
    CHECK_EQ(pclose(f), 0);
    CHECK(refused > 1000 && n > 3000);
    words_release(&expected);
}

static void an_application_is_a_program_with_an_environment(void)
{
    char *item[] = { (char[]){ "A=1 B='x y' sh -c 'exit 1'" }, (char[]){ "/bin/sh" } };
    struct system_config c = { .apps = { item, 2 } };
    char *argv[] = { (char[]){ "sh" }, (char[]){ "A=2" }, NULL };
    struct apps apps;

    if (!CHECK_EQ(apps_find(&c, argv, &apps, &err), 0))
        return;
    CHECK_EQ(apps.count, 3);
    CHECK_EQ(apps.item[0].environment.count, 2);
    CHECK_EQ((const char *)apps.item[0].environment.item[1], "B=x y");
    CHECK_EQ(apps.item[0].argv.count, 3);
    CHECK_EQ((const char *)apps.item[0].argv.item[2], "exit 1");
    CHECK(apps.item[0].program[0] == '/' && strstr(apps.item[0].program, "/sh"));
    CHECK_EQ(apps.item[2].argv.count, 2);
    CHECK(!apps.item[0].argv.item[3]);
    apps_release(&apps);
    item[0] = "no-such-program-at-all";
    CHECK_EQ(apps_find(&c, NULL, &apps, &err), PEET_ERR_IO);
    CHECK(strstr(err.text, "no-such-program-at-all") && strstr(err.text, "./NAME"));
    item[0] = (char[]){ "A=1" };
    CHECK_EQ(apps_find(&c, NULL, &apps, &err), PEET_ERR_USAGE);
    char *name =
        apps_name(&(struct system_config){ .apps = { (char *[]){ (char[]){ "X=/a/b ./dir/fft -p 4" } }, 1 } }, NULL);
    CHECK_EQ((const char *)name, "fft");
    free(name);
}

/* ---- QEMU ---- */

static struct emulator emulator = { .qemu = (char[]){ "/bin/qemu" }, .kernel = (char[]){ "/k" } };
static const struct guest_files files = { .initrd = "/tmp/i",
                                          .plugin = "/p.so",
                                          .trace = "/a,b.peet",
                                          .report = "/r",
                                          .console = "/a,b.console",
                                          .initrd_bytes = 100 << 20 };

/* The command as one line with "|" between its words; *ret is the result. */
static const char *command(const struct system_config *c, bool aslr, int *ret)
{
    static char line[4000];
    struct words w = { 0 };
    size_t n = 0;

    line[0] = 0;
    *ret = qemu_command(c, aslr, &emulator, &files, &w, &err);
    for (size_t i = 0; i < w.count; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "|%s", w.item[i]);
    snprintf(line + n, sizeof line - n, "|");
    words_release(&w);
    return line;
}

static bool has(const char *line, const char *part)
{
    bool there = strstr(line, part) != NULL;

    if (!there)
        printf("# %s\n# has no %s\n", line, part);
    return there;
}

static void the_command_says_what_was_asked_for(void)
{
    int r;
    struct system_config c = { .arch = "x86_64",
                               .cpus = 4,
                               .memory = 2u << 30,
                               .plugin.pattern = "hex:90/ff",
                               .plugin.k = 4,
                               .plugin.stack = 65536,
                               .plugin.page = 4096,
                               .plugin.grows = "up",
                               .plugin.include_kernel = true,
                               .plugin.no_physical = true,
                               .append = "x=1 y" };
    const char *line = command(&c, false, &r);

    CHECK_EQ(r, 0);
    CHECK(has(line, "|/bin/qemu|") && has(line, "|-machine|q35|") && has(line, "|-smp|4|") && has(line, "|-m|2048M|"));
    CHECK(has(line, "|-kernel|/k|-initrd|/tmp/i|") && has(line, "console=ttyS0 ") && has(line, " norandmaps")
          && has(line, " x=1 y|"));
    CHECK(has(line,
              "|-plugin|/p.so,out=/a,,b.peet,report=/r,pattern=hex:90/ff,k=4,page=4096,stack=65536,grows=up,kernel=on,"
              "physical=off|"));
    CHECK(has(line, "path=/a,,b.console|") && has(line, "thread=multi"));
    CHECK(!strstr(line, "-icount"));
    CHECK(!strstr(command(&c, true, &r), "norandmaps"));
}

static void what_was_not_asked_for_has_usual_values(void)
{
    int r;
    const char *line = command(&(struct system_config){ .arch = "aarch64" }, false, &r);

    CHECK_EQ(r, 0);
    CHECK(has(line, "|-smp|1|") && has(line, "|-m|1324M|")); /* more for large files */
    CHECK(has(line, "|-machine|virt,gic-version=3|") && has(line, "console=ttyAMA0 "));
    CHECK(has(line, "|-plugin|/p.so,out=/a,,b.peet,report=/r|"));
    CHECK(has(command(&(struct system_config){ .arch = "riscv64" }, false, &r), "|-machine|virt|"));
    CHECK(has(command(&(struct system_config){ .arch = "riscv64", .count = true }, false, &r), ",mode=count|"));
}

static void programs_ask_where_the_answer_can_come_at_any_moment(void)
{
    struct system_config c = { .arch = "x86_64" };
    struct guest_files asking = files;
    struct words w = { 0 };
    bool input = false, plugin = false;
    int r;

    CHECK(guest_asks(&c));
    CHECK(!guest_asks(&(struct system_config){ .deterministic = true }));
    CHECK(!guest_asks(&(struct system_config){ .image = "disk", .is_own = true }));
    CHECK(!guest_asks(&(struct system_config){ .plugin.pattern = "ji" }));
    CHECK(guest_asks(&(struct system_config){ .plugin.pattern = "default" }));
    CHECK(!strstr(command(&c, false, &r), "input-path") && !strstr(command(&c, false, &r), "answer="));
    asking.answer = "/x,y/answer";
    asking.list = "/x/files";
    CHECK_EQ(qemu_command(&c, false, &emulator, &asking, &w, &err), 0);
    for (size_t i = 0; i < w.count; i++) {
        input |= strstr(w.item[i], "path=/a,,b.console,input-path=/x,,y/answer") != NULL;
        plugin |= strstr(w.item[i], ",files=/x/files,console=/a,,b.console,answer=/x,,y/answer") != NULL;
    }
    CHECK(input && plugin);
    words_release(&w);
}

static void a_deterministic_guest_has_one_processor(void)
{
    int r;
    struct system_config c = { .arch = "x86_64", .deterministic = true, .cpus = 1 };
    const char *line = command(&c, false, &r);

    CHECK(r == 0 && has(line, "|-icount|") && has(line, "clock=vm") && has(line, "|-seed|1|")
          && has(line, "thread=single"));
    c.cpus = 2;
    command(&c, false, &r);
    CHECK_EQ(r, PEET_ERR_USAGE);
    CHECK(has(err.text, "one processor") && has(err.text, "leave out"));
}

static void a_guest_without_room_for_its_files_is_refused(void)
{
    int r;
    struct system_config c = { .arch = "x86_64", .memory = 427u << 20 };

    command(&c, false, &r);
    CHECK_EQ(r, PEET_ERR_USAGE);
    CHECK(has(err.text, "428m"));
    c.memory = 428u << 20;
    command(&c, false, &r);
    CHECK_EQ(r, 0);
}

static void a_disk_is_not_written_to(void)
{
    int r;
    struct system_config c = { .arch = "x86_64", .image = "my,disk.img", .kernel = "/k", .initrd = "/mine" };
    struct words w = { 0 };
    const struct guest_files none = { .trace = "/t", .report = "/r", .console = "/c" };

    CHECK(has(command(&c, false, &r), "|-drive|if=virtio,snapshot=on,file=my,,disk.img|"));
    CHECK_EQ(qemu_command(&c, false, &emulator, &none, &w, &err), 0);
    bool initrd = false;
    for (size_t i = 0; i < w.count; i++) {
        initrd |= !strcmp(w.item[i], "/mine");
        CHECK(strcmp(w.item[i], "-plugin") != 0);
    }
    CHECK(initrd);
    words_release(&w);
    c = (struct system_config){ .arch = "riscv64", .image = "x" };
    CHECK_EQ(qemu_check(&c, &err), PEET_ERR_USAGE);
    CHECK(has(err.text, "--kernel"));
    c = (struct system_config){ .arch = "x86_64", .plugin.pattern = "hex:9" };
    CHECK_EQ(qemu_check(&c, &err), PEET_ERR_USAGE);
    CHECK(has(err.text, "hex:9"));
    c = (struct system_config){ .arch = "vax" };
    CHECK_EQ(qemu_check(&c, &err), PEET_ERR_USAGE);
    CHECK(has(err.text, "vax") && has(err.text, "aarch64"));
}

/* ---- what guests say ---- */

static char said[3][200];

static void hear(void *context, unsigned app, const char *text, size_t bytes)
{
    size_t n = strlen(said[app]);

    (void)context;
    snprintf(said[app] + n, sizeof said[app] - n, "%.*s", (int)bytes, text);
}

static const char SPEECH[] =
    "SeaBIOS\r\n1|too early\n[    0.1] hello\r\npeet: up\npeet: start 1 7\npeet: start 2 8\n1|one\n2>two "
    "\n1|\n2|words\n3|other\npeet: exit 1 3\nx|y\n2>end\npeet: signal 2 11\npeet: exit 9 1\npeet: done\n"
    "[    3.1] reboot: Power down\r\n";

static void a_console_is_understood_however_it_arrives(void)
{
    for (int round = 0; round < 200; round++) {
        struct console c;
        size_t n;
        memset(said, 0, sizeof said);
        console_init(&c, 2);
        c.output = hear;
        for (size_t at = 0; at < sizeof SPEECH - 1; at += n) {
            n = round ? 1 + chance((unsigned)round % 30 + 1) : sizeof SPEECH - 1;
            n = n < sizeof SPEECH - 1 - at ? n : sizeof SPEECH - 1 - at;
            console_take(&c, SPEECH + at, n);
        }
        CHECK(c.up && c.done);
        CHECK_EQ((const char *)said[1], "one\n\n");
        CHECK_EQ((const char *)said[2], "two words\nend");
        CHECK(c.app[0].ended && WIFEXITED(c.app[0].status) && WEXITSTATUS(c.app[0].status) == 3);
        CHECK(c.app[1].ended && WIFSIGNALED(c.app[1].status) && WTERMSIG(c.app[1].status) == SIGSEGV);
        CHECK_EQ((const char *)c.last, "[    3.1] reboot: Power down");
        console_release(&c);
    }
}

static void a_report_that_is_half_there_is_read_as_far_as_it_is(void)
{
    static const char text[] =
        "armed=1\nthreads=3\nwarning=a b\ninstructions=12345\nunknown=4\nerror=full\nwarning=c\nreferences=67";
    char path[300];
    struct report r = { 0 };

    snprintf(path, sizeof path, "%s/report", getenv("TMP") ? getenv("TMP") : "/tmp");
    report_read("/no/such/file", &r);
    CHECK(!r.there);
    FILE *f = fopen(path, "w");
    if (!CHECK(f != NULL))
        return;
    fputs(text, f);
    fclose(f);
    for (int i = 0; i < 2; i++) {
        report_read(path, &r);
        CHECK(r.there && r.armed == 1 && r.threads == 3 && r.instructions == 12345);
        CHECK_EQ(r.references, 0); /* its line has no end */
        CHECK_EQ(r.warnings.count, 2);
        CHECK(r.errors.count == 1 && !strcmp(r.errors.item[0], "full"));
    }
    report_release(&r);
}

int main(void)
{
    RUN(words_are_cut_as_a_shell_does);
    RUN(an_application_is_a_program_with_an_environment);
    RUN(the_command_says_what_was_asked_for);
    RUN(what_was_not_asked_for_has_usual_values);
    RUN(programs_ask_where_the_answer_can_come_at_any_moment);
    RUN(a_deterministic_guest_has_one_processor);
    RUN(a_guest_without_room_for_its_files_is_refused);
    RUN(a_disk_is_not_written_to);
    RUN(a_console_is_understood_however_it_arrives);
    RUN(a_report_that_is_half_there_is_read_as_far_as_it_is);
    return check_done();
}
