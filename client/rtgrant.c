/* SPDX-License-Identifier: MIT */

/* chrt(1) without root: see rtgrant(1). */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/rtgrant-change.h"
#include "client/rtgrant-report.h"

#define PROGRAM "rtgrant"

/* One run of the program. */
struct run {
        struct options options;
        struct broker broker;
        json_object *array;     /* of all threads, with --all-tasks and --json */
        const char *word;       /* "current" or "new" */
        size_t n_threads;
        int status;
};

static int fail(pid_t pid, const char *what, int error) {
        fprintf(stderr, PROGRAM ": pid %d: %s: %s\n", (int) pid, what, strerror(-error));
        return STATUS_FAILED;
}

static void add_json(struct run *run, json_object *object) {
        if (run->array)
                (void) json_object_array_add(run->array, object);
        else
                json_print_line(object);
}

/* Threads come and go: with --all-tasks, one that is gone is nobody's fault. */
static int skip_gone(const struct run *run, int error) {
        return error == -ESRCH && run->options.all_threads ? 0 : error;
}

static int show_thread(pid_t tid, void *userdata) {
        _cleanup_(thread_done) struct thread thread = { .pidfd = -1 };
        struct run *run = userdata;
        json_object *object;
        int r;

        if (!run->options.json) {
                r = report_scheduling(tid, run->word);
        } else {
                r = thread_init(tid, &thread);
                if (r >= 0)
                        r = report_scheduling_json(&thread, &object);
                if (r >= 0)
                        add_json(run, object);
        }
        if (r < 0)
                return skip_gone(run, r);

        run->n_threads++;
        return 0;
}

static int for_threads(struct run *run, pid_t pid, thread_fn each) {
        int r;

        run->n_threads = 0;
        r = run->options.all_threads ? thread_each(pid, each, run) : each(pid, run);
        if (r == 0 && run->n_threads == 0)
                r = -ESRCH;
        return r;
}

static int show(struct run *run, pid_t pid, const char *word) {
        int r;

        run->word = word;
        r = for_threads(run, pid, show_thread);
        return r < 0 ? fail(pid, "cannot read its scheduling", r) : STATUS_DONE;
}

/* Changes one thread and reports it. */
static void change(struct run *run, const struct thread *thread) {
        struct change change;
        json_object *object;
        int status;

        change_thread(&run->broker, &run->options, thread, &change);
        if (change.result == CHANGE_FAILED && skip_gone(run, change.error) == 0)
                return;

        run->n_threads++;
        status = report_change(&run->broker, &run->options, thread, &change);
        if (status > run->status)
                run->status = status;
        if (run->options.json &&
            report_change_json(&run->broker, &run->options, thread, &change, &object) >= 0)
                add_json(run, object);
}

static int change_by_tid(pid_t tid, void *userdata) {
        _cleanup_(thread_done) struct thread thread = { .pidfd = -1 };
        struct run *run = userdata;
        int r;

        r = thread_init(tid, &thread);
        if (r < 0)
                return skip_gone(run, r);

        change(run, &thread);
        return 0;
}

static int check_inode(const struct options *o) {
        _cleanup_(thread_done) struct thread thread = { .pidfd = -1 };
        int r;

        if (o->inode == 0)
                return 0;

        r = thread_init(o->pid, &thread);
        if (r >= 0)
                r = thread_check_inode(&thread, o->inode);
        if (r == -EOPNOTSUPP)
                fprintf(stderr, PROGRAM ": PID:INODE needs pidfs, which came with Linux 6.9\n");
        else if (r < 0)
                fprintf(stderr, PROGRAM ": pid %d: not the process that had this inode\n",
                        (int) o->pid);
        return r < 0 ? STATUS_FAILED : 0;
}

static int run_show(struct run *run) {
        pid_t pid = run->options.pid > 0 ? run->options.pid : getpid();
        int status;

        status = check_inode(&run->options);
        return status != 0 ? status : show(run, pid, "current");
}

static int run_change(struct run *run) {
        const struct options *o = &run->options;
        int r, status;

        status = check_inode(o);
        if (status == 0 && o->verbose && !o->json)
                status = show(run, o->pid, "current");
        if (status == 0)
                status = broker_complete_options(&run->broker, &run->options);
        if (status != 0)
                return status;

        r = for_threads(run, o->pid, change_by_tid);
        if (r < 0)
                return fail(o->pid, "cannot change its scheduling", r);
        if (o->verbose && !o->json && !o->dry_run && run->status == 0)
                return show(run, o->pid, "new");
        return run->status;
}

/* The calling thread under the name of what it is going to be. */
static int thread_init_command(const char *command, struct thread *ret) {
        const char *slash = strrchr(command, '/');
        int r;

        r = thread_init(getpid(), ret);
        if (r < 0)
                return r;

        text_printable(ret->comm, sizeof(ret->comm), slash ? slash + 1 : command);
        return 0;
}

static int run_command(struct run *run) {
        _cleanup_(thread_done) struct thread self = { .pidfd = -1 };
        char **command = run->options.command;
        char printable[512];
        int r, status;

        status = broker_complete_options(&run->broker, &run->options);
        if (status != 0)
                return status;
        r = thread_init_command(command[0], &self);
        if (r < 0)
                return fail(getpid(), "cannot read its scheduling", r);
        change(run, &self);
        if (run->status != 0 || run->options.dry_run)
                return run->status;
        if (run->options.verbose && !run->options.json)
                (void) show(run, self.tid, "new");

        (void) fflush(stdout);
        broker_done(&run->broker);
        (void) execvp(command[0], command);

        r = errno;
        text_printable(printable, sizeof(printable), command[0]);
        fprintf(stderr, PROGRAM ": cannot run '%s': %s\n", printable, strerror(r));
        return r == ENOENT ? STATUS_COMMAND_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

static int dispatch(struct run *run) {
        switch (run->options.action) {
        case ACTION_HELP:
                report_help();
                return STATUS_DONE;
        case ACTION_VERSION:
                printf(PROGRAM " %s\n", RTGRANT_VERSION);
                return STATUS_DONE;
        case ACTION_RANGES:
                report_ranges(run->options.json);
                return STATUS_DONE;
        case ACTION_SHOW:
                return run_show(run);
        case ACTION_CHANGE:
                return run_change(run);
        case ACTION_RUN:
                return run_command(run);
        }
        return STATUS_FAILED;
}

static int run(int argc, char **argv) {
        struct run run = { 0 };
        int status;

        (void) setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what goes to stderr */
        status = options_parse(&run.options, PROGRAM, /* needs_command= */ true, argc, argv);
        if (status != 0)
                return status;

        run.broker.socket = run.options.socket;
        run.broker.may_ask = run.options.ask;
        if (run.options.json && run.options.all_threads)
                run.array = json_object_new_array();
        status = dispatch(&run);
        if (run.array && json_object_array_length(run.array) > 0)
                json_print(json_object_get(run.array));
        (void) json_object_put(run.array);
        broker_done(&run.broker);
        return output_finish(PROGRAM, status);
}

int main(int argc, char **argv) {
        return run(argc, argv);
}
