/* SPDX-License-Identifier: MIT */
/* Sequential consistency (Lamport, IEEE Transactions on Computers 28(9), 1979): every access waits for all earlier ones. A store may stay
 * in the buffer only until the next access of its domain. */
#include "sim/order/order.h"

const struct order_model order_sc = {
    .name = "sc",
    .summary = "sequential consistency: all accesses perform in program order",
    .keeps = { [ORDER_LOAD] = ORDER_ATOMIC, [ORDER_STORE] = ORDER_ATOMIC },
    .atomic_is_fence = true,
};
