"""Training a translator, translation, and scores."""
import json
import random
import re
import unittest

from support import ROOT, FoveaTest, fovea

WORDS = ["red", "dog", "sun", "tree", "book", "moon", "star", "hill"]


def lines(count, seed):
    """Returns lines of random words, and the same lines with their words in reverse order."""
    generator = random.Random(seed)
    sources = [[generator.choice(WORDS) for _ in range(generator.randint(1, 5))] for _ in range(count)]
    return "".join(" ".join(s) + "\n" for s in sources), "".join(" ".join(reversed(s)) + "\n" for s in sources)


class TranslateTest(FoveaTest):
    def setUp(self):
        super().setUp()
        for name, count, seed in (("train", 400, 1), ("test", 20, 2)):
            source, target = lines(count, seed)
            self.file(f"{name}.de", source)
            self.file(f"{name}.en", target)
        self.pairs = ["--pairs", self.folder / "test.de", self.folder / "test.en"]
        self.out = self.folder / "model"

    def train_translator(self):
        self.output("train", "--preset", "translate-tiny", "--layers", "1", "--encoder-layers", "1", "--pairs",
                self.folder / "train.de", self.folder / "train.en", "--validation-pairs", *self.pairs[1:],
                "--steps", "120", "--evaluate-every", "60", "--bleu-lines", "10", "--tokenizer", "bpe:300", "--out", self.out)

    def output(self, *arguments, **more):
        return self.ok(fovea(*arguments, **more)).stdout

    def test_scores_are_those_of_the_translations(self):
        self.train_translator()
        log = [json.loads(line) for line in (self.out / "log.jsonl").read_text().splitlines()]
        self.assertEqual([set(line) >= {"bleu", "chrf", "rouge_l"} for line in log if "eval_loss" in line], [True, True])
        self.assertIn("BLEU", (self.out / "loss.svg").read_text())

        hypotheses = self.folder / "out.en"
        hypotheses.write_bytes(self.output("translate", self.out, "--beams", "3", input=(self.folder / "test.de").read_bytes()))
        result = json.loads(self.output("eval", self.out, *self.pairs, "--beams", "3", "--json"))
        scored = json.loads(self.output("eval", "--hypotheses", hypotheses, "--references", self.folder / "test.en", "--json"))
        for key in ("bleu", "chrf", "rouge_l", "bleu_signature", "chrf_signature", "rouge_l_signature", "sequences"):
            self.assertEqual(result[key], scored[key], key)
        self.assertGreater(result["loss"], 0)
        self.assertIn(b"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:fovea-", self.output("eval", self.out, *self.pairs))
        self.assertNotIn(b"BLEU", self.output("eval", self.out, *self.pairs, "--beams", "0"))

        timed = json.loads(self.output("bench", self.out, "--translate", self.folder / "test.de", "--beams", "2", "--tokens", "4",
                                   "--runs", "1", "--json"))
        self.assertEqual((timed["lines"], timed["tokens"]), (20, 80))
        self.assertGreater(timed["tokens_per_second"], 0)

    def test_the_tree_of_the_search_has_the_scores_of_the_translations(self):
        self.train_translator()
        line = (self.folder / "test.de").read_bytes().splitlines()[0] + b"\n"
        search = ("translate", self.out, "--beams", "3", "--n-best", "3", "--length-penalty", "0.7", "--json")
        found = json.loads(self.output(*search, "--beam-tree", input=line))
        tree, nodes, node = found["tree"], [], found["node"]
        self.assertEqual(tree[node]["fate"], "finished")
        while node >= 0:
            nodes.insert(0, tree[node])
            node = tree[node]["parent"]
        self.assertEqual([each["step"] for each in nodes], list(range(len(nodes))))
        self.assertAlmostEqual(sum(each["logprob"] for each in nodes) / len(nodes) ** 0.7, found["score"], 4)
        ends = sorted((each["score"] for each in tree if each["fate"] == "finished"), reverse=True)
        self.assertEqual(ends, [each["score"] for each in found["best"]])
        self.assertEqual({each["fate"] for each in tree} - {"continued", "finished", "dropped", "displaced", "stopped"}, set())
        plain = json.loads(self.output(*search, input=line))
        self.assertEqual(plain, {key: value for key, value in found.items() if key not in ("tree", "node")})
        self.refused(fovea(*search[:-1], "--beam-tree", input=line), 2, "--beam-tree", "--json")
        self.refused(fovea("translate", self.out, "--beams", "1", "--beam-tree", "--json", input=line), 2, "at least 2")

    def test_terms_and_markup_are_kept(self):
        self.train_translator()
        terms = self.file("terms.tsv", "# source\ttarget\ndog\tmoon moon\n")
        lines = self.output("translate", self.out, "--terms", terms, "--n-best", "2", input=b"red dog sun\nbook\n").decode().splitlines()
        self.assertEqual([("moon moon" in line) for line in lines[:2]], [True, True], lines)
        plain = self.output("translate", self.out, "--keep-markup", input=b"red dog {x} sun\n").decode()
        self.assertIn("{x}", plain)
        marked = self.output("translate", self.out, "--keep-markup", input=b"<b>red</b> dog {x} sun<br/>\n").decode()
        self.assertLess(marked.index("<b>"), marked.index("</b>"))
        self.assertEqual(marked.count("<br/>"), 1)
        self.assertEqual(re.sub("<.*?>", "", marked), plain)
        self.refused(fovea("translate", self.out, "--terms", terms, "--beams", "1", input=b"a\n"), 2, "--terms: given with 1 beam")
        self.refused(fovea("translate", self.out, "--terms", self.file("bad.tsv", "dog moon\n"), input=b"a\n"), 2, "bad.tsv:1")

    def test_two_tokenizers_are_kept(self):
        files = ROOT / "tests/goldens/translation_tokenizers"
        self.output("train", "--preset", "translate-tiny", "--pairs", self.folder / "train.de", self.folder / "train.en", "--steps", "4",
                  "--tokenizer", files, "--evaluate-every", "0", "--bleu-lines", "4", "--out", self.out)
        self.assertFalse((self.out / "tokenizer.json").exists())
        for name in ("source.spm", "target.spm", "vocab.json"):
            self.assertEqual((self.out / name).read_bytes(), (files / name).read_bytes(), name)
        lines = self.output("translate", self.out, "--beams", "2", "--alignment", input=b"red dog\n\nsun\n")
        self.assertEqual(lines.count(b"\n"), 3)
        self.assertIn("chrf", json.loads(self.output("eval", self.out, *self.pairs, "--beams", "1", "--json")))
        self.refused(fovea("translate", self.out, "--task", "translation_en_to_de", input=b"red\n"), 2, "--task", "task_specific_params")

    def test_a_prefix_is_added_to_every_source(self):
        """The prefix applies to training, to the loss and to translations, as if it were in the files."""
        prefix = "sun dog: "
        prefixed = self.file("prefixed.de", "".join(prefix + line for line in (self.folder / "train.de").read_text().splitlines(True)))
        models = []
        for source, more in ((self.folder / "train.de", ["--source-prefix", prefix]), (prefixed, [])):
            out = self.folder / source.stem
            self.output("train", "--preset", "translate-tiny", "--layers", "1", "--encoder-layers", "1", "--pairs", source,
                      self.folder / "train.en", "--steps", "4", "--tokenizer", ROOT / "tests/goldens/translation_tokenizers",
                      "--evaluate-every", "0", "--bleu-lines", "0", "--out", out, *more)
            models.append(out)
        self.assertEqual(*[(model / "model.safetensors").read_bytes() for model in models])
        whole = self.file("whole.de", "".join(prefix + line for line in (self.folder / "test.de").read_text().splitlines(True)))
        for beams in ("0", "2"):
            asked = self.output("eval", models[0], *self.pairs, "--beams", beams, "--source-prefix", prefix, "--json")
            read = self.output("eval", models[0], "--pairs", whole, self.pairs[-1], "--beams", beams, "--json")
            self.assertEqual(json.loads(asked), json.loads(read))
        self.refused(fovea("train", self.text, "--source-prefix", prefix, "--out", self.out), 2, "--source-prefix", "--pairs")

    def test_the_checkpoint_sets_the_length_penalty(self):
        self.train_translator()
        translate = ("translate", self.out, "--beams", "4", "--n-best", "4", self.folder / "test.de")
        result = self.output(*translate, "--length-penalty", "-3")
        self.assertNotEqual(self.output(*translate), result)
        path = self.out / "generation_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "length_penalty": -3.0}))
        self.assertEqual(self.output(*translate), result)

    def test_the_name_of_a_sentencepiece_model_gives_its_side(self):
        folder = self.folder / "pieces"
        folder.mkdir()
        (folder / "spiece.model").write_bytes((ROOT / "tests/goldens/translation_tokenizers/source.spm").read_bytes())
        ids = self.output("tokenize", folder, input=b"red dog")
        self.assertEqual(json.loads(ids)["tokens"][-1], "</s>")
        for config in ({"model_max_length": 512}, {"tokenizer_class": "T5Tokenizer"}):
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            self.assertEqual(self.output("tokenize", folder, input=b"red dog"), ids)

    def test_the_languages_of_files_names_are_kept(self):
        self.train_translator()
        config = json.loads((self.out / "tokenizer_config.json").read_text())
        self.assertEqual((config["source_lang"], config["target_lang"]), ("de", "en"))
        text = b"red dog\n"
        plain = self.output("translate", self.out, input=text)
        self.assertEqual(self.output("translate", self.out, "--source-language", "de-AT", "--target-language", "eng", input=text), plain)
        self.refused(fovea("translate", self.out, "--source-language", "de", "--target-language", "fr", input=text), 2,
                     "--target-language: de to fr", "expected de to en")

    def test_models_of_many_languages_need_both(self):
        nllb = ROOT / "tests/goldens/translators/nllb"
        case = json.loads((nllb / "expected.json").read_text())["cases"][0]
        run = self.output("translate", nllb, "--source-language", "en", "--target-language", "de", "--beams", "4", "--max-tokens", "12",
                          "--min-tokens", "3", "--json", input=case["text"].encode() + b"\n")
        self.assertEqual(json.loads(run)["translation"], case["best"][0]["text"])
        mbart = ROOT / "tests/goldens/translators/mbart50"
        self.refused(fovea("translate", mbart, "--target-language", "de", input=b"a\n"), 2, "--source-language: not given; expected", "en_XX")
        self.refused(fovea("translate", nllb, "--source-language", "en", "--target-language", "xx", input=b"a\n"), 2, "--target-language",
                     "no language xx", "deu_Latn")
        measure = ("bench", nllb, "--translate", self.file("one.en", case["text"] + "\n"), "--tokens", "4", "--runs", "1", "--json")
        self.assertEqual(json.loads(self.output(*measure, "--source-language", "en", "--target-language", "de"))["tokens"], 4)
        self.refused(fovea(*measure, "--source-language", "en"), 2, "--target-language: not given", "deu_Latn")

    def test_long_lines_are_truncated_or_refused(self):
        self.train_translator()
        text = self.file("long.de", "red dog\n" + "red dog " * 400 + "\nsun\n")
        done = self.ok(fovea("translate", self.out, text, "--beams", "1", "--max-tokens", "4"))
        self.assertIn(b"1 line truncated to ", done.stderr)
        self.assertIn(b"long.de: line 2", done.stderr)
        self.assertEqual(done.stdout.count(b"\n"), 3)
        self.refused(fovea("translate", self.out, text, "--refuse-long"), 2, "long.de: line 2: has ")

    def test_existing_translations_are_scored_as_by_sacrebleu_and_rouge_score(self):
        golden = json.loads((ROOT / "tests/goldens/scores.json").read_text())["corpora"][2]
        hypotheses, references = (self.file(name, "".join(line + "\n" for line in golden[name])) for name in ("hypotheses", "references"))
        command = ("eval", "--hypotheses", hypotheses, "--references", references, "--json")
        for tokenizer in ("13a", "zh", "char", "none"):
            found = json.loads(self.output(*command, "--bleu-tokenizer", tokenizer))
            self.assertAlmostEqual(found["bleu"], golden[f"bleu_{tokenizer}"], places=9)
            self.assertIn(f"tok:{tokenizer}|", found["bleu_signature"])
        for name in ("chrf", "chrf_plus_plus", "ter", "rouge_1", "rouge_2", "rouge_l"):
            self.assertAlmostEqual(found[name], golden[name], places=9)
        self.refused(fovea(*command, "--bleu-tokenizer", "ja-mecab"), 2, "ja-mecab", "char")
        self.refused(fovea("eval", self.out, self.text, "--bleu-tokenizer", "zh"), 2, "--bleu-tokenizer", "--hypotheses")

    def test_scores_require_equal_numbers_of_lines(self):
        self.file("short.en", "red\n")
        self.refused(fovea("eval", "--hypotheses", self.folder / "short.en", "--references", self.folder / "test.en"), 2,
                     "short.en: has 1 lines, ", "test.en has 20; expected equal numbers")
        self.refused(fovea("eval", "--hypotheses", self.folder / "short.en"), 2, "expected both or neither")


if __name__ == "__main__":
    unittest.main()
