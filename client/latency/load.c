/* SPDX-License-Identifier: MIT */

#include "client/latency/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cleanup.h"

#define FILE_BYTES      (64U << 20)
#define MEMORY_BYTES    (64U << 20)
#define CHUNK           (256U << 10)
#define CPUS_MAX        64
#define STORM           4
#define CPU_SECONDS_MAX 7200

static void die_with_parent(pid_t parent) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);
}

/* A helper of the load. Returns in the child and in the parent, as fork(2) does. */
static pid_t fork_helper(void) {
        pid_t parent = getpid(), pid;

        pid = fork();
        if (pid == 0)
                die_with_parent(parent);
        return pid;
}

static void *buffer(void) {
        static char chunk[CHUNK];

        memset(chunk, 'x', sizeof(chunk));
        return chunk;
}

/* A file without a name; where the file system has none, its name is gone at once. */
static int open_nameless(const char *directory) {
        char path[4096];
        int fd;

        fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
                return fd;
        (void) snprintf(path, sizeof(path), "%s/rtgrant-latency-XXXXXX", directory);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                _exit(EXIT_FAILURE);
        (void) unlink(path);
        return fd;
}

static void write_file(int fd) {
        const void *chunk = buffer();

        for (size_t done = 0; done < FILE_BYTES; done += CHUNK)
                if (pwrite(fd, chunk, CHUNK, (off_t) done) < 0)
                        _exit(EXIT_FAILURE);
        (void) fdatasync(fd);
}

static void run_nothing(const char *directory, const char *command) {
        for (;;)
                (void) pause();
}

static void run_cpu(const char *directory, const char *command) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        volatile unsigned x = 0;

        for (long i = 1; i < n && i < CPUS_MAX; i++)
                if (fork_helper() == 0)
                        break;
        for (;;)
                x = x + 1;
}

static void read_whole(int directory_fd, const char *name, const char *file) {
        char path[300], text[4096];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s", name, file);
        fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        while (read(fd, text, sizeof(text)) > 0)
                ;
        (void) close(fd);
}

static void run_proc(const char *directory, const char *command) {
        static const char *const files[] = { "stat", "status", "maps", "smaps", "cmdline" };
        struct dirent *entry;
        DIR *proc;

        for (;;) {
                proc = opendir("/proc");
                if (!proc)
                        _exit(EXIT_FAILURE);
                while ((entry = readdir(proc)))
                        for (size_t i = 0; i < ELEMENTS(files); i++)
                                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
                                        read_whole(dirfd(proc), entry->d_name, files[i]);
                (void) closedir(proc);
        }
}

static void run_disk_write(const char *directory, const char *command) {
        int fd = open_nameless(directory);

        for (;;) {
                write_file(fd);
                (void) ftruncate(fd, 0);
        }
}

static void run_disk_copy(const char *directory, const char *command) {
        int from = open_nameless(directory), to = open_nameless(directory);
        char *chunk = buffer();
        ssize_t n;

        write_file(from);
        for (;;) {
                (void) posix_fadvise(from, 0, 0, POSIX_FADV_DONTNEED);
                for (off_t at = 0; (n = pread(from, chunk, CHUNK, at)) > 0; at += n)
                        if (pwrite(to, chunk, (size_t) n, at) < 0)
                                _exit(EXIT_FAILURE);
                (void) fdatasync(to);
                (void) ftruncate(to, 0);
        }
}

static void run_disk_read(const char *directory, const char *command) {
        int fd = open_nameless(directory);
        char *chunk = buffer();
        ssize_t n;

        write_file(fd);
        for (;;) {
                (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
                for (off_t at = 0; (n = pread(fd, chunk, CHUNK, at)) > 0; at += n)
                        ;
        }
}

static void run_memory(const char *directory, const char *command) {
        char *memory;

        for (;;) {
                memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (memory == MAP_FAILED)
                        _exit(EXIT_FAILURE);
                memset(memory, 1, MEMORY_BYTES);
                memcpy(memory, memory + MEMORY_BYTES / 2, MEMORY_BYTES / 2);
                (void) munmap(memory, MEMORY_BYTES);
        }
}

static void run_fork(const char *directory, const char *command) {
        for (;;) {
                for (int i = 0; i < STORM; i++)
                        if (fork_helper() == 0)
                                _exit(EXIT_SUCCESS);
                while (waitpid(-1, NULL, 0) > 0)
                        ;
        }
}

static int connect_loopback(int *ret_other) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        socklen_t size = sizeof(address);
        int listening, fd;

        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listening < 0 || fd < 0 || bind(listening, (void *) &address, size) < 0 ||
            listen(listening, 1) < 0 || getsockname(listening, (void *) &address, &size) < 0 ||
            connect(fd, (void *) &address, size) < 0)
                _exit(EXIT_FAILURE);
        *ret_other = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        (void) close(listening);
        return fd;
}

static void run_network(const char *directory, const char *command) {
        int other, fd = connect_loopback(&other);
        char *chunk = buffer();

        if (fork_helper() == 0)
                for (;;)
                        if (send(fd, chunk, CHUNK / 4, MSG_NOSIGNAL) < 0)
                                _exit(EXIT_FAILURE);
        for (;;)
                if (recv(other, chunk, CHUNK, 0) <= 0)
                        _exit(EXIT_FAILURE);
}

static void run_command(const char *directory, const char *command) {
        (void) execl("/bin/sh", "sh", "-c", command, (char *) NULL);
        _exit(127);
}

static const struct load loads[] = {
        { "none", "nothing", NULL },
        { "cpu", "a busy loop for each CPU", run_cpu },
        { "proc", "reading all of /proc", run_proc },
        { "disk-write", "writing 64 MiB to disk", run_disk_write },
        { "disk-copy", "copying 64 MiB on disk", run_disk_copy },
        { "disk-read", "reading 64 MiB from disk", run_disk_read },
        { "memory", "getting, filling and freeing 64 MiB", run_memory },
        { "fork", "processes that begin and end, 4 at a time", run_fork },
        { "network", "a connection over loopback", run_network },
};

const struct load load_command = { "with", "a command of yours", run_command };

const struct load *load_by_index(size_t index) {
        return index < ELEMENTS(loads) ? &loads[index] : NULL;
}

const struct load *load_by_name(const char *name) {
        for (size_t i = 0; i < ELEMENTS(loads); i++)
                if (strcmp(loads[i].name, name) == 0)
                        return &loads[i];

        return NULL;
}

/* What the load may use at the most, should it ever be left alone. */
static void set_limits(bool own_code) {
        struct rlimit cpu = { CPU_SECONDS_MAX, CPU_SECONDS_MAX };
        struct rlimit file = { FILE_BYTES, FILE_BYTES };
        struct rlimit core = { 0, 0 };

        (void) setrlimit(RLIMIT_CPU, &cpu);
        (void) setrlimit(RLIMIT_CORE, &core);
        if (own_code)
                (void) setrlimit(RLIMIT_FSIZE, &file);
}

/*
 * Between the group and the program stands a keeper: the kernel tells only direct children of a
 * parent's death, and a command's own children would outlive it. The keeper dies last, by ending
 * the whole group, itself with it.
 */
static void keep(const struct load *load, const char *directory, const char *command,
                 pid_t parent) {
        char name[16];
        sigset_t set;
        pid_t pid;

        (void) setpgid(0, 0);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(EXIT_FAILURE);

        pid = fork();
        if (pid == 0) {
                (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
                if (load->run != run_command)
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) snprintf(name, sizeof(name), "load-%s", load->name);
                (void) prctl(PR_SET_NAME, name);
                set_limits(load->run != run_command);
                load->run(directory, command);
                _exit(EXIT_FAILURE);
        }
        while (sigwaitinfo(&set, NULL) == SIGCHLD || errno == EINTR)
                errno = 0;
        (void) kill(0, SIGKILL);
}

pid_t load_start(const struct load *load, const char *directory, const char *command) {
        pid_t parent = getpid(), pid;

        if (!load->run)
                return 0;
        (void) fflush(NULL);
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                keep(load, directory, command, parent);
                run_nothing(directory, command);
        }
        (void) setpgid(pid, pid);
        return pid;
}

void load_stop(pid_t group) {
        if (group <= 0)
                return;
        (void) kill(-group, SIGKILL);
        (void) waitpid(group, NULL, 0);
}

int load_max_sectors_kb(const char *directory, unsigned *ret) {
        static const char *const forms[] = {
                "/sys/dev/block/%u:%u/queue/max_sectors_kb",
                "/sys/dev/block/%u:%u/../queue/max_sectors_kb", /* of a partition's disk */
        };
        char path[128];
        struct stat st;
        FILE *file;
        int n;

        if (stat(directory, &st) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTS(forms); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void) snprintf(path, sizeof(path), forms[i], major(st.st_dev), minor(st.st_dev));
#pragma GCC diagnostic pop
                file = fopen(path, "re");
                if (!file)
                        continue;
                n = fscanf(file, "%u", ret);
                (void) fclose(file);
                return n == 1 ? 0 : -EIO;
        }
        return -ENODEV;
}
