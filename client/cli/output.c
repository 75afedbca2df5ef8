/* SPDX-License-Identifier: MIT */

#include "client/cli/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/exit-status.h"

bool style_wanted(void) {
        const char *no_color = getenv("NO_COLOR");
        const char *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) &&
               !(term && strcmp(term, "dumb") == 0);
}

const char *style_begin(bool wanted, enum style style) {
        static const char *const sequences[] = {
                [STYLE_PLAIN] = "",
                [STYLE_BOLD] = "\033[1m",
                [STYLE_DIM] = "\033[2m",
                [STYLE_GOOD] = "\033[32m",
                [STYLE_WARNING] = "\033[33m",
                [STYLE_BAD] = "\033[31m",
        };

        return wanted ? sequences[style] : "";
}

const char *style_end(bool wanted, enum style style) {
        return wanted && style != STYLE_PLAIN ? "\033[0m" : "";
}

int output_finish(const char *program, int status) {
        bool lost = fflush(stdout) != 0 || ferror(stdout);

        if (!lost || fcntl(STDOUT_FILENO, F_GETFD) < 0)
                return status;

        fprintf(stderr, "%s: not all of the output could be written\n", program);
        return STATUS_FAILED;
}
