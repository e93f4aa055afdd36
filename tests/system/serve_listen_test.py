"""fovea serve listens on a Unix socket, opens its port before its models, and says on /health whether it wants requests."""
import json
import signal
import subprocess
import time
import unittest

from serving import TEMPLATE, ServeTest, ask
from support import FOVEA, fovea


class ServeListenTest(ServeTest):
    def listen(self, *options, template=TEMPLATE):
        self.socket = self.folder / "serve.sock"
        log = open(self.folder / "serve.log", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([FOVEA, "serve", str(self.served_model()), "--listen", f"unix:{self.socket}", "--json", "--chat-template", str(template),
                                    *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process

    def health(self):
        status, headers, body = ask(self.socket, "GET", "/health")
        return status, json.loads(body)["status"], headers["Retry-After"]

    def test_a_socket_is_served_and_removed(self):
        process = self.listen()
        self.assertEqual(json.loads(process.stdout.readline())["url"], f"unix:{self.socket}")
        self.assertEqual(self.socket.stat().st_mode & 0o7777, 0o660)
        status, _, body = ask(self.socket, "POST", "/v1/completions", {"prompt": "The", "max_tokens": 2}, {"Host": "models.example.org"})
        self.assertEqual(status, 200, body)
        self.refused(fovea("serve", self.served_model(), "--listen", f"unix:{self.socket}"), 2, self.socket, "a server listens there")
        self.assertEqual(self.health(), (200, "ok", None))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertFalse(self.socket.exists())
        self.assertIn("/v1/completions", self.log())
        self.assertNotIn("/health", self.log(), "load balancers ask every second")

    def test_the_socket_of_a_killed_server_is_replaced(self):
        process = self.listen()
        process.stdout.readline()
        process.kill()
        process.wait()
        self.assertTrue(self.socket.exists())
        self.listen().stdout.readline()
        self.assertEqual(self.health(), (200, "ok", None))

    def test_errors_name_the_option_or_the_path(self):
        model = self.served_model()
        for value in ("", "unix:", "tcp:8080", "127.0.0.1:80", "/run/serve.sock"):
            self.refused(fovea("serve", model, "--listen", value), 2, "--listen", "expected unix:PATH")
        self.refused(fovea("serve", model, "--listen", "unix:a", "--port", 1), 2, "--port", "--listen")
        self.refused(fovea("serve", model, "--listen", "unix:a", "--host", "::1"), 2, "--host", "--listen")
        self.refused(fovea("serve", model, "--listen", f"unix:{self.text}"), 2, self.text, "no socket")
        self.assertTrue(self.text.read_text())
        self.refused(fovea("serve", model, "--listen", "unix:" + "a" * 108), 2, "108 bytes", "107")
        self.refused(fovea("serve", model, "--listen", f"unix:{self.folder}/none/a"), 2, "No such file")

    def listen_with_many_models(self, *options):
        """A server that needs a while to open its models."""
        model = self.served_model()
        process = self.listen(*[model] * 60, "--cache", "60M", *options)
        self.wait_until(self.socket.exists)
        return process

    def test_health_says_503_until_the_models_are_open(self):
        process = self.listen_with_many_models("--api-key-file", self.file("key", "secret"))
        self.assertEqual(self.health(), (503, "loading", "1"))
        for method, path in [("GET", "/"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("DELETE", "/v1/files/a")]:
            status, headers, body = ask(self.socket, method, path, headers={"Authorization": "Bearer secret"})
            self.assertEqual((status, json.loads(body)["error"]["code"], headers["Retry-After"]), (503, "loading", "1"), path)
        self.assertEqual(ask(self.socket, "GET", "/v1/models")[0], 401)
        process.stdout.readline()
        self.assertEqual(self.health(), (200, "ok", None))

    def test_a_signal_ends_the_loading(self):
        process = self.listen_with_many_models()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertEqual(process.stdout.read(), "")
        self.assertFalse(self.socket.exists())

    def test_a_model_that_cannot_be_opened_ends_the_server_and_its_socket(self):
        process = self.listen(template=self.file("bad", "{% if %}"))
        self.assertEqual(process.wait(timeout=30), 2)
        self.assertIn("bad: ", self.log())
        self.assertFalse(self.socket.exists())

    def test_requests_are_accepted_while_the_server_drains(self):
        process = self.listen("--drain", 2)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        self.wait_until(lambda: self.health() == (503, "draining", "1"))
        self.assertEqual(ask(self.socket, "POST", "/v1/completions", {"prompt": "The", "max_tokens": 2})[0], 200)
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertGreater(time.monotonic() - began, 1)

    def test_a_second_signal_ends_the_drain(self):
        process = self.listen("--drain", 60)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.wait_until(lambda: self.health()[1] == "draining")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=5), 143)

    def test_a_key_without_encryption_gives_a_warning(self):
        key = self.file("key", "secret")
        key.chmod(0o600)
        for host, warned in {"127.0.0.1": False, "0.0.0.0": True}.items():
            self.serve("--host", host, "--api-key-file", key)
            self.assertEqual("warning: --host: the API key and all texts reach 0.0.0.0 without encryption" in self.log(), warned, host)
            self.stop()


if __name__ == "__main__":
    unittest.main()
