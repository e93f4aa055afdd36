#!/usr/bin/env python3
"""Measures the latency of servers with OpenAI's API under a mixed load or that of agents: fovea, llama-server and others.

  tools/bench/serve_latency.py URL [URL ...] [--clients 32] [--seconds 60]
  tools/bench/serve_latency.py URL [URL ...] --agents --clients 8 --turns 4 [--pairs 3]
  tools/bench/serve_latency.py --make-model DIR

Each client sends one streamed completion after another: by default three short prompts (about 30 words) for each long one (about 700
words), all different, 64 tokens each, greedily, without stopping at an end token. All servers get the same prompts; give them the
same model file and as many threads and sequences (llama-server: --parallel 32 --ctx-size 65536). Prints, for each server, the 50th and 99th
percentile of the time to the first token and of the time between two pieces of a stream, the seconds until the last request has ended, and
the sum of the tokens per second, which the servers count themselves.

With --agents, each client is an agent with a fixed number of requests. Its sessions begin with a system prompt of --system-words, the
tools, which all clients share, and a task. Each further prompt is the previous one with an answer and the result of a tool, until it would
have more than --longest words; then a new session begins. The answers are words too, not those of the server, so that the prompts do not
depend on it. The clients' first prompts have from --shortest to --first-words words, in equal ratios and in a random order, as if the
agents had been running before. A word is a token of the model that --make-model writes, and of most others.

With --pairs, the servers take turns (A B, B A, A B, ...), with other prompts in each pair, so that no cache has them. The last lines say how
many times as long each other server took as the first one: the geometric mean over the pairs, with a 95% interval (of Student's t, on the
logarithms). --make-model writes a Llama of 1.1 billion parameters with random weights; `fovea convert DIR FILE.gguf --dtype q4_k_m` makes
the file for the servers. Turn speculative tokens off (fovea: --speculative-tokens 0), since such a model may repeat itself."""
import argparse
import asyncio
import json
import math
import pathlib
import random
import statistics
import sys
import time
import urllib.parse

import bench_models

WORDS = ("the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were when we "
         "there can an your which their said if do will each about how up out them then she many some so these would other into has more").split()

STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # 97.5th percentile of t, for 1, 2, ... degrees of freedom
FIGURES = ("first token p50", "first token p99", "between tokens p50", "between tokens p99", "time per token read or written")


def mixed_prompts(client, given, seed):
    """Yields the prompts of a client: every given.every-th one is long; the clients begin at different positions."""
    chance = random.Random(f"{seed} {client}")
    for number in range(client, sys.maxsize):
        words = given.long_words if number % given.every == 0 else given.short_words
        yield " ".join(chance.choice(WORDS) for _ in range(chance.randint(words * 3 // 4, words * 5 // 4)))


def text(chance, count):
    return "".join(" " + word for word in chance.choices(WORDS, k=round(count)))


def agent_prompts(client, given, seed):
    """Yields given.turns prompts of a client that is an agent."""
    system = "System:" + text(random.Random(f"{seed} tools"), given.system_words)
    order = random.Random(f"{seed} order").sample(range(given.clients), given.clients)
    chance = random.Random(f"{seed} {client}")
    words = given.shortest * (given.first_words / given.shortest) ** (order[client] / max(1, given.clients - 1))
    prompt = ""
    for _ in range(given.turns):
        if not prompt:
            prompt = system + "\nUser:" + text(chance, words - given.system_words) + "\nAssistant:"
        yield prompt
        result = chance.uniform(0.5, 1.5) * given.result_words
        words += given.tokens + result
        prompt += text(chance, given.tokens) + "\nTool:" + text(chance, result) + "\nAssistant:"
        if words > given.longest:
            prompt, words = "", given.shortest


def request_of(prompt, given, address):
    body = json.dumps({"model": given.model, "prompt": prompt, "max_tokens": given.tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                       "stream_options": {"include_usage": True}}).encode()
    return (f"POST /v1/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


async def events(reader):
    """Yields the data of each server-sent event and the time when it came."""
    status = await reader.readline()
    if b" 200 " not in status:
        raise ConnectionError(f"{status.decode().strip()}: {(await reader.read()).decode(errors='replace')[-300:]}")
    while True:
        line = await reader.readline()
        if not line:
            return
        if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
            yield json.loads(line[6:]), time.perf_counter()


class Load:
    """The load on one server, and what it measured."""

    def __init__(self, url, given, seed):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.given, self.seed = parts.hostname, parts.port or 80, given, seed
        self.first, self.between, self.prompts, self.tokens, self.seconds = [], [], [], 0, 0

    async def ask(self, prompt, until):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        start = last = time.perf_counter()
        writer.write(request_of(prompt, self.given, f"{self.host}:{self.port}"))
        pieces, ended = 0, False
        async for event, now in events(reader):
            if "error" in event:
                raise ConnectionError(event["error"])
            if any(choice.get("text") for choice in event.get("choices", [])):
                (self.between if pieces else self.first).append(now - last)
                pieces, last = pieces + 1, now
            ended = ended or bool(event.get("usage"))
            if event.get("usage") and now < until:
                self.tokens += event["usage"]["completion_tokens"] + event["usage"]["prompt_tokens"]
                self.prompts.append(event["usage"]["prompt_tokens"])
        writer.close()
        if not ended:
            raise ConnectionError("a stream ended without its usage")

    async def client(self, number, until):
        for prompt in (agent_prompts if self.given.agents else mixed_prompts)(number, self.given, self.seed):
            await self.ask(prompt, until)
            if time.perf_counter() > until:
                return

    async def run(self):
        start = time.perf_counter()
        until = math.inf if self.given.agents else start + self.given.seconds
        await asyncio.gather(*(self.client(i, until) for i in range(self.given.clients)))
        self.seconds = time.perf_counter() - start

    def figures(self):
        """Returns the values of FIGURES in seconds."""
        seconds = self.seconds if self.given.agents else self.given.seconds
        latencies = [percentile(times, share) for times in (self.first, self.between) for share in (0.5, 0.99)]
        return [*latencies, seconds / self.tokens if self.tokens else float("nan")]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def measure(url, given, seed):
    """Prints a row of the table and returns its figures."""
    load = Load(url, given, seed)
    asyncio.run(load.run())
    first, first_99, between, between_99, total = load.figures()
    print(f"{url:32} {first:14.2f} s {first_99:6.2f} s {1e3 * between:9.1f} ms {1e3 * between_99:5.0f} ms {load.seconds:7.1f} {1 / total:9.0f} "
          f"{len(load.prompts):9}  {min(load.prompts, default=0):,} to {max(load.prompts, default=0):,}", flush=True)
    return load.figures()


def compare(url, ours, theirs):
    """Prints how many times as long a server took as the first one; each list has the figures of each pair."""
    for name, a, b in zip(FIGURES, zip(*ours), zip(*theirs)):
        logs = [math.log(y / x) for x, y in zip(a, b)]
        mean, bounds = statistics.fmean(logs), ""
        if len(logs) > 1:
            half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
            bounds = f", 95% interval {math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}"
        print(f"{url}: {name}: {math.exp(mean):.2f} times that of the first server{bounds}")


def make_model(folder):
    bench_models.make_llama(folder, **bench_models.LLAMA_1B)
    bench_models.write_words_tokenizer(folder, WORDS, bench_models.LLAMA_1B["vocabulary"])


def parse():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("urls", nargs="*", metavar="URL")
    options.add_argument("--model", default="", help="name of the model in the requests")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--seconds", type=float, default=60, help="without --agents (default %(default)s)")
    options.add_argument("--tokens", type=int, default=64, help="new tokens of each request (default %(default)s)")
    options.add_argument("--short-words", type=int, default=30)
    options.add_argument("--long-words", type=int, default=700)
    options.add_argument("--every", type=int, default=4, help="one prompt in so many is long (default %(default)s)")
    options.add_argument("--seed", type=int, default=1, help="of the first pair's prompts (default %(default)s)")
    options.add_argument("--pairs", type=int, default=1, help="how often each server is measured (default %(default)s)")
    options.add_argument("--agents", action="store_true", help="the load of agents")
    options.add_argument("--turns", type=int, default=4, help="--agents: requests of each client (default %(default)s)")
    options.add_argument("--system-words", type=int, default=3500)
    options.add_argument("--shortest", type=int, default=4000, metavar="WORDS", help="--agents: a session's first prompt (default %(default)s)")
    options.add_argument("--longest", type=int, default=25000, metavar="WORDS")
    options.add_argument("--first-words", type=int, metavar="WORDS", help="--agents: longest first prompt of a client (default: --longest)")
    options.add_argument("--result-words", type=int, default=2000, help="--agents: mean of the results of tools (default %(default)s)")
    options.add_argument("--make-model", type=pathlib.Path, metavar="DIR", help="write a model with random weights and exit")
    given = options.parse_args()
    given.first_words = given.first_words or given.longest
    if not given.urls and not given.make_model:
        options.error("expected the URL of a server")
    if given.agents and not given.system_words < given.shortest <= given.first_words <= given.longest:
        options.error("expected --system-words < --shortest <= --first-words <= --longest")
    return given


def main():
    given = parse()
    if given.make_model:
        make_model(given.make_model)
        return
    print(f"{'server':32} {'first token p50':>16} {'p99':>8} {'between p50':>12} {'p99':>8} {'seconds':>7} {'tokens/s':>9} {'requests':>9} "
          " tokens of prompts")
    figures = [[] for _ in given.urls]
    for pair in range(given.pairs):
        for i in range(len(given.urls))[:: 1 if pair % 2 == 0 else -1]:
            try:
                figures[i].append(measure(given.urls[i], given, given.seed + pair))
            except OSError as error:
                sys.exit(f"{given.urls[i]}: {error}")
    for i in range(1, len(given.urls)):
        compare(given.urls[i], figures[0], figures[i])


if __name__ == "__main__":
    main()
