/* SPDX-License-Identifier: MIT */

#include "client/cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS 20000

static const int signals[AGENT_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

static struct agent *running; /* for on_signal() */

/* A job in the background that touched the terminal would be stopped. */
static bool is_in_front(void) {
        return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void end(struct agent *agent) {
        (void) kill(agent->pid, SIGTERM);
        (void) kill(agent->pid, SIGCONT);
        while (waitpid(agent->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        agent->pid = 0;

        /* It may have died without echo; and half a password is nobody else's to read. */
        if (is_in_front())
                (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &agent->before);
}

/* Ctrl-C is for both of us: the terminal is put right before the shell has it again. */
static void on_signal(int number) {
        if (running && running->pid > 0)
                end(running);
        (void) raise(number); /* with what it does by default */
}

static void catch_signals(struct agent *agent) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int) SA_RESETHAND };

        running = agent;
        (void) sigemptyset(&action.sa_mask);
        for (size_t i = 0; i < AGENT_SIGNALS; i++) {
                (void) sigaction(signals[i], NULL, &agent->actions[i]);
                if (agent->actions[i].sa_handler == SIG_DFL)
                        (void) sigaction(signals[i], &action, NULL);
        }
}

/* In the child, between fork and execve: nothing that needs a lock. */
static void become_agent(pid_t parent, int ready_fd, const char *ready_number) {
        sigset_t none;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        if (getppid() == parent && fcntl(ready_fd, F_SETFD, 0) >= 0)
                (void) execlp("pkttyagent", "pkttyagent", "--fallback", "--notify-fd", ready_number,
                              NULL);
        _exit(127);
}

void agent_start(struct agent *agent) {
        pid_t parent = getpid();
        struct pollfd ready;
        char number[16];
        int fds[2];

        if (agent->pid > 0 || geteuid() == 0 || !isatty(STDIN_FILENO) || !is_in_front() ||
            tcgetattr(STDIN_FILENO, &agent->before) < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return;

        (void) snprintf(number, sizeof(number), "%d", fds[1]);
        catch_signals(agent);
        agent->pid = fork();
        if (agent->pid == 0)
                become_agent(parent, fds[1], number);
        (void) close(fds[1]);

        /* It closes its end when it is ready, and so does its end. */
        ready = (struct pollfd) { .fd = fds[0] };
        if (agent->pid > 0)
                (void) poll(&ready, 1, READY_MS);
        (void) close(fds[0]);
}

void agent_stop(struct agent *agent) {
        if (running != agent)
                return;

        if (agent->pid > 0)
                end(agent);
        for (size_t i = 0; i < AGENT_SIGNALS; i++)
                (void) sigaction(signals[i], &agent->actions[i], NULL);
        running = NULL;
}
