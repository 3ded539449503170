/* SPDX-License-Identifier: MIT */
/* Two functions of one name, of which the second calls the first: a profile shows them as one that calls itself. */
#include <vector>

#define APART __attribute__((noinline))

static volatile long result;

APART long total(const std::vector<int> &v)
{
    long sum = 0;

    for (int x : v)
        sum += x;
    return sum;
}

APART long total(const std::vector<int> &v, int times)
{
    long sum = 0;

    for (int i = 0; i < times; i++)
        sum += total(v) + result;
    return sum;
}

int main()
{
    std::vector<int> v(20000, 3);

    result = total(v, 5);
    return 0;
}
