#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
`rtgrantctl doctor` on copies of machines that this one is not: each check is shown a machine that it
has to complain of, and one that it has not. In the Test Anything Protocol.
"""

import json
import os
import subprocess
import sys
import tempfile

RTGRANTCTL = sys.argv[1]

KTHREAD = 0x00200000
OTHER, FIFO, RR = 0, 1, 2


def stat(pid, comm, policy=OTHER, priority=0, flags=0x400000, ppid=1):
    """proc_pid_stat(5): field 9 flags, 40 rt_priority, 41 policy."""
    fields = ["S", ppid, pid, pid, 0, -1, flags] + [0] * 30 + [priority, policy] + [0] * 11
    assert len(fields) == 50  # and the two in front of them
    return f"{pid} ({comm}) {' '.join(map(str, fields))}\n"


def process(pid, comm, threads=(), ppid=1, caps=("0", "0"), groups="", limits=None, cgroup="0::/\n",
            uid_map="         0          0 4294967295\n"):
    """A process, with @threads of (tid, comm, policy, priority) beside the main one."""
    limits = {"locked memory": ("unlimited", "unlimited"), "realtime priority": ("0", "0"),
              "realtime timeout": ("unlimited", "unlimited"), **(limits or {})}
    text = "Limit                     Soft Limit           Hard Limit           Units     \n"
    for name, (soft, hard) in limits.items():
        text += f"{'Max ' + name:<25} {soft:<20} {hard:<20} bytes     \n"
    files = {
        f"proc/{pid}/comm": comm + "\n",
        f"proc/{pid}/status": f"Name:\t{comm}\nPid:\t{pid}\nPPid:\t{ppid}\nGroups:\t{groups}\n"
                              f"CapPrm:\t{caps[0]}\nCapEff:\t{caps[1]}\nCapBnd:\t000001ffffffffff\n",
        f"proc/{pid}/limits": text,
        f"proc/{pid}/cgroup": cgroup,
        f"proc/{pid}/uid_map": uid_map,
        f"proc/{pid}/task/{pid}/stat": stat(pid, comm),
        f"proc/{pid}/stat": stat(pid, comm),
    }
    for tid, name, policy, priority in threads:
        files[f"proc/{pid}/task/{tid}/stat"] = stat(tid, name, policy, priority)
    return files


# A plain desktop that has what it needs.
DESKTOP = {
    **process(1, "systemd"),
    **process(800, "pipewire", [(801, "data-loop.0", RR, 70)]),
    "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 quiet threadirqs preempt=full\n",
    "proc/version": "Linux version 6.12.0-amd64 (gcc) #1 SMP PREEMPT_DYNAMIC\n",
    "proc/sys/kernel/osrelease": "6.12.0-amd64\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "proc/sys/kernel/sched_autogroup_enabled": "0\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
    "proc/meminfo": "MemTotal:       16000000 kB\n",
    "proc/self/mounts": "proc /proc proc rw,relatime 0 0\ntmpfs /dev/shm tmpfs rw,nosuid 0 0\n",
    "boot/config-6.12.0-amd64": "CONFIG_PREEMPT_BUILD=y\nCONFIG_HIGH_RES_TIMERS=y\n# CONFIG_RT_GROUP_SCHED is not set\n",
    "etc/group": "root:x:0:\nrealtime:x:990:alice\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us": "0\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "sys/devices/system/cpu/smt/active": "0\n",
    "sys/block/sda/queue/rotational": "0\n",
    "sys/block/sda/queue/max_sectors_kb": "1280\n",
    "sys/block/sda/queue/scheduler": "none [mq-deadline]\n",
    "sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    "sys/kernel/security/lsm": "lockdown,capability,yama,apparmor\n",
    "usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service": "",
    "usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service": "",
    "run/dbus/system_bus_socket": "",
}


def sound_card(irq, others="", thread=50, index=0, pci="0000:00:1f.3"):
    """An HDA card on a line of its own, or with @others, and its thread if it has one."""
    device = f"sys/devices/pci0000:00/{pci}"
    tid = 200 + index
    line = ",".join(filter(None, [f"snd_hda_intel:card{index}", others]))
    files = {
        f"{device}/irq": f"{irq}\n",
        f"{device}/class": "0x040300\n",
        f"{device}/sound/card{index}/number": f"{index}\n",
        f"{device}/sound/card{index}/id": "PCH\n",
        f"sys/class/sound/card{index}": ("link", f"../../devices/pci0000:00/{pci}/sound/card{index}"),
        f"{device}/sound/card{index}/device": ("link", f"../../../{pci}"),
        f"{device}/subsystem": ("link", "../../../bus/pci"),
        f"{device}/driver": ("link", "../../../bus/pci/drivers/snd_hda_intel"),
        "sys/bus/pci/drivers/snd_hda_intel/bind": "",
        f"sys/bus/pci/devices/{pci}": ("link", f"../../../devices/pci0000:00/{pci}"),
        f"sys/kernel/irq/{irq}/actions": line + "\n",
        "proc/interrupts": f"           CPU0\n {irq}:  1234  IR-IO-APIC {irq}-fasteoi  {line.replace(',', ', ')}\n",
        **{path: text for path, text in process(2, "kthreadd", ppid=0).items()},
        "proc/2/stat": stat(2, "kthreadd", flags=KTHREAD, ppid=0),
        "proc/2/task/2/children": f"{tid} " if thread else "",
    }
    if thread:
        name = f"irq/{irq}-snd_hda_intel:card{index}"
        files.update(process(tid, name, ppid=2))
        files[f"proc/{tid}/stat"] = stat(tid, name, FIFO, thread, KTHREAD, ppid=2)
        files[f"proc/{tid}/task/{tid}/stat"] = stat(tid, name, FIFO, thread, KTHREAD, ppid=2)
    return files


SHARED = {**DESKTOP, **sound_card(16, "i801_smbus,ehci_hcd:usb1")}
LAPTOP = {
    **DESKTOP,
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference": "balance_power\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "800000\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "4200000\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state2/latency": "890\n",
    "sys/devices/system/cpu/cpu0/cpuidle/state2/name": "C10\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/cpu_core/cpus": "0-3\n",
    "sys/devices/cpu_atom/cpus": "4-11\n",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/dm-1\tpartition\t8000000\t0\t-2\n",
    "proc/sys/kernel/sched_autogroup_enabled": "1\n",
}
RT_KERNEL = {
    **DESKTOP,
    "sys/kernel/realtime": "1\n",
    "proc/version": "Linux version 6.12.0-rt-amd64 (gcc) #1 SMP PREEMPT_RT\n",
    "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1\n",
}
RT_GROUP = {
    **DESKTOP,
    **process(1, "systemd", cgroup="4:cpu,cpuacct:/user.slice\n0::/user.slice\n"),
    "sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us": "0\n",
    "boot/config-6.12.0-amd64": "CONFIG_RT_GROUP_SCHED=y\n",
}
V2_CONTROLLER = {
    **DESKTOP,
    **process(1, "systemd", cgroup="0::/user.slice/a\n"),
    "sys/fs/cgroup/user.slice/cpu.weight": "100\n",
    "boot/config-6.12.0-amd64": "CONFIG_RT_GROUP_SCHED=y\n",
}
CONTAINER = {
    **DESKTOP,
    **process(1, "bash", uid_map="         0     100000      65536\n", caps=("800000", "0")),
    "run/systemd/container": "lxc\n",
    "proc/self/mounts": "proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs rw,size=65535k 0 0\n".replace("65535", "16384"),
    "run/dbus/system_bus_socket": None,
}
HIDEPID = {
    **DESKTOP,
    "proc/self/mounts": "proc /proc proc rw,relatime,hidepid=invisible 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n",
    "proc/800/comm": None,
}


def limits(**values):
    return process(1, "systemd", limits={name.replace("_", " "): (value, value) for name, value in values.items()})


FAIR_SERVER = {
    "sys/kernel/debug/sched/fair_server/cpu0/runtime": "100000000\n",
    "sys/kernel/debug/sched/fair_server/cpu0/period": "1000000000\n",
}

# Machine, changes, check, health, a word of what is said.
ROWS = [
    ("desktop", DESKTOP, {}, "routes", "note", "RealtimeKit: there to be asked"),
    ("A03: none of the four", DESKTOP, {"run/dbus/system_bus_socket": None}, "routes", "bad", "no system bus"),
    ("own limit", DESKTOP, limits(realtime_priority="95"), "routes", "fine", "up to priority 95"),
    ("CAP_SYS_NICE", DESKTOP, process(1, "x", caps=("800000", "800000")), "routes", "fine", "CAP_SYS_NICE"),
    ("desktop", DESKTOP, {}, "audio-threads", "fine", "data-loop.0 at 70"),
    ("not real-time", DESKTOP, process(800, "pipewire", [(801, "data-loop.0", OTHER, 0)]), "audio-threads", "bad", "pipewire (pid 800)"),
    ("a name that lies", DESKTOP, process(800, "pipewire", [(801, "x) R 1 (y", RR, 33)]), "audio-threads", "fine", "x) R 1 (y at 33"),
    ("no server", DESKTOP, {"proc/800/comm": "cat\n"}, "audio-threads", "note", "no audio server"),
    ("hidepid", HIDEPID, {}, "audio-threads", "unknown", "hides"),
    ("jackd", DESKTOP, process(900, "jackd"), "audio-threads", "bad", "jackd (pid 900)"),
    ("K05: equal to the card's", SHARED, process(800, "pipewire", [(801, "loop", FIFO, 50)]), "irq-order", "warning", "not below the thread of its sound card's IRQ 16"),
    ("the card is first", DESKTOP, sound_card(16, thread=90), "irq-order", "fine", "above the highest audio thread"),
    ("no threads", DESKTOP, sound_card(16, thread=0), "irq-order", "unknown", "no sound card with an interrupt thread"),
    ("desktop", DESKTOP, {}, "rttime", "fine", "no limit ends"),
    ("200 ms", DESKTOP, limits(realtime_timeout="200000"), "rttime", "warning", "200000 us"),
    ("5 ms", DESKTOP, limits(realtime_timeout="5000"), "rttime", "bad", "5000 us"),
    ("desktop", DESKTOP, {}, "memlock", "fine", "unlimited"),
    ("8 MiB", DESKTOP, limits(locked_memory="8388608"), "memlock", "warning", "8 MiB"),
    ("64 KiB, as of old", DESKTOP, limits(locked_memory="65536"), "memlock", "warning", "may lock 64 KiB"),
    ("desktop", DESKTOP, {}, "rt-group", "fine", "not held back"),
    ("C01", RT_GROUP, {}, "rt-group", "bad", "/user.slice has no real-time budget"),
    ("with a budget", RT_GROUP, {"sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us": "500000\n"}, "rt-group", "fine", "500000 us"),
    ("C10: v2, by configuration", DESKTOP, {"boot/config-6.12.0-amd64": "CONFIG_RT_GROUP_SCHED=y\n"}, "rt-group", "warning", "CONFIG_RT_GROUP_SCHED"),
    ("v2, and its controller is on", V2_CONTROLLER, {}, "rt-group", "bad", "/user.slice/a has no real-time budget: the cpu controller"),
    ("v2, switched off at boot", V2_CONTROLLER, {"proc/cmdline": "rt_group_sched=0\n"}, "rt-group", "fine", "not held back"),
    ("v2, and nobody knows", V2_CONTROLLER, {"boot/config-6.12.0-amd64": None}, "rt-group", "unknown", "CONFIG_RT_GROUP_SCHED, which cannot be read"),
    ("C09: switched off at boot", DESKTOP, {"boot/config-6.12.0-amd64": "CONFIG_RT_GROUP_SCHED=y\n", "proc/cmdline": "rt_group_sched=0\n"}, "rt-group", "fine", "not held back"),
    ("a copy", DESKTOP, {}, "broker", "unknown", "copy"),
    ("desktop", DESKTOP, {}, "group-limits", "fine", "no group"),
    ("A24: all for a group", DESKTOP, {"etc/security/limits.d/95-pipewire.conf": "@pipewire - rtprio 95\n@pipewire - nice -19\n"}, "group-limits", "warning", "without a limit in time"),
    ("94 is ours to outrank", DESKTOP, {"etc/security/limits.d/x.conf": "# @a - rtprio 99\n@realtime - rtprio 94\n"}, "group-limits", "fine", "group realtime priority 94"),
    ("B11: a member without effect", DESKTOP, {**process(1, "bash", groups="24 990"), "etc/security/limits.d/x.conf": "@realtime - rtprio 90\n"}, "group-limits", "warning", "has the group, but a limit of 0"),
    ("B11: a member", DESKTOP, {**process(1, "bash", groups="24 990", limits={"realtime priority": ("90", "90")}), "etc/security/limits.conf": "@realtime - rtprio 90\n"}, "group-limits", "fine", "its limit is 90"),
    ("desktop", DESKTOP, {}, "capabilities", "fine", "CapEff 0"),
    ("G11: permitted, not effective", CONTAINER, {}, "capabilities", "note", "not effective"),
    ("desktop", DESKTOP, {}, "container", "fine", "no container"),
    ("user namespace", CONTAINER, {}, "container", "note", "user namespace"),
    ("docker", DESKTOP, {".dockerenv": ""}, "container", "note", "container"),
    ("a copy", DESKTOP, {}, "session", "unknown", "login manager"),
    ("desktop", DESKTOP, {}, "polkit", "fine", "started when it is asked"),
    ("H03: hidepid", HIDEPID, {}, "polkit", "warning", "hidepid"),
    ("not installed", DESKTOP, {"usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service": None}, "polkit", "note", "not installed"),
    ("desktop", DESKTOP, {}, "streams", "fine", "no stream"),
    ("playing", DESKTOP, {"proc/asound/card0/pcm0p/sub0/status": "state: RUNNING\n", "proc/asound/card0/pcm0p/sub0/hw_params": "access: MMAP\nrate: 48000 (48000/1)\nperiod_size: 256\n"}, "streams", "fine", "256 frames, 5.3 ms"),
    ("xrun", DESKTOP, {"proc/asound/card1/pcm0p/sub0/status": "state: XRUN\n", "proc/asound/card1/pcm0p/sub0/hw_params": "rate: 44100 (44100/1)\nperiod_size: 64\n", "proc/asound/card1/pcm0c/sub0/status": "closed\n"}, "streams", "warning", "1 of 1 open streams"),
    ("a copy", DESKTOP, {}, "wake-up", "unknown", "measured"),
    ("preempt=full", DESKTOP, {}, "preemption", "fine", "preemptible"),
    ("PREEMPT_RT", RT_KERNEL, {}, "preemption", "fine", "PREEMPT_RT"),
    ("voluntary", DESKTOP, {"proc/cmdline": "preempt=voluntary\n"}, "preemption", "note", "chosen points"),
    ("voluntary, seen by root", DESKTOP, {"proc/cmdline": "quiet\n", "sys/kernel/debug/sched/preempt": "none (voluntary) full\n"}, "preemption", "note", "(voluntary)"),
    ("lazy, seen by root", DESKTOP, {"proc/cmdline": "quiet\n", "sys/kernel/debug/sched/preempt": "none voluntary full (lazy)\n"}, "preemption", "fine", "(lazy)"),
    ("a server's kernel", DESKTOP, {"proc/cmdline": "quiet\n", "proc/version": "Linux version 5.4.0 #1 SMP\n"}, "preemption", "warning", "not preemptible"),
    ("threadirqs", DESKTOP, {}, "threadirqs", "fine", "booted with threadirqs"),
    ("PREEMPT_RT", RT_KERNEL, {}, "threadirqs", "fine", "PREEMPT_RT"),
    ("without", DESKTOP, {"proc/cmdline": "quiet nothreadirqs\n"}, "threadirqs", "note", "in no order"),
    ("desktop", DESKTOP, {}, "rt-throttling", "fine", "950000"),
    ("C15: -1 with a fair server", DESKTOP, {"proc/sys/kernel/sched_rt_runtime_us": "-1\n"}, "rt-throttling", "warning", "fair server"),
    ("C15: -1 without", DESKTOP, {"proc/sys/kernel/sched_rt_runtime_us": "-1\n", "proc/sys/kernel/osrelease": "6.1.0\n"}, "rt-throttling", "warning", "hangs the machine"),
    ("the fair server as it is set", DESKTOP, FAIR_SERVER, "rt-throttling", "fine", "keep 10 % by the fair server"),
    ("-1 and the fair server off", DESKTOP, {**FAIR_SERVER, "proc/sys/kernel/sched_rt_runtime_us": "-1\n", "sys/kernel/debug/sched/fair_server/cpu0/runtime": "0\n"}, "rt-throttling", "warning", "hangs the machine"),
    ("half", DESKTOP, {"proc/sys/kernel/sched_rt_runtime_us": "500000\n"}, "rt-throttling", "warning", "500000 of 1000000"),
    ("shared", SHARED, {}, "irq-sharing", "warning", "shared with i801_smbus, ehci_hcd:usb1"),
    ("alone", DESKTOP, sound_card(16), "irq-sharing", "fine", "no sound card shares"),
    ("desktop", DESKTOP, {}, "irqbalance", "fine", "does not run"),
    ("it runs", DESKTOP, process(700, "irqbalance"), "irqbalance", "note", "moves interrupts"),
    ("C1", DESKTOP, {}, "c-states", "fine", "C1"),
    ("C10", LAPTOP, {}, "c-states", "warning", "C10, and waking from it takes up to 890 us"),
    ("C10, switched off", LAPTOP, {"sys/devices/system/cpu/cpu0/cpuidle/state2/disable": "1\n"}, "c-states", "fine", "C1"),
    ("C10, with a lease", LAPTOP, {"sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us": "20\n"}, "c-states", "fine", "20 us"),
    ("performance", DESKTOP, {}, "governor", "fine", "performance"),
    ("laptop", LAPTOP, {}, "governor", "warning", "balance_power"),
    ("P-states by the hardware", LAPTOP, {"sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference": "performance\n"}, "governor", "fine", "powersave"),
    ("built with them", DESKTOP, {}, "timers", "fine", "high-resolution"),
    ("built without", DESKTOP, {"boot/config-6.12.0-amd64": "CONFIG_X=y\n"}, "timers", "bad", "without"),
    ("tsc", DESKTOP, {}, "clocksource", "fine", "tsc"),
    ("hpet", DESKTOP, {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}, "clocksource", "warning", "hpet"),
    ("no USB card", DESKTOP, {}, "usb-lowlatency", "fine", "no USB"),
    ("lowlatency=N", DESKTOP, {"sys/module/snd_usb_audio/parameters/lowlatency": "N\n"}, "usb-lowlatency", "warning", "lowlatency=N"),
    ("lowlatency=Y", DESKTOP, {"sys/module/snd_usb_audio/parameters/lowlatency": "Y\n"}, "usb-lowlatency", "fine", "low latency"),
    ("desktop", DESKTOP, {}, "shared-memory", "fine", "7812 MiB"),
    ("a small one", CONTAINER, {}, "shared-memory", "warning", "16 MiB"),
    ("on a disk", DESKTOP, {"proc/self/mounts": "/dev/sda2 /dev/shm ext4 rw 0 0\n"}, "shared-memory", "warning", "ext4"),
    ("none", DESKTOP, {"proc/self/mounts": "proc /proc proc rw 0 0\n"}, "shared-memory", "warning", "not mounted"),
    ("no swap", DESKTOP, {}, "swappiness", "fine", "no swap"),
    ("swap on a disk", LAPTOP, {}, "swappiness", "note", "swappiness 60"),
    ("swap in memory", LAPTOP, {"proc/swaps": "Filename\n/dev/zram0\tpartition\t1\t0\t1\n"}, "swappiness", "fine", "memory only"),
    ("swappiness 10", LAPTOP, {"proc/sys/vm/swappiness": "10\n"}, "swappiness", "fine", "swappiness 10"),
    ("an SSD", DESKTOP, {}, "disk-queue", "fine", "none of 1 disks"),
    ("it rotates", DESKTOP, {"sys/block/sda/queue/rotational": "1\n"}, "disk-queue", "note", "sda rotates, and takes 1280 KiB"),
    ("in no order", DESKTOP, {"sys/block/sda/queue/rotational": "1\n", "sys/block/sda/queue/max_sectors_kb": "64\n", "sys/block/sda/queue/scheduler": "[none] mq-deadline\n"}, "disk-queue", "note", "in no order"),
    ("desktop", DESKTOP, {}, "competitors", "fine", "nothing else"),
    ("two of them", DESKTOP, {**process(701, "ananicy-cpp"), **process(702, "rtkit-daemon")}, "competitors", "note", "ananicy-cpp (pid 701)"),
    ("sched_ext", DESKTOP, {"sys/kernel/sched_ext/state": "enabled\n"}, "competitors", "note", "sched_ext"),
    ("off", DESKTOP, {}, "smt", "fine", "no two"),
    ("on", LAPTOP, {}, "smt", "note", "share a core"),
    ("alike", DESKTOP, {}, "hybrid", "fine", "alike"),
    ("two kinds", LAPTOP, {}, "hybrid", "note", "CPUs 0-3 are fast, 4-11 are slow"),
    ("by capacity", DESKTOP, {"sys/devices/system/cpu/cpu0/cpu_capacity": "1024\n", "sys/devices/system/cpu/cpu1/cpu_capacity": "512\n"}, "hybrid", "note", "50 %"),
    ("off", DESKTOP, {}, "autogroup", "fine", "between all"),
    ("O03: on", LAPTOP, {}, "autogroup", "note", "autogroup is on"),
    ("shown", DESKTOP, {}, "hidepid", "fine", "everybody's"),
    ("hidden", HIDEPID, {}, "hidepid", "note", "hidden"),
    ("hidepid=0", DESKTOP, {"proc/self/mounts": "proc /proc proc rw,hidepid=0 0 0\n"}, "hidepid", "fine", "everybody's"),
    ("none", DESKTOP, {}, "lockdown", "fine", "not locked"),
    ("L09: integrity", DESKTOP, {"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}, "lockdown", "note", "integrity"),
    ("AppArmor", DESKTOP, {}, "lsm", "fine", "apparmor"),
    ("SELinux enforces", DESKTOP, {"sys/kernel/security/lsm": "capability,selinux\n", "sys/fs/selinux/enforce": "1\n"}, "lsm", "note", "SELinux"),
    ("SELinux permits", DESKTOP, {"sys/kernel/security/lsm": "capability,selinux\n", "sys/fs/selinux/enforce": "0\n"}, "lsm", "fine", "selinux"),
    ("none", DESKTOP, {}, "cards", "note", "no sound card"),
    ("one", DESKTOP, sound_card(16), "cards", "fine", "1 sound card:"),
]

# What cannot be shown a machine of both kinds here, and why.
ONE_SIDED = {
    "broker": "there is none in a copy: tests/integration/test_doctor.py",
    "session": "there is no login manager in a copy: tests/system",
    "wake-up": "has to be measured",
}


def build(root, files):
    for path, content in files.items():
        if content is None:
            continue
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, tuple):
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(content[1], path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)


def examine(files, *arguments):
    """(exit status, {check: finding})"""
    with tempfile.TemporaryDirectory() as root:
        build(root, files)
        run = subprocess.run([RTGRANTCTL, "doctor", "--sysroot", root, "--json", *arguments], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.stderr == "", run.stderr
    report = json.loads(run.stdout)
    assert report["fit"] == (run.returncode == 0) and run.returncode in (0, 5)
    return run.returncode, {finding["id"]: finding for finding in report["findings"]}


def check_row(machine, changes, check, health, words):
    status, findings = examine({**machine, **changes})
    finding = findings[check]
    assert finding["health"] == health, finding
    assert words in finding["seen"], finding
    assert status == 5 if health == "bad" else True
    if health in ("bad", "warning"):
        assert finding["why"] and (finding["now"] or finding["lasting"]), "no word of what helps"


def check_both_sides():
    """Each check has a machine that it complains of and one that it does not."""
    _, findings = examine(DESKTOP)
    for check in findings:
        healths = {row[4] == "fine" for row in ROWS if row[3] == check}
        assert healths == {True, False} or check in ONE_SIDED, check
    assert {row[3] for row in ROWS} == set(findings)


def check_nothing():
    """An empty copy: nothing can be told, and nothing crashes."""
    _, findings = examine({"proc/version": None})
    assert findings["rt-throttling"]["health"] == "unknown"


def check_named_process():
    status, findings = examine({**DESKTOP, **process(900, "ardour", limits={"realtime timeout": ("1", "1")})},
                               "--pid", "900")
    assert findings["rttime"]["health"] == "bad" and "process 900" in findings["rttime"]["seen"]
    assert "ardour (pid 900)" in findings["audio-threads"]["seen"]
    assert status == 5


def main():
    tests = [(f"{row[3]}: {row[0]}", lambda row=row: check_row(*row[1:])) for row in ROWS]
    tests += [("each check both ways", check_both_sides), ("an empty copy", check_nothing),
              ("--pid", check_named_process)]
    failed = 0
    print(f"1..{len(tests)}")
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}")
        except (AssertionError, KeyError) as problem:
            failed += 1
            print(f"not ok {number} - {name}\n# {problem!r}")
    sys.exit(failed > 0)


main()
