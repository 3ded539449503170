/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"

bool cpu_force_scalar;
