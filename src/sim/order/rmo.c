/* SPDX-License-Identifier: MIT */
/* Relaxed memory order (after SPARC V9): accesses to different locations perform in any order; fences keep it. Dependencies keep it only
 * where a store needs a loaded value, so that no value is made from itself. */
#include "sim/order/order.h"

const struct order_model order_rmo = {
    .name = "rmo",
    .summary = "relaxed memory order: only fences keep the order of accesses to different locations",
};
