"""fovea serve over time: hundreds of slow clients, isolation of prompts, growth of caches, and the timing of keys. The suite runs these
tests for seconds; FOVEA_SOAK=1 (`./run soak`) for minutes."""
import concurrent.futures
import contextlib
import http.client
import json
import math
import random
import socket
import statistics
import time
import unittest

from serving import ServeTest
from support import SOAK

HEAD = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"


class ServeLong(ServeTest):
    def pace(self, count):
        """Returns the 99th percentile of the waiting times of an ordinary client."""
        waits = []
        for _ in range(count):
            began = time.monotonic()
            self.assertEqual(self.ask("GET", "/health")[0], 200)
            waits.append(time.monotonic() - began)
        return sorted(waits)[count * 99 // 100]

    def test_clients_that_send_and_read_bytewise_are_disconnected(self):
        """The time limits apply to the head and the body of a request and to reading the response, however slowly bytes are sent or
        read."""
        clients, limits = (500, []) if SOAK else (90, ["--timeout", 1])
        self.serve("--max-connections", 1000, *limits)
        idle, before = self.pace(300), self.descriptors()
        # The response is far longer than the buffers of the sockets.
        body = json.dumps({"content": "A fox. " * 20_000, "with_pieces": True}).encode()
        slow = []
        for i in range(clients):
            connection = socket.socket()
            self.addCleanup(connection.close)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", self.port))
            if i % 3 == 2 and i < 60:  # the response has several megabytes
                connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            else:
                connection.sendall(HEAD if i % 3 == 0 else HEAD + b"Content-Length: 9999\r\n\r\n")
            connection.setblocking(False)
            slow.append(connection)
        self.wait_until(lambda: self.descriptors() > before + clients // 2)
        # The server must drop the connections; a client may still read what its own socket has buffered.
        end = time.monotonic() + (120 if SOAK else 60)
        while self.descriptors() > before + 2:
            self.assertLess(time.monotonic(), end, self.log()[-2000:])
            for connection in slow:
                with contextlib.suppress(OSError):
                    connection.send(b"x")
                with contextlib.suppress(OSError):
                    connection.recv(1)
            time.sleep(1 if SOAK else 0.2)
        if SOAK:  # the suite does not check times
            self.assertLess(self.pace(300), max(2 * idle, 0.01))
        self.expect_healthy()

    def test_concurrent_prompts_are_isolated(self):
        """64 concurrent clients send prompts with common prefixes while others disconnect. Each result equals that of the same prompt
        sent alone."""
        self.serve("--parallel", 16, "--cache", "2M", context=512)
        draw = random.Random(3)
        secrets = ["".join(draw.choice("QXZJKVW") for _ in range(12)) for _ in range(64)]
        asks = [{"prompt": "A fox and the eye. " * (i % 5) + f"The key is {secret}. " + "It sleeps. " * (i % 4), "max_tokens": 10 + i % 30,
                 "temperature": 0, "ignore_eos": True} for i, secret in enumerate(secrets)]
        alone = [self.good("/v1/completions", ask)["choices"][0]["text"] for ask in asks]
        end = time.monotonic() + (600 if SOAK else 3)
        with concurrent.futures.ThreadPoolExecutor(80) as pool:
            while time.monotonic() < end:
                order = draw.sample(range(64), 64)
                gone = [pool.submit(self.open_stream, prompt=asks[i]["prompt"] + "and", n=2) for i in order[:8]]
                answers = {i: pool.submit(self.good, "/v1/completions", asks[i]) for i in order}
                for each in gone:
                    each.result().close()
                for i, answer in answers.items():
                    text = answer.result()["choices"][0]["text"]
                    self.assertEqual(text, alone[i])
                    self.assertFalse([s for j, s in enumerate(secrets) if j != i and s in text])

    def test_caches_do_not_grow(self):
        """The caches of prefixes, tokenizer pieces, grammars and templates do not grow beyond their capacities."""
        self.serve("--cache", "1M", "--parallel", 4, context=1024)
        draw = random.Random(4)

        def word():
            return "".join(draw.choice("abcdefghij") for _ in range(14))

        def fill():
            for _ in range(10):
                text = " ".join(word() for _ in range(40))  # with about 300 KB of keys and values
                self.good("/v1/completions", {"prompt": text, "max_tokens": 1})
                self.good("/tokenize", {"content": " ".join(word() for _ in range(10_000))})
                schema = {"type": "object", "properties": {word(): {"enum": [word() for _ in range(20)]}}}
                self.good("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": word()}], "max_tokens": 8, "chat_template_kwargs": {word(): 1},
                    "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}})

        fill()
        fill()
        before = self.of_status("VmRSS")
        for _ in range(100 if SOAK else 10):
            fill()
        self.assertLess(self.of_status("VmRSS") - before, 6000, "kilobytes")

    @unittest.skipUnless(SOAK, "measures time; FOVEA_SOAK=1 runs it")
    def test_the_time_for_a_wrong_key_is_constant(self):
        """The time does not depend on the number of correct leading bytes of a wrong key."""
        key = "k" * 32
        self.serve(env={"FOVEA_API_KEY": key})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        times = {agrees: [] for agrees in range(0, 32, 4)}
        for _ in range(4000):
            for agrees in random.sample(sorted(times), len(times)):
                wrong = key[:agrees] + "x" * (32 - agrees)
                began = time.perf_counter_ns()
                connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {wrong}"})
                answer = connection.getresponse()
                answer.read()
                times[agrees].append(time.perf_counter_ns() - began)
                self.assertEqual(answer.status, 401)
        # The slope of the time over the number of correct bytes, without the slowest fifth of the requests: other programs may delay them.
        points = [(agrees, taken) for agrees, all_taken in times.items() for taken in sorted(all_taken)[:len(all_taken) * 4 // 5]]
        mean_x, mean_y = (statistics.fmean(p[i] for p in points) for i in (0, 1))
        spread = sum((x - mean_x) ** 2 for x, _ in points)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
        rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points) / (len(points) - 2)
        self.assertLess(abs(slope) / math.sqrt(rest / spread), 4, "standard errors")


if __name__ == "__main__":
    unittest.main()
