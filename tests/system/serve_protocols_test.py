"""fovea serve: the protocols of Ollama's and llama.cpp's servers, and custom tools."""
import base64
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import unittest
import zlib

import hub_server
from serving import CHAT, ServeTest
from support import ROOT

SENTENCES = ROOT / "tests/goldens/sentence_model"
THINKING = ROOT / "tests/goldens/chat_templates/chatml_thinking.jinja"
# A Python with the client of Ollama.
PEERS = os.environ.get("PEERS_PYTHON") or (sys.executable if importlib.util.find_spec("ollama") else None)

# A program that uses the ollama client; its argument is the server's address.
OLLAMA = """
import json, sys, ollama
client = ollama.Client(sys.argv[1])
names = [model.model for model in client.list().models]
assert names == ["model:latest", "sentence_model:latest"], names
hi = [{"role": "user", "content": "The eye"}]
options = {"num_predict": 8, "temperature": 0, "num_thread": 2}
whole = client.chat(model="model", messages=hi, options=options)
assert whole.done and whole.done_reason in ("stop", "length") and whole.eval_count <= 8 and whole.total_duration > 0
pieces = list(client.chat(model="model:latest", messages=hi, options=options, stream=True))
assert "".join(piece.message.content or "" for piece in pieces) == whole.message.content
assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]
text = client.generate(model="model", prompt="The eye", options=options)
assert text.response == whole.message.content, (text, whole)
raw = client.generate(model="model", prompt="The eye", raw=True, options=options)
assert raw.prompt_eval_count < text.prompt_eval_count
pieces = list(client.generate(model="model", prompt="The eye", raw=True, options=options, stream=True))
assert "".join(piece.response for piece in pieces) == raw.response
schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
made = client.chat(model="model", messages=hi, format=schema, options={"num_predict": 60})
assert set(json.loads(made.message.content)) == {"n"}, made
json.loads(client.generate(model="model", prompt="The eye", format="json", options={"num_predict": 60}).response)
def look(at: str) -> str:
    '''Looks at something.'''
called = client.chat(model="model", messages=[*hi, {"role": "assistant", "content": "", "tool_calls": [
    {"function": {"name": "look", "arguments": {"at": "it"}}}]}, {"role": "tool", "tool_name": "look", "content": "seen"}],
    tools=[look], options=options)
assert called.done
scored = client.chat(model="model", messages=hi, logprobs=True, top_logprobs=2, options=options)
assert len(scored.logprobs) == scored.eval_count and len(scored.logprobs[0].top_logprobs) == 2
thought = client.chat(model="model", messages=hi, think=False, options=options)
assert thought.message.thinking is None
vectors = client.embed(model="sentence_model", input=["the eye", "a fox"])
assert len(vectors.embeddings) == 2 and vectors.prompt_eval_count > 2
assert len(client.embeddings(model="sentence_model", prompt="the eye").embedding) == len(vectors.embeddings[0])
shown = client.show("model")
assert "completion" in shown.capabilities and shown.template and shown.modelinfo["general.parameter_count"] > 0
assert client.ps().models[0].context_length > 0
for status, ask in ((404, lambda: client.chat(model="none", messages=hi)), (403, lambda: client.pull("hf.co/user/other")), (501, lambda: client.delete("model")),
                    (400, lambda: client.chat(model="model", messages=hi, options={"num_ctx": 10 ** 6})), (501, lambda: client.copy("model", "b")),
                    (400, lambda: client.generate(model="model", prompt="a", template="x")), (501, lambda: client.create("b", from_="model"))):
    try:
        ask()
        raise SystemExit(f"not refused: {status}")
    except ollama.ResponseError as error:
        assert error.status_code == status and error.error, error
"""


def image():
    """Returns a PNG file of one pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")


class ServeProtocols(ServeTest):
    def lines(self, path, body):
        """Returns the objects of a stream of lines."""
        status, headers, content = self.post(path, body)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"), content)
        return [json.loads(line) for line in content.decode().splitlines()]

    def refused(self, path, body, status, text):
        got, _, answer = self.post(path, body)
        self.assertEqual(got, status, answer)
        self.assertEqual(list(answer), ["error"])
        self.assertIn(text, answer["error"])

    @unittest.skipUnless(PEERS, "needs PEERS_PYTHON, a Python with the package ollama")
    def test_the_ollama_client(self):
        if subprocess.run([PEERS, "-c", "import ollama"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("needs the package ollama")
        self.serve(SENTENCES, "--chat-template", THINKING, context=1024)
        run = subprocess.run([PEERS, "-c", OLLAMA, f"http://127.0.0.1:{self.port}"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.log().count("options.num_thread is ignored"), 2, "once for each route")

    def test_ollama_answers_equal_those_of_openai(self):
        self.serve()
        openai = self.good("/v1/chat/completions", {**CHAT, "max_tokens": 12, "temperature": 0})["choices"][0]
        options = {"num_predict": 12, "temperature": 0}
        whole = self.good("/api/chat", {**CHAT, "stream": False, "options": options})
        self.assertEqual(whole["message"]["content"], openai["message"]["content"])
        lines = self.lines("/api/chat", {**CHAT, "options": options})
        self.assertEqual("".join(line["message"]["content"] for line in lines), openai["message"]["content"])
        self.assertEqual((lines[-1]["done_reason"], lines[-1]["eval_count"]), (whole["done_reason"], whole["eval_count"]))
        raw = self.good("/api/generate", {"prompt": "The eye", "raw": True, "stream": False, "options": options})
        self.assertEqual(raw["response"], self.good("/v1/completions", {"prompt": "The eye", "max_tokens": 12, "temperature": 0})["choices"][0]["text"])

    def test_odd_requests_to_ollama_routes(self):
        self.serve()
        deep = "[" * 100_000
        for path in ("/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/pull"):
            for body in ("", "{", "[]", "null", deep, '{"model": %s}' % deep, '{"model": 1e400}', '{"a": 1, "a": 2}', "\xff"):
                status, _, answer = self.ask("POST", path, body.encode("latin-1"))
                self.assertIn(status, (400, 403), (path, body[:20], answer))
                self.assertLess(len(json.dumps(answer)), 2000)
        picture = base64.b64encode(image()).decode()
        self.refused("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [picture]}]}, 400, "reads no images")
        self.refused("/api/generate", {"prompt": "The eye " * 500}, 400, "prompt")
        self.refused("/api/chat", {**CHAT, "think": True}, 400, "thinking")
        self.refused("/api/pull", {"model": "hf.co/user/other"}, 403, "--allow-pull")
        self.assertEqual(self.good("/api/chat", {"model": "model"})["done_reason"], "load")
        for method, path in (("HEAD", "/"), ("HEAD", "/api/version"), ("GET", "/")):
            self.assertEqual(self.ask(method, path, headers={"Accept": "application/json"})[0], 200)
        self.expect_healthy()

    def test_a_client_that_leaves_ends_its_stream(self):
        self.serve()
        for _ in range(3):
            body = json.dumps({"prompt": "The eye", "raw": True, "options": {"num_predict": -1}})
            with self.connect() as connection:
                connection.sendall(f"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                self.hear(connection, until=b"response")
        self.wait_until(lambda: self.metric("fovea_sequences_running") == 0)
        self.expect_healthy()

    def test_any_name_is_that_of_the_only_model(self):
        self.serve("--any-model", "--allow-pull")
        self.assertEqual(self.good("/v1/chat/completions", {**CHAT, "model": "gpt-4", "max_tokens": 2})["model"], "model")
        self.assertEqual(self.lines("/api/chat", {**CHAT, "model": "llama3.2", "options": {"num_predict": 2}})[0]["model"], "llama3.2")
        self.assertEqual(self.lines("/api/pull", {"model": "model"}), [{"status": "success"}])
        self.refused("/api/pull", {"model": "/etc"}, 400, "model")
        self.stop()
        self.serve(SENTENCES, "--any-model")
        self.assertEqual(self.post("/v1/chat/completions", {**CHAT, "model": "gpt-4"})[0], 404, "several models")


    def test_a_model_is_pulled_and_served(self):
        files = {path.name: path.read_bytes() for path in self.served_model().iterdir() if path.is_file()}
        hub = hub_server.Hub({"you/small": hub_server.Repository(files)})
        self.addCleanup(hub.close)
        self.serve("--allow-pull", env={"HF_ENDPOINT": hub.address, "HF_HUB_CACHE": str(self.folder / "cache"), "HF_HOME": str(self.folder / "home")})
        name = "hf.co/you/small"
        self.assertEqual(self.post("/api/chat", {**CHAT, "model": name})[0], 404)
        lines = self.lines("/api/pull", {"model": name})
        self.assertEqual((lines[0], lines[-1]), ({"status": "pulling manifest"}, {"status": "success"}))
        progress = [line for line in lines if "total" in line]
        self.assertTrue(progress and progress[-1]["completed"] <= progress[-1]["total"], lines)
        whole = self.good("/api/chat", {**CHAT, "model": name, "stream": False, "options": {"num_predict": 5, "temperature": 0}})
        same = self.good("/api/chat", {**CHAT, "model": "model", "stream": False, "options": {"num_predict": 5, "temperature": 0}})
        self.assertEqual((whole["model"], whole["message"]), (name, same["message"]))
        self.assertEqual(len(self.ask("GET", "/api/tags")[2]["models"]), 2)
        self.assertEqual(self.good("/api/pull", {"model": name, "stream": False}), {"status": "success"})
        self.assertEqual(self.post("/api/pull", {"model": "you/none", "stream": False})[0], 404)
        self.assertIn("error", self.lines("/api/pull", {"model": "you/none"})[-1])
        self.expect_healthy()

    def test_completions_of_llama_equal_those_of_openai(self):
        self.serve(SENTENCES)
        ask = {"prompt": "The eye", "n_predict": 12, "temperature": 0, "ignore_eos": True}
        expected = self.good("/v1/completions", {"prompt": "The eye", "max_tokens": 12, "temperature": 0, "ignore_eos": True})["choices"][0]["text"]
        whole = self.good("/completion", ask)
        self.assertEqual((whole["content"], whole["stop_type"], whole["tokens_predicted"]), (expected, "limit", 12))
        stream = [json.loads(line[6:]) for line in self.good("/completion", {**ask, "stream": True}).decode().split("\n\n") if line]
        self.assertEqual("".join(event["content"] for event in stream), expected)
        self.assertEqual([event["stop"] for event in stream], [False] * (len(stream) - 1) + [True])
        self.assertEqual(sum(len(event["tokens"]) for event in stream), 12)
        word = self.good("/completion", {**ask, "stop": [expected[4:6]]})
        self.assertEqual((word["stop_type"], word["stopping_word"]), ("word", expected[4:6]))
        rendered = self.good("/apply-template", CHAT)["prompt"]
        self.assertIn("<|im_start|>user\nThe eye", rendered)
        chat = self.good("/chat/completions", {**CHAT, "max_tokens": 8, "temperature": 0})["choices"][0]["message"]["content"]
        self.assertEqual(self.good("/completion", {"prompt": rendered, "parse_special": True, "n_predict": 8, "temperature": 0})["content"], chat)
        vector = self.good("/embedding", {"content": "the eye"})[0]["embedding"][0]
        self.assertEqual(self.good("/", {"inputs": "the eye"}), [vector])
        self.assertEqual(self.good("/embeddings", {"input": "the eye"})["object"], "list")
        ids = self.good("/tokenize", {"content": "The eye"})["tokens"]
        self.assertEqual(self.good("/decode", {"ids": ids}), ["The eye"])
        self.assertEqual(self.post("/infill", {"input_prefix": "a"})[0], 400)
        self.assertEqual(self.ask("GET", "/props")[2]["total_slots"], len(self.ask("GET", "/slots")[2]))
        self.assertEqual(self.ask("GET", "/models")[2], self.ask("GET", "/v1/models")[2])
        self.expect_healthy()

    def test_the_input_of_a_custom_tool_matches_its_expression(self):
        self.serve(context=1024)
        tool = {"type": "custom", "name": "edit", "format": {"type": "grammar", "syntax": "regex", "definition": r'(add|del)\n"[0-9]{2,4}"'}}
        ask = {"input": "The eye", "tools": [tool], "tool_choice": {"type": "custom", "name": "edit"}, "parallel_tool_calls": False, "temperature": 0}
        call = self.good("/v1/responses", ask)["output"][-1]
        self.assertEqual((call["type"], call["status"]), ("custom_tool_call", "completed"))
        self.assertRegex(call["input"], r'^(add|del)\n"[0-9]{2,4}"$')
        events = [json.loads(event.split("data: ")[1]) for event in self.good("/v1/responses", {**ask, "stream": True}).decode().split("\n\n") if event]
        self.assertEqual("".join(event["delta"] for event in events if event["type"] == "response.custom_tool_call_input.delta"), call["input"])
        result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"}
        self.good("/v1/responses", {**ask, "input": [{"role": "user", "content": "The eye"}, call, result], "max_output_tokens": 4, "tool_choice": "auto"})
        known = self.ask("GET", "/tokenizer_info")[2]
        self.assertEqual(known["tokenizer_class"], "PreTrainedTokenizerFast")
        self.assertEqual((known["model_max_length"], known["vocab_size"]), (1024, self.ask("GET", "/v1/models")[2]["data"][0]["meta"]["n_vocab"]))

    def test_all_routes_of_the_documents_are_described(self):
        self.serve()
        described = self.ask("GET", "/openapi.json")[2]
        self.assertEqual(described["openapi"], "3.1.0")
        table = (ROOT / "docs/serve.md").read_text().split("## Routes")[1].split("\n\n")[1]
        for method, path in re.findall(r"`(GET|POST) (/\S*?)`", table):
            if not path.startswith("/models/"):
                self.assertIn(method.lower(), described["paths"][path], path)


if __name__ == "__main__":
    unittest.main()
