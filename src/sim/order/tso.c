/* SPDX-License-Identifier: MIT */
/* Total store order, as SPARC and x86 have it (Sewell and others, Communications of the ACM 53(7), 2010): stores perform in program
 * order, a load does not wait for stores, and reads those of its domain. An atomic empties the buffer. */
#include "sim/order/order.h"

const struct order_model order_tso = {
    .name = "tso",
    .summary = "total store order, x86: a load may perform ahead of earlier stores",
    .keeps = { [ORDER_LOAD] = ORDER_ATOMIC, [ORDER_STORE] = ORDER_STORE },
    .atomic_is_fence = true,
};
