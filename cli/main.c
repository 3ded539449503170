/* SPDX-License-Identifier: MIT */
/* The command peet: finds the verb, reads its options, runs it, and checks that its output was written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "cli/cli.h"
#include "peet/trace.h"

/* Opens closed standard files, so that no file that is opened later becomes standard output. The replacement cannot be read or written, so
 * that using it is an error. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            exit(EXIT_FAILED);
}

static int print_version(void)
{
    printf("peet %s (trace format %d)\n", PEET_VERSION, PEET_FORMAT_VERSION);
    return EXIT_OK;
}

/* Options before a verb. Arguments after --help and --version are ignored. */
static int own_option(char **argv)
{
    bool help = false, want_version = false;
    int operands;
    struct peet_err err;
    const struct opt table[] = {
        { .name = "help", .letter = 'h', .type = OPT_FLAG, .value = &help },
        { .name = "version", .letter = 'V', .type = OPT_FLAG, .value = &want_version },
        { 0 },
    };

    if (opt_parse(table, 2, argv, &operands, &err) < 0)
        return usage_error(NULL, "%s", err.text);
    if (help)
        help_all(stdout);
    else if (want_version)
        return print_version();
    else
        return usage_error(NULL, "no verb given");
    return EXIT_OK;
}

static int command_run(const struct command *c, struct command_state *s, int argc, char **argv)
{
    bool help = false;
    int operands;
    struct peet_err err;

    if (c->passes_on && !(argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))))
        return c->run(s, argc - 1, argv + 1);
    struct opt *options = command_options(c, s, &help);
    int r = opt_parse(options, argc, argv, &operands, &err);
    free(options);
    if (r < 0)
        return err.code == PEET_ERR_USAGE ? usage_error(c, "%s", err.text) : fail(&err);
    if (help) {
        help_command(c, stdout);
        return EXIT_OK;
    }
    return c->run(s, operands, argv + 1);
}

int command_main(int argc, char **argv)
{
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    if (argv[1][0] == '-')
        return own_option(argv);
    const struct command *c = command_find(argv[1]);
    if (c) {
        struct command_state *s = command_state_new(c);
        int code = command_run(c, s, argc - 1, argv + 1);
        command_state_free(c, s);
        return code;
    }
    const char *near = command_nearest(argv[1]);
    if (near)
        return usage_error(NULL, "unknown verb '%s'; did you mean '%s'?", argv[1], near);
    return usage_error(NULL, "unknown verb '%s'", argv[1]);
}

int main(int argc, char **argv)
{
    hold_standard_files();
    signal(SIGPIPE, SIG_DFL); /* even if the parent ignores it: without a reader, peet ends without a message */
    int code = command_main(argc, argv);
    errno = EIO; /* for an earlier error, of which only the flag is left */
    if ((fflush(stdout) || ferror(stdout)) && code != EXIT_FAILED) {
        complain("cannot write to standard output: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
