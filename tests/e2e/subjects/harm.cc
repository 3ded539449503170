/* SPDX-License-Identifier: MIT */
/* A program with names that would do harm in a page: of a type, a function, a variable, a file, and what it says itself.
 * It has data that is pushed out, and lines that two threads take from each other. */
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include <peet/mark.h>

enum { CELLS = 4096, ROUNDS = 3, INCREMENTS = 3000, NAMED = 20000 };

struct script {
    double weight, rest[7];
};

template <class T> T grid[CELLS];

struct alert {
    volatile long count[8];
};
template <class T> T counters;

template <class T> static double walk(const char *text)
{
    double sum = 0;

    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CELLS; i++)
            sum += grid<T>[(i * 61) % CELLS].weight * text[0];
    return sum;
}

template <class T> static void *count_up(void *number)
{
    for (int i = 0; i < INCREMENTS; i++)
        counters<T>.count[*static_cast<long *>(number)]++;
    return nullptr;
}

/* What the program calls its data: quotes, a tag, an entity, a newline, a byte that is no UTF-8, a change of direction. */
static double sum_named(double *bytes)
{
    double sum = 0;

    PEET_NAME_DATA("\"'><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;\n\xff\xe2\x80\xae",
                   bytes, NAMED * sizeof *bytes);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < NAMED; i += 8)
            sum += bytes[i];
    return sum;
}

#line 1 "<b onclick=alert(1)>&lt;.cc"
static double from_a_bad_file(double *cells)
{
    double sum = 0;

    for (int i = 0; i < NAMED; i += 4)
        sum += cells[i];
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t thread[2];
    long number[2] = { 0, 1 };
    std::unique_ptr<double[]> bytes(new double[NAMED]());

    double sum = walk<script>(argv[argc - 1]) + sum_named(bytes.get()) + from_a_bad_file(bytes.get());
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], nullptr, count_up<alert>, &number[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], nullptr);
    std::printf("%.0f\n", sum);
    return 0;
}
