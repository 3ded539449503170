/* SPDX-License-Identifier: MIT */
/* Reads an array of 9-byte records from one end to the other, three times; so every seventh number or so lies in two lines of 64 bytes. */
#include <stdio.h>
#include <stdlib.h>

struct __attribute__((packed)) record {
    char tag;
    double number;
};
enum { BYTES = 256 << 10, RECORDS = BYTES / sizeof(struct record), ROUNDS = 3 };

int main(void)
{
    struct record *array = calloc(RECORDS, sizeof *array);
    double sum = 0;

    for (int round = 0; array && round < ROUNDS; round++)
        for (size_t i = 0; i < RECORDS; i++)
            sum += array[i].number;
    free(array);
    return sum != 0;
}
