"""fovea serve: excessive requests, damaged models, and isolation of clients."""
import concurrent.futures
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

from serving import CHAT, ServeTest
from support import ROOT

SENTENCES = ROOT / "tests/goldens/sentence_model"
PAIRS = ROOT / "tests/goldens/cross_encoder"


class ServeLimits(ServeTest):
    def raw(self, path, body):
        """Posts a body that need not be JSON; returns the status and the body of the response."""
        status, _, answer = self.ask("POST", path, body)
        return status, answer

    def test_invalid_numbers_and_deep_nesting_are_refused(self):
        self.serve(SENTENCES, PAIRS)
        deep = "[" * 100_000, '{"a":' * 100_000, "[" * 60_000 + "]" * 60_000
        bodies = {"/v1/completions": '{"prompt": "The", "max_tokens": 2, "temperature": %s}',
                  "/v1/chat/completions": '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 2, "top_p": %s}',
                  "/embed": '{"inputs": "a", "dimensions": %s}', "/v1/embeddings": '{"input": "a", "dimensions": %s}',
                  "/rerank": '{"query": "a", "texts": ["b"], "raw_scores": %s}', "/tokenize": '{"content": "a", "add_special": %s}',
                  "/api/chat": '{"messages": [{"role": "user", "content": "a"}], "stream": false, "options": {"num_predict": 2, "top_p": %s}}',
                  "/completion": '{"prompt": "The", "n_predict": 2, "top_p": %s}', "/embedding": '{"content": "a", "embd_normalize": %s}',
                  "/decode": '{"ids": [1], "skip_special_tokens": %s}', "/apply-template": '{"messages": [], "top_p": %s}',
                  "/api/embed": '{"input": "a", "dimensions": %s}',
                  "/translate": '{"q": "a", "source": "de", "target": "en", "alternatives": %s}'}
        for path, body in bodies.items():
            for value in ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400, "1" + "0" * 400 + ".5", "-9223372036854775809",
                          "18446744073709551616", "1e308", "-0.0e-400", '"' + "x" * 1_000_000 + '"', "0x10", "+1", ".5", *deep):
                status, answer = self.raw(path, body % value)
                self.assertTrue(status in (400, 422) or (status == 200 and value == "-0.0e-400"), (path, value[:40], status, answer))
                self.assertLess(len(json.dumps(answer)), 2000 if status != 200 else 100_000)
        self.expect_healthy()

    def test_excessive_schemas_are_refused(self):
        self.serve()
        many = {"enum": [f"{i:0200}" for i in range(3000)]}
        schemas = [{"$ref": "#"}, {"$ref": "#/properties/a", "properties": {"a": {"$ref": "#/properties/a"}}}, {"minItems": 10**9, "type": "array"},
                   {"type": "string", "minLength": 10**9}, {"type": "string", "maxLength": 2**63}, {"type": "array", "minItems": -1},
                   {"type": "string", "pattern": "(?=a)"}, {"enum": []}, {"anyOf": []}, {"required": ["a"], "properties": {}, "type": "object",
                                                                                           "additionalProperties": False}, {"type": "nothing"}, many]
        for schema in schemas:
            began = time.monotonic()
            status, _, answer = self.post("/v1/chat/completions", {**CHAT, "max_tokens": 5, "response_format":
                                                                   {"type": "json_schema", "json_schema": {"schema": schema}}})
            self.assertIn(status, (200, 400), (str(schema)[:100], answer))
            self.assertLess(time.monotonic() - began, 20, str(schema)[:100])
        self.expect_healthy()

    def broken(self, model):
        """Returns a copy of a model whose matrices contain only NaN."""
        copy = self.folder / f"broken {model.name}"
        shutil.copytree(model, copy)
        path = copy / "model.safetensors"
        content = bytearray(path.read_bytes())
        length = struct.unpack("<Q", content[:8])[0]
        for name, entry in json.loads(content[8:8 + length]).items():
            if name != "__metadata__" and entry["dtype"] == "F32" and len(entry["shape"]) == 2:
                begin, end = (8 + length + offset for offset in entry["data_offsets"])
                content[begin:end] = struct.pack("<f", float("nan")) * ((end - begin) // 4)
        path.write_bytes(content)
        return copy

    def test_models_with_nan_weights_give_errors(self):
        broken = [self.broken(model) for model in (self.served_model(), SENTENCES, PAIRS)]
        self.serve(*broken, SENTENCES)
        names = [model.name for model in broken]
        for ask in ({"temperature": 0}, {"temperature": 1}, {"temperature": 0, "logprobs": 2}):
            status, _, answer = self.post("/v1/completions", {"model": names[0], "prompt": "The", "max_tokens": 3, **ask})
            self.assertEqual((status, answer.get("error", {}).get("type")), (500, "server_error"), answer)
            self.assertIn("finite", answer["error"]["message"])
        status, _, stream = self.post("/v1/completions", {"model": names[0], "prompt": "The", "stream": True})
        self.assertTrue(status == 500 or b'"error"' in stream, stream)
        status, _, answer = self.post("/embed", {"model": names[1], "inputs": ["a", "b"]})
        self.assertEqual((status, answer["error_type"]), (424, "Backend"))
        self.assertEqual(self.post("/v1/embeddings", {"model": names[1], "input": "a"})[0], 500)
        status, _, answer = self.post("/rerank", {"model": names[2], "query": "a", "texts": ["b"]})
        self.assertEqual((status, answer["error_type"]), (424, "Backend"))
        self.assertEqual(len(self.good("/embed", {"model": "sentence_model", "inputs": "a"})), 1)
        self.expect_healthy()

    def test_every_route_but_health_and_the_page_requires_the_key(self):
        self.serve(env={"FOVEA_API_KEY": "s3cret"})
        documented = (ROOT / "docs/serve.md").read_text()
        routes = re.findall(r"`(GET|POST) (/\S*?)`", documented.split("## Routes")[1].split("\n\n")[1])
        self.assertGreater(len(routes), 11)
        for method, path in routes:
            self.assertEqual(self.ask(method, path)[0], 200 if path == "/health" or (method, path) == ("GET", "/") else 401, path)

    def test_prompts_are_isolated(self):
        self.serve("--parallel", 8, context=512)
        common = "A fox and the eye. " * 6  # the common prefix of all prompts
        asks = [{"prompt": f"{common}{chr(65 + i % 26) * 7}{i}", "max_tokens": 20 + i % 9, "temperature": 0, "ignore_eos": True}
                for i in range(32)]
        alone = [self.good("/v1/completions", ask)["choices"][0]["text"] for ask in asks]
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            for _ in range(2):
                left = [pool.submit(self.open_stream, prompt=common + "left", n=2) for _ in range(8)]
                answers = [pool.submit(self.good, "/v1/completions", ask) for ask in asks]
                for each in left:
                    each.result().close()
                self.assertEqual([each.result()["choices"][0]["text"] for each in answers], alone)

    def test_old_and_unusual_clients_are_served(self):
        self.serve()
        heard = self.say("GET /health HTTP/1.0\r\n\r\n")
        self.assertTrue(heard.startswith("HTTP/1.1 200") and "Connection: close" in heard, heard)
        heard = self.say("GET /health HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
        self.assertTrue(heard.startswith("HTTP/1.1 200"), "an upgrade may be ignored")
        self.assertTrue(self.say("GET /health\r\n\r\n").startswith("HTTP/1.1 400"))

    def test_endless_chunks_are_refused(self):
        self.serve("--max-body", "100000")
        with self.connect() as connection:
            connection.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(1000):
                    connection.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n")
            except OSError:
                pass
            self.assertTrue(self.hear(connection)[:12] in ("HTTP/1.1 413", ""), "refused and closed")
        self.expect_healthy()

    def test_other_addresses_can_be_used(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("needs IPv6")
        self.serve("--host", "::1")
        with socket.create_connection(("::1", self.port)) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: [::1]:%d\r\nConnection: close\r\n\r\n" % self.port)
            self.assertIn("200 OK", self.hear(connection))

    def test_sigterm_completes_waiting_vectors(self):
        process = self.serve(SENTENCES, "--grace", 30)
        body = json.dumps({"inputs": ["the eye sees a fox ."] * 500})
        waiting = []
        for _ in range(8):
            connection = self.connect()
            connection.sendall(f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            waiting.append(connection)
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        for connection in waiting:
            heard = self.hear(connection)
            self.assertTrue(heard == "" or heard.startswith("HTTP/1.1 200"), heard[:200])
        self.assertEqual(process.wait(timeout=30), 143)

    def test_overload_of_vectors_gives_429_with_bounded_memory(self):
        self.serve(SENTENCES, "--queue", 4)
        ask = {"inputs": ["the eye sees a fox ."] * 200}
        expected = self.good("/embed", ask)
        before, statuses, end = self.of_status("VmRSS"), set(), time.monotonic() + 3
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            def keep_asking():
                while time.monotonic() < end:
                    status, headers, answer = self.post("/embed", ask)
                    statuses.add(status)
                    if status == 429:
                        self.assertEqual((headers["Retry-After"], answer["error_type"]), ("1", "Overloaded"))
                    else:
                        self.assertEqual(answer, expected)
            for each in [pool.submit(keep_asking) for _ in range(24)]:
                each.result()
        self.assertEqual(statuses, {200, 429})
        self.assertLess(self.of_status("VmRSS") - before, 30000, "kilobytes")

    @unittest.skipIf(shutil.which("strace") is None, "needs strace")
    def test_no_request_opens_a_file(self):
        self.serve()
        self.expect_healthy()
        trace = self.folder / "trace.txt"
        watcher = subprocess.Popen(["strace", "-f", "-e", "trace=openat,open,creat,unlink,rename,execve", "-o", trace, "-p",
                                    str(self.process.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.stderr.close)
        if "attached" not in watcher.stderr.readline():
            watcher.wait(timeout=10)
            self.skipTest("needs the right to trace")
        for path in ("../../etc/passwd", "/etc/passwd", "file:///etc/passwd"):
            for body in ({"model": path, "prompt": "a"}, {"prompt": path, "max_tokens": 2}):
                self.post("/v1/completions", body)
            self.post("/v1/chat/completions", {**CHAT, "max_tokens": 2, "chat_template": path, "chat_template_kwargs": {"file": path}})
            self.post("/v1/chat/completions", {**CHAT, "max_tokens": 2, "response_format": {"type": "json_schema", "json_schema":
                                                                                            {"schema": {"$ref": path}}}})
            self.ask("GET", f"/v1/models/{path}")
            self.ask("GET", f"/{path}")
        watcher.send_signal(signal.SIGINT)
        watcher.wait(timeout=10)
        opened = {line.split('"')[1] for line in trace.read_text().splitlines() if '"' in line}
        self.assertEqual({name for name in opened if not name.startswith(("/proc/", "/sys/"))}, set())


if __name__ == "__main__":
    unittest.main()
