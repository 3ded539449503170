/* SPDX-License-Identifier: MIT */
/* Release consistency with sequentially consistent synchronisation (Gharachorloo and others, ISCA 1990), as AArch64's STLR and LDAR:
 * an acquire load performs before all later accesses, a release store after all earlier ones, and before later acquire loads. */
#include "sim/order/order.h"

const struct order_model order_rcsc = {
    .name = "rcsc",
    .summary = "release consistency, RCsc: relaxed, but for acquire loads and release stores",
    .has_release = true,
    .release_before_acquire = true,
};
