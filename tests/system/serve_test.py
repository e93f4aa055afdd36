"""fovea serve: the responses of the API."""
import base64
import concurrent.futures
import json
import os
import shutil
import struct
import subprocess
import time
import unittest

from serving import CHAT, ServeTest
from support import ROOT, fovea

PEERS = os.environ.get("PEERS_PYTHON")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "ages": {"type": "array", "items": {"type": "integer"}},
                                           "kind": {"enum": ["a", "b"]}}, "required": ["name", "ages", "kind"], "additionalProperties": False}

# A program that uses the openai client; its arguments are the server's address and a JSON schema.
OPENAI = """
import json, sys, openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="secret", max_retries=0)
hi = [{"role": "user", "content": "The eye"}]
model = client.models.list().data[0].id
assert client.models.retrieve(model).id == model
whole = client.chat.completions.create(model=model, messages=hi, max_tokens=8, temperature=0, logprobs=True, top_logprobs=2, n=2)
assert len(whole.choices) == 2 and whole.choices[0].message.role == "assistant" and whole.usage.completion_tokens > 0
assert len(whole.choices[0].logprobs.content[0].top_logprobs) == 2
stream = client.chat.completions.create(model=model, messages=hi, max_tokens=8, temperature=0, stream=True,
                                        stream_options={"include_usage": True})
chunks = list(stream)
assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content
assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].usage.completion_tokens == 8 and not chunks[-1].choices
text = client.completions.create(model=model, prompt=["The", "eye"], max_tokens=4, temperature=0, logprobs=1, extra_body={"top_k": 3})
assert [c.index for c in text.choices] == [0, 1] and len(text.choices[0].logprobs.tokens) == 4
pieces = client.completions.create(model=model, prompt="The", max_tokens=4, temperature=0, stream=True)
assert "".join(p.choices[0].text for p in pieces) == text.choices[0].text
schema = json.loads(sys.argv[2])
made = client.chat.completions.create(model=model, messages=hi, max_tokens=150,
                                      response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}})
assert set(json.loads(made.choices[0].message.content)) == {"name", "ages", "kind"}
tools = [{"type": "function", "function": {"name": "look", "parameters": schema}}]
called = client.chat.completions.create(model=model, messages=hi, max_tokens=190, tools=tools, tool_choice="required")
assert called.choices[0].message.tool_calls[0].function.name == "look" and called.choices[0].finish_reason == "tool_calls"
assert json.loads(called.choices[0].message.tool_calls[0].function.arguments)["kind"] in "ab"
for error, ask in ((openai.BadRequestError, {"temperature": 200}), (openai.NotFoundError, {"model": "none"})):
    try:
        client.chat.completions.create(**{"model": model, "messages": hi, **ask})
        raise SystemExit(f"no {error}")
    except error as caught:
        assert caught.body["param"] == list(ask)[0], caught.body
try:
    openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="wrong", max_retries=0).models.list()
    raise SystemExit("a wrong key was accepted")
except openai.AuthenticationError:
    pass
"""


class Serve(ServeTest):
    def test_answers_equal_those_of_generate_alone_and_in_a_batch(self):
        self.serve()
        ask = {"prompt": "The eye", "max_tokens": 40, "temperature": 0, "ignore_eos": True}
        alone = self.good("/v1/completions", ask)["choices"][0]["text"]
        written = self.ok(fovea("generate", self.served_model(), "-p", "The eye", "-n", 40, "--greedy", "--ignore-eos", "--json"))
        self.assertEqual(json.loads(written.stdout)["text"], alone)
        for proposed in (-1, 0, 5):
            self.assertEqual(self.good("/v1/completions", {**ask, "speculative_tokens": proposed})["choices"][0]["text"], alone)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            others = [pool.submit(self.good, "/v1/completions", {"prompt": f"A fox {i}" * (i % 7 + 1), "max_tokens": 30 + i}) for i in range(48)]
            mine = [pool.submit(self.good, "/v1/completions", ask) for _ in range(16)]
            self.assertEqual({each.result()["choices"][0]["text"] for each in mine}, {alone})
            for each in others:
                each.result()

    def test_a_draft_model_does_not_change_the_answers(self):
        draft = self.folder / "draft"
        self.ok(fovea("train", self.text, "--out", draft, "--from", self.served_model(), "--steps", 3, "--batch", 1, "--sample-every", 0,
                      "--evaluate-windows", 1, "--seed", 9))
        asks = [{"prompt": f"A fox {i} " * (i + 1), "max_tokens": 20 + i, "temperature": i % 2, "seed": i, "n": 1 + i % 3,
                 "ignore_eos": True, "logprobs": 1} for i in range(12)]
        asks.append({"prompt": "The", "max_tokens": 150, "seed": 1, "response_format": {"type": "json_schema", "json_schema": {
            "schema": SCHEMA}}})

        def answers():
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                return [[(c["text"], c["logprobs"]) for c in answer["choices"]] for answer in
                        pool.map(lambda ask: self.good("/v1/completions", ask), asks)]

        self.serve()
        expected = answers()
        self.stop()
        self.serve("--draft", draft, "--draft-tokens", 3)
        self.assertEqual(answers(), expected)
        timings = self.good("/v1/completions", asks[1])["timings"]
        self.assertLessEqual(timings["draft_n_accepted"], timings["draft_n"])
        self.wait_until(lambda: self.metric("fovea_accepted_tokens_total") > 0)
        self.assertGreaterEqual(self.metric("fovea_speculative_tokens_total"), self.metric("fovea_accepted_tokens_total"))

    def test_a_seed_determines_the_answer(self):
        self.serve()
        ask = {"prompt": "The", "max_tokens": 30, "temperature": 1, "top_k": 0, "n": 3, "seed": 5}
        first = [choice["text"] for choice in self.good("/v1/completions", ask)["choices"]]
        self.assertEqual(first, [choice["text"] for choice in self.good("/v1/completions", ask)["choices"]])
        self.assertEqual(len(set(first)), 3)
        other = {**ask, "seed": 6}
        self.assertNotEqual(first, [choice["text"] for choice in self.good("/v1/completions", other)["choices"]])

    def test_streams_agree_with_whole_answers_and_hide_stop_strings(self):
        self.serve()
        ask = {"prompt": "The", "max_tokens": 60, "temperature": 1, "seed": 3, "ignore_eos": True}
        whole = self.good("/v1/completions", ask)["choices"][0]["text"]
        for stop in (None, whole[10:13], whole[20:21]):
            body = {**ask, "stop": stop}
            expected = whole if stop is None else whole[:whole.index(stop)]
            answer = self.good("/v1/completions", body)["choices"][0]
            self.assertEqual((answer["text"], answer["finish_reason"]), (expected, "length" if stop is None else "stop"))
            stream = self.good("/v1/completions", {**body, "stream": True}).decode()
            events = [line[6:] for line in stream.split("\n\n") if line]
            self.assertEqual(events.pop(), "[DONE]")
            self.assertEqual("".join(json.loads(event)["choices"][0]["text"] for event in events), expected)

    def test_json_is_always_valid(self):
        self.serve("--temperature", 2, "--top-k", 0, "--top-p", 1)
        for seed in range(12):
            for form in ({"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema": SCHEMA}}):
                answer = self.good("/v1/chat/completions", {**CHAT, "seed": seed, "max_tokens": 60 + 10 * seed, "response_format": form})
                made = json.loads(answer["choices"][0]["message"]["content"])
                if form["type"] == "json_schema":
                    self.assertEqual(set(made), {"name", "ages", "kind"})
                    self.assertIsInstance(made["name"], str)
                    self.assertTrue(all(isinstance(age, int) for age in made["ages"]))
                    self.assertIn(made["kind"], "ab")
                else:
                    self.assertIsInstance(made, dict)

    def test_several_models_are_selected_by_name(self):
        self.serve(self.served_model(), "--alias", "first", "--alias", "second")
        names = [model["id"] for model in self.ask("GET", "/v1/models")[2]["data"]]
        self.assertEqual(names, ["first", "second"])
        self.assertEqual(self.good("/v1/completions", {"model": "second", "prompt": "The"})["model"], "second")
        status, _, answer = self.post("/v1/completions", {"model": "third", "prompt": "The"})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))

    def test_prompts_beyond_the_context_are_refused(self):
        self.serve()
        ids = [5] * 255
        self.assertEqual(self.good("/v1/completions", {"prompt": ids, "max_tokens": 9, "ignore_eos": True})["usage"]["completion_tokens"], 1)
        for prompt in (ids + [5], "z" * 100000, [5] * 100000):
            status, _, answer = self.post("/v1/completions", {"prompt": prompt})
            self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
        for prompt in ([-1], [10**6], [1.5], [2**63], [[]], [], "", [""], {}, None, [["a"]], [1, "a"]):
            status, _, answer = self.post("/v1/completions", {"prompt": prompt})
            self.assertEqual((status, answer["error"]["param"]), (400, "prompt"), prompt)
        self.expect_healthy()

    def test_embeddings_have_the_formats_of_openai(self):
        model = ROOT / "tests/goldens/sentence_model"
        self.serve(model, "--alias", "writer", "--alias", "vectors")
        ask = {"model": "vectors", "input": ["The eye sees.", "A fox sleeps."]}
        answer = self.good("/v1/embeddings", ask)
        vectors = [each["embedding"] for each in answer["data"]]
        self.assertEqual([len(vectors), answer["data"][1]["index"]], [2, 1])
        self.assertAlmostEqual(sum(x * x for x in vectors[0]), 1, places=4)
        packed = self.good("/v1/embeddings", {**ask, "encoding_format": "base64"})["data"][1]["embedding"]
        self.assertEqual(list(struct.unpack(f"<{len(vectors[1])}f", base64.b64decode(packed))), [struct.unpack("<f", struct.pack("<f", x))[0]
                                                                                                 for x in vectors[1]])
        for wrong in ({"input": ""}, {"input": []}, {"dimensions": 100000}, {"encoding_format": "int8"}):
            status, _, refused = self.post("/v1/embeddings", {**ask, **wrong})
            self.assertEqual((status, refused["error"]["param"]), (400, list(wrong)[0]))
        self.assertEqual(self.post("/v1/completions", {"model": "vectors", "prompt": "a"})[0], 400)

    def test_metrics_count_requests_and_tokens(self):
        self.serve()
        self.good("/v1/completions", {"prompt": "The eye", "max_tokens": 7, "ignore_eos": True})
        # The server counts the last step of a request slightly after it has sent the response.
        self.wait_until(lambda: self.metric("fovea_generated_tokens_total") >= 7)
        self.assertEqual(self.metric("fovea_generated_tokens_total"), 7)
        self.assertEqual(self.metric("fovea_generations_total"), 1)
        self.assertEqual(self.metric(r'fovea_http_requests_total{path="/v1/completions",status="200"}'.replace("{", r"\{")), 1)

    def test_curl_reads_a_stream(self):
        if shutil.which("curl") is None:
            self.skipTest("needs curl")
        self.serve()
        run = subprocess.run(["curl", "-sS", "-N", f"http://localhost:{self.port}/v1/chat/completions", "-H", "Content-Type: application/json",
                              "-H", "Expect: 100-continue", "-d", json.dumps({**CHAT, "stream": True, "max_tokens": 5})],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.endswith(b"data: [DONE]\n\n"), run.stdout)

    @unittest.skipUnless(PEERS, "needs PEERS_PYTHON, a Python with openai")
    def test_the_openai_client_can_be_used(self):
        if subprocess.run([PEERS, "-c", "import openai"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("needs PEERS_PYTHON with openai")
        self.serve("--chat-template", self.template_with_tools(), env={"FOVEA_API_KEY": "secret"})
        run = subprocess.run([PEERS, "-c", OPENAI, f"http://127.0.0.1:{self.port}", json.dumps(SCHEMA)], stderr=subprocess.PIPE, timeout=120,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr.decode())

    def test_overload_gives_429_with_bounded_memory(self):
        self.serve("--parallel", 2, "--queue", 2, context=2048)
        ask = {"prompt": "The eye", "max_tokens": 600, "ignore_eos": True}
        self.good("/v1/completions", ask)
        before, statuses, end = self.of_status("VmRSS"), [], time.monotonic() + 4
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            def keep_asking():
                while time.monotonic() < end:
                    status, headers, answer = self.post("/v1/completions", ask)
                    statuses.append(status)
                    if status == 429:
                        self.assertEqual((headers["Retry-After"], answer["error"]["type"]), ("1", "rate_limit_error"))
                        time.sleep(0.01)
                    else:
                        self.assertEqual(answer["usage"]["completion_tokens"], 600)
            for each in [pool.submit(keep_asking) for _ in range(24)]:
                each.result()
        self.assertEqual(set(statuses), {200, 429})
        self.assertLess(self.of_status("VmRSS") - before, 20000, "kilobytes")
        self.expect_healthy()


if __name__ == "__main__":
    unittest.main()
