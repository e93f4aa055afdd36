#!/usr/bin/env python3
"""Tries real clients against `fovea serve` with a model that plays a script.

    run.py FOVEA --cache DIR [NAME...] [--record DIR] [--stand-in] [--verbose]

Each client starts, calls a tool, sends its result and reads the end. What is missing is installed into
DIR: a virtual environment or an npm folder each, of the versions below, about 2.5 GB for all. Not part of
the normal tests, as it needs package registries. The clients themselves reach no other address than the
server's, and see neither the real home folder nor the environment's variables.

--stand-in runs the clients against stand_in.py instead: a failure there is the driver's or the client's.
--record writes each client's requests and responses to DIR/NAME.jsonl, free of ids, dates and paths.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import script
import scripted_model
import transcript
from recorder import Recorder
from stand_in import StandIn

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Client:
    driver: str
    place: str  # the folder within the cache; its beginning says by what it is installed
    packages: list  # the first one's version is shown
    shorten: bool = False  # transcripts keep the beginnings of its texts only: their licence forbids copies


SDK = ("py-sdk", ["openai==3.57.0", "anthropic==2.14.0", "ollama==0.6.3"])
CLIENTS = {
    "openai-python": Client("openai_python.py", *SDK),
    "anthropic-python": Client("anthropic_python.py", SDK[0], [SDK[1][1], SDK[1][0], SDK[1][2]]),
    "ollama-python": Client("ollama_python.py", SDK[0], [SDK[1][2], *SDK[1][:2]]),
    "langchain": Client("langchain_python.py", "py-langchain", ["langchain==1.5.2", "langchain-core==1.8.3", "langchain-openai==1.7.4", "langchain-anthropic==1.7.10",
                                                                "langchain-ollama==1.1.0", "openai==3.57.0", "anthropic==2.14.0", "ollama==0.6.3"]),
    "llamaindex": Client("llamaindex_python.py", "py-llamaindex", ["llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1", "llama-index-llms-openai==0.8.3",
                                                                   "openai==2.54.0"]),
    "litellm": Client("litellm_python.py", "py-litellm", ["litellm==1.110.2", "openai==3.57.0"]),
    "openai-agents": Client("agents_python.py", "py-agents", ["openai-agents==0.24.0", "openai==3.57.0"]),
    "pydantic-ai": Client("pydantic_python.py", "py-pydantic", ["pydantic-ai-slim[openai,anthropic]==2.68.0", "openai==3.57.0", "anthropic==2.14.0"]),
    "lm-eval": Client("lmeval_python.py", "py-lmeval", ["lm-eval[api]==0.4.13", "transformers==5.24.0"]),
    "ai-sdk": Client("ai_sdk.mjs", "npm-ai", ["ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "@ai-sdk/anthropic@4.0.105", "@ai-sdk/openai@4.0.118", "zod@4.6.7",
                                              "node@24.21.0"]),
    "codex": Client("codex_cli.py", "npm-codex", ["@openai/codex@0.171.0"]),
    "claude-code": Client("claude_code.py", "npm-claude", ["@anthropic-ai/claude-code@2.1.332"], shorten=True),
    "opencode": Client("opencode_cli.py", "npm-opencode", ["opencode-ai@1.18.33"]),
}


def version(client):
    return re.split("==|(?<=.)@", client.packages[0])[-1]


def install(client, cache):
    """Installs the packages unless these versions are there."""
    place = cache / client.place
    stamp, wanted = place / "installed.txt", "\n".join(sorted(client.packages)) + "\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {' '.join(client.packages)}", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if client.place.startswith("py-"):
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin/python", "-m", "pip", "install", "-q", *client.packages], check=True, stdout=sys.stderr)
    else:
        if not shutil.which("npm"):
            raise RuntimeError("npm is missing; on Debian: apt-get install nodejs npm")
        subprocess.run(["npm", "install", "--silent", "--save-exact", "--prefix", place, *client.packages], check=True, stdout=sys.stderr)
    stamp.write_text(wanted)


def start_server(fovea, model, log):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([fovea, "serve", model, "--alias", script.MODEL, "--port", str(port), "--threads", "2"], stdout=log, stderr=log)
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return process, port
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    process.kill()
    raise RuntimeError(f"the server does not answer; see {log.name}")


def drive(client, cache, url, model, home, verbose):
    """Runs the driver; returns its lines."""
    python = client.driver.endswith(".py")
    own = cache / client.place
    interpreter = own / "bin/python" if client.place.startswith("py-") else sys.executable if python else own / "node_modules/.bin/node"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8", "SERVER_URL": url, "CLIENT_CACHE": str(cache), "MODEL_DIR": str(model),
           "SCRIPT": json.dumps({k: v for k, v in vars(script).items() if k.isupper()}), "DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "1",
           "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", "AI_SDK_LOG_WARNINGS": "false", "HF_HUB_OFFLINE": "1",
           **({"CLIENT_VERBOSE": "1"} if verbose else {})}
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([interpreter, HERE / "drivers" / client.driver], env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=None if verbose else subprocess.STDOUT)
        try:
            code = process.wait(600)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "none after 600 s"
        out.seek(0)
        text = out.read().decode(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith(("pass ", "FAIL "))]
    if not lines or (code != 0 and not any(line.startswith("FAIL") for line in lines)):
        lines.append(f"FAIL driver: exit code {code}: {' '.join(text.split())[-300:]}")
    return lines


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip(), description=__doc__.split("\n\n")[0])
    parser.add_argument("fovea", nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CLIENTS))
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_intermixed_args()
    if options.stand_in and options.fovea in CLIENTS:
        options.names.insert(0, options.fovea)
    unknown = set(options.names) - set(CLIENTS)
    if unknown or not (options.fovea or options.stand_in):
        parser.error(f"unknown: {', '.join(sorted(unknown))}" if unknown else "the path of fovea is missing")
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    model = cache / "model"
    scripted_model.make(model)

    failures, rows = [], []
    with tempfile.TemporaryDirectory(prefix="clients-") as home, open(cache / "serve.log", "wb") as log:
        home = pathlib.Path(home)
        server = None
        if options.stand_in:
            port = StandIn().start().port
        else:
            server, port = start_server(options.fovea, model, log)
        try:
            for name in options.names or CLIENTS:
                client = CLIENTS[name]
                recorder = Recorder(port).start()
                began = time.time()
                try:
                    install(client, cache)
                    began = time.time()
                    lines = drive(client, cache, recorder.url, model, home, options.verbose)
                except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                    lines = [f"FAIL start: {error}"]
                seconds = time.time() - began
                exchanges = recorder.take()
                recorder.close()
                failed = [line for line in lines if line.startswith("FAIL")]
                failures += [f"{name}: {line[5:]}" for line in failed]
                if server and server.poll() is not None:
                    failures.append(f"{name}: the server ended with {server.returncode}; see {log.name}")
                    server, port = start_server(options.fovea, model, log)
                rows.append((name, version(client), f"{len(lines) - len(failed)} of {len(lines)}" + (" FAIL" if failed else ""), f"{seconds:.1f}"))
                print(" | ".join(rows[-1]), file=sys.stderr)
                if options.record:
                    options.record.mkdir(parents=True, exist_ok=True)
                    transcript.write(options.record / (name + ".jsonl"), exchanges, {str(cache): "/cache", str(home): "/tmp/clients"}, client.shorten)
        finally:
            if server:
                server.terminate()
                try:
                    server.wait(10)
                except subprocess.TimeoutExpired:
                    server.kill()

    rows.insert(0, ("client", "version", "steps", "seconds"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print(" | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for failure in failures:
        print(failure)
    good = sum("FAIL" not in row[2] for row in rows[1:])
    print(f"{good} passed, {len(rows) - 1 - good} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
