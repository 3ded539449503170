/* SPDX-License-Identifier: MIT */
/* Marks main and every other thread of an unchanged program, for `peet record --system`:
 * libpeet-mark.so by LD_PRELOAD for dynamic programs; for static ones libpeet-mark.a, linked with
 * -Wl,--wrap=main,--wrap=pthread_create,--wrap=thrd_create -Wl,--whole-archive libpeet-mark.a.
 *
 * It interposes __libc_start_main, pthread_create and thrd_create, and marks forked children by a handler. Main has number 0; other threads
 * have numbers in the order of creation. A forked child is a process, and its numbers begin with 0. The end of a thread needs no marker.
 * Stacks are one frame deeper than without the library. The memory map is passed with the first mark of a process, and again at its exit
 * if it has loaded libraries since then.
 * Leaves out: threads that a program creates by clone. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "peet/mark_guest.h"

static atomic_uint_fast64_t last_number;
static char command_line[1024];

static void note_command(int argc, char **argv)
{
    size_t n = 0;

    for (int i = 0; i < argc && argv[i]; i++)
        for (const char *p = argv[i];; p++) {
            if (n + 1 == sizeof command_line)
                return;
            command_line[n++] = *p ? *p : ' ';
            if (*p == '\0')
                break;
        }
    command_line[n ? n - 1 : 0] = '\0';
}

static void mark_child(void)
{
    atomic_store(&last_number, 0);
    peet_mark_begin(0, command_line);
}

static void mark_main(int argc, char **argv)
{
    note_command(argc, argv);
    pthread_atfork(NULL, NULL, mark_child);
    peet_mark_begin(0, command_line);
}

/* The start of a created thread. */
struct task {
    void *(*function)(void *); /* of pthread_create; NULL: c11_function is set */
    thrd_start_t c11_function; /* of thrd_create; NULL: function is set */
    void *argument;
    uint64_t number; /* of the thread in its process */
};

static void *run_task(void *of)
{
    struct task task = *(struct task *)of;

    free(of);
    peet_mark_begin(task.number, command_line);
    return task.function(task.argument);
}

static int run_c11_task(void *of)
{
    struct task task = *(struct task *)of;

    free(of);
    peet_mark_begin(task.number, command_line);
    return task.c11_function(task.argument);
}

static struct task *task_new(void *(*function)(void *), thrd_start_t c11_function, void *argument)
{
    struct task *task = malloc(sizeof *task);

    if (task)
        *task = (struct task){ function, c11_function, argument, atomic_fetch_add(&last_number, 1) + 1 };
    return task;
}

#ifdef MARK_STATIC

int __real_main(int argc, char **argv, char **environment);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument);
int __wrap_main(int argc, char **argv, char **environment);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument);

int __wrap_main(int argc, char **argv, char **environment)
{
    mark_main(argc, argv);
    return __real_main(argc, argv, environment);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    struct task *task = task_new(function, NULL, argument);
    int r = task ? __real_pthread_create(thread, attributes, run_task, task) : EAGAIN;

    if (r != 0)
        free(task);
    return r;
}

int __real_thrd_create(thrd_t *thread, thrd_start_t function, void *argument);
int __wrap_thrd_create(thrd_t *thread, thrd_start_t function, void *argument);

int __wrap_thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    struct task *task = task_new(NULL, function, argument);
    int r = task ? __real_thrd_create(thread, run_c11_task, task) : thrd_nomem;

    if (r != thrd_success)
        free(task);
    return r;
}

#else

#include <dlfcn.h>
#include <link.h>

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);

static main_function *real_main;
static unsigned long long loaded_before; /* number of libraries loaded until main began */

static int note_loaded(struct dl_phdr_info *info, size_t bytes, void *ret)
{
    (void)bytes;
    *(unsigned long long *)ret = info->dlpi_adds;
    return 1; /* ends the iteration: all entries have the same number */
}

__attribute__((destructor)) static void tell_what_was_loaded(void)
{
    unsigned long long loaded = loaded_before;

    if (!real_main)
        return;
    dl_iterate_phdr(note_loaded, &loaded);
    if (loaded == loaded_before)
        return;
    peet_mark_told = 0;
    peet_mark_maps();
}

static int marked_main(int argc, char **argv, char **environment)
{
    dl_iterate_phdr(note_loaded, &loaded_before);
    mark_main(argc, argv);
    return real_main(argc, argv, environment);
}

/* dlsym yields data; POSIX says that it can be a function. */
static void find_real(const char *name, void *ret)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(ret, &found, sizeof found);
}

int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    start_function *start;

    find_real("__libc_start_main", &start);
    real_main = program;
    return start(marked_main, argc, argv, init, fini, rtld_fini, stack_end);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct task *task = task_new(function, NULL, argument);

    find_real("pthread_create", &create);
    int r = task ? create(thread, attributes, run_task, task) : EAGAIN;
    if (r != 0)
        free(task);
    return r;
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    int (*create)(thrd_t *, thrd_start_t, void *);
    struct task *task = task_new(NULL, function, argument);

    find_real("thrd_create", &create);
    int r = task ? create(thread, run_c11_task, task) : thrd_nomem;
    if (r != thrd_success)
        free(task);
    return r;
}

#endif
