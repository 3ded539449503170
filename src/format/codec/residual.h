/* SPDX-License-Identifier: MIT */
/* Residuals (the format's differences) and their planes (docs/trace-format.md, section 5.1): the k-th bytes of all residuals are
 * contiguous; upper bytes are present only where they are needed. */
#ifndef FORMAT_CODEC_RESIDUAL_H
#define FORMAT_CODEC_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RESIDUAL_PLANES = 6 };

/* The position of the next residual in each plane, PLANE_CLASSES to PLANE_HIGH. */
struct residual_writer {
    uint8_t *classes, *b0, *b1, *b2, *b3, *high;
};
/* The same, for reading. */
struct residual_reader {
    const uint8_t *classes, *b0, *b1, *b2, *b3, *high;
};

/* Appends n residuals in zigzag form to the planes, each of which may be written up to 16 bytes past its end. In all calls but the last,
 * n is a multiple of 4: a byte of classes is for four residuals. */
void residuals_split(const uint64_t *zigzag, size_t n, struct residual_writer *to);

/* Whether planes of these sizes fit each other and hold n residuals. */
bool residuals_fit(const struct residual_reader *from, const size_t size[RESIDUAL_PLANES], size_t n);

/* The next n residuals, signed. Planes may be read up to 4 bytes past their end; n as above. */
void residuals_join(struct residual_reader *from, size_t n, uint64_t *out);

#endif
