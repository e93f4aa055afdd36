"""Support for the tests of several servers behind HAProxy, with the configuration in deploy/haproxy/."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

from serving import TEMPLATE, ServeTest, UnixConnection, ask
from support import FOVEA, ROOT

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"
DONE = "[DONE]"


def events_of(body):
    """Returns the values of the events of a stream; an end mark is DONE."""
    texts = [line.removeprefix("data: ") for line in body.decode().split("\n") if line.startswith("data: ")]
    return [text if text == DONE else json.loads(text) for text in texts]


class BalancedTest(ServeTest):
    """Servers on Unix sockets, by name, and HAProxy before them."""

    def setUp(self):
        if HAPROXY is None:
            self.skipTest("needs haproxy")
        super().setUp()
        self.servers, self.balancer, self.connection = {}, None, None
        self.front = self.folder / "front"

    def socket_of(self, name):
        return self.folder / f"{name}.sock"

    def start_server(self, name, *options, context=2048):
        """Starts a server, or starts it again, and waits until its model is open."""
        log = open(self.folder / f"{name}.log", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([FOVEA, "serve", str(self.served_model(context)), "--listen", f"unix:{self.socket_of(name)}", "--json",
                                    "--drain", "3", "--chat-template", str(TEMPLATE), *map(str, options)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        self.servers[name] = process
        self.assertTrue(process.stdout.readline(), (self.folder / f"{name}.log").read_text())

    def kill_server(self, name):
        self.servers[name].kill()
        self.servers[name].wait()

    def configuration(self, names, certificate=None, change=lambda text: text):
        """The configuration in deploy/, with the sockets of the test instead of the machine's users, ports and addresses."""
        bind = f'bind "unix@{self.front}"' + (f'\n  bind "unix@{self.front}-tls" ssl crt "{certificate}" alpn http/1.1' if certificate else "")
        text = CONFIGURATION.read_text()
        for pattern, other in [(r"^  user .*\n", ""), (r"^  group .*\n", ""), (r"/dev/log local0", "stdout format raw local0"),
                               (r"/run/haproxy/admin.sock .*", f'"{self.folder}/admin" level admin'),
                               (r"bind :443 ssl crt /etc/haproxy/fovea.pem alpn http/1.1", bind)]:
            text, count = re.subn(pattern, lambda _, other=other: other, text, flags=re.MULTILINE)
            self.assertEqual(count, 1, pattern)
        text, count = re.subn(r"^  server .*\n", "", text, flags=re.MULTILINE)
        self.assertEqual(count, 3)
        return self.file("haproxy.cfg", change(text) + "".join(f'  server {name} "unix@{self.socket_of(name)}"\n' for name in names))

    def start_balancer(self, names, **how):
        path = self.configuration(names, **how)
        log = open(self.folder / "haproxy.log", "ab")
        self.addCleanup(log.close)
        self.balancer = subprocess.Popen([HAPROXY, "-W", "-f", str(path)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.stop_balancer)
        self.wait_until(self.balancer_answers)

    def balancer_answers(self):
        with contextlib.suppress(OSError):
            return ask(self.front, "GET", "/health")[0] == 200
        return False

    def stop_balancer(self):
        if self.balancer.poll() is None:
            self.balancer.send_signal(signal.SIGTERM)
            self.balancer.wait(timeout=10)

    def reload_balancer(self, names):
        """As `systemctl reload haproxy` does it; waits until the new process knows the servers."""
        self.configuration(names)
        self.balancer.send_signal(signal.SIGUSR2)
        self.wait_until(lambda: all(f"{name} " in self.states() for name in names))

    def states(self):
        """Returns the servers and their states as HAProxy lists them."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.folder / "admin"))
            admin.sendall(b"show stat\n")
            rows = [line.split(",") for line in self.hear(admin).split("\n")]
            return "".join(f"{row[1]} {row[17]}\n" for row in rows if row[0] == "servers" and row[1] != "BACKEND")
        return ""

    def wait_for_state(self, name, state):
        self.wait_until(lambda: f"{name} {state}\n" in self.states())

    def chat(self, messages, *, key=None, session=None):
        """Asks HAProxy; returns the response to a chat and the name of its server."""
        if self.connection is None:  # kept, as clients do: the next request then follows the end of this one in HAProxy
            self.connection = UnixConnection(self.front)
            self.addCleanup(self.connection.close)
        body = {"messages": messages, "max_tokens": 4, "temperature": 0, **({"prompt_cache_key": key} if key else {})}
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body), {"X-Session-Id": session} if session else {})
        answer = self.connection.getresponse()
        content = answer.read()
        self.assertEqual(answer.status, 200, content)
        return json.loads(content), answer.headers["X-Served-By"]

    def open_chat_stream(self, **more):
        """Begins a long stream through HAProxy; returns the connection, the response and the name of its server."""
        connection = UnixConnection(self.front)
        self.addCleanup(connection.close)
        body = {"messages": [{"role": "user", "content": "The eye"}], "max_tokens": -1, "ignore_eos": True, "stream": True, "n": 8,
                "speculative_tokens": 0, **more}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.readline().startswith(b"data: "))
        return connection, answer, answer.headers["X-Served-By"]

    def trusting(self, certificate):
        return ssl.create_default_context(cafile=certificate)

