/* SPDX-License-Identifier: MIT */
/* The first process of a guest. It mounts what programs expect, runs all applications in /peet/app together, writes their output and their
 * ends to the console, and switches the machine off. It is linked statically and needs no other file.
 *
 * Its lines on the console, which capture/system/console.c reads:
 *   peet: up              it runs
 *   peet: start N PID     application N has this number in the guest
 *   N|text                application N wrote this line
 *   N>text                application N wrote this, and no end of line yet
 *   peet: exit N CODE     application N ended so
 *   peet: signal N NUMBER …, or so
 *   peet: done            that was the last one
 * An application is the file /peet/app/N, N from 1 on: strings that end with 0 each: the path of the program, the folder to begin
 * in, the environment, an empty one, the arguments. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <peet/mark_guest.h>

enum { LINE_BYTES = 1000, MOST_APPS = 256, MOST_WORDS = 4096, QUIET_MS = 100 };

/* An application that init has started. */
struct init_app {
    pid_t pid;
    int output;            /* the end of its pipe from which init reads; -1: closed */
    size_t bytes;          /* in `line` */
    char line[LINE_BYTES]; /* output that init has not passed on yet */
};

static struct init_app apps[MOST_APPS];
static int count;

static void init_write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, p, n);
        if (done < 0 && errno != EINTR)
            return;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
}

static void init_say(const char *what, int n, int value)
{
    char line[100];
    int length = snprintf(line, sizeof line, n ? "peet: %s %d %d\n" : "peet: %s\n", what, n, value);

    init_write_all(line, (size_t)length);
}

/* One write per line, so that the kernel's messages come between lines and not into them. */
static void say_output(int n, char mark, const char *p, size_t bytes)
{
    char line[LINE_BYTES + 20];
    int head = snprintf(line, sizeof line, "%d%c", n, mark);

    memcpy(line + head, p, bytes);
    line[(size_t)head + bytes] = '\n';
    init_write_all(line, (size_t)head + bytes + 1);
}

static void init_flush(struct init_app *a)
{
    if (a->bytes)
        say_output((int)(a - apps) + 1, '>', a->line, a->bytes);
    a->bytes = 0;
}

/* Says the whole lines among what is there, and keeps the rest. */
static void say_lines(struct init_app *a)
{
    char *from = a->line, *end;

    while ((end = memchr(from, '\n', (size_t)(a->line + a->bytes - from)))) {
        say_output((int)(a - apps) + 1, '|', from, (size_t)(end - from));
        from = end + 1;
    }
    a->bytes -= (size_t)(from - a->line);
    memmove(a->line, from, a->bytes);
    if (a->bytes == LINE_BYTES)
        init_flush(a);
}

/* Takes what the application has written; false: there was nothing. */
static bool init_take(struct init_app *a)
{
    if (a->output < 0)
        return false;
    ssize_t n = read(a->output, a->line + a->bytes, LINE_BYTES - a->bytes);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        close(a->output);
        a->output = -1;
        return false;
    }
    a->bytes += (size_t)n;
    say_lines(a);
    return true;
}

/* ---- starting ---- */

static void init_make_folder(const char *path, const char *type)
{
    mkdir(path, 0755);
    mount(type, path, type, 0, NULL);
}

/* Programs talk to themselves over the loopback interface. */
static void loopback_up(void)
{
    struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (s < 0)
        return;
    ioctl(s, SIOCSIFFLAGS, &r);
    close(s);
}

static void open_console(void)
{
    struct termios t;
    int fd = open("/dev/console", O_RDWR | O_NOCTTY);

    for (int i = 0; fd >= 0 && i <= STDERR_FILENO; i++)
        dup2(fd, i);
    if (fd > STDERR_FILENO)
        close(fd);
    if (tcgetattr(STDOUT_FILENO, &t) == 0) { /* bytes as they are */
        cfmakeraw(&t);
        tcsetattr(STDOUT_FILENO, TCSANOW, &t);
    }
}

/* The contents of a file, with a terminating 0; NULL: it cannot be read. *ret_bytes: without the 0. */
static char *read_file(const char *path, size_t *ret_bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return NULL;
    char *text = calloc(1, (size_t)st.st_size + 1);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
    close(fd);
    *ret_bytes = n < 0 ? 0 : (size_t)n;
    return n < 0 ? NULL : text;
}

static _Noreturn void init_become(char *text, size_t bytes, int output, const int *go)
{
    static char *word[MOST_WORDS];
    char **environment = word + 2, **argv = NULL, nothing;
    int n = 0, input = open("/dev/null", O_RDONLY);
    sigset_t none;

    for (char *p = text; p < text + bytes && n < MOST_WORDS - 1; p += strlen(p) + 1) {
        word[n] = *p || argv ? p : NULL;
        if (!word[n++])
            argv = word + n;
    }
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(go[1]);
    while (read(go[0], &nothing, 1) < 0 && errno == EINTR)
        ;
    if (n > 2 && argv && (mkdir(word[1], 0755), chdir(word[1]) == 0))
        execve(word[0], argv, environment);
    dprintf(STDERR_FILENO, "%s: cannot be run in the guest: %s\n", word[0], strerror(errno));
    _exit(127);
}

static void init_start(const char *path, const int *go)
{
    size_t bytes;
    int fd[2];
    char *text = read_file(path, &bytes);

    if (!text || pipe2(fd, O_CLOEXEC) < 0)
        return;
    struct init_app *a = &apps[count++];
    a->output = fd[0];
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    a->pid = fork();
    if (a->pid == 0)
        init_become(text, bytes, fd[1], go);
    close(fd[1]);
    free(text);
    init_say("start", count, (int)a->pid);
}

/* They all begin when the last of them is ready. */
static void start_all(void)
{
    char path[40];
    int go[2];

    if (pipe2(go, O_CLOEXEC) < 0)
        return;
    for (int i = 1; i <= MOST_APPS; i++) {
        snprintf(path, sizeof path, "/peet/app/%d", i);
        if (access(path, R_OK) < 0)
            break;
        init_start(path, go);
    }
    close(go[0]);
    close(go[1]);
}

/* ---- running ---- */

static void init_wake(int number)
{
    (void)number; /* poll returns */
}

/* Waits for children, and orphans, that have ended. Returns the number of applications among them. */
static int init_reap(void)
{
    int status, ended = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (int i = 0; i < count; i++) {
            if (apps[i].pid != pid)
                continue;
            while (init_take(&apps[i])) /* a pipe may be held open by others: what is there must do */
                ;
            init_flush(&apps[i]);
            if (WIFSIGNALED(status))
                init_say("signal", i + 1, WTERMSIG(status));
            else
                init_say("exit", i + 1, WEXITSTATUS(status));
            apps[i].pid = 0;
            ended++;
        }
    }
    return ended;
}

static void init_serve(void)
{
    struct pollfd fds[MOST_APPS];
    struct timespec quiet = { .tv_nsec = QUIET_MS * 1000000 };
    sigset_t none;
    int left = count;
    bool partial = false;

    sigemptyset(&none);
    while (left > 0) {
        for (int i = 0; i < count; i++)
            fds[i] = (struct pollfd){ .fd = apps[i].output, .events = POLLIN };
        int n = ppoll(fds, (nfds_t)count, partial ? &quiet : NULL, &none);
        for (int i = 0; i < count && n == 0; i++)
            init_flush(&apps[i]);
        for (int i = 0; i < count && n > 0; i++)
            if (fds[i].revents)
                init_take(&apps[i]);
        left -= init_reap();
        partial = false;
        for (int i = 0; i < count; i++)
            partial |= apps[i].bytes > 0;
    }
}

int main(void)
{
    struct sigaction a = { .sa_handler = init_wake };
    sigset_t child;

    init_make_folder("/dev", "devtmpfs");
    init_make_folder("/proc", "proc");
    init_make_folder("/sys", "sysfs");
    mkdir("/dev/shm", 0755);
    mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
    mkdir("/tmp", 0755);
    chmod("/tmp", 01777);
    chmod(PEET_MARK_ASK, 0666); /* for programs of any user */
    loopback_up();
    open_console();
    sigaction(SIGCHLD, &a, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    init_say("up", 0, 0);
    start_all();
    init_serve();
    init_say("done", 0, 0);
    tcdrain(STDOUT_FILENO);
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}
