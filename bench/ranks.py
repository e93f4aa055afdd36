#!/usr/bin/env python3
"""Measures training on two ranks of one thread beside one process of two threads, and on networks of limited speed.

Usage: ranks.py [PRESET] [TEXT] [PAIRS] [OPTIONS]; default: nano, the documents of this project (""), 5. OPTIONS are those of the ranks, such as
--shard optimizer. The two kinds of runs alternate. With the right to make network namespaces (root), two hosts are joined by a wire without a
limit, of 1 Gbit/s, of 100 Mbit/s, and of 100 Mbit/s with a delay of 20 ms. Prints one JSON object per measurement:

  half_ms             a step of one process on a rank's part of the batch, while another process does the same: two hosts on one machine share
                      its memory
  step_ms             a step of two ranks
  gradient_wait_ms    of which the steps wait for gradients
  sent_mb_per_step    by the counter of the wire"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOVEA = str(ROOT / "build/release/fovea")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
NAMES, HOSTS = ("bench-x", "bench-y"), ("10.77.8.1", "10.77.8.2")
WIRES = (("none", "", 0), ("1 Gbit/s", "1gbit", 0), ("100 Mbit/s", "100mbit", 0), ("100 Mbit/s, 20 ms", "100mbit", 20))
WARM = 3  # first steps, which are not measured
STEPS = {"nano": 40, "baby": 8}
BATCH = {"nano": 16, "baby": 32}


class Run:
    """A training run that goes on in other processes."""

    def __init__(self, launcher, out, preset, text, threads, steps=None, batch=None, options=()):
        self.out = out
        shutil.rmtree(out, ignore_errors=True)
        command = [*launcher, FOVEA, "train", text, "--preset", preset, "--out", str(out), "--steps", str(steps or STEPS.get(preset, 10)), "--batch",
                   str(batch or BATCH.get(preset, 8)), "--evaluate-every", "0", "--sample-every", "0", "--save-every", "0", "--validation", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": str(threads)})

    def medians(self, *names):
        """Waits for the end of the run, and returns the medians of some numbers of its steps."""
        errors = self.process.communicate()[1]
        if self.process.returncode != 0:
            sys.exit(errors.decode())
        entries = [json.loads(line) for line in (self.out / "log.jsonl").read_text().splitlines()]
        entries = [entry for entry in entries if "step_ms" in entry][WARM:]
        return [statistics.median(entry[name] for entry in entries) for name in names]

    def step(self):
        return self.medians("step_ms")[0]


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, stderr=None if check else subprocess.DEVNULL)


class Network:
    """Two hosts on this machine, joined by a wire: of `rate`, "" = no limit, and with a delay in milliseconds."""

    def __init__(self, rate="", delay=0):
        self.rate, self.delay, self.relay = rate, delay, None

    def __enter__(self):
        self.close()
        for name in NAMES:
            ip("netns", "add", name)
        if self.delay:
            bits = float(self.rate.removesuffix("mbit")) * 1e6
            arguments = [part for each in zip(NAMES, HOSTS) for part in each]
            self.relay = subprocess.Popen([sys.executable, ROOT / "bench/relay.py", *arguments, str(bits), str(self.delay)], stdout=subprocess.PIPE)
            self.relay.stdout.readline()
        else:
            self.join()
        self.agent = pathlib.Path(tempfile.mkdtemp()) / "agent.sh"
        self.agent.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in {HOSTS[0]}) name={NAMES[0]};; *) name={NAMES[1]};; esac\n"
                              'exec ip netns exec $name sh -c "export OMP_NUM_THREADS=1; $*"\n')
        self.agent.chmod(0o755)
        return self

    def join(self):
        ip("link", "add", "wire", "netns", NAMES[0], "type", "veth", "peer", "name", "wire", "netns", NAMES[1])
        for name, host in zip(NAMES, HOSTS):
            ip("-n", name, "addr", "add", host + "/24", "dev", "wire")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "wire", "up")
            if self.rate:
                words = ["tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms"]
                subprocess.run(["ip", "netns", "exec", name, *words], check=True)

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        for name in NAMES:
            ip("netns", "del", name, check=False)

    def sent(self):
        command = ["ip", "netns", "exec", NAMES[0], "cat", "/sys/class/net/wire/statistics/tx_bytes"]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    def launcher(self):
        network = HOSTS[0].rpartition(".")[0] + ".0/24"
        return ["ip", "netns", "exec", NAMES[0], "mpirun", "--allow-run-as-root", "-H", ",".join(f"{host}:1" for host in HOSTS), "-n", "2",
                "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl", "tcp,self", "--mca", "pml",
                "ob1", "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]


def pairs_of(count, folder, preset, text, options):
    """Two ranks beside one process, in turns."""
    ratios, ones = [], []
    for _ in range(count):
        ones.append(Run([], folder / "one", preset, text, 2).step())
        ratios.append(Run([*MPIRUN, "-n", "2"], folder / "two", preset, text, 1, options=options).step() / ones[-1])
    spread = 1.96 * statistics.stdev(ratios) / count**0.5 if count > 1 else 0
    mean = statistics.mean(ratios)
    return {"preset": preset, "one_process_ms": statistics.median(ones), "two_ranks_over_one": mean, "interval_95": [mean - spread, mean + spread], "pairs": count}


def wired(wire, folder, preset, text, options):
    """Two ranks on two hosts."""
    name, rate, delay = wire
    with Network(rate, delay) as network:
        def run(steps=None):
            return Run(network.launcher(), folder / "wire", preset, text, 1, steps=steps, options=options)

        step, wait = run().medians("step_ms", "gradient_wait_ms")
        found = {"preset": preset, "limit": name, "step_ms": step, "gradient_wait_ms": wait}
        sent = []
        for steps in (WARM + 1, WARM + 11):
            before = network.sent()
            run(steps).step()
            sent.append(network.sent() - before)
        return {**found, "sent_mb_per_step": (sent[1] - sent[0]) / 10 / 1e6}


def main():
    preset = sys.argv[1] if len(sys.argv) > 1 else "nano"
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    options = sys.argv[4:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else str(folder / "text.txt")
        if not pathlib.Path(text).exists():
            pathlib.Path(text).write_text("".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))))
        if pairs:
            print(json.dumps(pairs_of(pairs, folder, preset, text, options)), flush=True)
        halves = [Run([], folder / part, preset, text, 1, batch=BATCH.get(preset, 8) // 2) for part in ("half", "other half")]
        print(json.dumps({"preset": preset, "half_ms": statistics.mean(half.step() for half in halves)}), flush=True)
        if os.geteuid() == 0:
            for wire in WIRES:
                print(json.dumps(wired(wire, folder, preset, text, options)), flush=True)


if __name__ == "__main__":
    main()
