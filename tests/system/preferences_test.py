"""Training on preferences: the objectives, the files and the errors."""
import json
import unittest

from support import FoveaTest, fovea


def pair(prompt, chosen, rejected, **rest):
    return json.dumps({"prompt": prompt, "chosen": chosen, "rejected": rejected, **rest}) + "\n"


class Preferences(FoveaTest):
    def pairs(self):
        return self.file("pairs.jsonl", "".join(pair(f"What is {i}? ", "a fox", "nothing at all") for i in range(12)))

    def train(self, data, base, out, *options):
        return json.loads(self.ok(fovea("train", data, "--from", base, "--out", out, "--batch", 4, "--validation", "0.25", "--dtype", "fp32", "--lr", "0.005",
                                        "--warmup", 2, "--steps", 12, "--sample-tokens", 4, "--json", *options)).stdout)

    def log(self, out, key):
        return [line for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if key in line]

    def test_each_objective_prefers_the_chosen_answers(self):
        base, pairs = self.chatml_base(), self.pairs()
        for objective in ("dpo", "kto", "orpo", "simpo", "reward"):
            out = self.folder / objective
            self.train(pairs, base, out, "--objective", objective)
            steps, held_out = self.log(out, "loss"), self.log(out, "eval_loss")[-1]
            self.assertLess(steps[-1]["loss"], steps[0]["loss"], objective)
            self.assertGreater(held_out["margin"], 0, objective)
            self.assertEqual(held_out.get("accuracy", 1), 1, objective)
            self.assertEqual((out / "reference").exists(), objective in ("dpo", "kto"))
        found = json.loads(self.ok(fovea("eval", self.folder / "reward", pairs, "--json")).stdout)
        self.assertEqual((found["objective"], found["sequences"], found["accuracy"]), ("reward", 12, 1))
        self.assertEqual(json.loads((self.folder / "reward/config.json").read_text())["id2label"], {"0": "reward"})
        self.refused(fovea("eval", base, pairs), 2, "only a reward model judges")

    def test_messages_are_rendered_by_the_template(self):
        user, good, bad = ({"role": role, "content": text} for role, text in (("user", "What?"), ("assistant", "a fox"), ("assistant", "no")))
        data = self.file("chats.jsonl", "".join(json.dumps(line) + "\n" for line in (
            {"prompt": [user], "chosen": [good], "rejected": [bad]},
            {"chosen": [user, good], "rejected": [user, bad]},
            {"prompt": "What?", "chosen": [user, good], "rejected": [user, bad]})))
        options = ("--from", self.chatml_base(), "--chat-template", "chatml", "--objective", "dpo")
        shown = self.ok(fovea("train", data, *options, "--show-example")).stdout.decode()
        self.assertEqual(shown, "<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\n[[a fox<|im_end|>]]\n\n\nrejected:\n"
                         "<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\n[[no<|im_end|>]]\n\n")
        plan = json.loads(self.ok(fovea("train", data, *options, "--dry-run", "--json", "--validation", 0)).stdout)
        self.assertEqual((plan["objective"], plan["training_sequences"]), ("dpo", 3))
        out = self.folder / "adapter"
        self.train(data, self.folder / "base", out, "--chat-template", "chatml", "--objective", "dpo", "--lora", 4, "--validation", 0)
        self.assertTrue((out / "adapter_model.safetensors").exists() and (out / "chat_template.jinja").exists())

    def test_judged_answers_suit_kto(self):
        judged = self.file("judged.jsonl", "".join(json.dumps({"prompt": f"What is {i}? ", "completion": "nothing" if i // 4 == 1 else "a fox", "label": i // 4 != 1}) + "\n"
                                                   for i in range(12)))
        base = self.chatml_base()
        result = self.train(judged, base, self.folder / "out")  # KTO follows from the data
        self.assertEqual(result["steps"], 12)
        self.assertGreater(self.log(self.folder / "out", "eval_loss")[-1]["margin"], 0)
        self.refused(fovea("train", judged, "--from", base, "--dry-run", "--objective", "simpo"), 2, f"{judged}:1: chosen is missing")

    def test_wrong_data_and_options_are_refused(self):
        base, pairs = self.chatml_base(), self.pairs()
        dry = ("--from", base, "--dry-run")
        for line, message in (('{"prompt": "a", "chosen": "b"}', "rejected is missing; expected a text or a list of messages"),
                              ('{"prompt": "a", "chosen": ["b"], "rejected": ["c"]}', 'chosen[0] is "b"; expected an object with "role" and "content"'),
                              ('{"prompt": "a", "chosen": "b", "rejected": "c"', "expected a JSON object"),
                              ("3", "is 3; expected an object with")):
            wrong = self.file("wrong.jsonl", pair("a", "b", "c") + line + "\n")
            self.refused(fovea("train", wrong, *dry, "--objective", "dpo"), 2, f"{wrong}:2: ", message)
        self.refused(fovea("train", pairs, "--dry-run"), 2, "--from: not given", "holds preferences")
        self.refused(fovea("train", pairs, *dry, "--objective", "orpo", "--beta", 1), 2, "--preference-beta: has no effect in this run; expected --objective dpo, kto or simpo")
        self.refused(fovea("train", pairs, *dry, "--objective", "simpo", "--reference-free"), 2, "--reference-free: has no effect in this run; expected --objective dpo")
        self.refused(fovea("train", self.text, *dry, "--objective", "dpo"), 2, "expected a JSON object")
        self.refused(fovea("train", pairs, *dry, "--objective", "chats"), 2, f"{pairs}:1: completion is missing")


if __name__ == "__main__":
    unittest.main()
