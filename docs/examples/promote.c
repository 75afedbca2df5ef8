/* SPDX-License-Identifier: MIT */

#include <rtgrant.h>
#include <sched.h>
#include <stdio.h>

int main(void) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        int r = rtgrant_promote_self("audio-client", SCHED_FIFO, 65, &answer);

        if (r == 0)
                printf("real-time, priority %d\n", answer.priority);
        else if (r == -EPERM)
                printf("refused: %s; %s\n", answer.text, answer.help);
        else
                printf("going on without: %s\n", r == RTGRANT_ABSENT ? "no broker" : "an error");
}
