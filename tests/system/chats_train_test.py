"""Fine-tuning on conversations: the options, the files and the errors."""
import json
import unittest

from support import FoveaTest, fovea


def chat(question, answer):
    return json.dumps({"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]})


class ChatsTrain(FoveaTest):
    def chats(self):
        return self.file("chats.jsonl", "".join(chat(f"What is {i}?", "a fox") + "\n" for i in range(8)))

    def test_a_base_model_learns_conversations(self):
        base, out = self.chatml_base(), self.folder / "chat"
        options = ("--from", base, "--chat-template", "chatml", "--batch", 2, "--validation", "0.25", "--dtype", "fp32")
        shown = self.ok(fovea("train", self.chats(), *options, "--show-example")).stdout.decode()
        self.assertEqual(shown, "<|im_start|>user\nWhat is 0?<|im_end|>\n<|im_start|>assistant\n[[a fox<|im_end|>]]\n\n")
        parts = json.loads(self.ok(fovea("train", self.chats(), *options, "--show-example", "--json")).stdout)["parts"]
        self.assertEqual([part["text"] for part in parts if part["trained"]], ["a fox<|im_end|>"])
        self.assertFalse(out.exists())
        result = json.loads(self.ok(fovea("train", self.chats(), "--out", out, *options, "--epochs", 10, "--lr", "0.01", "--warmup", 2,
                                          "--sample-tokens", 8, "--json")).stdout)
        self.assertEqual(result["steps"], 30)  # six conversations, two in a step
        losses = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines() if '"loss"' in line]
        self.assertLess(losses[-1], losses[0] / 2)
        said = self.ok(fovea("chat", out, "-n", 8, "--greedy", "--json", input=b"What is 3?\n")).stdout
        self.assertEqual(len(json.loads(said)["messages"]), 2)

    def test_an_array_of_conversations_is_read_as_its_elements(self):
        base, out = self.chatml_base(), self.folder / "chat"
        array = self.file("chats.json", json.dumps([json.loads(line) for line in self.chats().read_text().splitlines()], indent=1))
        losses = [json.loads(self.ok(fovea("train", data, "--from", base, "--chat-template", "chatml", "--out", f"{out}{i}", "--steps", 2,
                                           "--dtype", "fp32", "--sample-every", 0, "--json")).stdout)["loss"] for i, data in enumerate((self.chats(), array))]
        self.assertEqual(*losses)

    def test_a_model_is_evaluated_on_conversations(self):
        base, chats = self.chatml_base(), self.chats()
        found = json.loads(self.ok(fovea("eval", base, chats, "--chat-template", "chatml", "--json")).stdout)
        self.assertEqual((found["objective"], found["sequences"]), ("chats", 8))
        self.assertGreater(found["perplexity"], found["loss"])
        self.assertTrue(0 <= found["accuracy"] <= 1)
        printed = self.ok(fovea("eval", base, chats, "--chat-template", "chatml")).stdout.decode()
        self.assertEqual([line.split()[0] for line in printed.splitlines()], ["loss", "perplexity", "accuracy", "texts", "tokens"])
        self.refused(fovea("eval", base, chats), 2, "--chat-template: not given")
        self.refused(fovea("eval", base, chats, "--chat-template", "gemma"), 2, "--chat-template: the tokenizer lacks the special tokens <start_of_turn>")
        self.refused(fovea("eval", base, self.text, "--chat-template", "chatml"), 2, "--chat-template: given without conversations")

    def test_wrong_data_and_options_are_refused(self):
        base, chats = self.chatml_base(), self.chats()
        wrong = self.file("wrong.jsonl", chat("a", "b") + "\n" + '{"messages": [{"content": "a"}]}\n')
        dry = ("--from", base, "--chat-template", "chatml", "--dry-run")
        self.refused(fovea("train", wrong, *dry), 2, f"{wrong}:2: messages[0].role is missing; expected a text")
        self.refused(fovea("train", chats, *dry, "--steps", 3, "--epochs", 2), 2, "--epochs: cannot be combined with --steps")
        self.refused(fovea("train", chats, "--from", base, "--dry-run"), 2, "--chat-template: not given", "chatml")
        self.refused(fovea("train", chats, "--dry-run"), 2, "--from: not given", "holds conversations")
        self.refused(fovea("train", self.text, *dry), 2, "--chat-template: given without conversations")
        self.refused(fovea("train", self.text, "--show-example", "--from", base), 2, "DATA: holds no conversations")

    def test_long_conversations_are_counted(self):
        long = self.file("long.jsonl", "".join(chat("q" * n, "b") + "\n" for n in (3, 300)))
        plan = json.loads(self.ok(fovea("train", f"{long}:3", "--from", self.chatml_base(), "--chat-template", "chatml", "--dry-run", "--json",
                                        "--too-long", "skip", "--validation", 0)).stdout)
        self.assertEqual((plan["objective"], plan["training_sequences"]), ("chats", 1))
        self.assertIn("1 texts with more than 128 tokens are skipped", plan["notes"])


if __name__ == "__main__":
    unittest.main()
