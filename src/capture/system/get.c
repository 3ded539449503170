/* SPDX-License-Identifier: MIT */
/* QEMU and kernels: lib/peet/get-system, a script, finds them or gets them. Here it is run and its answer is read. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/system/system.h"

extern char **environ;

static void get_replace(char **value, const char *by)
{
    free(*value);
    *value = mem_string(by);
}

static void read_answer(FILE *f, struct emulator *e, char **ret_error)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, f) >= 0) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = 0;
        if (!strcmp(line, "qemu"))
            get_replace(&e->qemu, value);
        else if (!strcmp(line, "library"))
            get_replace(&e->library, value);
        else if (!strcmp(line, "kernel"))
            get_replace(&e->kernel, value);
        else if (!strcmp(line, "data"))
            words_add(&e->data, "%s", value);
        else if (!strcmp(line, "error"))
            get_replace(ret_error, value);
    }
    free(line);
}

static int run_script(const struct words *command, struct emulator *e, struct peet_err *err)
{
    posix_spawn_file_actions_t actions;
    int fd[2], status = 0;
    char *error = NULL;
    pid_t pid;

    if (pipe2(fd, O_CLOEXEC) < 0)
        return err_sys(err, errno, "%s", command->item[0]);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
    int failure = posix_spawn(&pid, command->item[0], &actions, NULL, command->item, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fd[1]);
    FILE *f = fdopen(fd[0], "r");
    if (f && !failure)
        read_answer(f, e, &error);
    if (f)
        fclose(f);
    else
        close(fd[0]);
    if (failure)
        return err_sys(err, failure, "%s: cannot be run", command->item[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    int r = 0;
    if (error || status || !e->qemu)
        r = err_set(err, PEET_ERR_IO, "%s", error ? error : "lib/peet/get-system found no QEMU and did not say why");
    free(error);
    return r;
}

int emulator_find(const struct system_config *config, bool install, struct emulator *ret, struct peet_err *err)
{
    struct words command = { 0 };
    struct emulator e = { 0 };

    words_add(&command, "%s/get-system", config->folder);
    if (config->offline)
        words_add(&command, "--offline");
    if (install)
        words_add(&command, "--install");
    if (config->kernel || config->image)
        words_add(&command, "--no-kernel");
    words_add(&command, "%s", guest_arch(config));
    int r = run_script(&command, &e, err);
    words_release(&command);
    if (config->kernel)
        get_replace(&e.kernel, config->kernel);
    if (r < 0)
        emulator_release(&e);
    else
        *ret = e;
    return r;
}

void emulator_release(struct emulator *e)
{
    free(e->qemu);
    free(e->library);
    free(e->kernel);
    words_release(&e->data);
    *e = (struct emulator){ 0 };
}
