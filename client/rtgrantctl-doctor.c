/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"
#include "client/rtgrantctl.h"

#ifdef HAVE_SD_LOGIN
#include <systemd/sd-login.h>
#endif

#define LABEL_WIDTH 14

static const struct {
        const char *word; /* for scripts */
        const char *label;
        enum style style;
} healths[_HEALTH_MAX] = {
        [HEALTH_BAD] = { "bad", "BAD", STYLE_BAD },
        [HEALTH_WARNING] = { "warning", "WARNING", STYLE_WARNING },
        [HEALTH_NOTE] = { "note", "NOTE", STYLE_BOLD },
        [HEALTH_UNKNOWN] = { "unknown", "CANNOT TELL", STYLE_DIM },
        [HEALTH_FINE] = { "fine", "FINE", STYLE_GOOD },
};

static enum session_state find_session(pid_t pid) {
#ifdef HAVE_SD_LOGIN
        char *session = NULL, *state = NULL;
        enum session_state found = SESSION_INACTIVE;
        int r;

        r = sd_pid_get_session(pid, &session);
        if (r == -ENODATA || r == -ENXIO)
                return access("/run/systemd/seats", F_OK) == 0 ? SESSION_NONE : SESSION_UNKNOWN;
        if (r < 0)
                return SESSION_UNKNOWN;
        if (sd_session_is_remote(session) > 0)
                found = SESSION_REMOTE;
        else if (sd_session_get_state(session, &state) >= 0 && strcmp(state, "active") == 0)
                found = SESSION_ACTIVE;
        free(state);
        free(session);
        return found;
#else
        return SESSION_UNKNOWN;
#endif
}

static void ask_broker(struct ctl *ctl, struct machine *machine, struct rtgrant_status *status,
                       char why[BROKER_ERROR_SIZE]) {
        int r;

        r = broker_connect(&ctl->broker);
        if (r >= 0)
                r = rtgrant_get_status(ctl->broker.handle, status);
        if (r >= 0) {
                machine->broker = status;
                return;
        }
        broker_error_text(&ctl->broker, r, why, BROKER_ERROR_SIZE);
        machine->broker_error = why;
}

/* The columns of the terminal; 0 if stdout is none, so that a line stays a line for grep(1). */
static size_t terminal_width(void) {
        struct winsize size;

        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col
                                                                                     : 0;
}

/* "    why       ..." under a finding, broken between words; nothing if there is nothing to say. */
static void print_line(const struct ctl *ctl, const char *label, const char *text) {
        size_t width = terminal_width(), column = LABEL_WIDTH;

        if (text[0] == '\0')
                return;
        printf("    %s%-*s%s", style_begin(ctl->colour, STYLE_DIM), LABEL_WIDTH - 4, label,
               style_end(ctl->colour, STYLE_DIM));
        for (const char *word = text; *word != '\0';) {
                size_t length = strcspn(word, " ");

                if (width > 2 * LABEL_WIDTH && column > LABEL_WIDTH && column + length >= width) {
                        printf("\n%*s", LABEL_WIDTH, "");
                        column = LABEL_WIDTH;
                }
                printf("%.*s", (int) length, word);
                column += length + 1;
                word += length;
                if (*word == ' ') {
                        putchar(' ');
                        word++;
                }
        }
        putchar('\n');
}

static void print_finding(const struct ctl *ctl, const struct check *check,
                          const struct finding *finding) {
        enum style style = healths[finding->health].style;

        printf("%s%-11s%s  %s%s%s (%s)\n", style_begin(ctl->colour, style),
               healths[finding->health].label, style_end(ctl->colour, style),
               style_begin(ctl->colour, STYLE_BOLD), check->title,
               style_end(ctl->colour, STYLE_BOLD), check->id);
        print_line(ctl, "seen", finding->seen);
        print_line(ctl, "measured", finding->effect);
        if (finding->health != HEALTH_FINE && finding->health != HEALTH_UNKNOWN)
                print_line(ctl, "why", check->why);
        print_line(ctl, "now", finding->now);
        print_line(ctl, "for good", finding->lasting);
        print_line(ctl, "lease", finding->lease);
}

static json_object *finding_json(const struct check *check, const struct finding *finding) {
        json_object *object = json_object_new_object();

        json_add_string(object, "id", check->id);
        json_add_string(object, "title", check->title);
        json_add_string(object, "health", healths[finding->health].word);
        json_add_string(object, "seen", finding->seen);
        json_add_text(object, "measured", finding->effect);
        json_add_text(object, "why", check->why);
        json_add_text(object, "now", finding->now);
        json_add_text(object, "lasting", finding->lasting);
        json_add_text(object, "lease", finding->lease);
        return object;
}

static void print_json(const struct machine *machine, const struct finding *findings, bool fit) {
        json_object *object = json_object_new_object(), *array = json_object_new_array();

        for (size_t i = 0; i < doctor_n_checks; i++)
                (void) json_object_array_add(array, finding_json(doctor_checks[i], &findings[i]));
        json_add_bool(object, "fit", fit);
        json_add_int(object, "pid", machine->pid);
        json_object_object_add(object, "findings", array);
        json_print(object);
}

static void print_findings(const struct ctl *ctl, const struct finding *findings,
                           const unsigned counts[_HEALTH_MAX]) {
        bool first = true;

        for (enum health health = 0; health < _HEALTH_MAX; health++) {
                if (!ctl->all && health == HEALTH_FINE)
                        continue;
                for (size_t i = 0; i < doctor_n_checks; i++)
                        if (findings[i].health == health) {
                                print_finding(ctl, doctor_checks[i], &findings[i]);
                                putchar('\n');
                        }
        }

        printf("%u bad, %u warnings, %u notes, %u cannot be told, %u fine", counts[HEALTH_BAD],
               counts[HEALTH_WARNING], counts[HEALTH_NOTE], counts[HEALTH_UNKNOWN],
               counts[HEALTH_FINE]);
        if (!ctl->all && counts[HEALTH_FINE] > 0) {
                printf(":");
                for (size_t i = 0; i < doctor_n_checks; i++)
                        if (findings[i].health == HEALTH_FINE) {
                                printf("%s%s", first ? " " : ", ", doctor_checks[i]->id);
                                first = false;
                        }
                printf("\n(rtgrantctl doctor --all shows these too)");
        }
        putchar('\n');
}

/* Whether there is a process @pid to look at. */
static int take_process(struct machine *machine, const char *operand) {
        int64_t pid;

        if (!operand)
                return 0;
        if (text_parse_number(operand, 1, INT32_MAX, &pid) < 0)
                return ctl_misuse("'%s' is no process id", operand);
        machine->pid = (pid_t) pid;
        machine->other = true;
        if (!machine_has(machine, "/proc/%d/status", (int) pid)) {
                fprintf(stderr, CTL_PROGRAM ": there is no process %d, or it is hidden\n",
                        (int) pid);
                return STATUS_FAILED;
        }
        return 0;
}

int ctl_doctor(struct ctl *ctl, char **argv) {
        struct machine machine = { .root = ctl->root ? ctl->root : "",
                                   .pid = ctl->root ? 1 : getpid() };
        struct rtgrant_status status = { .size = sizeof(status) };
        _cleanup_free_ struct finding *findings = calloc(doctor_n_checks, sizeof(*findings));
        unsigned counts[_HEALTH_MAX] = {};
        char why[BROKER_ERROR_SIZE] = "";
        bool fit;
        int r;

        if (!findings)
                return ctl_fail(ctl, -ENOMEM, NULL);
        r = take_process(&machine, ctl->pid);
        if (r != 0)
                return r;
        if (machine_is_live(&machine)) {
                ask_broker(ctl, &machine, &status, why);
                machine.session = find_session(machine.pid);
        }

        for (size_t i = 0; i < doctor_n_checks; i++) {
                doctor_checks[i]->run(&machine, &findings[i]);
                counts[findings[i].health]++;
        }
        fit = counts[HEALTH_BAD] == 0;
        if (ctl->json)
                print_json(&machine, findings, fit);
        else
                print_findings(ctl, findings, counts);
        return fit ? STATUS_DONE : STATUS_UNFIT;
}
