/* SPDX-License-Identifier: MIT */

/*
 * Times RealtimeKit's MakeThreadRealtime for the own thread, over the system bus that
 * $DBUS_SYSTEM_BUS_ADDRESS names, in the table of bench-socket; or says how many calls in a row were
 * answered, if not all. Usage: bench-rtkit WHO-SERVES ROUNDS
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static int compare(const void *a, const void *b) {
        const uint64_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

static int run(int argc, char *argv[]) {
        const struct rlimit rttime = { 200000, 200000 };
        const char *who = argc == 3 ? argv[1] : "";
        size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
        char label[64];
        sd_bus *bus = NULL;
        uint64_t *ns;
        int r;

        ns = calloc(n, sizeof(*ns));
        r = sd_bus_open_system(&bus);
        if (r < 0 || !ns || n == 0 || setrlimit(RLIMIT_RTTIME, &rttime) < 0) {
                (void) fprintf(stderr, "bench-rtkit: no system bus: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }

        for (size_t i = 0; i < n; i++) {
                sd_bus_error error = SD_BUS_ERROR_NULL;
                uint64_t begin = now_ns();

                r = sd_bus_call_method(bus, "org.freedesktop.RealtimeKit1",
                                       "/org/freedesktop/RealtimeKit1",
                                       "org.freedesktop.RealtimeKit1", "MakeThreadRealtime", &error,
                                       NULL, "tu", (uint64_t) syscall(SYS_gettid), 10U);
                ns[i] = now_ns() - begin;
                if (r < 0) {
                        (void) printf("%s answered %zu of %zu calls in a row, then: %s\n", who, i, n,
                                      error.message ? error.message : strerror(-r));
                        return EXIT_FAILURE;
                }
        }

        qsort(ns, n, sizeof(*ns), compare);
        (void) snprintf(label, sizeof(label), "%s, own thread, %zu times", who, n);
        (void) printf("%-44s %7s %8.1f %8.1f %8.1f %9.1f\n", label, "-", (double) ns[n / 2] / 1e3,
                      (double) ns[n * 99 / 100] / 1e3, (double) ns[n * 999 / 1000] / 1e3,
                      (double) ns[n - 1] / 1e3);
        free(ns);
        (void) sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
