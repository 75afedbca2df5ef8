# SPDX-License-Identifier: MIT
"""A private system bus with the real polkitd, which sees only our actions and a test's rules."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from daemon import wait_until

POLKITD = "/usr/lib/polkit-1/polkitd"
ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a caller without a session is told when polkit says no; without logind nobody knows of sessions.
NO = "no-active-session" if os.path.exists("/run/systemd/seats") else "not-authorized"
ACTIONS = ROOT / "broker" / "dbus"

BUS = """<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <allow send_type="method_call"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow send_type="signal"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
  <policy user="root"><allow own="*"/></policy>
  <policy user="polkitd"><allow own="org.freedesktop.PolicyKit1"/></policy>
</busconfig>
"""

# Each question leaves a line in polkitd's log, so that questions can be counted.
LOG_EACH = """polkit.addRule(function(action, subject) {
    polkit.log("asked " + action.id + " role=" + action.lookup("role") +
               " policy=" + action.lookup("policy") + " priority=" + action.lookup("priority") +
               " nice=" + action.lookup("nice") + " program=" + action.lookup("program"));
});
"""


def is_here():
    return os.path.exists(POLKITD) and shutil.which("dbus-daemon")


class Polkit:
    """The bus, and polkitd on it, with @rules in the language of polkit."""

    def __init__(self, rules):
        self.directory = tempfile.mkdtemp(prefix="rtgrant-polkit-")
        os.chmod(self.directory, 0o755)
        for name in ("rules", "actions"):
            os.mkdir(f"{self.directory}/{name}", 0o755)
        self.write_rules(rules)
        shutil.copy(ACTIONS / "org.rtgrant.policy", f"{self.directory}/actions")
        with open(f"{self.directory}/bus.conf", "w", encoding="utf-8") as file:
            file.write(BUS.format(directory=self.directory))
        self.log_path = f"{self.directory}/log"
        self.address = f"unix:path={self.directory}/bus"
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": self.address}
        self._log = open(self.log_path, "wb")
        self.bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self.directory}/bus.conf", "--nofork", "--nopidfile"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(f"{self.directory}/bus"), 10, "the bus")
        self.polkitd = None
        self.start()

    def write_rules(self, rules):
        with open(f"{self.directory}/rules/10.rules", "w", encoding="utf-8") as file:
            file.write(LOG_EACH + rules)
        os.chmod(f"{self.directory}/rules/10.rules", 0o644)

    def start(self):
        mounts = (f"mount --bind {self.directory}/rules /etc/polkit-1/rules.d && "
                  f"mount --bind {self.directory}/actions /usr/share/polkit-1/actions && ")
        self.polkitd = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c", mounts + f"exec {POLKITD}"],
            stdout=self._log, stderr=subprocess.STDOUT, env={**os.environ, **self.environment})
        n = self.log().count("Acquired the name")
        wait_until(lambda: self.log().count("Acquired the name") > n, 10, "polkitd")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def asked(self):
        """The questions so far, as LOG_EACH writes them."""
        return [line for line in self.log().splitlines() if "asked org." in line]

    def hang(self):
        self.polkitd.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.polkitd.send_signal(signal.SIGCONT)

    def kill(self):
        self.polkitd.kill()
        self.polkitd.wait()

    def close(self):
        for process in (self.polkitd, self.bus):
            process.kill()
            process.wait()
        self._log.close()
        shutil.rmtree(self.directory)
