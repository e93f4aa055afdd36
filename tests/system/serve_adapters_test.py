"""fovea serve --adapter: a base and its adapters from one copy of the weights; adapters in other commands and as GGUF files."""
import concurrent.futures
import json
import pathlib
import unittest

from serving import CHAT, ServeTest
from support import ROOT, fovea

ASK = {"prompt": "The eye", "max_tokens": 24, "temperature": 0, "ignore_eos": True}


class ServeAdapters(ServeTest):
    def adapter(self, name, *options, rate=0.04):
        out = self.folder / name
        if not out.exists():
            self.ok(fovea("train", self.text, "--from", self.served_model(), "--out", out, "--steps", 6, "--batch", 1, "--learning-rate", rate,
                          "--lora", 4, "--seed", 1, "--dtype", "fp32", "--sample-every", 0, "--validation", 0, *options))  # a run without held-out text keeps its last weights
        return out

    def written(self, *arguments):
        """Returns the text that fovea generate writes."""
        run = self.ok(fovea("generate", *arguments, "-p", ASK["prompt"], "-n", ASK["max_tokens"], "--greedy", "--ignore-eos", "--json"))
        return json.loads(run.stdout)["text"]

    def completed(self, model, **more):
        return self.good("/v1/completions", {**ASK, "model": model, **more})["choices"][0]["text"]

    def test_adapters_are_models_of_the_api_and_give_the_texts_of_generate(self):
        law, dora = self.adapter("law"), self.adapter("dora", "--dora", rate=0.02)
        gguf = self.folder / "law.gguf"
        self.ok(fovea("convert", law, gguf, "--adapter-only"))
        base = self.served_model()
        expected = {"model": self.written(base), "law": self.written(base, "--adapter", law), "dora": self.written(base, "--adapter", dora),
                    "more": self.written(base, "--adapter", f"{law}:3")}
        self.assertEqual(self.written(base, "--adapter", gguf), expected["law"])
        expected["file"] = expected["law"]
        self.assertEqual(len(set(expected.values())), 4, expected)
        self.serve("--adapter", f"law={law}", "--adapter", f"dora={dora}", "--adapter", f"more={law}:3", "--adapter", f"file={gguf}")

        models = self.ask("GET", "/v1/models")[2]["data"]
        self.assertEqual([(model["id"], model["parent"], model["root"]) for model in models],
                         [("model", None, "model")] + [(name, "model", "model") for name in ("law", "dora", "more", "file")])
        self.assertEqual(self.ask("GET", "/v1/models/law")[2]["parent"], "model")
        for name, text in expected.items():
            self.assertEqual(self.completed(name), text, name)
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            asked = [(name, pool.submit(self.completed, name)) for name in list(expected) * 8]
            for name, each in asked:
                self.assertEqual(each.result(), expected[name], name)
        self.assertEqual(self.completed(""), expected["model"], "without a name, the base responds")
        status, _, answer = self.post("/v1/completions", {**ASK, "model": "medicine"})
        self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))

    def test_chats_do_not_share_cached_pages_with_other_adapters(self):
        self.serve("--adapter", f"law={self.adapter('law')}")
        chat = {**CHAT, "max_tokens": 8, "temperature": 0, "logprobs": True, "messages": [{"role": "user", "content": "The eye of a fox " * 12}]}
        found = {}
        for cached in (False, True):
            for name in ("law", "model"):
                answer = self.good("/v1/chat/completions", {**chat, "model": name})
                self.assertEqual(answer["model"], name)
                self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0, cached, name)
                self.assertEqual(found.setdefault(name, answer["choices"]), answer["choices"])
        self.assertNotEqual(found["law"], found["model"])

    def test_unsuitable_adapters_are_refused_at_the_start(self):
        base, law = self.served_model(), self.adapter("law")
        other = self.folder / "other"
        self.ok(fovea("train", self.text, "--out", other, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 48, "--batch", 1,
                      "--context", 64, "--tokenizer", base, "--steps", 1, "--sample-every", 0, "--evaluate-windows", 1))
        self.refused(fovea("serve", other, "--adapter", f"law={law}"), 2, ".weight is [", "expected [", "another base")
        self.refused(fovea("serve", base, "--adapter", law), 2, "--adapter", "NAME=ADAPTER")
        self.refused(fovea("serve", base, "--adapter", f"model={law}"), 2, "--adapter", "model")
        self.refused(fovea("serve", law, "--adapter", f"law2={law}"), 2, "has adapters already")
        self.refused(fovea("serve", ROOT / "tests/goldens/sentence_model", "--adapter", f"a={law}"), 2, "--adapter", "does not generate text")

    def test_other_commands_take_adapters(self):
        base, law = self.served_model(), self.adapter("law")
        bench = json.loads(self.ok(fovea("bench", base, "--adapter", law, "--prompt", 8, "--decode", 4, "--json")).stdout)
        self.assertGreater(bench["decode_tokens_per_second"], 0)
        maps = [json.loads(self.ok(fovea("inspect", base, "The eye", "--json", *options)).stdout)["weights"]
                for options in ([], ["--adapter", law])]
        self.assertNotEqual(*maps)
        self.refused(fovea("rerank", ROOT / "tests/goldens/cross_encoder", "--query", "a", "--adapter", law, input=b"b\n"), 2,
                     "does not have")
        self.refused(fovea("convert", base, self.folder / "none.gguf", "--adapter-only"), 2, "has 0 adapters")
        back = self.folder / "back"
        self.ok(fovea("convert", base, back, "--adapter", law, "--adapter-only"))
        self.assertEqual(pathlib.Path(back / "adapter_model.safetensors").read_bytes(), pathlib.Path(law / "adapter_model.safetensors").read_bytes())


if __name__ == "__main__":
    unittest.main()
