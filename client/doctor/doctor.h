/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_DOCTOR_DOCTOR_H
#define RTGRANT_CLIENT_DOCTOR_DOCTOR_H

/*
 * Whether a machine, a session and a process are fit for low latency. A check looks at one thing,
 * says what it saw, and changes nothing. It goes by what the kernel does rather than by what files
 * say, and where it cannot tell it says that.
 */

#include "client/doctor/machine.h"

/* From worst to best: findings are shown in this order. */
enum health {
        HEALTH_BAD,     /* no real-time audio, or a danger to the machine */
        HEALTH_WARNING, /* costs latency, or will some day */
        HEALTH_NOTE,    /* worth knowing; no harm by itself */
        HEALTH_UNKNOWN, /* cannot tell, and why */
        HEALTH_FINE,
        _HEALTH_MAX,
};

struct finding {
        enum health health;
        char seen[512];    /* what was looked at, and what it is; one or two sentences */
        char effect[256];  /* measured here: "exit takes 890 us"; "" if it was not */
        char now[320];     /* what mends it until the next boot; "" if nothing does */
        char lasting[320]; /* what mends it for good */
        char lease[160];   /* the command that has the broker mend it for a while; "" if none */
};

struct check {
        const char *id; /* for scripts: never changes its meaning */
        const char *title;
        const char *why; /* why it matters; one sentence */
        void (*run)(const struct machine *machine, struct finding *ret);
};

/* In the order of what matters: who is real-time at all, then who comes first, then the rest. */
extern const struct check *const doctor_checks[];
extern const size_t doctor_n_checks;

/* The checks, by subject. */
extern const struct check check_routes, check_limits, check_rttime, check_group_limits,
        check_capabilities; /* rights.c */
extern const struct check check_audio_threads, check_irq_order, check_cards, check_usb_lowlatency,
        check_xruns; /* sound.c */
extern const struct check check_broker, check_session, check_polkit, check_competitors,
        check_hidepid, check_lockdown, check_lsm, check_container; /* system.c */
extern const struct check check_preemption, check_threadirqs, check_rt_group, check_rt_throttling,
        check_autogroup, check_timers, check_clocksource, check_wake_up;           /* kernel.c */
extern const struct check check_irq_sharing, check_irqbalance;                     /* irq.c */
extern const struct check check_c_states, check_governor, check_smt, check_hybrid; /* cpu.c */
extern const struct check check_swappiness, check_tmpfs, check_disk_queue;         /* storage.c */

/* Sets health and what was seen. */
void finding_say(struct finding *finding, enum health health, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Sets what mends it; NULL or "" where there is nothing. */
void finding_mend(struct finding *finding, const char *now, const char *lasting);

#endif
