#!/usr/bin/env python3
"""Counts the source files that a decode step, a training step, a chat over HTTP and the opening of a model folder enter.

A file is entered if one of its functions runs in each repetition: its number of calls differs between a short and a long run by at
least the difference of their repetitions. The program is compiled with --coverage for this, which takes about 20 minutes of CPU time.

Usage: entered.py [--build DIR] [--list]
  --build DIR   the build folder; default: build/entered
  --list        also print the names of the files"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT, LONG = 4, 24  # repetitions of the two runs


def build(folder):
    subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DCMAKE_CXX_FLAGS=--coverage -fprofile-update=atomic",
                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "fovea_cli", "fovea_shared"], check=True, stdout=subprocess.DEVNULL)


def calls(folder):
    """Returns the number of calls of each function since the counters were removed, by its file."""
    counts = collections.Counter()
    for data in folder.rglob("*.gcda"):
        done = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, text=True, check=True, cwd=folder)
        for unit in done.stdout.splitlines():
            for source in json.loads(unit)["files"]:
                name = os.path.relpath(folder / source["file"], ROOT)
                if not name.startswith(("src/", "include/", "apps/", "contrib/")):
                    continue
                for function in source["functions"]:
                    counts[name, function["name"]] += function["execution_count"]
        data.unlink()
    return counts


def entered(folder, run):
    """Returns the files that each repetition of run(count) enters, sorted."""
    for data in folder.rglob("*.gcda"):
        data.unlink()
    run(SHORT)
    short = calls(folder)
    run(LONG)
    long = calls(folder)
    return sorted({name for (name, function), count in long.items() if count - short[name, function] >= LONG - SHORT})


def serve_chats(program, model, count):
    template = model / "template.jinja"
    template.write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    server = subprocess.Popen([program, "serve", model, "--port", "0", "--chat-template", template], stderr=subprocess.PIPE, text=True)
    address = next(found[0] for line in server.stderr if (found := re.search(r"http://[\d.:]+", line)))
    for _ in range(count):
        body = {"messages": [{"role": "user", "content": "In the beginning"}], "max_tokens": 2, "temperature": 0}
        request = urllib.request.Request(address + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()
    server.terminate()
    server.communicate()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT / "build/entered", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    build(options.build)
    program = options.build / "fovea"
    with tempfile.TemporaryDirectory() as work:
        text = pathlib.Path(work) / "text.txt"
        text.write_text("In the beginning God created the heaven and the earth. " * 400)
        model = pathlib.Path(work) / "model"

        def command(*words):
            subprocess.run([program, *map(str, words)], check=True, capture_output=True)

        def train(out, steps):
            command("train", text, "--out", out, "--preset", "tiny", "--steps", steps, "--eval-every", 1000, "--save-every", 1000)

        def open_models(count):
            script = ("import ctypes, sys; fovea = ctypes.CDLL(sys.argv[1]); model = ctypes.c_void_p()\n"
                      "for _ in range(int(sys.argv[3])):\n"
                      "    assert fovea.fovea_model_open(sys.argv[2].encode(), None, ctypes.byref(model)) == 0\n"
                      "    fovea.fovea_model_free(model)")
            subprocess.run([sys.executable, "-c", script, options.build / "libfovea.so", model, str(count)], check=True)

        train(model, SHORT)
        kinds = {"a decode step": lambda count: command("generate", model, "In the", "--greedy", "--predict", count),
                 "a training step": lambda count: train(pathlib.Path(work) / f"run{count}", count),
                 "a chat over HTTP": lambda count: serve_chats(program, model, count),
                 "opening a folder": open_models}
        for kind, run in kinds.items():
            files = entered(options.build, run)
            print(f"{kind}: {len(files)} files")
            if options.list:
                print("".join(f"  {name}\n" for name in files), end="")


if __name__ == "__main__":
    main()
