/* SPDX-License-Identifier: MIT */

#include "broker/harden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "broker/cleanup.h"
#include "broker/config.h"
#include "broker/proc.h"

#if HAVE_SECCOMP
#include <seccomp.h>
#endif

/* The leak checker of the sanitizers stops and inspects the process as a debugger would. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define CAP_BIT(cap) (UINT64_C(1) << (cap))

/*
 * SYS_NICE: what it is for. IPC_LOCK: its own memory stays locked as it grows. SYS_PTRACE: owners
 * of user namespaces, and /proc mounted with hidepid=. SYS_RESOURCE: its own limits, and how much memory
 * others may lock. PERFMON: the kernel's records of who has a CPU.
 */
#define CAPS_KEPT                                                                  \
        (CAP_BIT(CAP_SYS_NICE) | CAP_BIT(CAP_IPC_LOCK) | CAP_BIT(CAP_SYS_PTRACE) | \
         CAP_BIT(CAP_SYS_RESOURCE) | CAP_BIT(CAP_PERFMON))

static int read_caps(struct __user_cap_data_struct data[2]) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

        return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

static void drop_capabilities(char *missing, size_t size) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];
        uint64_t permitted;

        for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
                if (!(CAPS_KEPT & CAP_BIT(cap)))
                        (void) prctl(PR_CAPBSET_DROP, cap);

        if (read_caps(data) < 0)
                return;
        permitted = ((uint64_t) data[1].permitted << 32 | data[0].permitted) & CAPS_KEPT;
        if (!(permitted & CAP_BIT(CAP_SYS_NICE)))
                (void) snprintf(
                        missing, size,
                        "CAP_SYS_NICE is missing: no priority can be given (is this root, and "
                        "does CapabilityBoundingSet= keep it?)");

        for (unsigned i = 0; i < 2; i++) {
                data[i].permitted = (uint32_t) (permitted >> (32 * i));
                data[i].effective = data[i].permitted;
                data[i].inheritable = 0;
        }
        (void) syscall(SYS_capset, &header, data);
}

static void set_limits(void) {
        struct rlimit none = {};
        struct rlimit files;

        if (!SANITIZED)
                (void) setrlimit(RLIMIT_CORE, &none);
        /* a descriptor for each lease */
        if (getrlimit(RLIMIT_NOFILE, &files) >= 0) {
                files.rlim_cur = files.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &files);
        }
}

/* Code is what is dropped: it is read again from its file, and nothing of it is ours alone. */
static void drop_code_pages(void) {
        _cleanup_free_ char *maps = NULL;

        if (proc_read(getpid(), 0, "maps", &maps, NULL) < 0)
                return;

        for (const char *line = maps; line && *line;
             line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                unsigned long begin, end, inode;
                char permissions[5];

                if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &begin, &end, permissions,
                           &inode) == 4 &&
                    inode != 0 && strcmp(permissions, "r-xp") == 0)
                        (void) madvise((void *) begin, end - begin, MADV_DONTNEED);
        }
}

void harden_memory(void) {
        if (SANITIZED)
                return;

        drop_code_pages();
        /* On fault: plain locking would make every page of every library resident. */
        (void) mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static void avoid_oom_killer(void) {
        _cleanup_close_ int fd = -1;

        fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "-900", 4) < 0)
                return; /* without CAP_SYS_RESOURCE: the service manager may have done it */
}

#if HAVE_SECCOMP
/*
 * What no part of the daemon ever does. A list of what is forbidden rather than of what is allowed:
 * the C library, NSS and the journal are not ours to foresee, and a forgotten call must not cost
 * a musician his priority. No process can be started, no identity or namespace changed, no other
 * process's memory touched, no kernel loaded into.
 */
static void forbid_syscalls(void) {
        static const int forbidden[] = {
                SCMP_SYS(execve),
                SCMP_SYS(execveat),
                SCMP_SYS(fork),
                SCMP_SYS(vfork),
                SCMP_SYS(ptrace),
                SCMP_SYS(process_vm_readv),
                SCMP_SYS(process_vm_writev),
                SCMP_SYS(pidfd_getfd),
                SCMP_SYS(kill),
                SCMP_SYS(tkill),
                SCMP_SYS(pidfd_send_signal),
                SCMP_SYS(mount),
                SCMP_SYS(umount2),
                SCMP_SYS(pivot_root),
                SCMP_SYS(chroot),
                SCMP_SYS(setns),
                SCMP_SYS(unshare),
                SCMP_SYS(setuid),
                SCMP_SYS(setgid),
                SCMP_SYS(setreuid),
                SCMP_SYS(setregid),
                SCMP_SYS(setresuid),
                SCMP_SYS(setresgid),
                SCMP_SYS(setfsuid),
                SCMP_SYS(setfsgid),
                SCMP_SYS(setgroups),
                SCMP_SYS(capset),
                SCMP_SYS(personality),
                SCMP_SYS(init_module),
                SCMP_SYS(finit_module),
                SCMP_SYS(delete_module),
                SCMP_SYS(kexec_load),
                SCMP_SYS(kexec_file_load),
                SCMP_SYS(bpf),
                SCMP_SYS(userfaultfd),
                SCMP_SYS(io_uring_setup),
                SCMP_SYS(keyctl),
                SCMP_SYS(add_key),
                SCMP_SYS(request_key),
                SCMP_SYS(reboot),
                SCMP_SYS(swapon),
                SCMP_SYS(swapoff),
                SCMP_SYS(iopl),
                SCMP_SYS(ioperm),
                SCMP_SYS(settimeofday),
                SCMP_SYS(clock_settime),
                SCMP_SYS(sethostname),
                SCMP_SYS(acct),
        };
        scmp_filter_ctx filter;

        filter = seccomp_init(SCMP_ACT_ALLOW);
        if (!filter)
                return;

        for (size_t i = 0; i < ELEMENTS(forbidden); i++)
                (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), forbidden[i], 0);
        /* a CPU may be observed, a process not */
        (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(perf_event_open), 1,
                                SCMP_A1(SCMP_CMP_NE, UINT64_MAX));
        /* threads may be made, processes not; clone3 hides which, and without it clone is used */
        (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
        (void) seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        (void) seccomp_load(filter);
        seccomp_release(filter);
}
#else
static void forbid_syscalls(void) {
}
#endif

void harden(char *ret_missing, size_t size) {
        ret_missing[0] = '\0';

        set_limits();
        avoid_oom_killer();
        /* One arena, and large blocks given back: what is locked should be what is used. */
        (void) mallopt(M_ARENA_MAX, 1);
        (void) mallopt(M_MMAP_THRESHOLD, 256 * 1024);
        drop_capabilities(ret_missing, size);
        if (SANITIZED)
                return;

        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        forbid_syscalls();
}
