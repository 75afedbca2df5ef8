/* SPDX-License-Identifier: MIT */

/* What irqbalance is told: its list, and one that the test makes up, with what the real one never says. */

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "broker/irq/balance.h"
#include "broker/log.h"
#include "tests/unit/broker/broker-test.h"

/* ---- the list ---- */

static struct ban_list list_of(const char *numbers) {
        struct ban_list list = {};
        char *end;

        for (const char *at = numbers; *at != '\0'; at = end) {
                assert_int_equal(ban_list_add(&list, (unsigned) strtoul(at, &end, 10)), 0);
                end += *end == ' ';
        }
        return list;
}

static void what_it_answers(void **state) {
        static const struct {
                const char *reply;
                int error;
                const char *list;
        } rows[] = {
                { "SLEEP 10 BANNED 00000000", 0, "" },
                { "SLEEP 10 ", 0, "" },
                { "SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 IRQ 9 LOAD 7 DIFF 1 CLASS 6 BANNED 3", 0,
                  "9 24" },
                { "SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 IRQ 24 LOAD 0 DIFF 0 CLASS 0 ", 0, "24" },
                { "", -EBADMSG },
                { "hello", -EBADMSG },
                { "IRQ 24 LOAD 0 DIFF 0 CLASS 0 ", -EBADMSG },
                { "SLEEP 10 IRQ x LOAD 0 ", -EBADMSG },
                { "SLEEP 10 IRQ -4 LOAD 0 ", -EBADMSG },
                { "SLEEP 10 IRQ 24", -EBADMSG }, /* cut: 241 perhaps */
                { "SLEEP 10 IRQ 99999999999 LOAD 0 ", -EBADMSG },
                { "SLEEP 10 XIRQ 24 LOAD 0 ", -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct ban_list list, expected;
                int r = ban_list_parse(rows[i].reply, &list);

                if (r != rows[i].error)
                        fail_msg("\"%s\": %d", rows[i].reply, r);
                if (r < 0)
                        continue;
                expected = list_of(rows[i].list);
                assert_true(ban_list_equal(&list, &expected));
        }
}

static void what_it_is_told(void **state) {
        struct ban_list list = list_of("30 24 28");
        char command[BAN_COMMAND_SIZE];

        assert_int_equal(ban_list_format(&list, command), 0);
        assert_string_equal(command, "settings ban irqs 24 28 30");
        ban_list_remove(&list, 28);
        ban_list_remove(&list, 29);
        assert_true(ban_list_has(&list, 30) && !ban_list_has(&list, 28));
        list = list_of("");
        assert_int_equal(ban_list_format(&list, command), 0);
        assert_string_equal(command, "settings ban irqs NONE");
        list = list_of("0 5");
        assert_int_equal(ban_list_format(&list, command), -EINVAL);

        list = (struct ban_list){};
        for (unsigned i = 0; i < 64; i++) /* 64 of three digits, 63 blanks: 255 */
                assert_int_equal(ban_list_add(&list, 100 + i), 0);
        assert_int_equal(ban_list_format(&list, command), 0);
        assert_int_equal(strlen(command), strlen(BAN_COMMAND) + BAN_NUMBERS_MAX);
        assert_int_equal(ban_list_add(&list, 5), 0);
        assert_int_equal(ban_list_format(&list, command), -ENOSPC);
        for (unsigned i = list.n; i < BAN_LIST_MAX; i++)
                assert_int_equal(ban_list_add(&list, 1000 + i), 0);
        assert_int_equal(ban_list_add(&list, 2000), -ENOSPC);
        assert_int_equal(ban_list_add(&list, 5), 0); /* it is on it */
}

/* ---- one of the test's own ---- */

struct fake {
        char directory[64];
        char run[80];
        struct irq_table_options options;
        struct log *log;
        sd_event *event;
        struct balance *balance;
        int fd;
        sd_event_source *io;
        char banned[500]; /* numbers */
        const char *answer;            /* to setup; NULL: as it should be */
        bool deaf;                     /* takes no commands */
        unsigned n_commands;
        unsigned n_kept; /* on_banned() was called */
};

static void on_banned(unsigned line, void *userdata) {
        struct fake *f = userdata;

        f->n_kept++;
}

static void answer_setup(struct fake *f, int fd) {
        char *copy = strdup(f->banned), *rest = copy, *word;

        if (f->answer) {
                (void) dprintf(fd, "%s", f->answer);
        } else {
                (void) dprintf(fd, "SLEEP 10 ");
                while ((word = strsep(&rest, " ")))
                        if (word[0] != '\0')
                                (void) dprintf(fd, "IRQ %s LOAD 0 DIFF 0 CLASS 0 ", word);
                (void) dprintf(fd, "BANNED 00000000");
        }
        free(copy);
}

static int on_connect(sd_event_source *source, int listener, uint32_t events, void *userdata) {
        char text[500] = "", control[CMSG_SPACE(sizeof(struct ucred))];
        struct iovec iov = { text, sizeof(text) - 1 };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
        };
        struct fake *f = userdata;
        struct ucred creds;
        const int on = 1;
        int fd = accept(listener, NULL, NULL);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
        assert_true(recvmsg(fd, &message, 0) > 0);
        memcpy(&creds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(creds));
        assert_int_equal(creds.pid, getpid());
        if (strcmp(text, BAN_SETUP) == 0) {
                answer_setup(f, fd);
        } else {
                assert_memory_equal(text, BAN_COMMAND, strlen(BAN_COMMAND));
                f->n_commands++;
                if (!f->deaf)
                        (void) snprintf(f->banned, sizeof(f->banned), "%s",
                                        strcmp(text, BAN_COMMAND "NONE") == 0
                                                ? ""
                                                : text + strlen(BAN_COMMAND));
        }
        (void) close(fd);
        return 0;
}

static void fake_listen(struct fake *f) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/irqbalance1.sock", f->run);
        f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(f->fd >= 0);
        assert_int_equal(bind(f->fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(listen(f->fd, 1), 0);
        assert_true(sd_event_add_io(f->event, &f->io, f->fd, EPOLLIN, on_connect, f) >= 0);
}

static void open_balance(struct fake *f) {
        assert_int_equal(balance_new(&f->options, on_banned, f, &f->balance), 0);
}

static void begin(struct fake *f) {
        test_need_root(); /* it trusts root's directory and root's process alone */
        *f = (struct fake){ .directory = "/tmp/rtgrant-balance-XXXXXX", .fd = -1 };
        assert_non_null(mkdtemp(f->directory));
        (void) snprintf(f->run, sizeof(f->run), "%s/irqbalance", f->directory);
        assert_int_equal(mkdir(f->run, 0755), 0);
        assert_int_equal(log_new(&f->log, LOG_ERR), 0);
        assert_true(sd_event_new(&f->event) >= 0);
        f->options = (struct irq_table_options){
                .event = f->event,
                .log = f->log,
                .state_dir = f->directory,
                .roots = { .sys = f->directory, .proc = "/proc" },
                .balance_dir = f->run,
        };
        open_balance(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        return remove(path);
}

static void end(struct fake *f) {
        f->balance = balance_free(f->balance);
        f->io = sd_event_source_disable_unref(f->io);
        (void) close_fd(f->fd);
        (void) sd_event_unref(f->event);
        f->log = log_free(f->log);
        (void) nftw(f->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Until nothing has happened for a while. */
static void run(struct fake *f, uint64_t quiet_us) {
        while (sd_event_run(f->event, quiet_us) > 0)
                continue;
}

static void want(struct fake *f, const char *lines) {
        const struct ban_list list = list_of(lines);

        balance_want(f->balance, &list);
        run(f, 50000);
}

static void assert_said(const struct fake *f, const char *expected) {
        char text[200];

        balance_explain(f->balance, 24, text, sizeof(text));
        assert_string_equal(text, expected);
}

static void only_ours_comes_and_goes(void **state) {
        struct fake f;

        begin(&f);
        fake_listen(&f);
        (void) strcpy(f.banned, "7 24");
        want(&f, "24 31");
        assert_string_equal(f.banned, "7 24 31");
        assert_int_equal(f.n_kept, 1);
        want(&f, "31 40");
        assert_string_equal(f.banned, "7 24 31 40");
        want(&f, "31 40");
        assert_int_equal(f.n_commands, 2);
        (void) strcpy(f.banned, "7 24 31 40 99"); /* an administrator's meanwhile */
        want(&f, "");
        assert_string_equal(f.banned, "7 24 99");
        assert_int_equal(f.n_kept, 2);
        end(&f);
}

static void its_end_and_a_successor(void **state) {
        struct irq_ban_record records[IRQ_RAISED_MAX];
        struct fake f;

        begin(&f);
        fake_listen(&f);
        (void) strcpy(f.banned, "7");
        want(&f, "24");
        assert_int_equal(irq_store_read(f.directory, IRQ_STORE_BANS, records), 1);
        f.balance = balance_free(f.balance);
        run(&f, 50000);
        assert_string_equal(f.banned, "7");
        assert_int_equal(irq_store_read(f.directory, IRQ_STORE_BANS, records + 1), 0);

        /* killed: the list is as it was, and the file is there */
        (void) strcpy(f.banned, "7 24");
        assert_int_equal(irq_store_write(f.directory, IRQ_STORE_BANS, records, 1), 0);
        open_balance(&f);
        run(&f, 50000);
        assert_string_equal(f.banned, "7 24"); /* perhaps somebody wants it still */
        want(&f, "");
        assert_string_equal(f.banned, "7");

        /* the file is about another irqbalance: nothing on this list is ours */
        f.balance = balance_free(f.balance);
        records[0].start_time++;
        (void) strcpy(f.banned, "7 24");
        assert_int_equal(irq_store_write(f.directory, IRQ_STORE_BANS, records, 1), 0);
        open_balance(&f);
        want(&f, "");
        assert_string_equal(f.banned, "7 24");
        end(&f);
}

static void one_that_starts_later(void **state) {
        struct fake f;

        begin(&f);
        want(&f, "24");
        assert_said(&f, "");
        fake_listen(&f);
        run(&f, 1000000);
        assert_string_equal(f.banned, "24");
        end(&f);
}

static void what_is_no_irqbalance(void **state) {
        struct fake f;

        begin(&f);
        fake_listen(&f);
        assert_int_equal(chmod(f.run, 0777), 0); /* anybody may have put the socket there */
        want(&f, "24");
        assert_string_equal(f.banned, "");
        assert_int_equal(chmod(f.run, 0755), 0);
        f.answer = "hello";
        want(&f, "24 31");
        assert_int_equal(f.n_commands, 0);
        assert_said(&f, "irqbalance may move interrupt 24, it could not be told to leave it alone: "
                        "it does not answer as one does");
        f.answer = "";
        want(&f, "24");
        assert_int_equal(f.n_commands, 0);
        end(&f);
}

static void one_that_does_not_do_it(void **state) {
        struct fake f;

        begin(&f);
        fake_listen(&f);
        f.deaf = true;
        want(&f, "24");
        assert_int_equal(f.n_commands, 1);
        assert_int_equal(f.n_kept, 0);
        assert_said(&f, "irqbalance may move interrupt 24, it could not be told to leave it alone: "
                        "it was told and did not");
        end(&f);
}

static void one_without_a_socket(void **state) {
        char path[160];
        struct fake f;
        FILE *file;

        begin(&f);
        (void) snprintf(path, sizeof(path), "mkdir -p %s/fs/cgroup/system.slice/irqbalance.service",
                        f.directory);
        assert_int_equal(system(path), 0);
        (void) snprintf(path, sizeof(path), "%s/fs/cgroup/system.slice/irqbalance.service/cgroup.procs",
                        f.directory);
        file = fopen(path, "w");
        assert_non_null(file);
        (void) fprintf(file, "77\n");
        (void) fclose(file);
        want(&f, "24");
        assert_said(&f, "irqbalance runs and has no socket to tell it by, so it may move interrupt "
                        "24: start it with --banirq=24");
        want(&f, "");
        assert_said(&f, "");
        end(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_it_answers),
                cmocka_unit_test(what_it_is_told),
                cmocka_unit_test(only_ours_comes_and_goes),
                cmocka_unit_test(its_end_and_a_successor),
                cmocka_unit_test(one_that_starts_later),
                cmocka_unit_test(what_is_no_irqbalance),
                cmocka_unit_test(one_that_does_not_do_it),
                cmocka_unit_test(one_without_a_socket),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
