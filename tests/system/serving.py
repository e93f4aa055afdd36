"""Support for the tests of `fovea serve`: a small model, a server on a free port, and plain clients."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from support import FOVEA, ROOT, FoveaTest, fovea

TEMPLATE = ROOT / "tests/goldens/chat_templates/chatml.jinja"
CHAT = {"messages": [{"role": "user", "content": "The eye"}]}


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket; with `context`, through TLS."""

    def __init__(self, path, timeout=60, context=None):
        super().__init__("localhost", timeout=timeout)
        self.path, self.context = str(path), context

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
        if self.context:
            self.sock = self.context.wrap_socket(self.sock, server_hostname="localhost")


def ask(path, method, route, body=None, headers=None, **how):
    """Returns status, headers and body of the response at a Unix socket. Raises HTTPException or OSError for a part of a response."""
    connection = UnixConnection(path, **how)
    with contextlib.closing(connection):
        connection.request(method, route, json.dumps(body) if isinstance(body, dict) else body, {"Connection": "close", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


class ServeTest(FoveaTest):
    def served_model(self, context=256):
        """Returns a model after four training steps, with a byte-level tokenizer and an end-of-text token."""
        out = self.folder / "model"
        if not out.exists():
            tokenizer = self.folder / "tokenizer"
            self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, self.text, "--out", tokenizer))
            self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32, "--batch", 1,
                          "--context", context, "--tokenizer", tokenizer, "--steps", 4, "--sample-every", 0, "--evaluate-windows", 1,
                          "--seed", 7, "--dtype", "fp32"))  # the same weights on every CPU
        return out

    def template_with_tools(self):
        """Returns a chat template that knows tools, but writes nothing of them."""
        return self.file("tools.jinja", TEMPLATE.read_text(encoding="utf-8") + "{% if tools %}{% endif %}")

    def serve(self, *options, models=None, context=256, env=None, **how):
        """Serves `models`, or served_model()."""
        log = open(self.folder / "serve.log", "wb")
        self.addCleanup(log.close)
        served = [self.served_model(context)] if models is None else models
        arguments = ["serve", *served, "--port", 0, "--json", "--chat-template", TEMPLATE, *options]
        process = subprocess.Popen([FOVEA, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                                   env=None if env is None else {**os.environ, **env}, **how)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        line = process.stdout.readline()
        self.assertTrue(line, self.log())
        self.process, self.port = process, json.loads(line)["port"]
        return process

    def log(self):
        return "".join(path.read_text(errors="replace")[-4000:] for path in sorted(self.folder.glob("*.log")))

    def stop(self, with_signal=signal.SIGTERM, seconds=30):
        self.process.send_signal(with_signal)
        return self.process.wait(timeout=seconds)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Returns status, headers and body. A dict is sent as JSON; a JSON response is parsed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
            if answer.headers.get("Content-Type", "").startswith("application/json") and content:
                content = json.loads(content)
            return answer.status, answer.headers, content

    def post(self, path, body, **how):
        return self.ask("POST", path, body, **how)

    def good(self, path, body, **how):
        status, _, answer = self.post(path, body, **how)
        self.assertEqual(status, 200, answer)
        return answer

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def say(self, data):
        """Sends these bytes; returns what the server sends until it closes the connection."""
        with self.connect() as connection:
            connection.sendall(data if isinstance(data, bytes) else data.encode())
            return self.hear(connection)

    @staticmethod
    def hear(connection, until=None):
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while until is None or until not in heard:
                piece = connection.recv(65536)
                if not piece:
                    break
                heard += piece
        return heard.decode(errors="replace")

    def open_stream(self, **more):
        body = json.dumps({"prompt": "The eye", "max_tokens": -1, "ignore_eos": True, "stream": True, **more})
        connection = self.connect()
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        return connection

    def metric(self, name):
        _, _, text = self.ask("GET", "/metrics")
        found = re.search(rf"^{name}\S* (\S+)$", text.decode(), re.MULTILINE)
        return float(found[1])

    def expect_healthy(self):
        self.assertEqual(self.ask("GET", "/health")[0], 200)
        self.assertEqual(len(self.good("/v1/completions", {"prompt": "The", "max_tokens": 3, "ignore_eos": True})["choices"]), 1)

    def wait_until(self, holds, seconds=15):
        end = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), end, self.log()[-2000:])
            time.sleep(0.02)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def of_status(self, key):
        """Returns a number of /proc/PID/status, such as VmRSS in kilobytes or Threads."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)[1])

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
