"""fovea serve under load: the largest requests that each route allows, several at a time, within a limited address space, and answers
that do not depend on those beside them. The suite sends hundreds; FOVEA_SOAK=1 (`./run soak`) thousands."""
import concurrent.futures
import json
import random
import resource
import shutil
import time

from serve_speech_test import MODEL as SPEECH
from serve_speech_test import TYPE, form
from serving import ServeTest
from synthetic_audio import voice, write_wav
from support import ROOT, SOAK

GOLDENS = ROOT / "tests/goldens"
MEGABYTE = 1 << 20
CONTEXT = 4096 if SOAK else 512
CLIENTS, KEY = 8, "key-of-these-tests"
REFUSALS = {0, 413, 429, 503}  # too much at a time
TEXT = "A fox and the eye. "
KINDS = {"decoder": GOLDENS / "fine_tuning/model", "embed": GOLDENS / "sentence_model", "sparse": GOLDENS / "sparse_model",
         "tokens": GOLDENS / "multi_vector_model", "cross": GOLDENS / "cross_encoder", "classify": GOLDENS / "classifiers/texts",
         "translate": GOLDENS / "ctranslate2/translation_model", "speech": SPEECH}


def nested(depth):
    schema = {"type": "string", "maxLength": 200}
    for level in range(depth):
        schema = {"type": "object", "properties": {f"a{level}{i}": schema if i == 0 else {"type": "integer"} for i in range(20)},
                  "required": [f"a{level}0"]}
    return schema


def messages(count, text):
    return [{"role": "assistant" if i % 2 else "user", "content": text} for i in range(count)]


class ServeLoadTest(ServeTest):
    def served_model(self, _=None):
        out = self.folder / "decoder"
        if not out.exists():
            shutil.copytree(KINDS["decoder"], out)
            config = json.loads((out / "config.json").read_text())
            (out / "config.json").write_text(json.dumps({**config, "max_position_embeddings": CONTEXT}))
        return out

    def largest(self):
        """Returns the largest requests of each route, as path and body."""
        wide = {"n": 16, "logprobs": 20, "return_token_ids": True, "ignore_eos": True, "max_tokens": -1}
        attention = {"fovea": {"attention": {"layer": 0, "head": 0, "top_k": 1024}, "hidden_states": {"layer": 0}}}
        grammar = "root ::= " + " | ".join(f'"{i:04}"' for i in range(8_000))
        many = [TEXT * 20] * 2048
        models = {"model": "decoder"}
        yield from (("/v1/completions", {**models, **body}) for body in (
            {"prompt": [TEXT * 4] * 32, **wide, "echo": True},
            {"prompt": TEXT, **wide, **attention},
            {"prompt": TEXT, **wide, "stream": True, "stream_options": {"include_usage": True}},
            {"prompt": TEXT, **wide, "grammar": grammar},
            {"prompt": TEXT, **wide, "guided_regex": "([a-z]{1,900} ){1,900}"},
            {"prompt": TEXT, **wide, "guided_choice": [f"{i} {TEXT * 4}" for i in range(1024)]},
            {"prompt": TEXT, **wide, "guided_json": nested(20)},
            {"prompt": TEXT, **wide, "logit_bias": {str(i): 1 for i in range(100)}, "stop": ["x" * 256] * 16},
            {"prompt": TEXT * (CONTEXT // 20), **wide}))
        yield from (("/v1/chat/completions", {**models, **body}) for body in (
            {"messages": messages(CONTEXT // 8, "a"), "n": 16},
            {"messages": messages(1, TEXT), "n": 16, "top_logprobs": 20, "logprobs": True, "ignore_eos": True},
            {"messages": messages(1, TEXT), "tool_choice": "required", "max_tokens": 50, "tools": [
                {"type": "function", "function": {"name": f"f{i}", "parameters": nested(1)}} for i in range(128)]}))
        yield "/tokenize", {**models, "content": TEXT * 50_000, "with_pieces": True}
        yield "/tokenize", {**models, "inputs": [TEXT * 20] * 2048}
        yield "/detokenize", {**models, "tokens": [7] * 300_000}
        yield "/v1/embeddings", {"model": "embed", "input": many}
        yield "/embed", {"model": "embed", "inputs": many, "truncate": True}
        yield "/embed_sparse", {"model": "sparse", "inputs": many, "truncate": True}
        yield "/embed_all", {"model": "tokens", "inputs": many, "truncate": True}
        yield "/similarity", {"model": "embed", "inputs": {"source_sentence": TEXT * 20, "sentences": many}}
        yield "/rerank", {"model": "cross", "query": TEXT * 5000, "texts": many, "truncate": True, "return_text": True}
        yield "/v1/rerank", {"model": "tokens", "query": TEXT * 5000, "documents": many}
        yield "/v1/score", {"model": "cross", "text_1": TEXT * 5000, "text_2": many}
        yield "/predict", {"model": "classify", "inputs": [[text] for text in many[:1000]], "truncate": True}
        yield "/v1/classify", {"model": "classify", "input": many}
        yield "/translate", {"model": "translate", "q": ["the cat and the dog " * 40] * 256, "source": "eng", "target": "deu",
                             "alternatives": 3}

    def serve_all(self, *options):
        names = [word for name in KINDS for word in ("--alias", name)]
        others = [path for name, path in KINDS.items() if name != "decoder"]
        self.serve(*others, *names, "--cache", "64M", "--chat-template", self.template_with_tools(), *options, env={"FOVEA_API_KEY": KEY})

    def ask(self, method, path, body=None, headers=None, timeout=120):
        return super().ask(method, path, body, {"Authorization": f"Bearer {KEY}", **(headers or {})}, timeout)

    def statuses(self, path, body, **how):
        """Sends a request several times at once; returns its statuses, with 0 for connections that the server closed early."""
        def status():
            try:
                status, _, answer = self.post(path, body, **how)
                self.assertIn(status, REFUSALS | {200}, answer)
                return status
            except OSError:
                return 0
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            asked = [pool.submit(status) for _ in range(CLIENTS)]
            self.assertEqual(self.ask("GET", "/health")[0], 200)
            return {each.result() for each in asked}

    def expect_memory_returned(self, idle):
        self.wait_until(lambda: self.of_status("VmRSS") - idle < 300 * 1024)

    def limit_address_space(self, more):
        size = self.of_status("VmSize") * 1024 + more
        resource.prlimit(self.process.pid, resource.RLIMIT_AS, (size, size))

    # Each of these requests fits into its own limit; a server whose limits do not add up ends here, or for want of memory.
    def test_the_largest_requests_of_each_route_fit_together(self):
        self.serve_all("--max-time", 300)
        self.expect_healthy()
        idle = self.of_status("VmRSS")
        self.limit_address_space(1200 * MEGABYTE)
        for path, body in self.largest():
            with self.subTest(path=path, fields=[name for name in body if name != "model"]):
                self.assertIn(200, self.statuses(path, body))
        self.expect_healthy()
        self.expect_memory_returned(idle)

    def test_recordings_and_uploads_fit_together(self):
        self.serve_all("--max-time", 300, "--jobs", self.folder / "jobs")
        idle = self.of_status("VmRSS")
        self.limit_address_space(1200 * MEGABYTE)
        path = self.folder / "long.wav"
        write_wav(path, voice(600, 1))
        audio = path.read_bytes()
        line = b'{"messages": [{"role": "user", "content": "a"}]}\n'
        upload = form(line * (60 * MEGABYTE // len(line)), ("purpose", "fine-tune"))
        for where, data in (("/v1/audio/transcriptions", form(audio)), ("/v1/files", upload)):
            with self.subTest(where=where):
                self.statuses(where, data, headers={"Content-Type": TYPE})
        self.expect_healthy()
        self.expect_memory_returned(idle)

    def test_answers_under_load_equal_those_alone(self):
        """Greedy and seeded answers, vectors, scores and labels have the same bits beside other requests as alone."""
        self.serve_all("--parallel", 16, "--queue", 256)
        draw = random.Random(5)
        asks = []
        for i in range(40):
            text = TEXT * (i % 5) + "".join(draw.choice("abcdefgh ") for _ in range(30))
            asks += [("/v1/completions", {"model": "decoder", "prompt": text, "max_tokens": 4 + i % 9, "ignore_eos": True, "seed": i,
                                          "temperature": i % 2, "logprobs": 3}),
                     ("/v1/embeddings", {"model": "embed", "input": [text, text * 3]}),
                     ("/embed_sparse", {"model": "sparse", "inputs": text, "truncate": True}),
                     ("/rerank", {"model": "cross", "query": text[:20], "texts": [text, TEXT, text * 2], "truncate": True}),
                     ("/predict", {"model": "classify", "inputs": text, "truncate": True})]

        def answer(number):
            path, body = asks[number]
            found = self.good(path, body)
            return found.get("choices", found.get("data")) if isinstance(found, dict) else found

        alone = [answer(i) for i in range(len(asks))]
        began, count = time.monotonic(), 8000 if SOAK else 400
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            order = [draw.randrange(len(asks)) for _ in range(count)]
            for number, found in zip(order, pool.map(answer, order)):
                self.assertEqual(found, alone[number], asks[number])
        print(f"{count / (time.monotonic() - began):.0f} answers a second")
