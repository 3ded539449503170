/* SPDX-License-Identifier: MIT */
/* Parallel loops that run one iteration after another, and say so: rows of a table that have nothing to do with each other (doall), a
 * table in which each row needs the one before it after half of its work (doacross), and both in several sweeps. */
#include <stdio.h>
#include <string.h>

#include "peet/mark.h"

enum { ROWS = 32, COLUMNS = 160 };

static double table[ROWS][COLUMNS], result[ROWS];

static double of_row(long row, long from, long to)
{
    double sum = 0;

    for (long i = from; i < to; i++)
        sum += table[row][i] / (double)(i + 1);
    return sum;
}

static void doall(void)
{
    PEET_DOALL(long, i, 0, ROWS)
    {
        result[i] += of_row(i, 0, COLUMNS);
    }
}

static void doacross(void)
{
    PEET_DOALL(long, i, 0, ROWS)
    {
        double mine = of_row(i, 0, COLUMNS / 2);
        PEET_WAIT(result, i - 1);
        result[i] = mine + (i ? result[i - 1] : 0) + of_row(i, COLUMNS / 2, COLUMNS);
        PEET_POST(result, i);
    }
}

int main(int argc, char **argv)
{
    int across = argc > 1 && strcmp(argv[1], "across") == 0;

    for (long i = 0; i < COLUMNS; i++)
        table[i % ROWS][i] = (double)i;
    for (int sweep = 0; sweep < 8; sweep++)
        across ? doacross() : doall();
    printf("%.6g\n", result[ROWS - 1]);
    return 0;
}
