/* SPDX-License-Identifier: MIT */
/* Release consistency with processor-consistent synchronisation (Gharachorloo and others, ISCA 1990), as AArch64's STLR and LDAPR:
 * an acquire load performs before all later accesses, a release store after all earlier ones. */
#include "sim/order/order.h"

const struct order_model order_rcpc = {
    .name = "rcpc",
    .summary = "release consistency, RCpc: as rcsc, but an acquire may perform ahead of an earlier release",
    .has_release = true,
};
