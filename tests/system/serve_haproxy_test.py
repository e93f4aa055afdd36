"""Several servers behind HAProxy, with the configuration in deploy/haproxy/: each client gets one answer or one error while servers are
killed, drained and added, and conversations find the keys and values of their beginnings."""
import concurrent.futures
import http.client
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from balancing import CONFIGURATION, DONE, BalancedTest, events_of
from serving import ask
from support import ROOT, SOAK, text_of

TURNS, CLIENTS = 5, 8
REQUESTS = 10_000 if SOAK else 1_000
PAUSE = 0.02 if SOAK else 0.1  # seconds between the requests of a client, so that the load outlasts the events
SYSTEM = {"role": "system", "content": text_of(300, seed=2)}  # all agents have the same


def conversation(number):
    """Returns the requests of a conversation, each with the messages of those before it."""
    generator, messages, requests = random.Random(number), [SYSTEM], []
    for turn in range(TURNS):
        messages = [*messages, {"role": "user", "content": f"{number} " + text_of(120, seed=generator.random())}]
        requests.append({"messages": messages, "max_tokens": 8, "temperature": 0, "logprobs": True})
        messages = [*messages, {"role": "assistant", "content": text_of(60, seed=generator.random())}]
        if (number + turn) % 4 == 0:
            requests[-1] |= {"stream": True, "stream_options": {"include_usage": True}}
    return requests


def user(content):
    return {"role": "user", "content": content}


class Outcome:
    """What a client got: an answer with its text, probabilities and usage, or an error."""

    def __init__(self, path, request, headers=None):
        self.answer = self.usage = self.error = self.server = None
        try:
            status, given, body = ask(path, "POST", "/v1/chat/completions", request, headers)
            self.server = given["X-Served-By"]
            if status != 200:
                self.error = f"status {status}: {body[:200]}"
            elif request.get("stream"):
                self.read_stream(events_of(body))
            else:
                whole = json.loads(body)
                self.usage = whole["usage"]
                self.answer = self.of(whole["choices"][0]["message"]["content"], whole["choices"][0]["logprobs"]["content"])
        except http.client.IncompleteRead:
            self.error = "incomplete"
        except (OSError, http.client.HTTPException) as error:
            self.error = repr(error)

    @staticmethod
    def of(text, tokens):
        return text, [(token["token"], token["logprob"]) for token in tokens]

    def read_stream(self, events):
        if not events or events[-1] != DONE:
            self.error = "a whole stream without [DONE]"
            return
        chunks = [event for event in events[:-1] if event["choices"]]
        self.usage = events[-2]["usage"]
        self.answer = self.of("".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks),
                              [token for chunk in chunks for token in (chunk["choices"][0].get("logprobs") or {}).get("content") or []])


class Load:
    """Clients with one conversation each at a time, which ask one turn after the other."""

    def __init__(self, path, conversations, with_key=True, pause=0):
        self.path, self.with_key, self.pause = path, with_key, pause
        self.done, self.lock = 0, threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(CLIENTS)
        self.running = [self.pool.submit(self.run, number, requests) for number, requests in conversations.items()]

    def run(self, number, requests):
        outcomes = []
        for request in requests:
            outcomes.append(Outcome(self.path, {**request, "prompt_cache_key": f"agent-{number}"} if self.with_key else request))
            with self.lock:
                self.done += 1
            time.sleep(self.pause)
        return outcomes

    def outcomes(self):
        with self.pool:
            return [outcome for running in self.running for outcome in running.result()]


def warm_share(outcomes):
    """The share of the tokens of prompts whose keys and values were in the cache."""
    usages = [outcome.usage for outcome in outcomes if outcome.usage]
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    return cached / sum(usage["prompt_tokens"] for usage in usages)


def report(line):
    if SOAK:
        print(line, file=sys.stderr, flush=True)


class ServeHaproxyTest(BalancedTest):
    def start(self, *names, **how):
        for name in names:
            self.start_server(name)
        self.start_balancer(names, **how)
        for name in names:
            self.wait_for_state(name, "UP")

    def test_each_client_gets_one_answer_or_one_error(self):
        self.start("one", "two", "three")
        conversations = {number: conversation(number) for number in range(REQUESTS // TURNS)}
        requests = [request for each in conversations.values() for request in each]
        alone = [Outcome(self.socket_of("one"), request) for request in requests]
        self.assertEqual({outcome.error for outcome in alone}, {None})
        began = time.monotonic()
        load = Load(self.front, conversations, pause=PAUSE)
        self.wait_until(lambda: load.done > REQUESTS // 8, 120)
        self.kill_server("two")
        self.wait_until(lambda: load.done > REQUESTS // 4, 120)
        self.start_server("two")
        self.wait_until(lambda: load.done > REQUESTS // 3, 120)
        self.servers["three"].send_signal(signal.SIGTERM)
        self.assertEqual(self.servers["three"].wait(timeout=60), 143)
        self.start_server("three")
        self.start_server("four")
        self.reload_balancer(["one", "two", "three", "four"])
        outcomes = load.outcomes()
        self.assertEqual(len(outcomes), REQUESTS)
        # Only streams that had begun when their server was killed are cut: at most one for each client.
        errors = [(request, outcome.error) for request, outcome in zip(requests, outcomes, strict=True) if outcome.error]
        self.assertEqual({error for _, error in errors} - {"incomplete"}, set(), (self.folder / "haproxy.log").read_text()[-3000:])
        self.assertTrue(all(request.get("stream") for request, _ in errors))
        self.assertLessEqual(len(errors), CLIENTS)
        for outcome, expected in zip(outcomes, alone, strict=True):
            if not outcome.error:
                self.assertEqual(outcome.answer, expected.answer)
        shares = {name: sum(outcome.server == name for outcome in outcomes) for name in self.servers}
        self.assertTrue(all(shares.values()), shares)
        report(f"{REQUESTS} requests in {time.monotonic() - began:.0f} s: {len(errors)} incomplete streams, warm {warm_share(outcomes):.1%}, servers {shares}")

    def test_conversations_find_their_beginnings(self):
        """How many requests the limit of a server's load moves to another server depends on the speed of the machine, so the margin is asked
        of a configuration without this limit."""
        conversations = {number: conversation(number) for number in range(REQUESTS // 4 // TURNS)}
        shares = {}
        for name, old, new in (("as shipped", "", ""), ("sticky", "  hash-balance-factor 150\n", ""),
                               ("round robin", "balance hash var(txn.sticky)", "balance roundrobin")):
            self.start("one", "two", "three", change=lambda text, old=old, new=new: text.replace(old, new))
            shares[name] = [warm_share(Load(self.front, part, with_key).outcomes())
                            for part, with_key in [(dict(list(conversations.items())[::2]), True), (dict(list(conversations.items())[1::2]), False)]]
            self.stop_balancer()
            for server in self.servers:
                self.kill_server(server)
        report(f"share of warm prefixes with keys, without keys: {shares}")
        for shipped, sticky, turns in zip(*shares.values(), strict=True):
            self.assertGreater(shipped, turns)
            self.assertGreater(sticky, turns + 0.1)

    def test_requests_are_sticky_by_key_header_or_first_message(self):
        self.start("one", "two", "three")
        later = [{"role": "assistant", "content": "a"}, user([{"type": "text", "text": "it"}])]

        def turns(*first):
            return [{"messages": list(first)}, {"messages": [*first, *later]}]

        conversations = {  # two requests of conversation n
            "key": lambda n: [{"messages": [user("a")], "key": f"k{n}"}, {"messages": [user("b")], "key": f"k{n}", "session": f"{n + 1}"}],
            "header": lambda n: [{"messages": [user("a")], "session": f"s{n}"}, {"messages": [user("b")], "session": f"s{n}"}],
            "text": lambda n: turns(SYSTEM, user(f"fox {n}")),
            "parts": lambda n: turns(SYSTEM, user([{"type": "text", "text": f"fox {n}"}, {"type": "text", "text": "it"}])),
            "escapes without a system message": lambda n: turns(user(f"你 \"fox\" \\ {n}")),
            "two system messages": lambda n: turns(SYSTEM, SYSTEM, user(f"fox {n}")),
            "members in another order": lambda n: turns(SYSTEM, {"content": f"fox {n}", "role": "user"}),
        }
        for name, requests in conversations.items():
            chosen = [{self.chat(**request)[1] for request in requests(n)} for n in range(12)]
            self.assertTrue(all(len(each) == 1 for each in chosen), f"{name}: {chosen}")
            self.assertGreater(len(set.union(*chosen)), 1, f"{name}: all agents have one server")

    def test_bodies_that_are_no_chat_get_one_answer(self):
        self.start("one", "two")
        for body in [b"", b"{", b"[]", b"null", b"\x00\xff", b'{"messages": 1}', b'{"messages": [{"role": "user", "content": "a',
                     b'{"prompt_cache_key": {}, "messages": []}', b"[" * 100_000, b'{"a":' * 100_000, b'"\\' * 100_000]:
            self.assertEqual(ask(self.front, "POST", "/v1/chat/completions", body)[0], 400, body[:50])
        large = {"messages": [user("fox " * 400_000)], "max_tokens": 1}  # more than the buffer has room for
        self.assertEqual(ask(self.front, "POST", "/v1/chat/completions", large)[0], 400)
        self.assertEqual(self.chat([user("a")], key="k" * 100_000)[0]["object"], "chat.completion")

    def test_a_killed_server_cuts_begun_streams_and_nothing_else(self):
        def together(text):
            """Both requests get the same server, though the other one is idle."""
            return text.replace("  hash-balance-factor 150\n", "")

        self.start("one", "two", change=together)
        long = {"messages": [user("The eye")], "max_tokens": 1900, "ignore_eos": True, "speculative_tokens": 0, "temperature": 0, "logprobs": True}
        alone = Outcome(self.socket_of("one"), long)
        _, stream, server = self.open_chat_stream(prompt_cache_key="a")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            running = pool.submit(Outcome, self.front, {**long, "prompt_cache_key": "a"})
            self.wait_until(lambda: self.runs(server) > 8)
            self.kill_server(server)
            with self.assertRaises(http.client.IncompleteRead):
                while True:
                    self.assertNotIn(DONE.encode(), stream.read(1 << 16))
            again = running.result()
        self.assertIsNone(again.error)
        self.assertNotEqual(again.server, server)
        self.assertEqual(again.answer, alone.answer)

    def runs(self, server):
        text = ask(self.socket_of(server), "GET", "/metrics")[2].decode()
        return float(re.search(r"^fovea_sequences_running\S* (\S+)$", text, re.MULTILINE)[1])

    def test_a_request_that_changes_a_server_is_not_repeated(self):
        """A server that ends without a response has perhaps done what was requested."""
        self.start_server("one")
        count = 0

        def drop(listener):
            nonlocal count
            while True:
                connection, _ = listener.accept()
                with connection:
                    if b"GET /health" in connection.recv(1 << 16):
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    else:
                        count += 1

        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.socket_of("broken")))
        listener.listen()
        threading.Thread(target=drop, args=[listener], daemon=True).start()
        self.start_balancer(["broken"])
        for path, times in {"/v1/files": 1, "/v1/fine_tuning/jobs": 1, "/models/load": 1, "/v1/embeddings": 2, "/v1/chat/completions": 2}.items():
            count = 0
            status, headers, body = ask(self.front, "POST", path, {"input": "a"})
            self.assertEqual((status, count), (502, times), path)
            self.assertEqual(json.loads(body)["error"]["code"], "bad_gateway")

    def test_a_drained_server_ends_its_streams_and_gets_no_further_requests(self):
        self.start("one", "two")
        _, stream, server = self.open_chat_stream(prompt_cache_key="a")
        self.servers[server].send_signal(signal.SIGTERM)
        self.wait_until(lambda: ask(self.socket_of(server), "GET", "/health")[0] == 503)
        status, headers, body = ask(self.socket_of(server), "GET", "/health")
        self.assertEqual((status, json.loads(body), headers["Retry-After"]), (503, {"status": "draining"}, "1"))
        self.chat([user("a")], key="a")  # it still has answers before HAProxy knows
        self.wait_for_state(server, "DOWN")
        self.assertIsNone(self.servers[server].poll())
        for _ in range(5):
            self.assertNotEqual(self.chat([user("a")], key="a")[1], server)
        self.assertTrue(stream.read().decode().endswith("data: [DONE]\n\n"))
        self.assertEqual(self.servers[server].wait(timeout=60), 143)
        self.assertFalse(self.socket_of(server).exists())

    def test_a_client_that_leaves_cancels_its_request(self):
        self.start("one")
        connection, _, server = self.open_chat_stream()
        self.wait_until(lambda: self.runs(server) > 0)
        connection.close()
        connection.sock = None
        self.wait_until(lambda: self.runs(server) == 0)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_tls_ends_in_haproxy(self):
        certificate = self.folder / "certificate.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=DNS:localhost", "-keyout", self.folder / "key", "-out", certificate], capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        both = self.file("both.pem", certificate.read_bytes() + (self.folder / "key").read_bytes())
        self.start("one", certificate=both)
        headers = {"Host": "models.example.org", "Origin": "https://models.example.org", "Sec-Fetch-Site": "same-origin"}
        status, _, body = ask(f"{self.front}-tls", "POST", "/v1/chat/completions", {"messages": [user("a")], "max_tokens": 2}, headers,
                              context=self.trusting(certificate))
        self.assertEqual(status, 200, body)

    def test_every_route_is_known_as_stateless_or_not(self):
        table = (ROOT / "docs/serve.md").read_text().split("## Routes")[1].split("\n## ")[0]
        routes = {path for row in re.findall(r"^\| ([^|]*POST[^|]*)\|", table, re.MULTILINE) for path in re.findall(r"(?:`|POST )(/[\w/-]*)", row)} - {"/models"}
        stateless = {path for line in re.findall(r"acl stateless path (.*)", CONFIGURATION.read_text()) for path in line.split()}
        self.assertEqual(routes - stateless, {"/models/load", "/models/unload", "/api/pull", "/translate_file"})
        self.assertEqual(stateless - routes, set())


if __name__ == "__main__":
    unittest.main()
