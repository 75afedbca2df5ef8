/* SPDX-License-Identifier: MIT */

#include "policy/reason.h"

const char *reason_to_string(enum reason reason) {
        switch (reason) {
#define X(symbol, number, word)                                                                   \
        case REASON_##symbol:                                                                     \
                return word;
                REASONS(X)
#undef X
        }

        return "unknown";
}
