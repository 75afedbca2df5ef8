/* SPDX-License-Identifier: MIT */

/* Built without cairo: the command line says so before anything is measured. */

#include <errno.h>

#include "client/latency/report.h"

int report_plot(const struct run *run, const char *path) {
        return -EOPNOTSUPP;
}
