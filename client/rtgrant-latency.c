/* SPDX-License-Identifier: MIT */

/* Measures what the broker's grant buys: see rtgrant-latency(1). */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/latency/report.h"
#include "client/latency/stream.h"

static int fail(const char *what, int error) {
        char printable[1024];

        text_printable(printable, sizeof(printable), what);
        fprintf(stderr, LATENCY_PROGRAM ": %s: %s\n", printable, strerror(-error));
        return STATUS_FAILED;
}

static int take_stream(struct latency_options *o) {
        struct stream stream;
        int r;

        if (!o->stream)
                return 0;
        r = stream_find(o->stream, o->sysroot ?: "", &stream);
        if (r == -EINVAL) {
                fprintf(stderr, LATENCY_PROGRAM ": --stream is alsa, jack, pipewire or auto\n");
                return STATUS_USAGE;
        }
        if (r < 0) {
                fprintf(stderr, LATENCY_PROGRAM ": no such stream runs; give --rate and --frames, "
                                                "or let something play\n");
                return STATUS_FAILED;
        }
        o->rate = stream.rate;
        o->frames = stream.frames;
        o->periods = stream.periods;
        fprintf(stderr, LATENCY_PROGRAM ": %u frames at %u Hz, %u periods, from %s\n", o->frames,
                o->rate, o->periods, stream.from);
        return 0;
}

/* For good: all ids and groups, and with them all capabilities. */
static int become(const char *name) {
        struct passwd *user = getpwnam(name);

        if (!user)
                return -ENOENT;
        if (initgroups(name, user->pw_gid) < 0 ||
            setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
            setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
                return -errno;
        (void) prctl(PR_SET_DUMPABLE, 1); /* lost by that; without it /proc/self is root's */
        return 0;
}

static int report(const struct run *run) {
        const struct latency_options *o = run->options;
        int r;

        if (o->csv)
                report_csv(run);
        else if (o->json)
                json_print(report_json(run));
        else
                report_text(run);
        if (!o->plot)
                return 0;
        r = report_plot(run, o->plot);
        return r < 0 ? fail(o->plot, r) : 0;
}

static int judge(const struct run *run, int64_t more) {
        const struct latency_options *o = run->options;
        uint64_t overruns = 0, late = 0;
        int refused = 0;

        for (size_t i = 0; i < run->n_rows; i++) {
                if (!run->rows[i].variant->granted)
                        continue;
                overruns += run->rows[i].stats.overruns;
                late += run->rows[i].stats.late_half;
        }
        if ((o->fail_on & FAIL_ON_OVERRUNS && overruns > 0) ||
            (o->fail_on & FAIL_ON_LATE && late > 0) || (o->fail_on & FAIL_ON_WORSE && more > 0))
                return STATUS_UNFIT;
        for (size_t i = 0; i < run->n_variants; i++)
                if (run->variants[i].unusable && refused == 0)
                        refused = run->variants[i].error;
        if (refused == 0 || refused == -EOPNOTSUPP)
                return STATUS_DONE;
        return refused == -EPERM ? STATUS_REFUSED : STATUS_NO_BROKER;
}

static int measure(const struct latency_options *o) {
        _cleanup_(run_done) struct run run;
        int64_t more = 0;
        int r, status;

        r = run_init(&run, o);
        if (r < 0)
                return fail("cannot begin", r);
        watch_open(&run.watch, o->cpu);
        if (o->compare & COMPARE_GOVERNOR)
                governor_open(&run.governor, o->sysroot ?: "", o->cpu);
        if (o->as_user) {
                r = become(o->as_user);
                if (r < 0)
                        return fail(o->as_user, r);
        }
        r = run_all(&run);
        if (r < 0)
                return fail("cannot measure", r);
        status = report(&run);
        if (status != 0)
                return status;
        if (o->old_run) {
                more = report_compare(&run, o->old_run, o->json || o->csv ? stderr : stdout);
                if (more < 0)
                        return fail(o->old_run, (int) more);
        }
        return judge(&run, more);
}

static int run(int argc, char **argv) {
        struct latency_options options;
        int status;

        status = latency_options_parse(&options, argc, argv);
        if (status != 0)
                return status;
        if (options.help)
                latency_help();
        else if (options.version)
                printf(LATENCY_PROGRAM " %s\n", RTGRANT_VERSION);
        else {
                status = take_stream(&options);
                if (status == 0)
                        status = measure(&options);
        }
        return output_finish(LATENCY_PROGRAM, status);
}

int main(int argc, char **argv) {
        return run(argc, argv);
}
