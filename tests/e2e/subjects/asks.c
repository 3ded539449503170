/* SPDX-License-Identifier: MIT */
/* Asks descriptors that do not block for what they do not have. usage: asks read | recv | accept */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int do_read(void)
{
    int end[2];
    char c;

    return pipe2(end, O_NONBLOCK) ? -2 : (int)read(end[0], &c, 1);
}

static int do_recv(void)
{
    int pair[2];
    char c;

    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -2 : (int)recv(pair[0], &c, 1, MSG_DONTWAIT);
}

static int do_accept(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 5))
        return -2;
    return accept4(s, NULL, NULL, SOCK_CLOEXEC);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "read";
    int r = !strcmp(what, "read") ? do_read() : !strcmp(what, "recv") ? do_recv() : do_accept();

    printf("%s %d %s\n", what, r, errno == EAGAIN ? "EAGAIN" : strerror(errno));
    return 0;
}
