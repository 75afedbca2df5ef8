/* SPDX-License-Identifier: MIT */

/* Raised interrupt threads, on machines that are files. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "broker/irq/watch.h"
#include "tests/unit/broker/irq-world.h"

/* Addresses that identify claims. */
static const char owners[4];

/* ---- claims ---- */

static void a_claim_raises_and_dropping_it_restores(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:USB", 90, NULL), 0);
        irq_world_assert_raised(&w, 2, 90);
        irq_world_assert_before(&w, 1);
        irq_world_assert_before(&w, 3);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        assert_int_equal(irq_table_verify(w.table, &owners[1]), -ENOENT);

        irq_table_drop(w.table, &owners[0]);
        irq_world_assert_before(&w, 2);
        assert_int_equal(irq_table_n_raised(w.table), 0);
        irq_world_end(&w);
}

static void the_highest_claim_counts_under_any_name(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:1", 88, NULL), 0);
        assert_int_equal(irq_table_claim(w.table, &owners[1], "usb:3-2.4", 92, NULL), 0);
        assert_int_equal(irq_table_claim(w.table, &owners[2], "pci:0000:05:00.0", 90, NULL), 0);
        irq_world_assert_raised(&w, 2, 92);
        assert_int_equal(irq_table_claim(w.table, &owners[1], "usb:3-2.4", 87, NULL), 0);
        irq_world_assert_raised(&w, 2, 90);
        irq_table_drop(w.table, &owners[2]);
        irq_world_assert_raised(&w, 2, 88);
        irq_table_drop(w.table, &owners[0]);
        irq_world_assert_raised(&w, 2, 87);
        irq_table_drop(w.table, &owners[1]);
        irq_world_assert_before(&w, 2);
        irq_world_end(&w);
}

static void a_claim_moves_to_another_device(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:2", 91, NULL), 0);
        irq_world_assert_before(&w, 1);
        irq_world_assert_raised(&w, 3, 91);
        /* a claim that cannot be had leaves the former one */
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:9", 91, NULL), -ENODEV);
        irq_world_assert_raised(&w, 3, 91);
        assert_int_equal(irq_table_claim(w.table, &owners[1], "card:9", 91, NULL), -ENODEV);
        assert_int_equal(irq_table_verify(w.table, &owners[1]), -ENOENT);
        irq_world_end(&w);
}

static void freeing_the_table_restores_all(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        assert_int_equal(irq_table_claim(w.table, &owners[1], "card:2", 91, NULL), 0);
        w.table = irq_table_free(w.table);
        irq_world_assert_before(&w, 1);
        irq_world_assert_before(&w, 3);
        irq_world_end(&w);
}

static void others_have_the_last_word(void **state) {
        const struct sched_values fifo_60 = { .policy = SCHED_FIFO, .priority = 60 };
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        assert_int_equal(sched_write(irq_world_thread(&w, 1), &fifo_60), 0);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 0);
        irq_table_refresh(w.table);
        assert_sched_is(irq_world_thread(&w, 1), SCHED_FIFO, 60, 0, false);
        /* unless the holder asks for it again, and then what was there at first comes back */
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        irq_world_assert_raised(&w, 1, 90);
        irq_table_drop(w.table, &owners[0]);
        irq_world_assert_before(&w, 1);

        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        assert_int_equal(sched_write(irq_world_thread(&w, 1), &fifo_60), 0);
        irq_table_drop(w.table, &owners[0]);
        assert_sched_is(irq_world_thread(&w, 1), SCHED_FIFO, 60, 0, false);
        irq_world_end(&w);
}

static void nothing_is_lowered(void **state) {
        const struct sched_values fifo_93 = { .policy = SCHED_FIFO, .priority = 93 };
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(sched_write(irq_world_thread(&w, 1), &fifo_93), 0);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        assert_sched_is(irq_world_thread(&w, 1), SCHED_FIFO, 93, 0, false);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        irq_table_drop(w.table, &owners[0]);
        assert_sched_is(irq_world_thread(&w, 1), SCHED_FIFO, 93, 0, false);
        irq_world_end(&w);
}

/* ---- devices that come and go ---- */

static void a_rule_waits_for_its_device(void **state) {
        static const struct irq_rule rules[] = {
                { .name = "a", .device = "card:PCH", .priority = 90 },
                { .name = "b", .device = "card:2", .priority = 89 },
        };
        struct irq_world w;

        irq_world_four_cards(&w);
        tree_card_remove(&w.tree, "pci0000:00/0000:00:1b.0", 0);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:PCH", 90, NULL), -ENODEV);
        irq_table_set_rules(w.table, rules, 2);
        irq_world_assert_raised(&w, 3, 89);
        irq_world_assert_before(&w, 1);

        tree_card(&w.tree, "pci0000:00/0000:00:1b.0", 0, "PCH");
        irq_table_refresh(w.table);
        irq_world_assert_raised(&w, 1, 90);

        tree_card_remove(&w.tree, "pci0000:00/0000:00:1b.0", 0);
        irq_table_refresh(w.table);
        irq_world_assert_before(&w, 1);

        irq_table_set_rules(w.table, rules, 1);
        irq_world_assert_before(&w, 3);
        assert_int_equal(irq_table_n_raised(w.table), 0);
        irq_world_end(&w);
}

/* J11: unplugged, and plugged into another controller. */
static void a_card_takes_its_claim_to_another_controller(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:USB", 90, NULL), 0);
        irq_world_assert_raised(&w, 2, 90);

        tree_card_remove(
                &w.tree,
                "pci0000:00/0000:00:1c.0/0000:03:00.0/0000:04:02.0/0000:05:00.0/usb3/3-2/3-2.4/"
                "3-2.4:1.0",
                1);
        irq_table_refresh(w.table);
        irq_world_assert_before(&w, 2);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), -ENODEV);

        tree_usb(&w.tree, "pci0000:80/0000:80:01.0/0000:81:00.0/usb5/5-3", "Scarlett 2i2");
        tree_card(&w.tree, "pci0000:80/0000:80:01.0/0000:81:00.0/usb5/5-3/5-3:1.0", 1, "USB");
        irq_table_refresh(w.table);
        irq_world_assert_before(&w, 2);
        irq_world_assert_raised(&w, 3, 90);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        irq_world_end(&w);
}

static void fire(struct irq_world *w, unsigned long of_40, unsigned long of_41) {
        tree_interrupts_begin(&w->tree);
        tree_interrupt(&w->tree, 40, of_40, "PCI-MSIX-0000:05:00.0", "xhci_hcd");
        tree_interrupt(&w->tree, 41, of_41, "PCI-MSIX-0000:05:00.0", "xhci_hcd");
        irq_table_refresh(w->table);
}

/* A controller with two interrupts that have fired both, of which the card uses one. */
static void of_several_interrupts_those_that_fire_are_raised(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        tree_msi(&w.tree, "pci0000:00/0000:00:1c.0/0000:03:00.0/0000:04:02.0/0000:05:00.0", 41);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:USB", 90, NULL), 0);
        irq_world_assert_raised(&w, 2, 90);
        irq_world_assert_raised(&w, 3, 90);

        fire(&w, 5000, 7001);
        irq_world_assert_before(&w, 2);
        irq_world_assert_raised(&w, 3, 90);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        fire(&w, 5000, 7001);
        irq_world_assert_before(&w, 2);
        irq_world_assert_raised(&w, 3, 90);
        fire(&w, 5001, 7001);
        irq_world_assert_raised(&w, 2, 90);
        irq_world_assert_raised(&w, 3, 90);
        irq_table_drop(w.table, &owners[0]);
        irq_world_assert_before(&w, 2);
        irq_world_assert_before(&w, 3);
        irq_world_end(&w);
}

/* A driver that is loaded again has another thread; the former one's end is noticed by itself. */
static void a_new_thread_of_the_same_interrupt_is_raised(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), 0);
        irq_world_drop_thread(&w.tree, FIRST);
        irq_world_stand_in(&w, FIRST, irq_world_thread(&w, 4));
        test_child_end_thread(&w.child, 1);
        for (unsigned i = 0; i < 100; i++) {
                struct sched_values now;

                assert_int_equal(sched_read(irq_world_thread(&w, 4), &now), 0);
                if (now.priority == 90)
                        break;
                assert_true(sd_event_run(w.event, 100000) >= 0);
        }
        irq_world_assert_raised(&w, 4, 90);
        assert_int_equal(irq_table_n_raised(w.table), 1);
        irq_world_end(&w);
}

/* ---- what wakes it up ---- */

static void count(void *userdata) {
        ++*(unsigned *) userdata;
}

static void assert_told(sd_event *event, const unsigned *n, unsigned at_least) {
        for (unsigned i = 0; i < 300 && *n < at_least; i++)
                assert_true(sd_event_run(event, 100000) >= 0);
        assert_true(*n >= at_least);
}

/* Soon, and once more when drivers have had their time. */
static void the_kernel_tells_of_devices(void **state) {
        struct irq_watch *watch;
        sd_event *event;
        unsigned n = 0;
        int fd;

        test_need_root();
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(irq_watch_new(event, count, &n, &watch), 0);
        fd = open("/sys/class/net/lo/uevent", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "change", 6) != 6) {
                (void) irq_watch_free(watch);
                (void) sd_event_unref(event);
                test_skip("the kernel cannot be made to tell of a device here");
        }
        (void) close(fd);
        assert_told(event, &n, 2);
        (void) irq_watch_free(watch);
        (void) sd_event_unref(event);
}

/* As waking up does: by what it is already, as far as two system calls allow. */
static void the_clock_is_set(void **state) {
        struct irq_watch *watch;
        struct timespec now;
        sd_event *event;
        unsigned n = 0;

        test_need_root();
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(irq_watch_new(event, count, &n, &watch), 0);
        if (clock_gettime(CLOCK_REALTIME, &now) < 0 || clock_settime(CLOCK_REALTIME, &now) < 0) {
                (void) irq_watch_free(watch);
                (void) sd_event_unref(event);
                test_skip("the clock cannot be set here");
        }
        assert_told(event, &n, 2);
        (void) irq_watch_free(watch);
        (void) sd_event_unref(event);
}

static void messages_of_the_kernel(void **state) {
        static const struct {
                const char *message;
                size_t length;
                int interest;
        } rows[] = {
#define MESSAGE(text) text, sizeof(text)
                { MESSAGE("add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=sound"), 1 },
                { MESSAGE("bind@/devices/x\0ACTION=bind\0SUBSYSTEM=pci"), 1 },
                { MESSAGE("remove@/devices/x\0ACTION=remove\0SUBSYSTEM=usb"), 1 },
                { MESSAGE("add@/devices/x\0ACTION=add\0SUBSYSTEM=block"), 0 },
                { MESSAGE("offline@/devices/x\0ACTION=offline\0SUBSYSTEM=pci"), 0 },
                { MESSAGE("add@/devices/x\0SUBSYSTEM=sound"), 0 },
                { MESSAGE("libudev\0\0\0\0"), 0 },
                { "", 0, 0 },
                { "ACTION=add", 10, 0 }, /* without its end */
#undef MESSAGE
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                assert_int_equal(irq_watch_is_of_interest(rows[i].message, rows[i].length),
                                 rows[i].interest);
}

/* ---- who may be raised ---- */

static void is_within(const char *machine, const char *device, const char *allowed, bool expected) {
        struct irq_world w;

        irq_world_begin(&w, machine);
        if (irq_table_is_within(w.table, device, &allowed, 1) != expected)
                fail_msg("%s within %s on %s: not %d", device, allowed, machine, expected);
        irq_world_end(&w);
}

static void only_what_the_role_names(void **state) {
        static const struct {
                const char *machine, *device, *allowed;
                bool within;
        } rows[] = {
                { "four-cards", "card:0", "sound", true },
                { "four-cards", "irq:31", "sound", true },
                { "four-cards", "irq/40-xhci_hcd", "sound", true },
                { "four-cards", "pci:0000:81:00.0", "sound", true },
                { "four-cards", "irq:24", "sound", false },
                { "four-cards", "irq:9", "sound", false },
                { "four-cards", "card:0", "card:1", false },
                { "four-cards", "usb:3-2.4", "card:1", true },
                { "four-cards", "card:7", "card:7", false },
                { "shared", "card:0", "sound", true },
                { "shared", "irq:16", "sound", false }, /* i801 is on it too */
                { "shared", "irq/16-i801_smbus", "sound", false },
                { "shared", "irq/16-s-snd_hda_intel:card0", "sound", true },
                { "shared", "irq:116", "sound", false }, /* J16: a disk */
                { "shared", "irq:162", "irq:16", false },
                { "shared", "irq:162", "irq:162", true },
                { "names", "net:enp14s0", "sound", false },
                { "names", "irq:130", "net:enp14s0", true },
                { "names", "net:enp14s0", "irq:130", false },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                is_within(rows[i].machine, rows[i].device, rows[i].allowed, rows[i].within);
}

static void what_cannot_be_raised_and_why(void **state) {
        static const struct {
                const char *machine, *device;
                enum irq_status status;
        } rows[] = {
                { "four-cards", "card:0", IRQ_RESOLVED },
                { "four-cards", "card:9", IRQ_NO_DEVICE },
                { "four-cards", "irq/31-snd_hda_intel:card9", IRQ_NO_DEVICE },
                { "four-cards", "pci:0000:80:01.0", IRQ_NO_LINE },
                { "four-cards", "migration/0", IRQ_BAD_NAME },
                { "four-cards", "watchdogd", IRQ_BAD_NAME },
                { "four-cards", "irq:ksoftirqd/0", IRQ_BAD_NAME },
                { "unthreaded", "card:0", IRQ_NOT_FORCED },
                { "unthreadable", "card:0", IRQ_NOT_THREADED },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct irq_resolution found;
                struct irq_world w;

                irq_world_begin(&w, rows[i].machine);
                assert_int_equal(irq_table_look(w.table, rows[i].device, &found), 0);
                assert_int_equal(found.status, rows[i].status);
                assert_int_equal(found.n_threads > 0, found.status == IRQ_RESOLVED);
                irq_world_end(&w);
        }
}

/* S41: a process that calls itself so, also among kthreadd's children if that could be. */
static void a_process_of_that_name_is_not_raised(void **state) {
        struct irq_world w;
        pid_t process;

        irq_world_begin(&w, "unthreadable");
        process = irq_world_thread(&w, 1);
        (void) snprintf(w.tree.children, sizeof(w.tree.children), "%d ", (int) process);
        tree_file(&w.tree, "proc/2/task/2/children", "%s", w.tree.children);
        {
                char path[64];

                (void) snprintf(path, sizeof(path), "proc/%d/stat", (int) process);
                tree_file(&w.tree, path,
                          "%d (irq/31-snd_hda_intel:card0) S 2 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 "
                          "0 1 "
                          "0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
                          (int) process);
        }
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:0", 90, NULL), -ENODEV);
        assert_int_equal(irq_table_claim(w.table, &owners[0], "irq:31", 90, NULL), -ENODEV);
        assert_sched_is(process, SCHED_OTHER, 0, 0, false);
        irq_world_end(&w);
}

/* ---- after a crash ---- */

/* A broker that claims and is killed. */
static void crash(struct irq_world *w, const char *device, int priority) {
        struct irq_record records[IRQ_RAISED_MAX];
        int n;

        assert_int_equal(irq_table_claim(w->table, &owners[0], device, priority, NULL), 0);
        n = irq_store_read(w->state_dir, IRQ_STORE_THREADS, records);
        assert_int_equal(n, 1);
        /* what a killed one leaves: the file and the thread */
        w->table = irq_table_free(w->table);
        assert_int_equal(irq_store_write(w->state_dir, IRQ_STORE_THREADS, records, (unsigned) n), 0);
        assert_int_equal(
                sched_write(records[0].tid, &(struct sched_values){ .policy = SCHED_FIFO,
                                                                    .priority = priority,
                                                                    .reset_on_fork = true }),
                0);
}

static void a_successor_restores_what_nobody_claims(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        crash(&w, "card:0", 90);
        irq_world_open_table(&w);
        irq_world_assert_raised(&w, 1, 90);
        irq_table_refresh(w.table);
        irq_world_assert_before(&w, 1);
        assert_int_equal(irq_table_n_raised(w.table), 0);
        irq_world_end(&w);
}

static void a_successor_knows_what_was_there_at_first(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        crash(&w, "card:0", 90);
        irq_world_open_table(&w);
        /* claims come one by one, and none undoes what is for another */
        assert_int_equal(irq_table_claim(w.table, &owners[0], "card:2", 91, NULL), 0);
        irq_world_assert_raised(&w, 1, 90);
        assert_int_equal(irq_table_claim(w.table, &owners[1], "card:0", 90, NULL), 0);
        irq_table_refresh(w.table);
        irq_world_assert_raised(&w, 1, 90);
        irq_table_drop(w.table, &owners[1]);
        irq_world_assert_before(&w, 1);
        irq_world_end(&w);
}

static void a_successor_touches_no_other_thread(void **state) {
        struct irq_world w;

        irq_world_four_cards(&w);
        crash(&w, "card:0", 90);
        /* the number is another's: the same thread, but started at another time */
        irq_world_drop_thread(&w.tree, FIRST);
        {
                char path[64];

                (void) snprintf(path, sizeof(path), "proc/%d/stat", (int) irq_world_thread(&w, 1));
                tree_file(&w.tree, path,
                          "%d (irq/31-snd_hda_intel:card0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 "
                          "0 1 "
                          "0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
                          (int) irq_world_thread(&w, 1));
        }
        irq_world_open_table(&w);
        irq_table_refresh(w.table);
        irq_world_assert_raised(&w, 1, 90);
        irq_world_end(&w);
}

static void write_store(const struct irq_world *w, unsigned n, int tid) {
        struct irq_record records[2] = { { .tid = tid, .name = "irq/1-a" },
                                         { .tid = 77, .name = "irq/2-b" } };

        assert_int_equal(irq_store_write(w->state_dir, IRQ_STORE_THREADS, records, n), 0);
}

static void a_file_that_is_not_ours_is_not_believed(void **state) {
        struct irq_record records[IRQ_RAISED_MAX];
        char path[PATH_MAX], other[PATH_MAX];
        struct irq_world w;
        int fd;

        irq_world_begin(&w, "shared");
        (void) snprintf(path, sizeof(path), "%s/irq-threads", w.state_dir);
        (void) snprintf(other, sizeof(other), "%s/other", w.state_dir);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), 0);
        write_store(&w, 2, 5);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), 2);
        assert_string_equal(records[1].name, "irq/2-b");

        assert_int_equal(chmod(path, 0620), 0);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), -EBADMSG);
        write_store(&w, 2, 5);
        assert_int_equal(chown(path, UID_NOBODY, UID_NOBODY), 0);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), -EBADMSG);
        write_store(&w, 2, 5);
        assert_int_equal(rename(path, other), 0);
        assert_int_equal(symlink(other, path), 0);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), -ELOOP);
        write_store(&w, 2, 5);
        assert_int_equal(truncate(path, 100), 0);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), -EBADMSG);
        write_store(&w, 2, 5);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "x", 1, 100), 1);
        (void) close(fd);
        assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_THREADS, records), -EBADMSG);

        write_store(&w, 0, 0);
        assert_int_equal(access(path, F_OK), -1);
        irq_world_end(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_claim_raises_and_dropping_it_restores),
                cmocka_unit_test(the_highest_claim_counts_under_any_name),
                cmocka_unit_test(a_claim_moves_to_another_device),
                cmocka_unit_test(freeing_the_table_restores_all),
                cmocka_unit_test(others_have_the_last_word),
                cmocka_unit_test(nothing_is_lowered),
                cmocka_unit_test(a_rule_waits_for_its_device),
                cmocka_unit_test(a_card_takes_its_claim_to_another_controller),
                cmocka_unit_test(a_new_thread_of_the_same_interrupt_is_raised),
                cmocka_unit_test(of_several_interrupts_those_that_fire_are_raised),
                cmocka_unit_test(the_kernel_tells_of_devices),
                cmocka_unit_test(the_clock_is_set),
                cmocka_unit_test(messages_of_the_kernel),
                cmocka_unit_test(only_what_the_role_names),
                cmocka_unit_test(what_cannot_be_raised_and_why),
                cmocka_unit_test(a_process_of_that_name_is_not_raised),
                cmocka_unit_test(a_successor_restores_what_nobody_claims),
                cmocka_unit_test(a_successor_knows_what_was_there_at_first),
                cmocka_unit_test(a_successor_touches_no_other_thread),
                cmocka_unit_test(a_file_that_is_not_ours_is_not_believed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
