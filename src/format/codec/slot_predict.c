/* SPDX-License-Identifier: MIT */
#include "format/codec/slot_predict.h"

#ifdef __x86_64__
#define MASK_WORD(mask, i) ((mask) >> (i)&1 ? UINT64_MAX : 0)
#define MASK_WORDS(mask) \
    { \
        MASK_WORD(mask, 0), MASK_WORD(mask, 1), MASK_WORD(mask, 2), MASK_WORD(mask, 3) \
    }

_Alignas(32) const uint64_t PREDICT_MASKS[16][4] = { MASK_WORDS(0),  MASK_WORDS(1),  MASK_WORDS(2),  MASK_WORDS(3),
                                                     MASK_WORDS(4),  MASK_WORDS(5),  MASK_WORDS(6),  MASK_WORDS(7),
                                                     MASK_WORDS(8),  MASK_WORDS(9),  MASK_WORDS(10), MASK_WORDS(11),
                                                     MASK_WORDS(12), MASK_WORDS(13), MASK_WORDS(14), MASK_WORDS(15) };

_Alignas(32) const uint32_t PREDICT_COMPACT[16][8] = { { 0 },
                                                       { 0, 1 },
                                                       { 2, 3 },
                                                       { 0, 1, 2, 3 },
                                                       { 4, 5 },
                                                       { 0, 1, 4, 5 },
                                                       { 2, 3, 4, 5 },
                                                       { 0, 1, 2, 3, 4, 5 },
                                                       { 6, 7 },
                                                       { 0, 1, 6, 7 },
                                                       { 2, 3, 6, 7 },
                                                       { 0, 1, 2, 3, 6, 7 },
                                                       { 4, 5, 6, 7 },
                                                       { 0, 1, 4, 5, 6, 7 },
                                                       { 2, 3, 4, 5, 6, 7 },
                                                       { 0, 1, 2, 3, 4, 5, 6, 7 } };
#endif
