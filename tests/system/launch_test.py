"""`fovea launch` starts a client with a server, and ends the server with the client. The client is a script that says what it was given."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from serving import ServeTest
from support import FOVEA, fovea

CLIENT = """#!{python}
import json, os, sys, urllib.request
names = ("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "OPENCODE_CONFIG_CONTENT")
url = os.environ.get("ANTHROPIC_BASE_URL") or os.environ.get("TEST_URL") or next(
    word.split('base_url="')[1].split('/v1"')[0] for word in sys.argv if "base_url" in word)
models = json.load(urllib.request.urlopen(url + "/v1/models"))["data"]
print(json.dumps({{"arguments": sys.argv[1:], "variables": {{name: os.environ[name] for name in names if name in os.environ}}, "models": models}}), flush=True)
if "wait" in sys.argv:
    sys.stdin.read()
sys.exit(7)
"""


class Launch(ServeTest):
    def environment(self, name):
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        script = folder / name
        script.write_text(CLIENT.format(python=sys.executable), encoding="utf-8")
        script.chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    def launch(self, name, *arguments):
        model = self.served_model()
        done = subprocess.run([FOVEA, "launch", name, model, *arguments], env=self.environment(name), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 7, done.stderr)  # that of the client
        return json.loads(done.stdout), done.stderr

    def test_codex_gets_arguments(self):
        said, errors = self.launch("codex", "--", "exec", "--json", "a b")
        self.assertEqual(said["arguments"][-3:], ["exec", "--json", "a b"])
        self.assertIn('model="model"', said["arguments"])
        self.assertIn("model_context_window=256", said["arguments"])
        self.assertEqual([model["id"] for model in said["models"]], ["model"])
        self.assertIn("codex uses model", errors)

    def test_claude_gets_variables(self):
        said, _ = self.launch("claude", "--serve", "--max-time 100 --cache 8M")
        self.assertEqual(said["variables"]["ANTHROPIC_MODEL"], "model")
        self.assertEqual(said["arguments"], [])

    def test_the_server_ends_with_the_client_and_with_the_command(self):
        process = subprocess.Popen([FOVEA, "launch", "claude", self.served_model(), "--", "wait"], env=self.environment("claude"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = json.loads(process.stdout.readline())["variables"]["ANTHROPIC_BASE_URL"]
        self.port = int(url.rsplit(":", 1)[1])
        self.assertEqual(self.ask("GET", "/health")[0], 200)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdin.close()
        process.stdout.close()
        for _ in range(100):
            try:
                self.ask("GET", "/health", timeout=1)
            except OSError:
                break
            time.sleep(0.1)
        else:
            self.fail("the server has not ended")

    def test_errors_say_what_is_missing(self):
        self.refused(fovea("launch", "vim", "model"), 2, "vim", "codex, claude or opencode")
        self.refused(fovea("launch", "codex"), 2, "MODEL")
        done = subprocess.run([FOVEA, "launch", "codex", self.served_model()], env={**os.environ, "PATH": "/nowhere"}, capture_output=True, check=False)
        self.refused(done, 1, "codex", "npm install -g @openai/codex")
        done = subprocess.run([FOVEA, "launch", "claude", self.served_model(), "--serve", "--unknown-option"], env=self.environment("claude"), capture_output=True,
                              check=False)
        self.refused(done, 1, "--unknown-option")


if __name__ == "__main__":
    unittest.main()
