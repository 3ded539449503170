/* SPDX-License-Identifier: MIT */
/* Partial store order (SPARC V8): as total store order, but stores to different locations perform in any order, unless
 * a fence between stores keeps it. Differs from SPARC where an atomic orders nothing but its own location. */
#include "sim/order/order.h"

const struct order_model order_pso = {
    .name = "pso",
    .summary = "partial store order: stores to different locations may perform in any order",
    .keeps = { [ORDER_LOAD] = ORDER_ATOMIC },
};
