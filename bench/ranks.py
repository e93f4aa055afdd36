#!/usr/bin/env python3
"""Measures training on two ranks of one thread beside one process of two threads, and on networks of limited speed.

Usage: ranks.py [PRESET] [TEXT] [PAIRS] [OPTIONS]; default: nano, the documents of this project (""), 5. OPTIONS are those of the ranks, such as
--shard optimizer. The two kinds of runs alternate. With the right to
make network namespaces (root), two hosts are joined by a wire without a limit, of 1 Gbit/s and of 100 Mbit/s; the bytes on the wire are
those of its counter. Prints one JSON object per measurement."""
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
WARM = 3  # first steps, which are not measured
STEPS = {"nano": 40, "baby": 8}
BATCH = {"nano": 16, "baby": 32}


def run(launcher, folder, preset, text, threads, name, steps=None, batch=None, options=()):
    """Returns the median seconds of a step, and the steps."""
    out = folder / name
    shutil.rmtree(out, ignore_errors=True)
    steps = steps or STEPS.get(preset, 10)
    command = [*launcher, FOVEA, "train", text, "--preset", preset, "--out", str(out), "--steps", str(steps), "--batch",
               str(batch or BATCH.get(preset, 8)), "--evaluate-every", "0", "--sample-every", "0", "--save-every", "0", "--validation", "0", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    times = [entry["step_ms"] / 1e3 for entry in entries if "step_ms" in entry][WARM:]
    return statistics.median(times), steps


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, stderr=None if check else subprocess.DEVNULL)


class Network:
    """Two hosts on this machine."""

    def __enter__(self):
        self.close()
        for name in NAMES:
            ip("netns", "add", name)
        ip("link", "add", "wire", "netns", NAMES[0], "type", "veth", "peer", "name", "wire", "netns", NAMES[1])
        for name, host in zip(NAMES, HOSTS):
            ip("-n", name, "addr", "add", host + "/24", "dev", "wire")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "wire", "up")
        self.agent = pathlib.Path(tempfile.mkdtemp()) / "agent.sh"
        self.agent.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in {HOSTS[0]}) name={NAMES[0]};; *) name={NAMES[1]};; esac\n"
                              'exec ip netns exec $name sh -c "export OMP_NUM_THREADS=1; $*"\n')
        self.agent.chmod(0o755)
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in NAMES:
            ip("netns", "del", name, check=False)

    def limit(self, rate):
        for name in NAMES:
            command = ["ip", "netns", "exec", name, "tc", "qdisc"]
            subprocess.run([*command, "del", "dev", "wire", "root"], check=False, stderr=subprocess.DEVNULL)
            if rate:
                subprocess.run([*command, "add", "dev", "wire", "root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"], check=True)

    def sent(self):
        command = ["ip", "netns", "exec", NAMES[0], "cat", "/sys/class/net/wire/statistics/tx_bytes"]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    def launcher(self):
        network = HOSTS[0].rpartition(".")[0] + ".0/24"
        return ["ip", "netns", "exec", NAMES[0], "mpirun", "--allow-run-as-root", "-H", ",".join(f"{host}:1" for host in HOSTS), "-n", "2",
                "--bind-to", "none", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl", "tcp,self", "--mca", "pml",
                "ob1", "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]


def main():
    preset = sys.argv[1] if len(sys.argv) > 1 else "nano"
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    options = sys.argv[4:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else str(folder / "text.txt")
        if not pathlib.Path(text).exists():
            pathlib.Path(text).write_text("".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))))
        ratios, ones = [], []
        for _ in range(pairs):
            one, _ = run([], folder, preset, text, 2, "one")
            two, _ = run([*MPIRUN, "-n", "2"], folder, preset, text, 1, "two", options=options)
            ones.append(one)
            ratios.append(two / one)
        spread = 1.96 * statistics.stdev(ratios) / len(ratios) ** 0.5 if pairs > 1 else 0
        print(json.dumps({"preset": preset, "one_process_ms": 1e3 * statistics.median(ones), "two_ranks_over_one": statistics.mean(ratios),
                          "interval_95": [statistics.mean(ratios) - spread, statistics.mean(ratios) + spread], "pairs": pairs}), flush=True)
        half, _ = run([], folder, preset, text, 1, "half", batch=BATCH.get(preset, 8) // 2)
        if os.geteuid() != 0:
            return
        with Network() as network:
            for rate in ("", "1gbit", "100mbit"):
                network.limit(rate)
                seconds, steps = run(network.launcher(), folder, preset, text, 1, "wire", options=options)
                before = network.sent()
                run(network.launcher(), folder, preset, text, 1, "wire", steps=WARM + 1, options=options)
                few = network.sent() - before
                before = network.sent()
                run(network.launcher(), folder, preset, text, 1, "wire", steps=WARM + 11, options=options)
                each = (network.sent() - before - few) / 10
                print(json.dumps({"preset": preset, "limit": rate or "none", "step_ms": 1e3 * seconds, "half_alone_ms": 1e3 * half,
                                  "sent_mb_per_step": each / 1e6}), flush=True)


if __name__ == "__main__":
    main()
