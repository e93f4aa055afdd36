"""Invalid options are refused with their names and the expected values. The tests are generated from the program's option tables."""
import json
import os
import time
import unittest

from support import FOVEA, FoveaTest, fovea

TABLES = json.loads(fovea("--list-options").stdout) if os.path.exists(FOVEA) else {}
WRONG = {"integer": ["", "abc", "1x", "1.5", "1e400", "nan", "inf", "0x10", " 1", "1,000", str(2**63), str(-2**63 - 1)],
         "number": ["", "abc", "1x", "1e400", "-1e400", "nan", "inf", "-inf", "0,5", " 1", "1e3000000000"],
         "bytes": ["", "abc", "1x", "-1", "nan", "1.5G", "1KX", str(2**64), "9999999999T"],
         "boolean": ["", "maybe", "2"],
         "choice": ["", "no such name"]}


def options(*kinds):
    """Yields each option of these kinds with its verb. Model options are yielded once, since all verbs and the encoder share
    their code, and so are the options of train and distil."""
    seen = set()
    for verb, table in TABLES.items():
        for option in table:
            if option["kind"] not in kinds or option["name"].startswith("--encoder-"):
                continue
            if verb == "distil" and option in TABLES["train"]:
                continue
            if option["of_spec"]:
                if option["name"] in seen:
                    continue
                seen.add(option["name"])
            yield verb, option


def positionals(verb):
    """Returns enough positional arguments for a command in which only the option is wrong."""
    return {"train": ["text", "--out", "out"], "distil": ["teacher", "tiny", "text", "--out", "out"], "eval": ["model", "text"], "generate": ["model"], "trace": ["model"], "convert": ["model", "out"], "search": ["index", "query"], "plan": ["gpt2"], "tokenize": ["model"], "serve": ["model"]}.get(verb, [])


class Values(FoveaTest):
    def check(self, verb, option, value):
        with self.subTest(verb=verb, option=option["name"], value=value):
            # Both spellings are tested once. One verb is enough for model options, since all verbs share their table.
            spellings = [[option["name"], value], [f"{option['name']}={value}"]]
            if option["implied"]:  # a word that follows it may be another argument
                spellings = spellings[1:]
            for arguments in spellings if value in ("", "abc") else spellings[:1]:
                result = fovea(verb, *positionals(verb), *arguments)
                self.refused(result, 2, f"{option['name']}: \"{value}\"", "; expected " + expectation(option))

    def test_every_option_refuses_values_of_the_wrong_kind(self):
        # One function reads all values of a kind: the first option of each kind and verb gets all of them, the others some.
        self.assertTrue(TABLES)
        first = set()
        for verb, option in options(*WRONG):
            values = WRONG[option["kind"]]
            if (verb, option["kind"]) in first:
                values = values[:3]
            first.add((verb, option["kind"]))
            for value in values:
                self.check(verb, option, value)

    def test_every_number_is_checked_against_its_range(self):
        for verb, option in options("integer", "number"):
            least, _, most = option["expected"].partition(" to ")
            if most:
                beyond = int(most) + 1 if option["kind"] == "integer" else float(most) * 1.01 + 1
                self.check(verb, option, str(beyond))
                below = int(least) - 1 if option["kind"] == "integer" else float(least) - 1
                self.check(verb, option, str(below))
            else:
                self.check(verb, option, str(int(least.split()[0]) - 1))

    def test_every_default_is_within_its_range(self):
        # Regression: the help of plan printed "1 to 16777216; default 0" for the fields of the model.
        for verb, table in TABLES.items():
            for option in table:
                least, _, most = option["expected"].partition(" to ")
                if option["kind"] not in ("integer", "number") or not option["default"] or not most:
                    continue
                with self.subTest(verb=verb, option=option["name"]):
                    self.assertTrue(float(least) <= float(option["default"]) <= float(most), option)

    def test_every_option_reports_a_missing_value(self):
        for verb, option in options("integer", "number", "bytes", "boolean", "choice", "text", "list"):
            with self.subTest(verb=verb, option=option["name"]):
                if not option["implied"]:
                    self.refused(fovea(verb, option["name"]), 2, option["name"], "missing")

    def test_every_alias_is_accepted_with_dashes_and_underscores(self):
        for verb, option in options("integer", "number"):
            for alias in option["aliases"] + [option["name"].replace("-", "_").replace("__", "--", 1)]:
                with self.subTest(verb=verb, alias=alias):
                    arguments = [f"{alias}=abc"] if option["implied"] else [alias, "abc"]
                    self.refused(fovea(verb, *positionals(verb), *arguments), 2, f"{option['name']}: \"abc\"")


def expectation(option):
    return "one of " + option["expected"] if option["kind"] == "choice" else option["expected"]


class Names(FoveaTest):
    def test_a_misspelled_option_is_corrected(self):
        for verb, table in TABLES.items():
            for option in table:
                name = option["name"]
                if not name.startswith("--") or len(name) < 7 or (option["of_spec"] and verb != "train"):
                    continue
                with self.subTest(verb=verb, option=name):
                    slip = name[:-2] + name[-1] + name[-2] if name[-1] != name[-2] else name[:-1] + "x"
                    self.refused(fovea(verb, slip, "1"), 2, f"{slip}: unknown option; did you mean --")

    def test_an_unknown_option_is_refused(self):
        self.refused(fovea("train", "--lernrate", "1"), 2, "--lernrate: unknown option; did you mean --learning-rate?")
        self.refused(fovea("train", "--xyzzyxyzzy", "1"), 2, "--xyzzyxyzzy: unknown option; see --help")
        self.refused(fovea("--versin"), 2, "--versin: unknown option; did you mean --version?")

    def test_options_of_other_programs_are_explained(self):
        for arguments, sentence in [(["train", "--resume"], "resumes by itself"), (["train", "--wandb", "true"], "log.jsonl"),
                                    (["generate", "m", "-ngl", "99"], "--device"), (["serve", "m", "--n_gpu_layers=9"], "--device"),
                                    (["generate", "m", "--jinja"], "templates"), (["train", "--fp16"], "--dtype bf16"),
                                    (["serve", "m", "-c", "4096"], "context"), (["serve", "m", "-np", "4"], "--parallel"),
                                    (["train", "--device-map", "auto"], "--device"), (["chat", "m", "-fa"], "tiles")]:
            result = fovea(*arguments)
            self.refused(result, 2, ": unknown option; ", sentence)
            self.assertNotIn(b"did you mean", result.stderr)

    def test_short_options_are_not_joined(self):
        self.refused(fovea("generate", "m", "-n5"), 2, "-n5: unknown option; expected a space after -n, which is --predict")
        self.refused(fovea("generate", "m", "-n=5"), 2, "-n=5: unknown option; expected a space after -n")
        self.refused(fovea("generate", "m", "-px"), 2, "-px: unknown option; expected a space after -p, which is --prompt")
        self.refused(fovea("generate", "m", "-xyz"), 2, "-xyz: unknown option; see --help")
        self.refused(fovea("generate", "m", "-hn"), 2, "-hn: unknown option; see --help")
        self.refused(fovea("generate", "m", "-p", "-n5"), 2, "m: ")  # -n5 is the prompt

    def test_errors_of_the_library_name_the_option(self):
        # The library's errors name fields, such as data or best; the program names the options instead.
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--pairs", "a"), 2, "DATA: several kinds of data; expected only one of DATA, --pairs, --labels and --images")
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--best-by", "f1"), 2, "--best-by: f1 is not measured")
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--validation-labels", "a"), 2, "--validation-labels: has no effect in this run; expected --labels")
        self.refused(fovea("train", self.text, "--out", self.folder / "out", "--heads", "3"), 2, "expected a divisor, or --head-width")
        self.refused(fovea("plan", "gpt2", "--length", "2000"), 2, "--length: 2000 tokens; expected 1 to 1024")
        self.refused(fovea("tokenize", "--train", "bpe", "--vocab-size", "3", "--out", self.folder / "out", self.text), 2, "--vocab-size: is 3; expected")
        self.refused(fovea("convert", "model", self.folder / "out", "--group", "48"), 2, "--group: 48; expected 32, 64 or, with int8, 0")
        self.refused(fovea("bench", "--train", "bert-base"), 2, "--train: bert-base is neither a decoder nor an encoder of images; expected")
        self.refused(fovea("bench", self.model(), "--prompt", "1000"), 2, "--prompt: 1000; expected 1 to 32, the model's context")
        self.refused(fovea("inspect", self.model(), "The fox", "--layer", "2"), 2, "--layer: 2; expected 0 to 1")
        self.refused(fovea("inspect", self.model(), "The fox", "--head", "9", "--out", self.folder / "map.html"), 2, "--head: 9; expected 0 to 1")
        self.refused(fovea("inspect", self.model(), "The fox", "--look", "cross", "--out", self.folder / "map.html"), 2, "--look: encoder and cross need")
        self.refused(fovea("trace", self.model(), "--ids", "1,-2", "--out", self.folder / "out"), 2, "--ids: \"-2\" is out of range; expected 0 to")

    def test_options_that_exclude_each_other_are_refused(self):
        for option in (["--pairs", self.text], ["--labels", self.text], ["--one-by-one"]):
            self.refused(fovea("eval", "model", self.text, "--against", "other", *option), 2, f"--against: cannot be combined with {option[0]}; expected")

    def test_options_of_translation_require_pairs(self):
        for option in (["--beams", "2"], ["--source-prefix", "x: "], ["--task", "translation_en_to_de"]):
            for data in ([self.text], ["--labels", self.text], ["--hypotheses", self.text, "--references", self.text]):
                self.refused(fovea("eval", *(["model"] if data[0] != "--hypotheses" else []), *data, *option), 2, f"{option[0]}: requires --pairs")

    def test_an_unknown_verb_is_refused(self):
        self.refused(fovea("trian"), 2, "trian: unknown verb; did you mean train?")
        self.refused(fovea("genrate"), 2, "did you mean generate?")
        self.refused(fovea("xyzzyxyzzy"), 2, "see fovea --help")

    def test_an_extra_argument_is_refused(self):
        self.refused(fovea("generate", "model", "a prompt", "again"), 2, '"again"')

    def test_options_that_a_spec_replaces_still_apply_for_a_version(self):
        """Rare fields of a Spec are keys of its JSON file; their old options are hidden, apply, and name the key."""
        old = self.ok(fovea("train", self.text, "--preset", "tiny", "--norm", "dyt", "--norm-alpha", 0.25, "--dump-config"))
        self.assertIn("warning: --norm-alpha: the next version has no such option; write decoder.norm.alpha", old.stderr.decode())
        self.assertEqual(json.loads(old.stdout)["decoder"]["norm"]["alpha"], 0.25)
        spec = self.file("spec.json", json.dumps({"decoder": {"norm": {"kind": "dyt", "alpha": 0.25}}}))
        new = self.ok(fovea("train", self.text, "--preset", "tiny", "--config", spec, "--dump-config"))
        self.assertEqual(new.stderr, b"")
        self.assertEqual(json.loads(new.stdout), json.loads(old.stdout))
        for listed in (self.ok(fovea("train", "--help-all")).stdout, self.ok(fovea("--man", "train")).stdout):
            self.assertNotIn(b"norm-alpha", listed)

    def test_no_two_options_share_a_name(self):
        for verb, table in TABLES.items():
            names = [name for option in table for name in [option["name"], *option["aliases"]]]
            self.assertEqual(len(names), len(set(names)), verb)


class Help(FoveaTest):
    def test_help_of_every_verb_names_every_option(self):
        for verb, table in TABLES.items():
            before = time.monotonic()
            result = self.ok(fovea(verb, "--help-all"))
            print(f"fovea {verb} --help-all: {1e3 * (time.monotonic() - before):.0f} ms")
            for option in table:
                self.assertIn(option["name"], result.stdout.decode())

    def test_short_help_of_every_verb_fits_a_screen(self):
        for verb in TABLES:
            text = self.ok(fovea(verb, "--help", env={"COLUMNS": "100"})).stdout.decode()
            self.assertLess(len(text.splitlines()), 50, verb)
            self.assertNotRegex(text, r"\d\.\d{7}", verb)

    def test_the_help_names_what_applies_without_a_value(self):
        text = " ".join(self.ok(fovea("plan", "--help-all")).stdout.decode().split())
        self.assertIn("maximum tokens in one sequence (1 to 16777216; default: the model's;", text)
        text = " ".join(self.ok(fovea("train", "--help-all")).stdout.decode().split())
        self.assertIn("--encoder-layers N number of layers; 0 = embeddings only (0 to 4096; default: the model's)", text)

    def test_the_help_of_a_section_lists_its_options_only(self):
        text = self.ok(fovea("help", "train", "model")).stdout.decode()
        self.assertIn("--rope-theta", text)
        self.assertNotIn("--learning-rate", text)
        self.assertEqual(self.ok(fovea("train", "--help", "model")).stdout.decode(), text)
        self.assertEqual(self.ok(fovea("help", "eval")).stdout, self.ok(fovea("eval", "--help")).stdout)
        self.refused(fovea("help", "trian"), 2, "trian: unknown verb; did you mean train?")

    def test_help_fits_the_width_of_the_terminal(self):
        for columns in (60, 80, 120):
            for line in self.ok(fovea("eval", "--help", env={"COLUMNS": str(columns)})).stdout.decode().splitlines():
                self.assertLessEqual(len(line), columns)

    def test_the_help_lists_the_verbs_in_groups(self):
        first_steps, groups = self.ok(fovea("--help")).stdout.decode().split("Train:")
        self.assertIn("fovea learn  ", first_steps)
        self.assertIn("\n  generate   generate text with a model\n", groups)

    def test_a_missing_verb_prints_a_greeting_on_standard_error(self):
        result = fovea(env={"HF_HOME": str(self.folder)})
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        greeting = result.stderr.decode()
        self.assertRegex(greeting, r"threads.*free memory,\n.*billion parameters")
        self.assertIn("fovea chat hf:", greeting)
        self.assertNotIn("Models on this disk", greeting)

    def test_the_version_is_printed(self):
        self.assertRegex(self.ok(fovea("--version")).stdout.decode(), r"^fovea \d+\.\d+\.\d+.*\n")

    def test_missing_arguments_are_reported(self):
        self.refused(fovea("train"), 2, "DATA")
        self.refused(fovea("train", self.text), 2, "--out")
        for verb in ("generate", "eval", "trace"):
            self.refused(fovea(verb), 2, "MODEL")


if __name__ == "__main__":
    unittest.main()
