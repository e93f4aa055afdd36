"""The output of `fovea generate`."""
import json
import struct
import unittest

from support import FoveaTest, fovea


class Generate(FoveaTest):
    def write(self, *arguments, **how):
        return self.ok(fovea("generate", self.model(60), *arguments, **how))

    def said(self, *arguments, **how):
        return self.write(*arguments, **how).stdout.decode()

    def test_a_seed_determines_the_text(self):
        first = self.said("-p", "The ", "-n", "80", "--seed", "3")
        self.assertEqual(self.said("-p", "The ", "-n", "80", "--seed", "3"), first)
        self.assertEqual(self.said("-p", "The ", "-n", "80", "--seed", "3", "-t", "1"), first)
        self.assertNotEqual(self.said("-p", "The ", "-n", "80", "--seed", "4"), first)

    def test_runs_without_a_seed_differ(self):
        self.assertNotEqual(self.said("-n", "80", "--temperature", "1.5", "--top-k", "0", "--top-p", "1"),
                            self.said("-n", "80", "--temperature", "1.5", "--top-k", "0", "--top-p", "1"))

    def test_several_options_select_greedy_decoding(self):
        greedy = self.said("-p", "The ", "-n", "40", "--greedy")
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--temp", "0", "--seed", "9"), greedy)
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--top-k", "1"), greedy)

    def test_a_prompt_is_read_from_option_file_and_pipe(self):
        expected = self.said("-p", "The fox", "-n", "40", "--greedy")
        self.assertEqual(self.said("-f", self.file("prompt.txt", "The fox\n"), "-n", "40", "--greedy"), expected)
        self.assertEqual(self.said("-n", "40", "--greedy", input=b"The fox\n"), expected)
        self.assertEqual(self.said("The fox", "-n", "40", "--greedy"), expected)
        self.assertEqual(self.said("-p", "The fox", "-n", "40", "--greedy", "--echo"), "The fox" + expected)

    def test_json_and_stream_agree(self):
        r = json.loads(self.said("-p", "The ", "-n", "40", "--seed", "3", "--json"))
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--seed", "3").rstrip("\n"), r["text"].rstrip("\n"))
        self.assertEqual((len(r["ids"]), r["finish"], r["prompt_tokens"]), (40, "length", 4))

    def test_the_requested_number_of_tokens_is_generated(self):
        for count in (0, 1, 500):  # 500: more than the context of 32
            self.assertEqual(json.loads(self.said("-n", count, "--ignore-eos", "--json"))["tokens"], count)

    def test_text_ends_before_a_stop_string(self):
        whole = json.loads(self.said("-p", "The ", "-n", "60", "--seed", "3", "--json"))["text"]
        stop = whole[20:23]
        r = json.loads(self.said("-p", "The ", "-n", "60", "--seed", "3", "--stop", "~~~", "--stop", stop, "--json"))
        self.assertEqual(r["finish"], "stop")
        self.assertEqual(r["text"], whole[:whole.index(stop)])
        streamed = self.said("-p", "The ", "-n", "60", "--seed", "3", "--stop", stop)
        self.assertEqual(streamed.rstrip("\n"), r["text"].rstrip("\n"))

    def test_beam_search_at_its_limits(self):
        """More beams than tokens in the vocabulary, zero tokens, and n-grams longer than the text have defined results."""
        many = json.loads(self.said("-p", "The ", "-n", "6", "--beams", "200", "--generations", "3", "--json"))
        self.assertEqual(len({tuple(answer["ids"]) for answer in many["generations"]}), 3)
        self.assertEqual(json.loads(self.said("-p", "The ", "-n", "0", "--beams", "4", "--json"))["tokens"], 0)
        plain = self.said("-p", "The ", "-n", "20", "--greedy")
        self.assertEqual(self.said("-p", "The ", "-n", "20", "--greedy", "--no-repeat-ngram", "1000"), plain)
        self.assertEqual(self.said("-p", "", "-n", "5", "--beams", "3"), self.said("-p", "\n", "-n", "5", "--beams", "3"))
        for option, wrong in (("--beams", ("0", "-1", "1025", "nan", "1e9")), ("--length-penalty", ("nan", "inf", "-inf", "1e400")),
                              ("--predict", ("-2", "nan"))):
            for value in wrong:
                with self.subTest(f"{option} {value}"):
                    self.refused(fovea("generate", self.model(60), "-p", "The ", f"{option}={value}"), 2, option)

    def test_a_draft_model_does_not_change_the_text(self):
        draft = self.folder / "draft"
        self.ok(self.train(draft, steps=12))
        for more in (["--greedy"], ["--seed", "3"], ["--seed", "3", "--generations", "3"], ["--seed", "3", "--stop", "e"]):
            with self.subTest(more):
                asked = ["-p", "The ", "-n", "70", *more]  # exceeds the context of 32
                expected = self.said(*asked)
                for number in ("auto", "0"):
                    self.assertEqual(self.said(*asked, "--draft", draft, "--draft-tokens", number), expected)
                self.assertEqual(self.said(*asked, "--draft", draft), expected)
                self.assertEqual(self.said(*asked, "--draft", draft, "--draft-tokens", "9"), expected)

    def test_accepted_speculative_tokens_are_reported(self):
        asked = ["-p", "The ", "-n", "25", "--seed", "3", "--draft", self.model(60), "--draft-tokens", "4"]
        r = json.loads(self.said(*asked, "--json"))
        self.assertEqual(r["accepted_tokens"], r["speculative_tokens"])
        self.assertEqual(r["acceptance_rate"], 1)
        self.assertGreater(r["speculative_tokens"], 12)
        self.assertRegex(self.write(*asked).stderr.decode(), r"; speculative tokens: (\d+) of \1 accepted \(100%\)")
        self.assertNotIn(b"speculative", self.write("-p", "The The The The ", "-n", "25", "--greedy").stderr)  # none were asked for
        self.assertNotIn("speculative_tokens", json.loads(self.said("-p", "The ", "-n", "5", "--json", "--speculative-tokens", "0")))

    def test_speculative_tokens_from_the_text_do_not_change_it(self):
        for more in (["--greedy"], ["--seed", "3"], ["--seed", "3", "--generations", "3"], ["--seed", "3", "--stop", "e"]):
            with self.subTest(more):
                asked = ["-p", "The quick The quick The ", "-n", "70", *more]  # exceeds the context of 32
                expected = self.said(*asked, "--speculative-tokens", "0")
                for proposal in ("auto", "-1", "5"):
                    self.assertEqual(self.said(*asked, "--speculative-tokens", proposal), expected)
                self.assertEqual(self.said(*asked), expected)

    def test_the_number_of_speculative_tokens_is_automatic(self):
        # Only one token is allowed, so all speculative tokens are accepted.
        asked = ["--ids", "1,1,1", "-n", "25", "--greedy", "--ignore-eos", "--logit-bias", "1:1e9", "--json"]
        auto = json.loads(self.said(*asked, "--speculative-tokens", "auto"))
        self.assertEqual(auto["accepted_tokens"], auto["speculative_tokens"])
        self.assertGreater(auto["accepted_tokens"], 12)
        for number in ("speculative_tokens", "accepted_tokens"):
            self.assertEqual(json.loads(self.said(*asked))[number], auto[number])
        self.assertNotIn("speculative_tokens", json.loads(self.said(*asked, "--beams", "2")))
        for wrong in ("-2", "65", "Auto", "none", ""):
            self.refused(fovea("generate", self.model(60), "-p", "The ", f"--speculative-tokens={wrong}"), 2, "--speculative-tokens", "expected -1 to 64")

    def test_mismatched_draft_models_are_refused(self):
        other = self.folder / "other"
        self.ok(self.train(other, text=self.file("other.txt", "0123456789\n" * 500)))
        model = self.model(60)
        self.refused(fovea("generate", model, "--draft", other), 2, "--draft", "expected the model's vocabulary")
        self.refused(fovea("generate", model, "--draft", self.folder / "none"), 2, "none")
        self.refused(fovea("generate", model, "--draft", model, "--speculative-tokens", 3), 2, "--draft", "--speculative-tokens")
        self.refused(fovea("generate", model, "--draft", model, "--beams", 3), 2, "--draft", "--beams 1")
        self.refused(fovea("generate", model, "--draft-tokens", 3), 2, "--draft-tokens")

    def test_unknown_characters_are_named(self):
        result = self.write("-p", "The é fox 漢", "-n", "5")
        self.assertIn("é", result.stderr.decode())
        self.assertIn("漢", result.stderr.decode())
        self.assertNotIn("error", result.stderr.decode())

    def test_unusual_prompts_are_accepted(self):
        for prompt in ("", " ", "\n", "T", "The " * 2000, "\x1b[2J"):
            with self.subTest(prompt[:10]):
                self.write("-p", prompt, "-n", "3")
        self.write("-n", "3", input=b"")

    def test_a_prompt_that_is_not_text_is_refused(self):
        binary = self.file("binary", b"The \xff\xfe")
        self.refused(fovea("generate", self.model(60), "-f", binary), 2, f"{binary}:1:5: is not UTF-8")
        self.refused(fovea("generate", self.model(60), input=b"\xff"), 2, "standard input:1:1: is not UTF-8")
        self.refused(fovea("generate", self.model(60), "-p", b"a\xff".decode(errors="surrogateescape")), 2, "--prompt: not UTF-8 (byte 2)")

    def test_a_prompt_longer_than_the_context_is_announced(self):
        result = self.write("-p", "The " * 20, "-n", "4", "--json")  # 80 tokens for a context of 32
        self.assertIn("the prompt has 80 tokens, more than the model's context of 32: its beginning is dropped", result.stderr.decode())
        self.assertIn("prompt: 80 tokens (64 dropped)", result.stderr.decode())
        said = json.loads(result.stdout)
        self.assertEqual((said["prompt_tokens"], said["dropped_tokens"]), (80, 64))
        last = self.said("-p", ("The " * 20)[-16:], "-n", "4", "--seed", "5")
        self.assertEqual(self.said("-p", "The " * 20, "-n", "4", "--seed", "5"), last)
        self.assertNotIn("dropped", self.write("-p", "The ", "-n", "4").stderr.decode())

    def test_an_argument_after_the_model_is_explained(self):
        self.refused(fovea("generate", "model", "Once", "upon"), 2, '"upon": unexpected argument; expected quotes around a prompt of several words')
        self.refused(fovea("generate", "model", "Once", "-p", "upon"), 2, "TEXT, --prompt, --file, --ids: cannot be combined")

    def test_samplers_of_other_programs(self):
        usual = self.said("-p", "The ", "-n", "40", "--seed", "3")
        default = "top_k;top_n_sigma;temperature;top_p;typical_p;min_p;xtc"
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--seed", "3", "--samplers", default), usual)
        greedy = self.said("-p", "The ", "-n", "40", "--greedy")
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--samplers", "top_k", "--top-k", "1"), greedy)
        for options in (["--xtc-probability", "1", "--xtc-threshold", "0.05"], ["--mirostat", "2", "--mirostat-ent", "3", "--mirostat-lr", "0.2"]):
            with self.subTest(options[0]):
                self.assertNotEqual(self.said("-p", "The ", "-n", "40", "--seed", "3", *options), usual)
                self.assertEqual(self.said("-p", "The ", "-n", "40", "--seed", "3", *options, "--speculative-tokens", "4"), self.said("-p", "The ", "-n", "40", "--seed", "3", *options, "--speculative-tokens", "0"))
        prompt = "The fox sees the light. " * 4
        repeated = self.said("-p", prompt, "-n", "24", "--greedy")
        self.assertNotEqual(self.said("-p", prompt, "-n", "24", "--greedy", "--dry-multiplier", "20", "--dry-base", "3"), repeated)
        for option, value, wrong in (("--samplers", "top_k;top_q", '"top_q" is unknown'), ("--samplers", "xtc;xtc", "xtc is repeated"), ("--mirostat", "1", "expected 0, or 2"),
                                     ("--dry-sequence-breaker", "", "is empty")):
            self.refused(fovea("generate", self.model(60), "-p", "The ", "--dry-multiplier", "1", option, value), 2, option, wrong)

    def test_the_likeliest_tokens_are_completed(self):
        whole = json.loads(self.said("-p", "The ", "-n", "12", "--greedy", "--logprobs", "3", "--json"))
        found = json.loads(self.said("-p", "The ", "-n", "12", "--greedy", "--alternatives", "3", "--at", "4", "--json"))
        self.assertEqual([each["id"] for each in found["alternatives"]], [id for id, _ in whole["logprobs"][3]["top"]])
        for each in found["alternatives"]:
            self.assertEqual(each["ids"][:3], whole["ids"][:3])
            self.assertEqual((each["ids"][3], len(each["ids"])), (each["id"], 12))
        self.assertEqual(found["alternatives"][0]["ids"], whole["ids"])  # greedy: the likeliest token
        text = self.said("-p", "The ", "-n", "12", "--greedy", "--alternatives", "3", "--at", "4")
        self.assertEqual(text.count("%"), 3)
        early = ("-p", "The ", "--greedy", "--stop", whole["text"][2], "--alternatives", "2", "--at", "9")  # the text ends before token 9
        self.refused(fovea("generate", self.model(60), *early), 2, "--at: 9; expected at most")
        self.refused(fovea("generate", self.model(60), "--at", "2"), 2, "--at: requires --alternatives")
        self.refused(fovea("generate", self.model(60), "-p", "a", "--alternatives", "2", "--beams", "2"), 2, "--alternatives: cannot be combined")

    def test_a_prompt_cache_does_not_change_the_text(self):
        model, other = self.folder / "long", self.folder / "other"
        for out, seed in ((model, 7), (other, 8)):
            self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32, "--batch", 1, "--context", 512,
                          "--length", 64, "--steps", 2, "--sample-every", 0, "--evaluate-windows", 1, "--seed", seed))
        text, path = self.text.read_text(), self.folder / "prompt.cache"

        def run(prompt, *options):
            return json.loads(self.ok(fovea("generate", model, "-p", prompt, "-n", 20, "--seed", 3, "--json", *options)).stdout)

        for dtype in ("fp32", "bf16"):
            path.unlink(missing_ok=True)
            cached = ("--prompt-cache", path, "--dtype", dtype)
            alone = run(text[:300], "--dtype", dtype)
            first = run(text[:300], *cached)
            again = run(text[:300], *cached)
            self.assertEqual((first["ids"], again["ids"]), (alone["ids"], alone["ids"]))
            self.assertEqual((first.get("cached_tokens"), again["cached_tokens"]), (None, 256))
            longer = run(text[:400], *cached)
            self.assertEqual((longer["cached_tokens"], longer["ids"]), (256, run(text[:400], "--dtype", dtype)["ids"]))
            self.assertEqual(run(text[:400], *cached)["cached_tokens"], 384)
            changed = run(text[:100] + "X" + text[101:300], *cached)
            self.assertEqual((changed["cached_tokens"], changed["ids"]), (64, run(text[:100] + "X" + text[101:300], "--dtype", dtype)["ids"]))
        refused = lambda model, *mentions: self.refused(fovea("generate", model, "-p", text[:300], "--dtype", "bf16", "--prompt-cache", path), 2, *mentions)
        refused(other, "prompt.cache: keys and values of another model")
        whole = path.read_bytes()
        for content, wrong in ((whole[:-5], "prompt.cache"), (b"", "prompt.cache"), ((model / "model.safetensors").read_bytes(), "not the keys and values of a prompt")):
            path.write_bytes(content)
            refused(model, wrong)
        # Regression: a file without the first pages made the program read page -1.
        size = struct.unpack_from("<Q", whole)[0]
        header = json.loads(whole[8:8 + size])
        present = [(8 + size + begin, 8 + size + end) for key, value in header.items() if key.startswith("present.") for begin, end in [value["data_offsets"]]]
        for number in (0, 2, -1):
            damaged = bytearray(whole)
            for begin, end in present:
                damaged[begin:end] = struct.pack("<i", number) * ((end - begin) // 4)
            path.write_bytes(damaged)
            refused(model, "prompt.cache: group 0 is damaged")

    def test_banned_texts_are_never_generated(self):
        usual = self.said("-p", "The ", "-n", "80", "--seed", "3")
        word = next(word for word in usual.split() if len(word) > 2)
        for options in ([], ["--beams", "3"], ["--speculative-tokens", "4"]):
            self.assertNotIn(word, self.said("-p", "The ", "-n", "80", "--seed", "3", "--ban", word, "--ban", "~~", *options), word)
        self.assertEqual(self.said("-p", "The ", "-n", "80", "--seed", "3", "--ban", "never written~"), usual)
        self.refused(fovea("generate", self.model(60), "-p", "The ", "--ban", ""), 2, "--ban")

    def ended(self):
        """Returns a model whose byte-level tokenizer has an end-of-text token, which grammars need."""
        out = self.folder / "ended"
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, self.text, "--out", self.folder / "tokenizer"))
        self.ok(self.train(out, "--tokenizer", self.folder / "tokenizer", steps=4))
        return out

    def test_grammars_restrict_the_text(self):
        model = self.ended()

        def one(*options):
            return self.ok(fovea("generate", model, "-p", "The ", "-n", "60", "--seed", "3", "--temperature", "2", *options)).stdout.decode().rstrip("\n")

        self.assertRegex(one("--regex", r"[a-z]{3} (of|the) [A-Z]\w+\."), r"^[a-z]{3} (of|the) [A-Z]\w+\.$")
        self.assertIn(one("--choice", "fox", "--choice", "the eye"), ("fox", "the eye"))
        grammar = self.file("words.gbnf", 'root ::= word (" " word){2} "." # three words\nword ::= [a-z]+\n')
        self.assertRegex(one("--grammar-file", grammar), r"^[a-z]+ [a-z]+ [a-z]+\.$")
        self.assertEqual(one("--grammar-file", grammar), one("--grammar", grammar.read_text()))
        self.assertIn(one("--json-schema", '{"type": "boolean"}'), ("true", "false"))
        self.refused(fovea("generate", model, "-p", "a", "--grammar-file", self.file("bad.gbnf", "root ::= x")), 2, "bad.gbnf: rule x is missing")
        self.refused(fovea("generate", model, "-p", "a", "--regex", "(a"), 2, "--regex: the end (line 1, character 3)")
        self.refused(fovea("generate", self.model(60), "-p", "a", "--regex", "a", "--choice", "b"), 2, "--regex: cannot be combined with --choice")
        self.refused(fovea("generate", self.model(60), "-p", "a", "--regex", "a"), 2, "--regex: the model has no end-of-text token")

    def test_the_speed_is_reported(self):
        self.assertRegex(self.write("-p", "The ", "-n", "5").stderr.decode(), r"prompt: 4 tokens, .* generation: 5 tokens, .*/s")

    def test_invalid_requests_are_refused(self):
        self.refused(fovea("generate", self.model(60), "-f", self.folder / "none"), 2, "none")
        self.refused(fovea("generate", self.model(60), "-p", "a", "-f", self.text), 2, "--file")
        self.refused(fovea("generate", self.model(60), "--stop", ""), 2, "--stop")


class Beams(FoveaTest):
    def test_required_texts_and_groups(self):
        model = self.model()
        for texts in (["fox sees"], ["never", "light"]):
            words = [word for text in texts for word in ("--must", text)]
            found = json.loads(self.ok(fovea("generate", model, "-p", "The eye", "-n", "24", "--beams", "4", "--generations", "3", *words,
                                             "--json")).stdout)
            for answer in found["generations"]:
                for text in texts:
                    self.assertIn(text, answer["text"])
        self.refused(fovea("generate", model, "-p", "The", "--must", "fox"), 2, "--must", "--beams")
        groups = json.loads(self.ok(fovea("generate", model, "-p", "The eye", "-n", "12", "--beams", "4", "--beam-groups", "4",
                                          "--diversity-penalty", "5", "--generations", "4", "--json")).stdout)["generations"]
        self.assertEqual(len({answer["text"][:1] for answer in groups}), 4)
        self.refused(fovea("generate", model, "-p", "The", "--beams", "4", "--beam-groups", "3"), 2, "--beam-groups: 3; expected a divisor")


if __name__ == "__main__":
    unittest.main()
