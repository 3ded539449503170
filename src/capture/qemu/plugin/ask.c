/* SPDX-License-Identifier: MIT */
/* Programs of the guest that ask before they mark themselves (peet/mark_guest.h). A program writes a line to the console, a file on the host, and
 * waits for '+' from the console. A '-' before makes the guest's kernel read from its console for the first time. So QEMU translates code
 * and calls the plugin on a processor's thread, even if the guest executes only old translations. A separate thread reads the console. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/err.h"
#include "capture/qemu/plugin/plugin.h"

static struct {
    int console, changes, answer;
    unsigned waiting; /* number of programs that wait for an answer; under plugin.lock */
    bool looks;       /* plugin_look was called */
} ask;

static void ask_reply(char answer)
{
    (void)!write(ask.answer, &answer, 1); /* a program without an answer asks again */
}

static void on_question(void)
{
    pthread_mutex_lock(&plugin.lock);
    bool is_ready = atomic_load(&plugin.is_ready), is_first = !ask.looks;
    ask.looks = true;
    if (!is_ready)
        ask.waiting++;
    pthread_mutex_unlock(&plugin.lock);
    if (is_first)
        plugin_look();
    ask_reply(is_ready ? '+' : '-');
}

void ask_answer(void)
{
    pthread_mutex_lock(&plugin.lock);
    for (; ask.waiting > 0; ask.waiting--)
        ask_reply('+');
    pthread_mutex_unlock(&plugin.lock);
}

/* Looks for the question in the console's lines, which may be of any length. */
static void ask_scan_console(const char *p, size_t n)
{
    static const char question[] = "peet: ask";
    static char line[sizeof question];
    static size_t length;

    for (; n > 0; p++, n--) {
        if (*p != '\n' && *p != '\r') {
            if (length < sizeof line)
                line[length++] = *p;
            continue;
        }
        if (length == sizeof question - 1 && memcmp(line, question, length) == 0)
            on_question();
        length = 0;
    }
}

static void *watch_console(void *unused)
{
    char text[4096];
    ssize_t n;

    (void)unused;
    for (;;) {
        while ((n = read(ask.console, text, sizeof text)) > 0)
            ask_scan_console(text, (size_t)n);
        if (read(ask.changes, text, sizeof text) < 0 && errno != EINTR)
            return NULL;
    }
}

/* Starts the thread with all signals blocked: QEMU's threads handle them. */
static int ask_start_thread(void)
{
    pthread_t thread;
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, NULL, watch_console, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        pthread_detach(thread);
    return r;
}

/* If the console's file exists, QEMU truncates it and writes to the same file. */
int ask_open(struct peet_err *err)
{
    const struct settings *s = &plugin.settings;

    ask.console = open(s->console, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    ask.changes = inotify_init1(IN_CLOEXEC);
    if (ask.console < 0 || ask.changes < 0 || inotify_add_watch(ask.changes, s->console, IN_MODIFY) < 0)
        return err_sys(err, errno, "%s: cannot be watched", s->console);
    ask.answer = open(s->answer, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (ask.answer < 0)
        return err_sys(err, errno, "%s: cannot be opened", s->answer);
    int r = ask_start_thread();
    return r ? err_sys(err, r, "no thread to listen to the guest; see ulimit -u") : 0;
}
