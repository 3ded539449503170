/* SPDX-License-Identifier: MIT */
/* The command peet: finds the verb, reads its options, runs it, and sees to it that its output has arrived. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "cli/cli.h"
#include "peet/trace.h"

/* A file that is opened later must not become standard output because that was closed. What stands in for it can not
 * be used for its purpose, so that the attempt is an error. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            exit(EXIT_FAILED);
}

static int version(void)
{
    printf("peet %s (trace format %d)\n", PEET_VERSION, PEET_FORMAT_VERSION);
    return EXIT_OK;
}

/* Options in front of a verb; there is nothing behind --help and --version that matters. */
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
        return version();
    else
        return usage_error(NULL, "no verb given");
    return EXIT_OK;
}

static int run(const struct command *c, int argc, char **argv)
{
    bool help = false;
    int operands;
    struct peet_err err;
    struct opt *options = command_options(c, &help);

    if (c->passes_on && !(argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))) {
        free(options);
        return c->run(argc - 1, argv + 1);
    }
    if (c->format)
        *c->format = "text";
    int r = opt_parse(options, argc, argv, &operands, &err);
    free(options);
    if (r < 0)
        return err.code == PEET_ERR_USAGE ? usage_error(c, "%s", err.text) : fail(&err);
    if (help) {
        help_command(c, stdout);
        return EXIT_OK;
    }
    return c->run(operands, argv + 1);
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
    if (c)
        return run(c, argc - 1, argv + 1);
    const char *near = command_nearest(argv[1]);
    if (near)
        return usage_error(NULL, "unknown verb '%s'; did you mean '%s'?", argv[1], near);
    return usage_error(NULL, "unknown verb '%s'", argv[1]);
}

int main(int argc, char **argv)
{
    hold_standard_files();
    signal(SIGPIPE, SIG_DFL); /* even if the parent ignores it: a filter whose reader has gone ends without a word */
    int code = command_main(argc, argv);
    errno = EIO; /* for an error that happened earlier, of which only the flag is left */
    if ((fflush(stdout) || ferror(stdout)) && code != EXIT_FAILED) {
        complain("cannot write to standard output: %s", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}
