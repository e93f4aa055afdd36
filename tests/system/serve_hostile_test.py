"""fovea serve with slow, invalid, hostile and many clients."""
import contextlib
import json
import re
import resource
import signal
import socket
import subprocess
import time
import unittest

from serving import CHAT, ServeTest
from support import FOVEA, fovea

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Hostile(ServeTest):
    def test_nothing_is_read_after_an_invalid_request(self):
        self.serve()
        body = json.dumps({"prompt": "hidden"})
        hidden = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
        cases = {
            400: [post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
                  post + "Content-Length: 2, 2\r\n\r\n{}", post + "Content-Length: +2\r\n\r\n{}", post + "Content-Length: 2x\r\n\r\n{}",
                  post + "Transfer-Encoding: gzip\r\n\r\n", post + "X: a\r\n b\r\n\r\n", post + "X : a\r\n\r\n", post + "X: a\rb\r\n\r\n",
                  post + "X: \0\r\n\r\n", post + "é: a\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n",
                  post + "Transfer-Encoding: chunked\r\n\r\n0x10\r\n", post + "Transfer-Encoding: chunked\r\n\r\n5\nhello", "GET /\r\n\r\n",
                  "GET ftp://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET http:///health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                  "GET http://me@localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                  "CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /health HTTP/1.1\r\n\r\n"],
            404: ["GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"],
            405: ["TRACE /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"],
            413: [post + "Content-Length: 2000001\r\n\r\n", post + "Content-Length: 99999999999999999999\r\n\r\n",
                  post + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", post + "Transfer-Encoding: chunked\r\n\r\n1E8481\r\n"],
            414: [f"GET /{'a' * 9000} HTTP/1.1\r\nHost: localhost\r\n\r\n", f"GET /{'a' * 9000000}"],
            417: [post + "Expect: 200-maybe\r\n\r\n"],
            431: [post + f"X: {'a' * 9000}\r\n\r\n", post + "X: a\r\n" * 101 + "\r\n", post + f"X: {'a' * 8000}\r\n" * 5 + "\r\n"],
            505: ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n"],
        }
        before = self.of_status("VmRSS")
        for status, requests in cases.items():
            for request in requests:
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    heard = self.say(request + hidden)
                    self.assertEqual(heard[:12], f"HTTP/1.1 {status}", request[:200])
                    self.assertEqual(len(re.findall(r"HTTP/1\.1 \d", heard)), 1, request[:200])
        self.assertEqual(self.metric("fovea_generations_total"), 0, "a hidden request was read")
        self.assertLess(self.of_status("VmRSS") - before, 20000)
        self.expect_healthy()

    def test_requests_cannot_inject_headers(self):
        self.serve()
        heard = self.say("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a%0d%0ab\r\nOrigin: http://localhost\r\nConnection: close\r\n\r\n")
        self.assertNotIn("a%0d", heard.split("\r\n\r\n")[0])
        self.assertNotIn("Access-Control", heard)
        self.say("GET /%0d%0aX:%1b[31m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertNotIn("\x1b", self.log())

    def test_other_origins_and_hosts_are_refused(self):
        self.serve("--cors-origin", "https://good.example")
        self.assertEqual(self.ask("GET", "/v1/models", headers={"Host": "evil.example"})[0], 403)
        heard = self.say("GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertEqual(heard[:12], "HTTP/1.1 403", "the host of the target counts")
        self.assertEqual(self.ask("GET", "/v1/models", headers={"Origin": "https://evil.example"})[0], 403)
        status, headers, _ = self.ask("GET", "/v1/models", headers={"Origin": "https://good.example"})
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "https://good.example"))
        status, headers, _ = self.ask("OPTIONS", "/v1/models", headers={"Origin": "https://good.example"})
        self.assertEqual((status, headers["Access-Control-Allow-Methods"]), (204, "GET, POST, DELETE, OPTIONS"))

    def test_slow_clients_are_disconnected_and_others_served(self):
        self.serve("--timeout", 1)
        slow = []
        for i in range(100):
            connection = self.connect()
            connection.sendall([b"GET /hea", b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{", b""][i % 3])
            slow.append(connection)
        began, pace = time.monotonic(), []
        while time.monotonic() - began < 1.5:
            for connection in slow[:10]:
                with contextlib.suppress(OSError):
                    connection.send(b"x")
            asked = time.monotonic()
            self.expect_healthy()
            pace.append(time.monotonic() - asked)
        self.assertLess(sorted(pace)[len(pace) // 2], 1)
        for connection in slow:
            connection.settimeout(10)
            self.hear(connection)
        self.wait_until(lambda: self.descriptors() < 30)

    def test_disconnected_clients_free_their_slots(self):
        self.serve("--parallel", 4, context=2048)
        ask = {"prompt": "A fox", "max_tokens": 60, "temperature": 0, "ignore_eos": True}
        expected = self.good("/v1/completions", ask)["choices"][0]["text"]
        for stream in (True, False):
            victims = [self.open_stream(n=4, stream=stream) for _ in range(6)]
            self.wait_until(lambda: self.metric("fovea_sequences_running") > 0)
            for victim in victims:
                victim.close()
            self.assertEqual(self.good("/v1/completions", ask)["choices"][0]["text"], expected)
            self.wait_until(lambda: self.metric("fovea_sequences_running") == 0 and self.metric("fovea_requests_waiting") == 0)
        self.assertIn("(client disconnected)", self.log())

    def test_half_closed_clients_receive_short_answers(self):
        self.serve()
        connection = self.connect()
        connection.sendall(HEALTH)
        connection.shutdown(socket.SHUT_WR)
        self.assertIn('{"status":"ok"}', self.hear(connection))

    def test_pipelined_requests_are_answered_in_order(self):
        self.serve()
        connection = self.connect()
        body = b'{"content": "a"}'
        post = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        connection.sendall((HEALTH + post) * 20 + HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        heard = self.hear(connection)
        self.assertEqual(re.findall('"ok"|"count"', heard), ['"ok"', '"count"'] * 20 + ['"ok"'])

    def test_ten_thousand_connections_leave_no_resources(self):
        self.serve()
        for _ in range(50):
            self.ask("GET", "/health")
        self.wait_until(lambda: self.descriptors() < 30)
        before = self.descriptors(), self.of_status("Threads")
        memory = self.of_status("VmRSS")
        for batch in range(100):
            connections = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(100)]
            for i, connection in enumerate(connections):
                if i % 4 == 1:
                    connection.send(b"GET /hea")
                elif i % 4 == 2:
                    connection.send(HEALTH)
                elif i % 4 == 3:  # reset instead of closed
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            for connection in connections:
                connection.close()
        self.wait_until(lambda: self.descriptors() <= before[0] and self.of_status("Threads") <= before[1])
        self.assertLess(self.of_status("VmRSS") - memory, 10000)
        self.expect_healthy()

    def test_the_server_recovers_from_missing_descriptors(self):
        self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        connections = [self.connect() for _ in range(100)]
        time.sleep(0.5)
        before = self.processor_seconds()
        time.sleep(1)
        self.assertLess(self.processor_seconds() - before, 0.3)
        for connection in connections:
            connection.close()
        self.wait_until(lambda: self.descriptors() < 40)
        self.expect_healthy()

    def test_too_many_connections_are_refused_with_an_error(self):
        self.serve("--max-connections", 10)
        held = [self.connect() for _ in range(10)]
        for connection in held:
            connection.sendall(HEALTH)
            self.hear(connection, b"ok")
        self.assertEqual(self.hear(self.connect())[:12], "HTTP/1.1 503")
        for connection in held:
            connection.close()
        self.wait_until(lambda: self.ask("GET", "/health")[0] == 200)
        self.expect_healthy()

    def test_requests_without_the_key_are_refused(self):
        key = self.file("key", "s3cret-key\n")
        key.chmod(0o644)
        self.serve("--api-key-file", key)
        self.assertIn("chmod 600", self.log())
        routes = [("GET", "/metrics"), ("GET", "/v1/models"), ("GET", "/v1/models/x"), ("POST", "/v1/completions"),
                  ("POST", "/v1/chat/completions"), ("POST", "/tokenize"), ("POST", "/detokenize"), ("GET", "/none")]
        for method, path in routes:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret-key"}, {"x-api-key": "s3cret-keys"}):
                status, answer_headers, answer = self.ask(method, path, headers=headers)
                self.assertEqual((status, answer["error"]["type"]), (401, "authentication_error"), path)
                self.assertEqual(answer_headers["WWW-Authenticate"], "Bearer")
            self.assertNotEqual(self.ask(method, path, headers={"Authorization": "Bearer s3cret-key"})[0], 401)
        heard = self.say("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        self.assertEqual(heard[:12], "HTTP/1.1 401", "before the body")
        self.assertEqual(self.ask("GET", "/health")[0], 200)
        self.assertEqual(self.ask("GET", "/v1/models", headers={"x-api-key": "s3cret-key"})[0], 200)
        self.assertNotIn("s3cret", self.log())

    def test_prompts_are_not_logged(self):
        self.serve()
        self.post("/v1/completions", {"prompt": "my secret words", "max_tokens": 3})
        self.post("/v1/chat/completions", {**CHAT, "temperature": "my secret words"})
        self.ask("GET", "/health?token=my-secret")
        self.assertNotIn("secret", self.log())

    def test_invalid_options_are_refused_at_the_start(self):
        self.serve()
        model = self.served_model()
        self.refused(fovea("serve", model, "--port", self.port), 2, self.port, "in use")
        self.refused(fovea("serve", model, "--host", "nowhere"), 2, "nowhere")
        self.refused(fovea("serve", model, "--host", "0.0.0.0"), 2, "--host", "--api-key-file")
        self.refused(fovea("serve", model, "--api-key-file", self.file("empty", "")), 2, "empty")
        self.refused(fovea("serve", model, "--api-key-file", self.folder / "none"), 2, "none")
        self.refused(fovea("serve", self.folder / "none"), 2, "none")
        self.refused(fovea("serve"), 2, "MODEL")
        self.refused(fovea("serve", model, "--chat-template", self.file("bad.jinja", "{% if %}")), 2, "bad.jinja")

    def test_sigterm_lets_streams_finish(self):
        process = self.serve("--grace", 30, context=2048)
        streams = [self.open_stream() for _ in range(8)]
        for stream in streams:
            self.hear(stream, b"data:")
        idle = self.connect()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.hear(idle), "")
        for stream in streams:
            self.assertTrue(self.hear(stream).endswith("data: [DONE]\n\n\r\n0\r\n\r\n"))
        self.assertEqual(process.wait(timeout=30), 143)
        again = subprocess.Popen([FOVEA, "serve", str(self.served_model(2048)), "--port", str(self.port), "--json"], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(again.stdout.close)
        self.addCleanup(lambda: (again.kill(), again.wait()))
        self.assertTrue(again.stdout.readline(), "the port is free at once")

    def test_streams_end_after_the_grace_period(self):
        process = self.serve("--grace", 0, context=2048)
        stream = self.open_stream(n=16)
        self.hear(stream, b"data:")
        process.send_signal(signal.SIGINT)
        self.assertNotIn("[DONE]", self.hear(stream))
        self.assertEqual(process.wait(timeout=10), 130)

    def test_a_second_signal_ends_the_server_immediately(self):
        process = self.serve("--grace", 60, context=2048)
        stream = self.open_stream(n=16)
        self.hear(stream, b"data:")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=5), 143)


if __name__ == "__main__":
    unittest.main()
