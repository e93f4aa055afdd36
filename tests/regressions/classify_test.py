"""Training of classifiers of texts and of words; commands that generate text refuse them."""
import json
import random
import unittest

from support import FoveaTest, fovea

ENCODER = ["--preset", "distilbert", "--encoder-layers", "1", "--width", "32", "--encoder-heads", "2", "--encoder-ffn-width", "64",
           "--context", "32"]
DECODER = ["--preset", "tiny", "--layers", "1", "--width", "32", "--heads", "2", "--context", "32"]
FEW = ["--steps", "6", "--batch", "4", "--evaluate-every", "0", "--tokenizer", "wordpiece:150"]


class ClassifyTest(FoveaTest):
    def labels(self, by_word):
        generator = random.Random(5)
        rows = []
        for _ in range(60):
            words = [generator.choice(["fox", "eye", "sun", "light"]) for _ in range(4)]
            kinds = ["animal" if word == "fox" else "thing" for word in words]
            row = {"tokens": words, "labels": kinds} if by_word else {"text": " ".join(words), "label": kinds[0]}
            rows.append(json.dumps(row) + "\n")
        return self.file("words.jsonl" if by_word else "texts.jsonl", "".join(rows))

    def classifier(self, shape, by_word):
        data, out = self.labels(by_word), self.folder / f"{shape[1]}-{by_word}"
        self.ok(fovea("train", "--labels", data, "--out", out, *shape, *FEW))
        return data, out

    def test_encoders_and_decoders_finish_training(self):
        """A decoder's classifier tried to generate a sample at its last step, failed, and saved no model."""
        for shape in (ENCODER, DECODER):
            for by_word in (False, True):
                with self.subTest(shape=shape[1], by_word=by_word):
                    data, out = self.classifier(shape, by_word)
                    measured = json.loads(self.ok(fovea("eval", out, "--labels", data, "--json")).stdout)
                    self.assertGreater(measured["accuracy"], 0)
                    more = self.folder / f"more-{shape[1]}-{by_word}"
                    self.ok(fovea("train", "--from", out, "--labels", data, "--out", more, *FEW[:6]))

    def test_generation_refuses_classifiers(self):
        """A classifier of words was used as a language model, and the program read past the end of its logits."""
        for shape, by_word, what in ((DECODER, True, "labels words"), (DECODER, False, "labels texts"), (ENCODER, True, "labels words")):
            _, out = self.classifier(shape, by_word)
            for command in (("generate", out, "-p", "the"), ("generate", out, "-p", "the", "--beams", "2"),
                            ("translate", out, self.text), ("eval", out, "--score", "the fox"), ("bench", out, "--prompt", "4", "--decode", "2"),
                            *((("eval", out, self.text), ("eval", out, self.text, "--against", out)) if shape is DECODER else ()),
                            ("chat", out, "--chat-template", self.file("t.jinja", "{{ messages[0].content }}"))):
                with self.subTest(command=command[0], shape=shape[1], by_word=by_word):
                    self.refused(fovea(*command, input=b"hello\n"), 2, what, "eval --labels", "expected a decoder")

    def test_a_reward_model_has_no_table_of_labels(self):
        """eval counted labels that preferences do not have, and printed precision, recall and F1 of 0 for the reward."""
        preferences = self.file("preferences.jsonl", "".join(
            json.dumps({"prompt": f"the fox {i} ", "chosen": "sees the light", "rejected": "sleeps"}) + "\n" for i in range(6)))
        base, out = self.model(steps=2), self.folder / "reward"
        self.ok(fovea("train", preferences, "--from", base, "--objective", "reward", "--out", out, "--steps", 1, "--batch", 2,
                      "--evaluate-every", 0))
        found = json.loads(self.ok(fovea("eval", out, preferences, "--json")).stdout)
        self.assertGreater(found["loss"], 0)
        self.assertNotIn("labels", found)
        self.assertNotIn("confusion", found)


if __name__ == "__main__":
    unittest.main()
