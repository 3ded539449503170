/* SPDX-License-Identifier: MIT */
/* From the counting copy to the instrumented one: reads what the assembler inserts after each call of a counting copy
 * (capture/asm/counting.c). */
#ifndef CAPTURE_RUNTIME_CROSSING_H
#define CAPTURE_RUNTIME_CROSSING_H

#include <stdint.h>

/* Byte by byte, because functions of the C library would be events. */
static inline int32_t raw_distance(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

/* Bytes of the code after a call that reloads the cursor from memory; 0: none. */
static inline unsigned raw_reload_bytes(const uint8_t *p)
{
    unsigned n = 0, one;

    if ((p[0] == 0x4c && p[1] == 0x8b && p[2] == 0x35) || (p[0] == 0x49 && p[1] == 0xc7 && p[2] == 0xc6))
        n = 7; /* movq peet_rt_cursor@gottpoff(%rip), %r14, or what linkers make of it */
    p += n;
    if (p[0] != 0x64 || (p[1] != 0x4c && p[1] != 0x4d) || p[2] != 0x3b) /* cmpq %fs:…, %r15 */
        return 0;
    one = p[3] == 0x3c ? 9 : 4;
    return n + one + 2 + one; /* je, movq %fs:…, %r15 */
}

/* For a return address in a counting copy: the place in the instrumented copy to which control crosses. *ret_back: the
 * return address there. 0: not in a counting copy. */
static inline uint64_t raw_crossing_target(uint64_t back, uint64_t *ret_back)
{
    const uint8_t *p = (const uint8_t *)(uintptr_t)back;
    static const uint8_t crossing[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, /* leaq -128(%rsp), %rsp */
                                        0x4c, 0x8d, 0x35 };           /* leaq …(%rip), %r14 */
    unsigned reload = raw_reload_bytes(p);

    p += reload;
    if (p[0] != 0x4d || p[1] != 0x85 || p[2] != 0xff) /* testq %r15, %r15 */
        return 0;
    p += 3;
    if (p[0] == 0x79) { /* jns */
        p += 2 + (int8_t)p[1];
    } else if (p[0] == 0x0f && p[1] == 0x89) {
        p += 6 + raw_distance(p + 2);
    } else {
        return 0;
    }
    for (unsigned i = 0; i < sizeof crossing; i++)
        if (p[i] != crossing[i])
            return 0;
    uint64_t over = (uint64_t)(uintptr_t)(p + 12) + (uint64_t)(int64_t)raw_distance(p + 8);
    *ret_back = over - reload;
    return over;
}

#endif
