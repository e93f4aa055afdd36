"""Sentences of the page and of the lessons agree with the results of the laboratory on which they rest, and with the model of the course."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import FOVEA, ROOT, fovea, tensors


class Result:
    """A result of lab/results: means by series and place, and verdicts by a part of the claim."""

    def __init__(self, name):
        self.found = json.loads((ROOT / f"lab/results/{name}.json").read_text(encoding="utf-8"))
        self.points = {(point["series"], point["x"]): point for point in self.found["points"]}

    def mean(self, series, x):
        return self.points[series, x]["mean"]

    def verdict(self, claim=""):
        verdict, = {each["verdict"] for each in self.found["conclusions"] if claim in each["claim"]}
        return verdict

    def overlap_or_less(self, series, other):
        """Whether the first series is nowhere clearly above the other."""
        return all(point["low"] <= self.points[other, x]["high"] for (name, x), point in self.points.items() if name == series)


SPEED, OPERATIONS, LOOP, ORDER, LEAK, SATURATION = map(Result, ["speed", "operations", "head-loop", "no-positions", "leaking-mask", "saturation"])
RESIDUALS, NORM, NEURONS, INDUCTION, VARIANCE = map(Result, ["residuals", "norm", "neurons", "induction", "score-variance"])
COURSE, WEB = ROOT / "docs/course", ROOT / "apps/web"


def loop_times():
    return sorted(LOOP.mean("loop", x) / LOOP.mean("batched", x) for x in (2, 4, 12))


def fewer(cell, n):
    return OPERATIONS.mean("attention: mixer", n) < OPERATIONS.mean(f"{cell}: mixer", n)


# The file, a sentence with places for numbers, the numbers, and what must be true besides.
SENTENCES = [
    ("01-recurrence.md", "takes an LSTM {:.2f} times as long as attention, and a simple recurrence {:.2f} times",
     [SPEED.mean(cell, 256) / SPEED.mean("attention", 256) for cell in ("lstm", "rnn")], True),
    ("01-recurrence.md", "fewer operations than a GRU below n = 2d and than an LSTM below n = 4d, and never fewer than a simple recurrence", [],
     fewer("gru", 64) and not fewer("gru", 128) and fewer("lstm", 128) and not fewer("lstm", 256) and not any(fewer("rnn", 2**i) for i in range(4, 12))),
    ("03-attention.md", "Without this step, scores grow with the width", [], VARIANCE.mean("unscaled", 256) > 50 * VARIANCE.mean("unscaled", 4)),
    ("05-heads.md", "the loop takes {:.2f} to {:.2f} times as long", [loop_times()[0], loop_times()[-1]], LOOP.verdict() != "held"),
    ("06-positions.md", "in {:.0%} of the texts, by chance, and with a causal mask in all of them", [ORDER.mean("none", 8)], ORDER.mean("none, causal", 8) == 1),
    ("07-masks.md", "on random tokens below 0.01 after 500 steps", [], LEAK.mean("leaking", 500) < 0.01 and LEAK.verdict() == "held"),
    ("08-sublayers.md", "one layer works without them, with a loss of {:.2f} instead of {:.2f}; four layers do not, with {:.2f} instead of {:.2f}",
     [RESIDUALS.mean(series, x) for x in (1, 4) for series in ("without", "with residuals")], True),
    ("08-sublayers.md", "finds no learning rate at which they help", [], NORM.overlap_or_less("no norm", "layer norm")),
    ("08-sublayers.md", "{:.0%} of 128 facts remain when the 64 neurons that matter most for each are switched off", [NEURONS.mean("the fact's neurons", 64)],
     NEURONS.verdict("store facts") == "did not hold"),
    ("10-training.md", "then one layer suffices, which attends to a fixed distance", [], INDUCTION.mean("1 layer: accuracy", 800) == 1),
    (WEB / "roles.js", "without a causal mask it gives the same result in any order", [], ORDER.mean("none", 8) < 0.6 < ORDER.mean("none, causal", 8)),
    (WEB / "roles.js", "little in small models: six layers train as well", [], NORM.overlap_or_less("no norm", "layer norm")),
    (WEB / "play_attention.js", "Without the divisor, wider heads give most of the weight to few words, and less of the gradient passes", [],
     SATURATION.verdict() != "held" and all(SATURATION.mean("unscaled", 4 * d) < SATURATION.mean("unscaled", d) for d in (4, 16, 64))),
    (WEB / "roles.js", "from four layers on it fails", [], all(RESIDUALS.mean("without", x) > RESIDUALS.mean("with residuals", x) + 0.5 for x in (4, 8))),
]
# Words that a verdict must support, wherever they stand.
RESERVED = [(r"diverge(?!nce)", lambda: NORM.verdict() == "held"), (r"(?:stores?|memory for) facts|knowledge is stored", lambda: NEURONS.verdict("store facts") == "held"),
            (r"gradient vanishes|softmax saturates", lambda: SATURATION.verdict() == "held"),
            (r"faster than (?:an LSTM|a recurrence|recurrence)", lambda: SPEED.verdict() == "held")]

VIEW = re.compile(r"^```view\n(\S.*)\n(.*)\n```$", re.MULTILINE)
CAPTION = re.compile(r"In head (\d+\.\d+), (the second )?“(\w+)” puts (\d\.\d\d) on “(\w+)”")


class Sentences(unittest.TestCase):
    def test_numbers_of_the_laboratory_are_right(self):
        for file, words, numbers, true in SENTENCES:
            with self.subTest(file=str(file), words=words):
                text = (COURSE / file).read_text(encoding="utf-8")
                self.assertIn(words.format(*numbers), re.sub(r"\s+", " ", text))
                self.assertTrue(true, "the laboratory refutes it")

    def test_words_need_a_verdict(self):
        for file in [*COURSE.glob("*.md"), *(ROOT / "apps/web").glob("*.js")]:
            for words, supported in RESERVED:
                with self.subTest(file=file.name, words=words):
                    self.assertTrue(supported() or not re.search(words, file.read_text(encoding="utf-8")))


class Captions(unittest.TestCase):
    """Views of two words: the caption names the head that links them most strongly, and its weight, as `fovea trace` computes it."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.model = pathlib.Path(cls.place.name) / "model"
        assert fovea("learn", "--out", cls.model).returncode == 0

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def strongest(self, text, query, key):
        """Returns the weight and the head of the strongest link between two words, each with its occurrence."""
        read = json.loads(fovea("tokenize", self.model, input=text.encode()).stdout)
        ends = [end for _, end in read["offsets"]]
        token = [ends.index([match.end() for match in re.finditer(rf"\b{word}\b", text)][nth]) for word, nth in (query, key)]
        out = pathlib.Path(self.place.name) / "weights.safetensors"
        done = fovea("trace", self.model, "--ids", ",".join(map(str, read["ids"])), "--what", "attention.*", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        links = []
        for name, ((_, heads, queries, keys), weights) in tensors(out).items():
            links += [(weights[(head * queries + token[0]) * keys + token[1]], f"{name.split('.')[1]}.{head}") for head in range(heads)]
        return max(links)

    def test_captions_of_two_words_agree_with_the_model(self):
        seen = 0
        for chapter in COURSE.glob("*.md"):
            for address, caption in VIEW.findall(chapter.read_text(encoding="utf-8")):
                parts = dict(part.split("=", 1) for part in address.split("&"))
                if "token" not in parts:
                    continue
                with self.subTest(chapter=chapter.name, address=address):
                    for key in ("token", "second", "position"):
                        self.assertNotRegex(parts.get(key, ""), r"^\d", "a token is given by its word: a tokenizer may cut words")
                    found = CAPTION.search(caption)
                    self.assertTrue(found, caption)
                    head, later, query, weight, key = found.groups()
                    self.assertEqual([parts["token"], parts["second"]], [f"{query}:2" if later else query, key])
                    value, best = self.strongest(parts["text"], (query, 1 if later else 0), (key, 0))
                    self.assertEqual([best, f"{value:.2f}"], [head, weight])
                    seen += 1
        self.assertGreaterEqual(seen, 2)

    def test_sizes_in_answers_are_those_of_the_model(self):
        config = json.loads((self.model / "config.json").read_text(encoding="utf-8"))
        width, heads = config["hidden_size"], config["num_attention_heads"]
        self.assertIn(f"answer: number {width}\n", (COURSE / "02-tokens.md").read_text(encoding="utf-8"))
        self.assertIn(f"answer: number {width // heads}\n", (COURSE / "09-stack.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
