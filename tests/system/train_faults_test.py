"""Faults of trainings on several ranks: a killed or silent process and a cut network end the job in seconds on both sides, with one line
that names the rank; the same command continues, and the weights are those of an undisturbed run."""
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from ranks_test import ENVIRONMENT, MPI, MPIRUN, errors_in
from support import FOVEA, SMALL, SOAK, FoveaTest, digests, fovea

STEPS = 400
SECONDS = 14  # within which a job ends: 8 s of silence, and the time to end all processes on a loaded machine
# How often each fault happens.
KILLS, STOPS, CUTS = (60, 20, 10) if SOAK else (2, 1, 1)
NAMES = ("fovea-x", "fovea-y")  # of network namespaces, each with one host
HOSTS = ("10.77.9.1", "10.77.9.2")


def can_make_networks():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", "fovea-try"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return made and subprocess.run(["ip", "netns", "del", "fovea-try"], check=False).returncode == 0


@unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
class TrainFaults(FoveaTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(5)
        self.arguments = ["train", self.text, *SMALL, "--steps", STEPS, "--save-every", 10, "--evaluate-every", 0]
        alone = self.folder / "alone"
        self.ok(fovea(*self.arguments, "--out", alone))
        self.weights = digests(alone)["model.safetensors"]

    def start(self, out, launcher):
        command = [*launcher, FOVEA, *map(str, self.arguments), "--out", str(out)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**ENVIRONMENT, "OMP_NUM_THREADS": "1"})

    def processes(self, out):
        """Returns the ranks of the job that writes to this folder."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{entry}/stat", encoding="ascii") as file:
                    gone = file.read().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if words[0].endswith(b"/fovea") and os.fsencode(out) in words and not gone:
                found.append(int(entry))
        return sorted(found)

    def wait_for_steps(self, job, out):
        """Waits until the job has saved a snapshot, and a moment longer."""
        for _ in range(600):
            if job.poll() is not None or list(out.glob("checkpoint-*")):
                break
            time.sleep(0.05)
        time.sleep(self.random.uniform(0, 0.5))

    def check_end(self, job, out, since):
        """Expects that all processes of the job end in time. Returns what the job printed."""
        printed = job.communicate(timeout=60)[1].decode(errors="replace")
        while self.processes(out) and time.monotonic() - since < SECONDS:
            time.sleep(0.1)
        self.assertLess(time.monotonic() - since, SECONDS, printed)
        self.assertEqual(self.processes(out), [])
        self.assertNotEqual(job.returncode, 0)
        return printed

    def finish(self, out):
        """The same command continues with another number of ranks."""
        job = self.start(out, [*MPIRUN, "-n", str(self.random.choice((1, 2, 3)))])
        printed = job.communicate(timeout=300)[1].decode(errors="replace")
        self.assertEqual(job.returncode, 0, printed)
        self.assertEqual(digests(out)["model.safetensors"], self.weights)

    def disturb(self, name, times, fault):
        for number in range(times):
            out = self.folder / f"{name}-{number}"
            job = self.start(out, [*MPIRUN, "-n", str(self.random.choice((2, 3)))])
            self.wait_for_steps(job, out)
            ranks = self.processes(out)
            self.assertTrue(ranks, "the job ended before the fault")
            since = time.monotonic()
            fault(self.random.choice(ranks))
            printed = self.check_end(job, out, since)
            if name == "stop":
                told = errors_in(printed)
                self.assertEqual(len(told), 1, printed)
                self.assertIn("no sign of life", told[0])
            self.finish(out)
            shutil.rmtree(out)

    def test_a_killed_rank_ends_the_job(self):
        self.disturb("kill", KILLS, lambda process: os.kill(process, signal.SIGKILL))

    def test_a_rank_that_stands_still_ends_the_job(self):
        self.disturb("stop", STOPS, lambda process: os.kill(process, signal.SIGSTOP))

    @unittest.skipUnless(can_make_networks(), "needs root and the right to make network namespaces")
    def test_a_cut_network_ends_the_job_on_both_sides(self):
        self.make_network()
        agent = self.file("agent.sh", f"#!/bin/sh\nhost=$1; shift\ncase $host in {HOSTS[0]}) name={NAMES[0]};; *) name={NAMES[1]};; esac\n"
                                      'exec ip netns exec $name sh -c "$*"\n')
        agent.chmod(0o755)
        agent = shutil.copy(agent, "/tmp/fovea-agent.sh")  # mpirun cannot quote the space in the name of the folder
        self.addCleanup(os.unlink, agent)
        network = HOSTS[0].rpartition(".")[0] + ".0/24"
        launcher = ["ip", "netns", "exec", NAMES[0], "mpirun", "--allow-run-as-root", "-H", ",".join(f"{host}:1" for host in HOSTS), "-n", "2",
                    "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml",
                    "ob1", "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]
        for number in range(CUTS):
            out = self.folder / f"cut-{number}"
            self.link("up")
            job = self.start(out, launcher)
            self.wait_for_steps(job, out)
            self.assertIsNone(job.poll(), "the job ended before the fault")
            since = time.monotonic()
            self.link("down")
            self.assertIn("no sign of life", self.check_end(job, out, since))
            self.finish(out)

    def make_network(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True)
        for name in NAMES:
            ip("netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False)
        ip("link", "add", "wire", "netns", NAMES[0], "type", "veth", "peer", "name", "wire", "netns", NAMES[1])
        for name, host in zip(NAMES, HOSTS):
            ip("-n", name, "addr", "add", host + "/24", "dev", "wire")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "wire", "up")

    def link(self, state):
        subprocess.run(["ip", "-n", NAMES[0], "link", "set", "wire", state], check=True)


if __name__ == "__main__":
    unittest.main()
