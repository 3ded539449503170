/* SPDX-License-Identifier: MIT */
#include "format/codec/slot_predict.h"

#ifdef __x86_64__
#define LANE(mask, i) ((mask) >> (i)&1 ? UINT64_MAX : 0)
#define LANES(mask) \
    { \
        LANE(mask, 0), LANE(mask, 1), LANE(mask, 2), LANE(mask, 3) \
    }

_Alignas(32) const uint64_t PREDICT_LANES[16][4] = { LANES(0),  LANES(1),  LANES(2),  LANES(3), LANES(4),  LANES(5),
                                                     LANES(6),  LANES(7),  LANES(8),  LANES(9), LANES(10), LANES(11),
                                                     LANES(12), LANES(13), LANES(14), LANES(15) };

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
