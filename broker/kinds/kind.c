/* SPDX-License-Identifier: MIT */

#include "broker/kinds/kind.h"

const struct kind *const kinds[_KIND_MAX] = {
        [KIND_SCHED] = &kind_sched,
        [KIND_NICE] = &kind_nice,
};
