#!/usr/bin/env python3
"""Measures a running `fovea serve`: its capacity, and its throughput when requests arrive twice as fast.

  tools/bench/serve_load.py URL --path /v1/completions --body '{"prompt": "The", "max_tokens": 32}' [--seconds 10] [--clients 16]
  tools/bench/serve_load.py URL --path /embed --lines FILE --clients 64

First, each client sends a request as soon as it has received the previous response, which measures the capacity. Then, unless
--capacity-only is given, requests are sent at twice this rate, independently of the responses. With --lines, the body is {"inputs": LINE}
for each line in turn. --pid PID also reports the growth of the server's memory."""
import argparse
import collections
import itertools
import json
import pathlib
import re
import selectors
import socket
import time
import urllib.parse


class Connection:
    def __init__(self, address):
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heard, self.busy = b"", False

    def ask(self, request):
        self.socket.sendall(request)
        self.heard, self.busy = b"", True

    def hear(self):
        """Receives bytes; returns the status when the response is complete, else None."""
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the server closed a connection")
        self.heard += piece
        head, mark, body = self.heard.partition(b"\r\n\r\n")
        if not mark or len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1]):
            return None
        self.busy = False
        status = int(self.heard[9:12])
        if status == 429 and b"Retry-After:" not in head:
            raise ValueError("429 without Retry-After")
        return status


class Load:
    def __init__(self, url, requests):
        parts = urllib.parse.urlsplit(url)
        self.address = parts.hostname, parts.port
        self.requests = requests
        self.selector = selectors.DefaultSelector()

    def connect(self):
        connection = Connection(self.address)
        self.selector.register(connection.socket, selectors.EVENT_READ, connection)
        return connection

    def closed(self, clients, seconds):
        """Each client sends its next request when it has received a response. Returns the statuses and the elapsed seconds."""
        statuses, begin = collections.Counter(), time.monotonic()
        for _ in range(clients):
            self.connect().ask(next(self.requests))
        while time.monotonic() < begin + seconds:
            for key, _ in self.selector.select(0.1):
                status = key.data.hear()
                if status is not None:
                    statuses[status] += 1
                    key.data.ask(next(self.requests))
        return statuses, time.monotonic() - begin

    def drain(self):
        while any(key.data.busy for key in self.selector.get_map().values()):
            for key, _ in self.selector.select(0.1):
                key.data.hear()

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.data.socket.close()
        self.selector.close()

    def open(self, rate, seconds):
        """Sends requests at a constant rate, independently of the responses. Returns the statuses and the elapsed seconds."""
        statuses, begin, sent = collections.Counter(), time.monotonic(), 0
        idle = [key.data for key in self.selector.get_map().values()]
        while (now := time.monotonic() - begin) < seconds:
            while sent < now * rate and (idle or len(self.selector.get_map()) < 400):
                (idle.pop() if idle else self.connect()).ask(next(self.requests))
                sent += 1
            for key, _ in self.selector.select(0.001):
                status = key.data.hear()
                if status is not None:
                    statuses[status] += 1
                    idle.append(key.data)
        return statuses, time.monotonic() - begin


def megabytes(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--path", default="/v1/completions")
    parser.add_argument("--body", default='{"prompt": "The", "max_tokens": 32, "ignore_eos": true}')
    parser.add_argument("--lines")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--capacity-only", action="store_true")
    parser.add_argument("--pid", type=int)
    options = parser.parse_args()
    bodies = [options.body]
    if options.lines:
        bodies = [json.dumps({"inputs": line}) for line in pathlib.Path(options.lines).read_text().splitlines() if line]
    requests = itertools.cycle([f"POST {options.path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}"
                                .encode() for body in bodies])
    load = Load(options.url, requests)
    load.closed(options.clients, 1)  # warms up
    load.drain()
    load.close()
    load = Load(options.url, requests)
    before = megabytes(options.pid) if options.pid else 0
    statuses, seconds = load.closed(options.clients, options.seconds)
    carried = statuses[200] / seconds
    print(f"{options.clients} clients: {carried:.1f} responses per second, {dict(statuses)}")
    load.drain()
    if not options.capacity_only:
        statuses, seconds = load.open(2 * carried, options.seconds)
        kept = statuses[200] / seconds
        print(f"at twice that rate: {kept:.1f} responses per second ({100 * kept / carried:.0f} %), {dict(statuses)}")
        load.drain()
    if options.pid:
        print(f"memory: {before:.0f} MB before, {megabytes(options.pid):.0f} MB after")


if __name__ == "__main__":
    main()
