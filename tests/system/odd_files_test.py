"""Every verb reads the same odd files by the same rules: the result is that of the clean file, or one error that names the place."""
import json
import unittest

from support import ROOT, FoveaTest, fovea

GOLDENS = ROOT / "tests/goldens"
EMBEDDER, CLASSIFIER, CROSS = GOLDENS / "sentence_model", GOLDENS / "classifiers/texts", GOLDENS / "cross_encoder"
DECODER, TRANSLATOR = GOLDENS / "fine_tuning/model", GOLDENS / "ctranslate2/translation_model"
SMALL = ["--batch", 2, "--context", 32, "--tokenizer", "char", "--dry-run", "--json"]
DECODES = ["--layers", 1, "--heads", 2, "--width", 16, *SMALL]

TEXTS = "the fox sees\nthe eye\na bird sleeps\n"
WIDE = 3 << 19  # more than a block of a reader


def records(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def chat(answer, question="the fox"):
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def preference(good, bad, prompt="the fox"):
    return {"prompt": prompt, "chosen": good, "rejected": bad}


class Case:
    """A command with a file (FILE), the kind of the file (lines, table, records, text, words), its content, and what is compared."""

    def __init__(self, name, content, *command, shows=None, **more):
        self.name, self.content, self.command, self.shows, self.more = name, content, command, shows, more
        self.ending = name.rsplit(".", 1)[-1]
        self.lines = "lines" in more  # a blank line is a text

    def run(self, path):
        return fovea(*(path if part == "FILE" else part for part in self.command), input=self.more.get("input", b""))

    def result(self, output):
        if self.shows is None:
            return output
        shown = json.loads(output)
        return {key: shown[key] for key in self.shows}


PLAN = ("objective", "training_sequences", "validation_sequences", "training_tokens", "vocabulary", "notes")
PAIRS = [("the fox", "der fuchs"), ("the eye", "das auge"), ("a bird", "ein vogel"), ("the night", "die nacht"), ("the day", "der tag")]
FILMS = [("a good film", "good"), ("a bad film", "bad"), ("very good", "good"), ("so bad", "bad")]
STS = [("a fox", "the fox", 4), ("an eye", "the day", 0), ("a bird", "the bird", 5)]


def table(rows, separator, *names):
    return "".join(separator.join(map(str, row)) + "\n" for row in ([names] if names else []) + list(rows))


CASES = [
    Case("text.txt", TEXTS * 40, "train", "FILE", *DECODES, shows=("objective", "vocabulary"), chars=True),
    Case("text.jsonl", records(*({"text": TEXTS * 20} for _ in range(3))), "train", "FILE", *DECODES, shows=PLAN),
    Case("pairs.tsv", table(PAIRS, "\t"), "train", "--pairs", "FILE", "--preset", "translate-tiny", *SMALL[2:], shows=PLAN),
    Case("pairs.csv", table(PAIRS, ",", "source", "target"), "train", "--pairs", "FILE", "--preset", "translate-tiny", *SMALL[2:], shows=PLAN),
    Case("labels.tsv", table(FILMS, "\t"), "train", "--labels", "FILE", *DECODES, shows=PLAN),
    Case("labels.csv", table(FILMS, ",", "text", "label"), "train", "--labels", "FILE", *DECODES, shows=PLAN),
    Case("labels.jsonl", records(*({"text": text, "label": label} for text, label in FILMS)), "train", "--labels", "FILE", *DECODES, shows=PLAN),
    Case("words.conll", "Anna B-PER\nlives O\n\nBob B-PER\nis O\n", "train", "--labels", "FILE", *DECODES, shows=PLAN),
    Case("chats.jsonl", records(chat("sees"), chat("sleeps"), chat("runs")), "train", "FILE", "--from", DECODER, "--dry-run", "--json", shows=PLAN),
    Case("preferences.jsonl", records(preference("sees", "runs"), preference("sleeps", "eats"), preference("is", "was")), "train", "FILE", "--from",
         DECODER, "--dry-run", "--json", shows=PLAN),
    Case("scored.csv", table(STS, ",", "sentence1", "sentence2", "score"), "embed", EMBEDDER, "--train", "FILE", "--dry-run", "--json", shows=PLAN),
    Case("examples.jsonl", records(*({"anchor": a, "positive": b} for a, b, _ in STS)), "embed", EMBEDDER, "--train", "FILE", "--dry-run", "--json",
         shows=PLAN),
    Case("similar.tsv", table(STS, "\t"), "embed", EMBEDDER, "--evaluate", "FILE", "--json"),
    Case("embed.txt", TEXTS, "embed", EMBEDDER, "FILE", lines=True),
    Case("embed.jsonl", records(*({"text": line} for line in TEXTS.splitlines())), "embed", EMBEDDER, "FILE", lines=True),
    Case("classify.txt", TEXTS, "classify", CLASSIFIER, "FILE", "--json", lines=True),
    Case("classify.jsonl", records(*({"text": line} for line in TEXTS.splitlines())), "classify", CLASSIFIER, "FILE", "--json", lines=True),
    Case("rerank.txt", TEXTS, "rerank", CROSS, "-q", "fox", "FILE", "--json", lines=True),
    Case("translate.txt", "the cat\nthe dog\n", "translate", TRANSLATOR, "FILE", "--beams", 1, lines=True),
    Case("terms.tsv", "cat\tdog\ntree\tdog\n", "translate", TRANSLATOR, "--terms", "FILE", "--beams", 2, input=b"the cat\n"),
    Case("tokenize.txt", TEXTS, "tokenize", EMBEDDER, "FILE", lines=True),
    Case("prompt.txt", "the fox\nsees", "generate", DECODER, "--file", "FILE", "-n", 2, "--temperature", 0, lines=True, chars=True),
    Case("tasks.jsonl", records({"context": "the fox", "choices": [" sees", " is"], "gold": 0}), "eval", DECODER, "--tasks", "FILE", "--json"),
    Case("evaluated.tsv", "", "eval", CLASSIFIER, "--labels", "FILE", "--json"),
    Case("squad.jsonl", "", "eval", GOLDENS / "classifiers/answers", "--labels", "FILE", "--json"),
]


def known_labels():
    labels = json.loads((CLASSIFIER / "config.json").read_text())["id2label"]
    return table([(text, labels[str(i % 2)]) for i, (text, _) in enumerate(FILMS)], "\t")


def questions():
    return records(*({"id": str(i), "title": "", "context": "the fox sees the bird", "question": "who sees?",
                      "answers": {"text": ["fox"], "answer_start": [4]}} for i in range(2)))


for case in CASES:
    case.content = {"evaluated.tsv": known_labels, "squad.jsonl": questions}.get(case.name, lambda: case.content)()


class OddFiles(FoveaTest):
    def same(self, case, clean, content):
        path = self.file(case.name, content)
        self.assertEqual(case.result(self.ok(case.run(path)).stdout), clean)

    def test_harmless_differences_do_not_change_the_result(self):
        for case in CASES:
            content = case.content.encode()
            clean = case.result(self.ok(case.run(self.file(case.name, content))).stdout)
            odd = {"mark": b"\xef\xbb\xbf" + content}
            if "chars" not in case.more:  # where the ends of lines are characters of the text
                odd["both"] = b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")
                odd["no end"] = content[:-1]
            if not case.lines and "chars" not in case.more and case.ending not in ("conll", "tsv", "csv"):
                odd["blank"] = content.replace(b"\n", b"\n\n")
            for name, changed in odd.items():
                with self.subTest(f"{case.name}, {name}"):
                    self.same(case, clean, changed)

    def test_what_is_no_text_is_refused_with_its_place(self):
        for case in CASES:
            content = case.content.encode()
            last = content.rstrip(b"\n").rfind(b"\n") + 1
            place = f"{case.name}:{content[:last].count(bytes([10])) + 1}:"
            for name, changed, mention in (("latin-1", content[:last + 2] + b"\xe9" + content[last + 2:], f"{place}3: is not UTF-8"),
                                           ("NUL", content[:last + 1] + b"\0" + content[last + 1:], f"{place}2: looks binary"),
                                           ("UTF-16", case.content.encode("utf-16"), f"{case.name}: is UTF-16")):
                with self.subTest(f"{case.name}, {name}"):
                    self.refused(case.run(self.file(case.name, changed)), 2, mention)

    def test_blank_lines_of_tables_are_skipped(self):
        for case in CASES:
            if case.ending not in ("tsv", "csv"):
                continue
            clean = case.result(self.ok(case.run(self.file(case.name, case.content))).stdout)
            found = case.result(self.ok(case.run(self.file(case.name, "\n" + case.content + "\n\n"))).stdout)
            for each in (clean, found):
                for key in ("notes",):
                    each.pop(key, None) if isinstance(each, dict) else None
            with self.subTest(case.name):
                self.assertEqual(found, clean)

    def test_large_and_pretty_first_records_are_recognised(self):
        wide = "the fox " * (WIDE // 8)
        for name, first, command, kind in (
                ("chats.jsonl", chat("sees", wide), ["train", "FILE", "--from", DECODER], "chats"),
                ("preferences.jsonl", preference("sees", "is", wide), ["train", "FILE", "--from", DECODER], "dpo"),
                ("examples.jsonl", {"anchor": wide, "positive": "fox"}, ["embed", EMBEDDER, "--train", "FILE"], "embedding")):
            rest = {"chats.jsonl": chat("sees"), "preferences.jsonl": preference("sees", "is"),
                    "examples.jsonl": {"anchor": "a", "positive": "b"}}[name]
            for form in (records(first, rest), json.dumps(rest, indent=2) + "\n" + json.dumps(rest, indent=4) + "\n",
                         "\ufeff" + json.dumps([rest, rest], indent=1)):
                with self.subTest(f"{name}, {form[:9]}"):
                    path = self.file(name, form)
                    plan = json.loads(self.ok(fovea(*(path if part == "FILE" else part for part in command), "--dry-run", "--json")).stdout)
                    self.assertEqual(plan["objective"], kind)
                    self.assertEqual(plan["training_sequences"] + plan["validation_sequences"] > 0, True)

    def test_quotes_and_separators_of_tables(self):
        """A TSV with a quote at the beginning of a line lost rows; a CSV of Excel has semicolons."""
        def plan(name, content, *command):
            return json.loads(self.ok(fovea(*command, self.file(name, content), "--dry-run", "--json")).stdout)
        embed = ["embed", EMBEDDER, "--train"]
        quotes = '"Second\tsecond text\nthird\tthird text\n"fourth\tfourth text\nfifth\tfifth text\nsixth\tsixth text\n'
        self.assertEqual(plan("quotes.tsv", quotes, *embed)["training_sequences"], 5)
        found = plan("excel.csv", '\ufeffSentence1;Sentence2;Score\r\n"a; b";"c\r\nd";5\r\ne;f;0\r\n', *embed)
        self.assertEqual(found["training_sequences"], 2)
        self.assertIn('"a; b" with "c?d", score 5', found["notes"][0])
        labels = [*DECODES[:-2], "--labels"]
        found = plan("films.csv", 'Label;Text\ngood;"a; b"\nbad;c\ngood;d\nbad;e\n', "train", *labels)
        self.assertIn('is "a; b": good', found["notes"][0])
        self.assertEqual(found["notes"][1], "labels: bad 2, good 2")
        self.refused(fovea("train", "--labels", self.file("open.csv", 'text,label\na,b\n"c,d\n'), *DECODES), 2, "open.csv:3: has a quote that does not end")

    def test_translate_writes_blank_lines_for_white_space(self):
        """A line of spaces got an invented translation."""
        lines = "the cat\n\n \n\t\n\u00a0 \nthe dog\n"
        found = self.ok(fovea("translate", TRANSLATOR, "--beams", 1, input=lines.encode())).stdout.decode().splitlines()
        self.assertEqual(found[1:5], [""] * 4)
        self.assertTrue(found[0] and found[5])

    def test_an_answer_of_weight_zero_is_not_trained(self):
        turns = chat("WRONG")["messages"] + chat("sees", "again")["messages"]
        turns[1]["weight"] = 0
        turns[3]["weight"] = 1
        path = self.file("weights.jsonl", records({"messages": turns}))
        shown = self.ok(fovea("train", path, "--from", DECODER, "--show-example")).stdout.decode()
        self.assertNotIn("[[WRONG", shown)
        self.assertEqual(shown.count("[["), 1)


if __name__ == "__main__":
    unittest.main()
