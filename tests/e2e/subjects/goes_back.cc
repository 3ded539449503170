// SPDX-License-Identifier: MIT
// Leaves calls by an exception and by longjmp, and then works on: what follows was called by main.
#include <csetjmp>
#include <cstdio>
#include <stdexcept>

static long done[1000], cleared[1000];
static std::jmp_buf start;

struct guard {
    int depth;
    ~guard()
    {
        for (long &x : cleared)
            x += depth;
    }
};

__attribute__((noinline)) static void fall(int depth)
{
    guard g{ depth };
    if (depth == 0)
        throw std::runtime_error("done");
    fall(depth - 1);
}

__attribute__((noinline)) static void leap(int depth)
{
    if (depth == 0)
        std::longjmp(start, 1);
    leap(depth - 1);
    done[depth]++;
}

__attribute__((noinline)) static void work()
{
    for (long &x : done)
        x++;
}

__attribute__((noinline)) static void after()
{
    work();
    asm volatile("");
}

int main()
{
    for (int i = 0; i < 20; i++) {
        try {
            fall(4);
        } catch (const std::exception &) {
            done[0]++;
        }
        after();
        if (!setjmp(start))
            leap(4);
        after();
    }
    std::printf("%ld\n", done[1] + cleared[1]);
}
