#!/usr/bin/env python3
"""Measures the latency of servers with OpenAI's API under a mixed load: fovea, llama-server and others.

  tools/bench/serve_latency.py URL [URL ...] [--clients 32] [--seconds 60]

Each client sends one streamed completion after another: by default three short prompts (about 30 words) for each long one (about 700
words), all different, 64 tokens each, greedily, without stopping at an end token. All servers get the same prompts; give them the
same model file and as many threads and sequences (llama-server: --parallel 32 --ctx-size 65536). Prints, for each server, the 50th and 99th
percentile of the time to the first token and of the time between two pieces of a stream, and the sum of the tokens per second, which the
servers count themselves."""
import argparse
import asyncio
import json
import random
import sys
import time
import urllib.parse

WORDS = ("the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were when we "
         "there can an your which their said if do will each about how up out them then she many some so these would other into has more").split()


def prompts(client, given):
    """Yields the prompts of a client: every given.every-th one is long; the clients begin at different places."""
    chance = random.Random(client)
    for number in range(client, sys.maxsize):
        words = given.long_words if number % given.every == 0 else given.short_words
        yield " ".join(chance.choice(WORDS) for _ in range(chance.randint(words * 3 // 4, words * 5 // 4)))


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
    def __init__(self, url, given):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.given = parts.hostname, parts.port or 80, given
        self.first, self.between, self.tokens, self.finished = [], [], 0, 0

    async def ask(self, prompt, until):
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        start = last = time.perf_counter()
        writer.write(request_of(prompt, self.given, f"{self.host}:{self.port}"))
        pieces = 0
        async for event, now in events(reader):
            if any(choice.get("text") for choice in event.get("choices", [])):
                (self.between if pieces else self.first).append(now - last)
                pieces, last = pieces + 1, now
            if event.get("usage") and now < until:
                self.tokens += event["usage"]["completion_tokens"] + event["usage"]["prompt_tokens"]
                self.finished += 1
        writer.close()

    async def client(self, number, until):
        for prompt in prompts(number, self.given):
            await self.ask(prompt, until)
            if time.perf_counter() > until:
                return

    async def run(self):
        until = time.perf_counter() + self.given.seconds
        await asyncio.gather(*(self.client(i, until) for i in range(self.given.clients)))


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def parse():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("urls", nargs="+", metavar="URL")
    options.add_argument("--model", default="", help="name of the model in the requests")
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--tokens", type=int, default=64, help="new tokens of each request (default %(default)s)")
    options.add_argument("--short-words", type=int, default=30)
    options.add_argument("--long-words", type=int, default=700)
    options.add_argument("--every", type=int, default=4, help="one prompt in so many is long (default %(default)s)")
    return options.parse_args()


def main():
    given = parse()
    print(f"{'server':32} {'first token p50':>16} {'p99':>8} {'between p50':>12} {'p99':>8} {'tokens/s':>9} {'requests':>9}")
    for url in given.urls:
        load = Load(url, given)
        try:
            asyncio.run(load.run())
        except (ConnectionError, OSError) as error:
            print(f"{url}: {error}", file=sys.stderr)
            continue
        print(f"{url:32} {percentile(load.first, 0.5):14.2f} s {percentile(load.first, 0.99):6.2f} s "
              f"{1e3 * percentile(load.between, 0.5):9.1f} ms {1e3 * percentile(load.between, 0.99):5.0f} ms "
              f"{load.tokens / given.seconds:9.0f} {load.finished:9}", flush=True)


if __name__ == "__main__":
    main()
