"""Small requests that stopped the server for all clients."""
import json
import re
import threading
import time
import unittest

from serving import CHAT, ServeTest
from support import fovea


class Serve(ServeTest):
    unexpected = []

    def expect_status(self, path, body, expected):
        status, _, answer = self.post(path, body)
        if status != expected:
            self.unexpected.append((path, status, str(answer)[:200]))

    def test_small_requests_for_large_responses_are_refused(self):
        """Each of these crashed the server, or took gigabytes or minutes, during which /health did not respond: nested JSON in a string,
        many keys, large responses to small requests, many lines. All of these now have limits, and /health needs no handler."""
        self.serve("--max-time", 20)
        user = [{"role": "user", "content": "x"}]
        deep = '{"a":' + "[" * 100000 + "]" * 100000 + "}"
        call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": deep}}]}
        watch = {"attention": {"top_k": 1024}, "hidden_states": {"layer": 2}}
        cases = [("/v1/chat/completions", {"messages": [*user, call]}, 200),  # its arguments stay text
                 ("/tokenize", '{"content":"a"' + "".join(',"%x":0' % i for i in range(190000)) + "}", 400),
                 ("/v1/completions", {"prompt": ["the"] * 32, "n": 16, "max_tokens": 500, "ignore_eos": True, "logprobs": 20, "fovea": watch}, 400),
                 ("/tokenize", {"content": "zq" * 990000, "with_pieces": True}, 200),
                 ("/detokenize", {"tokens": [1] * 600000}, 200),
                 ("/translate", {"q": "a\n" * 600000, "source": "a", "target": "b", "alternatives": 3}, 400),
                 ("/v1/chat/completions", {"messages": user, "tools": json.loads('[{"a":' * 30 + "1" + "}]" * 30)}, 400)]
        slowest = 0.0
        ended = threading.Event()

        def watch_health():
            nonlocal slowest
            while not ended.is_set():
                began = time.monotonic()
                self.assertEqual(self.ask("GET", "/health", timeout=20)[0], 200)
                slowest = max(slowest, time.monotonic() - began)
                time.sleep(0.05)

        health = threading.Thread(target=watch_health)
        health.start()
        try:
            for path, body, expected in cases:
                askers = [threading.Thread(target=self.expect_status, args=(path, body, expected)) for _ in range(2)]
                for asker in askers:
                    asker.start()
                for asker in askers:
                    asker.join()
                self.expect_healthy()
        finally:
            ended.set()
            health.join()
        self.assertEqual(self.unexpected, [])
        self.assertLess(slowest, 10, "it takes milliseconds on an idle machine")
        self.assertLess(self.of_status("VmHWM"), 700_000)

    def test_max_time_applies_to_every_route(self):
        """--max-time applied neither to /translate nor to tokenising."""
        self.serve("--max-time", 0.001, "--parallel", 1, context=2048)
        for path, body in (("/tokenize", {"content": "zq" * 900000}), ("/v1/completions", {"prompt": "The", "max_tokens": 500, "ignore_eos": True})):
            status, _, answer = self.post(path, body)
            self.assertEqual((status, "--max-time" in answer["error"]["message"]), (503, True), answer)
        self.assertEqual(self.ask("GET", "/health")[0], 200)

    def test_a_cache_of_one_page_shortens_answers(self):
        """A server with a cache of one page accepted a request and later responded with status 500."""
        refused = fovea("serve", self.served_model(), "--port", 0, "--cache", 1)
        page = re.search(r"at least (\d+), one page", refused.stderr.decode())[1]
        self.serve("--cache", page)
        answer = self.good("/v1/completions", {"prompt": "The", "max_tokens": 200, "ignore_eos": True})
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertLess(answer["usage"]["total_tokens"], 66)
        self.assertEqual(self.post("/v1/completions", {"prompt": "eye " * 200})[0], 400)

    def test_ambiguous_schemas_are_limited(self):
        """A chain of 20,000 references overflowed the stack. For an array of one or two levels, each bracket doubled the engine's memory,
        and no other client received a response."""
        self.serve()
        array = {"type": "array", "items": {"$ref": "#/$defs/a"}}
        ambiguous = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [array, {"type": "array", "items": array}, {"type": "null"}]}}}
        links = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(20_000)}
        chain = {"$ref": "#/$defs/a0", "$defs": {**links, "a20000": {"type": "null"}}}
        bracket = str(self.good("/tokenize", {"content": "["})["tokens"][0])
        for schema in (ambiguous, chain):
            answer = self.good("/v1/chat/completions", {
                **CHAT, "max_tokens": 100, "temperature": 0, "logit_bias": {bracket: 100},
                "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}})
            json.loads(answer["choices"][0]["message"]["content"])
            self.expect_healthy()
        self.assertLess(self.of_status("VmHWM"), 400_000)


if __name__ == "__main__":
    unittest.main()
