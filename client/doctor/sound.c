/* SPDX-License-Identifier: MIT */

/* The threads that play, the cards, and who of both comes first. */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/cli/scheduling.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"
#include "client/doctor/sound-irq.h"

/* As the kernel cuts their names. */
static const char *const audio_servers[] = { "pipewire",   "pipewire-pulse", "wireplumber",
                                             "pulseaudio", "jackd",          "jackdbus",
                                             NULL };

struct audio {
        const struct machine *machine;
        pid_t pid;  /* whose threads are looked at now */
        bool named; /* by --pid: whatever its name */
        unsigned n_processes;
        unsigned n_realtime;
        int highest;       /* priority of a real-time thread; 0 if there is none */
        char thread[64];   /* its name */
        char without[256]; /* processes that have no real-time thread */
        size_t n;
};

static int look_at_thread(const char *name, void *userdata) {
        struct audio *audio = userdata;
        struct thread_sched sched;

        if (machine_thread(audio->machine, audio->pid, (pid_t) strtol(name, NULL, 10), &sched) <
                    0 ||
            (sched.policy != SCHED_FIFO && sched.policy != SCHED_RR))
                return 0;
        audio->n_realtime++;
        if (sched.priority > audio->highest) {
                audio->highest = sched.priority;
                text_printable(audio->thread, sizeof(audio->thread), sched.comm);
        }
        return 0;
}

static int look_at_process(const char *name, void *userdata) {
        struct audio *audio = userdata;
        unsigned before = audio->n_realtime;
        char comm[64];
        bool known = false;

        if (!isdigit((unsigned char) name[0]) ||
            machine_read(audio->machine, comm, sizeof(comm), "/proc/%s/comm", name) < 0)
                return 0;
        for (const char *const *each = audio_servers; *each; each++)
                known |= strncmp(comm, *each, 15) == 0;
        /* The session manager moves no samples. */
        if (!audio->named && (!known || strcmp(comm, "wireplumber") == 0))
                return 0;

        audio->pid = (pid_t) strtol(name, NULL, 10);
        audio->n_processes++;
        (void) machine_each(audio->machine, look_at_thread, audio, "/proc/%s/task", name);
        if (audio->n_realtime == before && audio->n < sizeof(audio->without)) {
                char printable[64];

                text_printable(printable, sizeof(printable), comm);
                audio->n += (size_t) snprintf(
                        audio->without + audio->n, sizeof(audio->without) - audio->n,
                        "%s%s (pid %d)", audio->n > 0 ? ", " : "", printable, (int) audio->pid);
        }
        return 0;
}

static void find_audio(const struct machine *machine, struct audio *ret) {
        char pid[16];

        *ret = (struct audio){ .machine = machine, .named = machine->other };
        if (!machine->other) {
                (void) machine_each(machine, look_at_process, ret, "/proc");
                return;
        }
        (void) snprintf(pid, sizeof(pid), "%d", (int) machine->pid);
        (void) look_at_process(pid, ret);
}

static void run_audio_threads(const struct machine *machine, struct finding *ret) {
        struct audio audio;

        find_audio(machine, &audio);
        if (audio.n_processes == 0) {
                bool hidden = machine_hides_processes(machine);

                finding_say(ret, hidden ? HEALTH_UNKNOWN : HEALTH_NOTE,
                            hidden ? "no audio server can be seen, but /proc hides other users' "
                                     "processes"
                                   : "no audio server runs (PipeWire, PulseAudio, JACK)");
                return;
        }
        if (audio.without[0] != '\0') {
                finding_say(ret, HEALTH_BAD, "%s: no thread is real-time", audio.without);
                finding_mend(ret,
                             "rtgrant -a --role audio-server -p PID, or restart it: it asks when "
                             "it starts",
                             "RealtimeKit's interface from rtgrantd, or rtgrant in the line that "
                             "starts it");
                (void) snprintf(ret->lease, sizeof(ret->lease),
                                "rtgrant --role audio-server COMMAND");
                return;
        }
        finding_say(ret, HEALTH_FINE,
                    "%u real-time threads of %u audio processes; the highest is %s at %d",
                    audio.n_realtime, audio.n_processes, audio.thread, audio.highest);
}

const struct check check_audio_threads = {
        .id = "audio-threads",
        .title = "Real-time threads of the audio server",
        .why = "This is what all the rest is for: without it, any busy program makes sound break "
               "off.",
        .run = run_audio_threads,
};

struct order {
        int lowest; /* priority of a sound card's IRQ thread; 0 if there is none */
        char card[64];
        int irq;
};

static void take_irq(const struct sound_irq *irq, void *userdata) {
        struct order *order = userdata;

        if (irq->priority > 0 && (order->lowest == 0 || irq->priority < order->lowest)) {
                order->lowest = irq->priority;
                order->irq = irq->number;
                (void) snprintf(order->card, sizeof(order->card), "%s", irq->card);
        }
}

static void run_irq_order(const struct machine *machine, struct finding *ret) {
        struct order order = {};
        struct audio audio;

        find_audio(machine, &audio);
        sound_irq_each(machine, take_irq, &order);
        if (order.lowest == 0) {
                finding_say(ret, HEALTH_UNKNOWN, "no sound card with an interrupt thread");
                return;
        }
        if (audio.highest == 0) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "no real-time audio thread to compare with the thread of IRQ %d (%s), "
                            "which has %d",
                            order.irq, order.card, order.lowest);
                return;
        }
        if (audio.highest < order.lowest) {
                finding_say(ret, HEALTH_FINE,
                            "the thread of IRQ %d (%s) has %d, above the highest audio thread, %s "
                            "at %d",
                            order.irq, order.card, order.lowest, audio.thread, audio.highest);
                return;
        }
        finding_say(ret, HEALTH_WARNING,
                    "%s has %d, not below the thread of its sound card's IRQ %d (%s), which has %d",
                    audio.thread, audio.highest, order.irq, order.card, order.lowest);
        finding_mend(ret, "as root: chrt -f -p 90 TID-OF-THE-IRQ-THREAD",
                     "[Irq card:0] in /etc/rtgrant/policy.conf");
        (void) snprintf(ret->lease, sizeof(ret->lease), "rtgrant --irq card:0 COMMAND");
}

const struct check check_irq_order = {
        .id = "irq-order",
        .title = "Sound card before its users",
        .why = "An audio thread that runs while its card's interrupt waits, waits for it in turn.",
        .run = run_irq_order,
};

static int count_card(const char *name, void *userdata) {
        unsigned *n = userdata;

        *n += strncmp(name, "card", 4) == 0 && isdigit((unsigned char) name[4]);
        return 0;
}

static void run_cards(const struct machine *machine, struct finding *ret) {
        unsigned n = 0;

        (void) machine_each(machine, count_card, &n, "/sys/class/sound");
        if (n == 0) {
                finding_say(ret, HEALTH_NOTE, "there is no sound card");
                return;
        }
        finding_say(ret, HEALTH_FINE, "%u sound card%s: see rtgrantctl irq", n, n == 1 ? "" : "s");
}

const struct check check_cards = {
        .id = "cards",
        .title = "Sound cards",
        .why = "",
        .run = run_cards,
};

static void run_usb_lowlatency(const struct machine *machine, struct finding *ret) {
        char value[8];

        if (machine_read(machine, value, sizeof(value),
                         "/sys/module/snd_usb_audio/parameters/lowlatency") < 0) {
                finding_say(ret, HEALTH_FINE,
                            "no USB sound card is in use, or its driver knows no other way");
                return;
        }
        if (value[0] == 'Y' || value[0] == '1') {
                finding_say(ret, HEALTH_FINE, "snd-usb-audio plays with low latency");
                return;
        }
        finding_say(ret, HEALTH_WARNING,
                    "snd-usb-audio has lowlatency=N: it queues more than was asked for");
        finding_mend(ret,
                     "unplug it; as root: modprobe -r snd-usb-audio; modprobe snd-usb-audio "
                     "lowlatency=1",
                     "remove lowlatency=0 from /etc/modprobe.d/");
}

const struct check check_usb_lowlatency = {
        .id = "usb-lowlatency",
        .title = "USB sound",
        .why = "Each packet queued in advance is a millisecond that no setting of the program "
               "takes away.",
        .run = run_usb_lowlatency,
};

/* ---- streams ---- */

struct streams {
        const struct machine *machine;
        const char *card, *pcm; /* on the way down */
        unsigned n_open, n_xrun;
        char shortest[128];
        double shortest_ms;
};

static int look_at_stream(const char *name, void *userdata) {
        struct streams *streams = userdata;
        char text[1024], *at;
        unsigned long period = 0;
        double rate = 0, ms;

        if (machine_read(streams->machine, text, sizeof(text), "/proc/asound/%s/%s/%s/status",
                         streams->card, streams->pcm, name) < 0 ||
            strncmp(text, "closed", 6) == 0)
                return 0;
        streams->n_open++;
        streams->n_xrun += strstr(text, "state: XRUN") != NULL;
        if (machine_read(streams->machine, text, sizeof(text), "/proc/asound/%s/%s/%s/hw_params",
                         streams->card, streams->pcm, name) < 0)
                return 0;
        if ((at = strstr(text, "period_size: ")))
                period = strtoul(at + 13, NULL, 10);
        if ((at = strstr(text, "rate: ")))
                rate = strtod(at + 6, NULL);
        if (period == 0 || rate < 1)
                return 0;
        ms = (double) period * 1000 / rate;
        if (streams->shortest_ms > 0 && ms >= streams->shortest_ms)
                return 0;
        streams->shortest_ms = ms;
        (void) snprintf(streams->shortest, sizeof(streams->shortest),
                        "%.20s/%.20s has periods of %lu frames, %.1f ms", streams->card,
                        streams->pcm, period, ms);
        return 0;
}

static int look_at_pcm(const char *name, void *userdata) {
        struct streams *streams = userdata;

        if (strncmp(name, "pcm", 3) != 0)
                return 0;
        streams->pcm = name;
        (void) machine_each(streams->machine, look_at_stream, streams, "/proc/asound/%s/%s",
                            streams->card, name);
        return 0;
}

static int look_at_card(const char *name, void *userdata) {
        struct streams *streams = userdata;

        if (strncmp(name, "card", 4) != 0 || !isdigit((unsigned char) name[4]))
                return 0;
        streams->card = name;
        (void) machine_each(streams->machine, look_at_pcm, streams, "/proc/asound/%s", name);
        return 0;
}

static void run_xruns(const struct machine *machine, struct finding *ret) {
        struct streams streams = { .machine = machine };

        (void) machine_each(machine, look_at_card, &streams, "/proc/asound");
        if (streams.n_open == 0) {
                finding_say(ret, HEALTH_FINE, "no stream is open");
                return;
        }
        if (streams.n_xrun > 0) {
                finding_say(ret, HEALTH_WARNING,
                            "%u of %u open streams stand still after an xrun; %s", streams.n_xrun,
                            streams.n_open, streams.shortest);
                finding_mend(ret, "rtgrant-latency shows the shortest buffer that holds here",
                             "a larger period in the audio server");
                return;
        }
        finding_say(ret, HEALTH_FINE, "%u open streams, none in an xrun; %s", streams.n_open,
                    streams.shortest);
}

const struct check check_xruns = {
        .id = "streams",
        .title = "Streams that play now",
        .why = "An xrun is a gap in the sound: the buffer was not filled in time.",
        .run = run_xruns,
};
