#!/usr/bin/env python3
"""Measures the speed of fovea beside that of other programs on the same work: training, or with --all also prompts, decoding, embedding
and translation. In each round and for each row, all programs run one after the other, in reverse order in every second round, so that other
load on the machine affects all of them. The rates of the machine are measured between the rows. Prints medians, the median of the ratios of
the rounds, and the share of the speed that the machine's products or memory allowed in these minutes.

Other programs are optional: PEERS_PYTHON names a Python with torch, transformers, onnxruntime and ctranslate2, OPENVINO_PYTHON one with
OpenVINO, LLAMA_BENCH and IK_LLAMA_BENCH the folders of llama-bench and llama-batched-bench.

With --against REV, another tool compares the speed with that of another revision: ./run bench --against REV --help."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

from bench_models import ROOT
from bench_peers import PeerError, make_peers
from bench_rows import KINDS, bench, make_models, make_rows

PROGRAM = pathlib.Path(os.environ.get("FOVEA_BIN", ROOT / "build/release/fovea"))
RECORDS = ROOT / "bench/records.jsonl"  # a line for each class of CPUs
OURS, ALONE = "fovea", "fovea on the free cores"
PEAKS = {"fp32": "fp32_flops", "bf16": "bf16_flops", "int8": "int8_operations", "int4": "int8_operations"}


def present(peers, rows):
    """Returns the peers that can measure one of the rows; names each missing one once, and how to get it."""
    found, missing = [], {}
    for peer in peers:
        if not any(peer.measures(row) for row in rows):
            continue
        if way := peer.missing():
            missing.setdefault(way, []).append(peer.name)
        else:
            found.append(peer)
    for way, names in missing.items():
        print(f"not measured: {', '.join(names)}; {way}", file=sys.stderr)
    return found


def share_of_limit(row, result, figure, rates):
    """Returns the part of the speed that the machine's products or memory allow, and which of the two is the limit."""
    operations, read = row.cost(result)
    limits = {"products": operations / rates[PEAKS[row.precision]], "memory": read / rates["bytes_per_second"]}
    limit = max(limits, key=limits.get)
    return figure * limits[limit], limit


class Measurements:
    """The figures of all rounds. A program that fails is named once and leaves that row."""

    def __init__(self, rows, peers, threads):
        self.rows, self.threads = rows, threads
        self.peers = {row: [peer for peer in peers if peer.measures(row)] for row in rows}
        self.figures = {row: {} for row in rows}  # of each program: a list with a figure for each round
        self.shares = {row: [] for row in rows}
        self.limits = {row: [] for row in rows}
        self.results = {}  # of fovea, the latest of each row
        self.rates = []

    def ours(self, row, threads):
        arguments, key = row.arguments()
        self.results[row] = bench(PROGRAM, *arguments, "--threads", threads)
        if not self.results[row]:
            raise PeerError("the row cannot be run; the reason is above")
        return self.results[row][key]

    def turn(self, row):
        """Returns {name: measurement} of all programs; of fovea also on the cores that a busy neighbour leaves free."""
        measures = {OURS: lambda: self.ours(row, self.threads)}
        measures |= {peer.name: lambda peer=peer: peer.measure(row, self.threads) for peer in self.peers[row]}
        if row.busy:
            measures = {name: lambda measure=measure: beside_neighbour(measure) for name, measure in measures.items()}
            if self.threads > 1:
                measures[ALONE] = lambda: self.ours(row, self.threads - 1)
        return measures

    def measure_machine(self):
        rates = bench(PROGRAM, "--machine", "--threads", self.threads)
        if not rates:
            sys.exit(f"bench: {PROGRAM} cannot measure the machine")
        self.rates.append(rates)
        return rates

    def round(self, number):
        before = self.measure_machine()
        for row in self.rows:
            turn = list(self.turn(row).items())
            for name, measure in turn if number % 2 == 0 else reversed(turn):
                self.take(row, name, measure)
            after = self.measure_machine()
            if self.results[row] and None not in self.figures[row][OURS]:
                rates = {key: max(before[key], after[key]) for key in (*PEAKS.values(), "bytes_per_second")}
                share, limit = share_of_limit(row, self.results[row], self.figures[row][OURS][-1], rates)
                self.shares[row].append(share)
                self.limits[row].append(limit)
            before = after

    def take(self, row, name, measure):
        figures = self.figures[row].setdefault(name, [])
        if None in figures:
            return
        try:
            figures.append(measure())
            print(f"  {row.name}, {name}: {figures[-1]:.1f} {row.unit}", file=sys.stderr)
        except (PeerError, subprocess.CalledProcessError) as error:
            figures.append(None)  # it has failed, and is not tried again
            print(f"{row.name}: {name} failed: {error}", file=sys.stderr)

    def summary(self, row):
        """Returns the row of the record, or None if fovea was not measured."""
        figures = {name: values for name, values in self.figures[row].items() if values and None not in values}
        if OURS not in figures:
            return None
        mine = figures.pop(OURS)
        peers = {name: spread(values) | {"ratio": round(statistics.median(a / b for a, b in zip(mine, values)), 3)}
                 for name, values in figures.items()}
        return {"row": row.name, "unit": row.unit, "fovea": spread(mine), "peers": peers,
                "fastest": max(peers.keys() - {ALONE}, key=lambda name: peers[name]["median"], default=None),
                "share": round(statistics.median(self.shares[row]), 3), "limit": statistics.mode(self.limits[row])}


def beside_neighbour(measure):
    """Measures while another process computes without a pause, on whichever core the system gives it."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            return measure()
        finally:
            neighbour.kill()


def spread(values):
    return {"median": round(statistics.median(values), 1), "least": round(min(values), 1), "most": round(max(values), 1)}


def class_of(rates):
    """Returns the name of the class of CPUs: the vendor's and the instruction set in use."""
    vendors = {"AuthenticAMD": "zen", "GenuineIntel": "intel"}
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    vendor = next((line.split(": ")[1] for line in lines if line.startswith("vendor_id")), "other")
    return f"{vendors.get(vendor, 'other')}-{rates['isa']}"


def our_version():
    def printed(*command):
        done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    return " ".join(filter(None, (printed(PROGRAM, "--version").split()[1], printed("git", "rev-parse", "--short=12", "HEAD"))))


def make_record(measured, peers, name, rounds):
    rates = {key: spread([each[key] / 1e9 for each in measured.rates])
             for key in (*dict.fromkeys(PEAKS.values()), "one_thread_bytes_per_second", "bytes_per_second")}
    versions = {peer.name: {"version": peer.version, "flags": peer.flags} for peer in peers if peer.version}
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    rows = [summary for row in measured.rows if (summary := measured.summary(row))]
    return {"class": name or class_of(measured.rates[0]), "cpu": measured.rates[0]["cpu"], "isa": measured.rates[0]["isa"],
            "threads": measured.threads, "date": date, "rounds": rounds, "fovea": our_version(), "versions": versions,
            "billions_per_second": rates, "rows": rows}


def range_of(figures):
    digits = 0 if figures["median"] >= 100 else 1
    return f"{figures['median']:,.{digits}f}", f"{figures['least']:,.{digits}f}-{figures['most']:,.{digits}f}"


def print_record(record):
    print(f"{'row':34} {'program':18} {'median':>9} {'min-max':>17} {'ratio':>6}  of limit")
    for row in record["rows"]:
        ratio = f"{row['peers'][row['fastest']]['ratio']:.2f}" if row["fastest"] else "-"
        median, whole = range_of(row["fovea"])
        print(f"{row['row']:34} {OURS:18} {median:>9} {whole:>17} {ratio:>6}  {row['share']:.0%} ({row['limit']})  {row['unit']}")
        for name, figures in sorted(row["peers"].items(), key=lambda each: -each[1]["median"]):
            median, whole = range_of(figures)
            print(f"{'':34} {name:18} {median:>9} {whole:>17} {figures['ratio']:6.2f}")
    print("\nratio: the speed of fovea divided by that of the program, the median of the rounds; in fovea's line, the fastest program\n")
    print(f"machine: {record['cpu']} ({record['isa']}, {record['threads']} threads), {record['rounds']} round{'s' if record['rounds'] > 1 else ''}")
    for key, rate in record["billions_per_second"].items():
        print(f"  {key.replace('_', ' '):29} {rate['median']:8.1f} billion ({rate['least']:.1f}-{rate['most']:.1f})")
    print(f"fovea {record['fovea']}")
    for name, each in record["versions"].items():
        print(f"{name} {each['version']}: {each['flags']}")


def keep(record):
    """Writes the record of this class of CPUs. It replaces an earlier one with all its rows: a record is one run."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    records = {each["class"]: each for each in (*map(json.loads, lines), record)}
    RECORDS.write_text("".join(json.dumps(records[name]) + "\n" for name in sorted(records)), encoding="utf-8")
    print(f"wrote {RECORDS.relative_to(ROOT)}; run tools/docs/write_performance.py", file=sys.stderr)


def parse():
    options = argparse.ArgumentParser(description=__doc__, prog="./run bench", formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--all", action="store_true", help="all kinds of rows; default: train")
    options.add_argument("--rows", metavar="KINDS", help=f"some of {','.join(KINDS)}")
    options.add_argument("--rounds", type=int, metavar="N", help="default 5; with --quick 1")
    options.add_argument("--long", action="store_true", help="also training of the gpt2 preset, prompts of 8,192 tokens and decoding at this depth, which take minutes")
    options.add_argument("--quick", action="store_true", help="a few tokens of each row: checks that the programs run; the figures mean nothing")
    options.add_argument("--threads", type=int, metavar="N", default=len(os.sched_getaffinity(0)), help="of every program (default %(default)s)")
    options.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the record to a file")
    options.add_argument("--record", action="store_true", help="write the record to bench/records.jsonl")
    options.add_argument("--class", dest="name", metavar="CLASS", help="name of this class of CPUs; default: vendor and instruction set")
    given = options.parse_args()
    given.kinds = given.rows.split(",") if given.rows else KINDS if given.all else ("train",)
    if unknown := [kind for kind in given.kinds if kind not in KINDS]:
        options.error(f"--rows: {unknown[0]}: unknown; expected some of {','.join(KINDS)}")
    given.rounds = given.rounds if given.rounds is not None else 1 if given.quick else 5
    if min(given.rounds, given.threads) < 1:
        options.error("--rounds, --threads: expected at least 1")
    if given.quick and given.record:
        options.error("--record: cannot be combined with --quick; expected one of them")
    return given


def main():
    given = parse()
    rows = [row for row in make_rows(given.long, given.quick) if row.chosen_as in given.kinds]
    make_models(given.kinds, given.quick)
    peers = present(make_peers(PROGRAM), rows)
    measured = Measurements(rows, peers, given.threads)
    for number in range(given.rounds):
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
        measured.round(number)
    record = make_record(measured, peers, given.name, given.rounds)
    print_record(record)
    if given.json:
        given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if given.record:
        keep(record)
    return 0 if record["rows"] else 1


if __name__ == "__main__":
    sys.exit(main())
