"""fovea serve with models other than language models: vectors, scores, translations; and attention weights."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

from serving import ServeTest
from support import FOVEA, ROOT, fovea, tensors

DETECTS = pathlib.Path(FOVEA).with_name("fovea_languages.so").exists()
SENTENCES = ROOT / "tests/goldens/sentence_model"
PAIRS = ROOT / "tests/goldens/cross_encoder"


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class ServeModels(ServeTest):
    def vectors_of(self, *lines):
        run = self.ok(fovea("embed", SENTENCES, "--format", "jsonl", input="".join(line + "\n" for line in lines).encode()))
        return [[float32(x) for x in json.loads(line)["embedding"]] for line in run.stdout.splitlines()]

    def test_vectors_and_ranks_equal_those_of_the_commands(self):
        self.serve(SENTENCES, PAIRS)
        texts = ["the eye sees .", "a fox sleeps .", "the"]
        vectors = self.good("/embed", {"inputs": texts})
        self.assertEqual([[float32(x) for x in vector] for vector in vectors], self.vectors_of(*texts))
        run = self.ok(fovea("rerank", PAIRS, "--query", "what sees ?", "--json", input="".join(text + "\n" for text in texts).encode()))
        expected = [(each["index"], float32(each["score"])) for each in json.loads(run.stdout)["results"]]
        ranks = self.good("/rerank", {"query": "what sees ?", "texts": texts, "return_text": True})
        self.assertEqual([(rank["index"], float32(rank["score"])) for rank in ranks], expected)
        self.assertEqual([rank["text"] for rank in ranks], [texts[rank["index"]] for rank in ranks])
        status, _, answer = self.post("/embed", {"inputs": []})
        self.assertEqual((status, answer["error_type"]), (400, "Empty"))
        self.assertEqual(self.good("/v1/embeddings", {"input": "a"})["model"], "sentence_model", "the first capable model")

    def test_concurrent_clients_receive_the_same_vectors(self):
        self.serve(SENTENCES)
        texts = [("the eye " * (i % 6) + "fox " * (i % 5)).strip() or "a" for i in range(64)]
        expected = self.vectors_of(*texts)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            for _ in range(3):
                answers = list(pool.map(lambda text: self.good("/embed", {"inputs": text})[0], texts))
                self.assertEqual([[float32(x) for x in vector] for vector in answers], expected)
        self.assertEqual(self.metric("fovea_queue_requests_total"), 192)

    def test_many_texts_and_cancelled_clients(self):
        self.serve(SENTENCES, "--queue", 2)
        body = json.dumps({"inputs": ["the eye sees a fox ."] * 2000})
        for _ in range(5):
            connection = self.connect()
            connection.sendall(f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            connection.close()
        for _ in range(50):
            status, headers, answer = self.post("/embed", {"inputs": "the eye"})
            if status == 200:
                break
            self.assertEqual((status, headers["Retry-After"], answer["error_type"]), (429, "1", "Overloaded"))
        self.assertEqual(status, 200)
        self.assertEqual(len(self.good("/embed", {"inputs": ["the eye sees a fox ."] * 2000})), 2000)

    def test_translations_equal_those_of_the_command(self):
        german = self.file("train.de", "".join(f"das ist {word}\n" for word in ("gut", "neu", "alt", "klein")) * 50)
        english = self.file("train.en", "".join(f"this is {word}\n" for word in ("good", "new", "old", "small")) * 50)
        model = self.folder / "de-en"
        self.ok(fovea("train", "--pairs", german, english, "--out", model, "--preset", "translate-tiny", "--width", 32, "--steps", 40,
                      "--batch-tokens", 512, "--sample-every", 0, "--seed", 3, timeout=240))
        lines = ["das ist gut", "", "das ist neu klein alt"]
        run = self.ok(fovea("translate", model, input="".join(line + "\n" for line in lines).encode()))
        expected = run.stdout.decode().rstrip("\n").split("\n")
        self.serve(model)
        known = [{"code": "de", "name": "German", "targets": ["en"]}, {"code": "en", "name": "English", "targets": []}]
        self.assertEqual(self.ask("GET", "/languages")[2], known)  # by the names of the files
        self.stop()
        config = json.loads((model / "tokenizer_config.json").read_text())
        (model / "tokenizer_config.json").write_text(json.dumps({**config, "source_lang": None, "target_lang": None}))
        self.serve(model)
        self.assertEqual(self.ask("GET", "/languages")[2], [{"code": "auto", "name": "auto", "targets": ["auto"]}])
        self.stop()
        self.serve(model, "--languages", "", "--languages", "de-en")
        self.assertEqual(self.ask("GET", "/languages")[2], known)
        ask = {"source": "de", "target": "en"}
        self.assertEqual(self.good("/translate", {"q": lines[0], **ask}), {"translatedText": expected[0]})
        self.assertEqual(self.good("/translate", {"q": lines, **ask}), {"translatedText": expected})
        self.assertEqual(self.good("/translate", {"q": "\n".join(lines), **ask}), {"translatedText": "\n".join(expected)})
        found = self.good("/translate", {"q": [lines[0], "\n" + lines[2]], **ask, "beam_tree": True})
        self.assertEqual(found["translatedText"], [expected[0], "\n" + expected[2]])
        (first,), (empty, second) = found["beamTree"]
        self.assertIsNone(empty)
        for tree in (first, second):
            self.assertEqual(tree["nodes"][tree["node"]]["fate"], "finished")
        self.check_files(lines, expected, ask)
        found = self.good("/translate", {"q": lines[2], "source": "auto", "target": "en", "alternatives": 2})
        self.assertEqual((found["translatedText"], found["detectedLanguage"]["language"]), (expected[2], "de"))
        self.assertNotIn(expected[2], found["alternatives"])
        status, _, answer = self.ask("POST", "/translate", "q=das+ist+gut&source=de&target=en",
                                     headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual((status, answer), (200, {"translatedText": expected[0]}))
        status, _, answer = self.post("/translate", {"q": "a", "source": "fr", "target": "en"})
        self.assertEqual(status, 400)
        self.assertIn("/languages", answer["error"])
        status, _, answer = self.post("/detect", {"q": "Der Hund schläft heute in der warmen Sonne am Meer."})
        if DETECTS:
            self.assertEqual((status, answer[0]["language"]), (200, "de"))
            self.assertGreater(answer[0]["confidence"], 50)
            self.assertEqual(self.post("/detect", {})[0], 400)
        else:
            self.assertEqual(status, 501)
            self.assertIn("libcld2-dev", answer["error"])
        looking = {"attention": {"layer": 0, "top_k": 2}}
        choice = self.good("/v1/completions", {"model": "de-en", "prompt": "das ist gut", "max_tokens": 4, "fovea": looking})["choices"][0]
        if choice["text"]:
            self.assertEqual(choice["fovea"]["attention"]["tokens"][0]["keys"], [{"position": 0, "token": "", "weight": 1.0}])

    def check_files(self, lines, expected, languages):
        """A file is translated as its lines are, and fetched by its address; other forms are refused in one line."""
        def posted(content, name="a.txt", **fields):
            parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in fields.items())
            file = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
            return self.ask("POST", "/translate_file", parts.encode() + file.encode() + content + b"\r\n--x--\r\n", {"Content-Type": "multipart/form-data; boundary=x"})
        content = "\n".join(lines).encode()
        status, _, answer = posted(content, api_key="", **languages)
        self.assertEqual(status, 200, answer)
        path = answer["translatedFileUrl"].split("/", 3)[3]
        self.assertRegex(path, r"^download_file/[0-9a-f]{24}\.txt$")
        status, headers, text = self.ask("GET", f"/{path}")
        self.assertEqual((status, headers["content-type"], text), (200, "text/plain; charset=utf-8", "\n".join(expected).encode()))
        for status, words, reply in [(404, "no such file", self.ask("GET", "/download_file/a.txt")), (400, "ends with .txt", posted(content, "a.pdf", **languages)),
                                     (400, "not UTF-8", posted(b"\xff", **languages)), (400, "target", posted(content, source="de")),
                                     (400, "fr", posted(content, source="fr", target="en"))]:
            self.assertEqual(reply[0], status, reply)
            self.assertIn(words, reply[2]["error"])

    def test_translate_selects_the_task_of_a_model(self):
        pairs = [self.file(f"train.{end}", "".join(f"{word}\n" for word in words) * 50)
                 for end, words in (("a", ["G gut", "F gut"]), ("b", ["good", "bon"]))]
        model = self.folder / "many"
        self.ok(fovea("train", "--pairs", *pairs, "--out", model, "--preset", "translate-tiny", "--width", 32, "--steps", 40,
                      "--batch-tokens", 256, "--sample-every", 0, "--seed", 3, timeout=240))
        config = json.loads((model / "config.json").read_text())
        config["task_specific_params"] = {"summarization": {"prefix": "S "}, "translation_de_to_en": {"prefix": "G "},
                                          "translation_de_to_fr": {"prefix": "F "}}
        (model / "config.json").write_text(json.dumps(config))

        def by_task(task):
            return self.ok(fovea("translate", model, "--task", task, input=b"gut\n")).stdout.decode().rstrip("\n")

        self.serve(model)
        self.assertEqual(self.ask("GET", "/languages")[2][0], {"code": "de", "name": "German", "targets": ["en", "fr"]})
        for target in ("en", "fr"):
            found = self.good("/translate", {"q": "gut", "source": "de", "target": target})
            self.assertEqual(found["translatedText"], by_task(f"translation_de_to_{target}"))
        self.assertEqual(self.post("/translate", {"q": "gut", "source": "de", "target": "it"})[0], 400)

    def test_the_precision_of_weights_can_be_selected(self):
        rounded = self.folder / "rounded"
        self.ok(fovea("convert", self.served_model(), rounded, "--dtype", "bf16"))
        self.serve(rounded, SENTENCES, "--dtype", "bf16")
        ask = {"prompt": "The", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
        texts = {self.good("/v1/completions", {**ask, "model": name})["choices"][0]["text"] for name in ("model", "rounded")}
        self.assertEqual(len(texts), 1, texts)
        self.refused(fovea("serve", self.served_model(), "--dtype", "int3"), 2, "--dtype")
        self.refused(fovea("serve", self.served_model(), "--languages", "german"), 2, "--languages")

    def test_attention_and_hidden_states_agree_with_trace(self):
        self.serve()
        ask = {"prompt": "The eye of a fox", "max_tokens": 30, "temperature": 0, "ignore_eos": True, "return_token_ids": True}
        plain = self.good("/v1/completions", ask)["choices"][0]
        watched = {"attention": {"layer": 1, "head": 1, "top_k": 5}, "hidden_states": {"layer": 2}}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            others = [pool.submit(self.good, "/v1/completions", {"prompt": "A fox " * i, "max_tokens": 20}) for i in range(1, 8)]
            choice = self.good("/v1/completions", {**ask, "fovea": watched})["choices"][0]
            for each in others:
                each.result()
        shown = choice.pop("fovea")
        self.assertEqual(choice, plain, "tracing does not change the result")
        prompt = self.good("/tokenize", {"content": ask["prompt"]})["tokens"]
        ids, out = prompt + plain["token_ids"], self.folder / "trace.safetensors"
        self.ok(fovea("trace", self.served_model(), "--ids", ",".join(map(str, ids)), "--out", out))
        (_, _, rows, keys), weights = tensors(out)["attention.1"]
        (_, _, width), hidden = tensors(out)["hidden.2"]
        self.assertEqual(len(shown["attention"]["tokens"]), 30)
        for i, (looked, state) in enumerate(zip(shown["attention"]["tokens"], shown["hidden_states"]["tokens"])):
            query = len(prompt) - 1 + i
            row = weights[(rows + query) * keys:(rows + query + 1) * keys]
            likeliest = sorted(range(keys), key=lambda key: (-row[key], key))[:5]
            self.assertEqual([(key["position"], float32(key["weight"])) for key in looked["keys"]], [(key, row[key]) for key in likeliest])
            self.assertEqual(tuple(map(float32, state["values"])), hidden[query * width:(query + 1) * width])

    @unittest.skipIf(shutil.which("curl") is None, "needs curl")
    def test_curl_sends_json_without_its_content_type(self):
        self.serve(SENTENCES)
        run = subprocess.run(["curl", "-s", f"http://localhost:{self.port}/embed", "-d", '{"inputs": "the eye"}'], stdout=subprocess.PIPE,
                             timeout=60, check=True)
        self.assertEqual(len(json.loads(run.stdout)[0]), 10)


if __name__ == "__main__":
    unittest.main()
