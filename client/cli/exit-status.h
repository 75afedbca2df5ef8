/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_EXIT_STATUS_H
#define RTGRANT_CLI_EXIT_STATUS_H

/* What the programs end with. 0, 1, 126 and 127 mean what they mean with chrt(1). */
enum exit_status {
        STATUS_DONE = 0,
        STATUS_FAILED = 1,    /* also wrong usage of rtgrant, as with chrt */
        STATUS_USAGE = 2,     /* wrong usage of rtgrantctl; a priority is missing */
        STATUS_REFUSED = 3,   /* by the broker, or by the kernel where no broker could help */
        STATUS_NO_BROKER = 4, /* the kernel refused, and no broker could be asked */
        STATUS_UNFIT = 5,     /* rtgrantctl doctor found what is bad */
        STATUS_CANNOT_EXECUTE = 126,
        STATUS_COMMAND_NOT_FOUND = 127,
};

#endif
