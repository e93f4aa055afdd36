"""Options that were accepted and had no effect, or ended the program."""
import json
import unittest

from support import ROOT, FoveaTest, fovea

GOLDENS = ROOT / "tests/goldens"
LLAMA, MASKS, TEXTS = GOLDENS / "fine_tuning/model", GOLDENS / "classifiers/masks", GOLDENS / "classifiers/texts"
DROPOUTS = ["--dropout", "--embedding-dropout", "--attention-dropout", "--residual-dropout"]


class Options(FoveaTest):
    def tune(self, model, out, *options):
        self.ok(fovea("train", self.text, "--from", model, "--out", self.folder / out, "--steps", 2, "--batch", 2, "--dtype", "fp32", "--sample-tokens", 0,
                      "--validation", 0, *options))
        return (self.folder / out / "model.safetensors").read_bytes()

    def test_dropout_applies_to_the_training_of_a_model(self):
        """With --from, the options of dropout gave the bits of the run without them. They now replace the dropout of the model
        in this run; its files keep their own."""
        for model in (LLAMA, MASKS):
            results = [self.tune(model, "plain")] + [self.tune(model, option, option, "0.9") for option in DROPOUTS]
            self.assertEqual(len(set(results)), 5, model)
            for option in DROPOUTS:
                self.assertEqual(*(json.loads((self.folder / out / "config.json").read_text()) for out in ("plain", option)))
            for out in ("plain", *DROPOUTS):
                (self.folder / out).rename(self.folder / f"{out} of {model.name} {model.parent.name}")

    def test_a_resumed_run_keeps_its_dropout(self):
        """The dropout of a run is one of its settings: another one is refused, and the same one gives the same bits."""
        whole = self.tune(LLAMA, "whole", "--dropout", "0.5", "--steps", 6)
        self.tune(LLAMA, "part", "--dropout", "0.5", "--steps", 6, "--save-every", 3)
        command = ["train", self.text, "--from", LLAMA, "--out", self.folder / "part", "--steps", 6, "--batch", 2, "--dtype", "fp32", "--sample-tokens", 0,
                   "--validation", 0, "--save-every", 3]
        self.refused(fovea(*command), 2, "spec.dropout.attention was 0.5 and is 0")
        for path in sorted((self.folder / "part/checkpoint-6").iterdir()):
            path.unlink()
        (self.folder / "part/checkpoint-6").rmdir()
        self.ok(fovea(*command, "--dropout", "0.5"))
        self.assertEqual((self.folder / "part/model.safetensors").read_bytes(), whole)

    def test_a_flag_that_is_on_is_turned_off(self):
        """The manual told --nesterov false, which was "false: is missing": only --nesterov=false was read."""
        sgd = ["--preset", "tiny", "--layers", 1, "--heads", 2, "--width", 16, "--context", 16, "--optimizer", "sgd", "--steps", 2, "--batch", 2,
               "--sample-tokens", 0, "--dtype", "fp32"]
        weights = []
        for i, spelling in enumerate((["--nesterov", "false"], ["--nesterov=false"], ["--nesterov", "off"], ["--nesterov"], ["--nesterov", "true"], [])):
            for words in ([*spelling, self.text], [self.text, *spelling]):  # a file after a flag is no value
                out = self.folder / f"{i} {len(weights)}"
                self.ok(fovea("train", *words, *sgd, "--out", out))
                weights.append((out / "model.safetensors").read_bytes())
        self.assertEqual(len(set(weights[:6])), 1)
        self.assertEqual(len(set(weights[6:])), 1)
        self.assertNotEqual(weights[0], weights[6])
        self.assertIn("on by default; --nesterov false turns it off", " ".join(fovea("train", "--help-all").stdout.decode().split()))

    def test_a_beam_search_may_have_fewer_hypotheses_than_beams(self):
        """A beam search with --choice, --regex or a grammar that allows fewer texts than there are beams read a hypothesis that
        no longer existed."""
        for beams in (2, 4):
            for rule in (["--choice", "cat"], ["--choice", "cat", "--choice", "dog"], ["--regex", "a|b"], ["--grammar", 'root ::= "ab" | "c"']):
                for groups in (1, 2):
                    result = self.ok(fovea("generate", LLAMA, "-p", "the cat sat on the", "-n", 12, "--beams", beams, "--beam-groups", groups, *rule))
                    self.assertIn(result.stdout.decode().strip(), ("cat", "dog", "a", "b", "ab", "c"))

    def test_options_without_an_effect_are_refused(self):
        """These options were accepted and ignored."""
        short = ["-p", "the cat", "-n", 2]
        for command, option, needed in (
                (["generate", LLAMA, *short, "--greedy"], ["--top-k", 3], "--temperature above 0"),
                (["generate", LLAMA, *short, "--beams", 2], ["--top-p", "0.5"], "--beams 1"),
                (["generate", LLAMA, *short, "--beams", 2], ["--temperature", 2], "--beams 1"),
                (["generate", LLAMA, *short], ["--length-penalty", 2], "--beams above 1"),
                (["generate", LLAMA, *short], ["--mirostat-tau", 2], "--mirostat 2"),
                (["generate", LLAMA, *short, "--mirostat", 2], ["--min-p", "0.5"], "--mirostat 0"),
                (["generate", LLAMA, *short, "--samplers", "top_k"], ["--min-p", "0.5"], "its filter in --samplers"),
                (["generate", LLAMA, *short], ["--dry-base", 2], "--dry-multiplier above 0"),
                (["generate", LLAMA, *short], ["--xtc-threshold", "0.5"], "--xtc-probability above 0"),
                (["generate", LLAMA, *short], ["--logprobs", 2], "--json"),
                (["eval", LLAMA, self.text], ["--cache-dtype", "int8"], "--pairs or recordings"),
                (["train", self.text, "--from", LLAMA, "--out", "x"], ["--tokenizer", "char"], "a new model that reads texts"),
                (["train", self.text, "--from", LLAMA, "--out", "x"], ["--mask", "0.5"], "--objective masked, replaced_tokens or spans"),
                (["train", self.text, "--from", LLAMA, "--out", "x", "--schedule", "constant"], ["--final-rate", "0.5"], "--schedule cosine, linear or trapezoid"),
                (["train", self.text, "--from", LLAMA, "--out", "x", "--optimizer", "sgd"], ["--beta1", "0.5"], "--optimizer adamw, lion or muon"),
                (["train", "--labels", self.text, "--from", MASKS, "--out", "x"], ["--bleu-lines", 5], "--pairs, or recordings")):
            self.refused(fovea(*command, *option), 2, f"{option[0]}: has no effect in this run; expected {needed}")
        for command, option in ((["eval", LLAMA, "--score", "the cat"], ["--limit", 1]), (["eval", LLAMA, self.text, "--against", LLAMA], ["--train-on", "last"]),
                                (["eval", "--hypotheses", self.text, "--references", self.text], ["--limit", 1])):
            self.refused(fovea(*command, *option), 2, f": cannot be combined with {option[0]}; expected one of them")
        self.refused(fovea("embed", GOLDENS / "sentence_model", self.text, "--normalize", "false"), 2, "--normalize: false, but the model itself normalises")
        self.refused(fovea("classify", TEXTS, self.text, "--window", 24), 2, "--window: ", "answers questions or labels words")
        self.refused(fovea("train", self.text, "--out", "x", "--rope-theta", 100), 2,
                     "--rope-theta: has no effect: the model does not use decoder.position.rotary.theta")
        self.refused(fovea("plan", "gpt2", "--expert-width", 100), 2, "--expert-width: has no effect")


if __name__ == "__main__":
    unittest.main()
