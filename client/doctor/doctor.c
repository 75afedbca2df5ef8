/* SPDX-License-Identifier: MIT */

#include "client/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/cleanup.h"

const struct check *const doctor_checks[] = {
        &check_routes,        &check_audio_threads, &check_irq_order,   &check_rttime,
        &check_limits,        &check_rt_group,      &check_broker,      &check_group_limits,
        &check_capabilities,  &check_container,     &check_session,     &check_polkit,
        &check_xruns,         &check_wake_up,       &check_preemption,  &check_threadirqs,
        &check_rt_throttling, &check_irq_sharing,   &check_irqbalance,  &check_c_states,
        &check_governor,      &check_timers,        &check_clocksource, &check_usb_lowlatency,
        &check_tmpfs,         &check_swappiness,    &check_disk_queue,  &check_competitors,
        &check_smt,           &check_hybrid,        &check_autogroup,   &check_hidepid,
        &check_lockdown,      &check_lsm,           &check_cards,
};

const size_t doctor_n_checks = ELEMENTS(doctor_checks);

void finding_say(struct finding *finding, enum health health, const char *format, ...) {
        va_list args;

        finding->health = health;
        va_start(args, format);
        (void) vsnprintf(finding->seen, sizeof(finding->seen), format, args);
        va_end(args);
}

void finding_mend(struct finding *finding, const char *now, const char *lasting) {
        (void) snprintf(finding->now, sizeof(finding->now), "%s", now ? now : "");
        (void) snprintf(finding->lasting, sizeof(finding->lasting), "%s", lasting ? lasting : "");
}
