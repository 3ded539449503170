/* SPDX-License-Identifier: MIT */
/* Data that is neither on the heap nor a plain variable: of each thread, and of a mapped file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELLS = 4096, ROUNDS = 3 };

static __thread double scratch[CELLS];
__thread int rounds;

static void *work(void *argument)
{
    static __thread struct {
        long seen, rest[7];
    } history[CELLS];
    double sum = 0;

    for (int round = 0; round < ROUNDS; round++, rounds++)
        for (int i = 0; i < CELLS; i++) {
            sum += scratch[i];
            scratch[i] = i;
            history[i].seen++;
        }
    return sum > 0 ? argument : NULL;
}

static long read_book(const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY);
    long sum = 0;

    if (fd < 0 || fstat(fd, &s) != 0)
        return 0;
    const unsigned char *book = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    for (long i = 0; book != MAP_FAILED && i < s.st_size; i += 16)
        sum += book[i];
    close(fd);
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t thread[2];
    long sum = argc > 1 ? read_book(argv[1]) : 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, work, &thread[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    work(NULL);
    printf("%ld %d\n", sum, rounds);
    return 0;
}
