"""Training: the same weights as from the command line, callbacks, data in memory, rewards."""

import json
import unittest

import numpy as np
from support import CHATML, GOLDENS, TestCase, documents, program, python, text_model

import fovea
from fovea import ops

TINY = {"preset": "tiny", "steps": 6, "tokenizer": "char", "seed": 2}


def options(values):
    return [part for name, value in values.items() for part in ("--" + name.replace("_", "-"), value)]


class Training(TestCase):
    def data(self):
        path = self.folder() / "text.txt"
        path.write_text("\n".join(documents()), encoding="utf-8")
        return path

    def test_weights_are_those_of_the_command_line(self):
        data, out = self.data(), self.folder()
        program("train", data, "--out", out / "a", *options(TINY))
        run = fovea.train(data, out / "b", **TINY)
        self.assertEqual((out / "a/model.safetensors").read_bytes(), (out / "b/model.safetensors").read_bytes())
        self.assertEqual(run.result.step, 6)
        self.assertEqual(len(run.log.curves["loss"]), 6)
        self.assertIn("<svg", run._repr_html_())

    def test_callbacks_see_steps_and_end_the_run(self):
        data, out = self.data(), self.folder() / "run"
        plans, steps, evaluations = [], [], []

        def step(now):
            steps.append(now.step)
            return now.step < 4

        run = fovea.train(
            data, out, **{**TINY, "evaluate_every": 2}, on_plan=plans.append, on_step=step, on_evaluation=lambda now: evaluations.append((now.step, now.validation_loss))
        )
        self.assertTrue(run.result.interrupted)
        self.assertEqual((steps, [step for step, _ in evaluations]), ([1, 2, 3, 4], [2, 4]))
        self.assertEqual(plans[0].steps, 6)
        whole = fovea.train(data, out, **{**TINY, "evaluate_every": 2})
        other = fovea.train(data, self.folder() / "other", **{**TINY, "evaluate_every": 2})
        self.assertEqual((out / "model.safetensors").read_bytes(), (self.path(other) / "model.safetensors").read_bytes())
        self.assertFalse(whole.result.interrupted)

    @staticmethod
    def path(run):
        import pathlib

        return pathlib.Path(run.out)

    def test_texts_in_memory(self):
        data, out = self.folder() / "data.jsonl", self.folder()
        data.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents()), encoding="utf-8")
        fovea.train(str(data), out / "a", **TINY)
        fovea.train((text for text in documents()), out / "b", **TINY)
        self.assertEqual((out / "a/model.safetensors").read_bytes(), (out / "b/model.safetensors").read_bytes())

    def test_labels_in_memory(self):
        data = [(f"{'good' if i % 2 else 'bad'} thing {i}", "yes" if i % 2 else "no") for i in range(80)]
        run = fovea.train(labels=data, out=self.folder() / "run", **{**TINY, "steps": 60})
        self.assertEqual(run.model.classify(["good thing 7", "bad thing 4"]).best, ["yes", "no"])
        self.assertIn("accuracy", run.result.metrics)

    def test_a_list_of_missing_files_is_refused(self):
        with self.assertRaisesRegex(OSError, "missing.txt"):
            fovea.train(["missing.txt"], self.folder() / "run", **TINY)

    def test_a_loss_of_ones_own_has_the_weights_of_the_built_in_one(self):
        data, out = self.data(), self.folder()

        def loss(logits, labels):
            return -1 * ops.sum(ops.log_probability(logits, labels))

        fovea.train(data, out / "a", **TINY, loss=loss)
        fovea.train(data, out / "b", **TINY)
        a, b = (fovea.read_safetensors(str(out / name / "model.safetensors")) for name in "ab")
        for name, tensor in a.items():
            np.testing.assert_allclose(tensor.numpy(), b[name].numpy(), atol=1e-4, err_msg=name)

    def test_errors_of_callbacks_end_the_run(self):
        with self.assertRaises(ZeroDivisionError):
            fovea.train(self.data(), self.folder() / "run", **TINY, on_step=lambda now: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            fovea.train(self.data(), self.folder() / "run", **TINY, loss=lambda logits, labels: 1 / 0)

    def test_a_reward_of_ones_own(self):
        seen = []

        def reward(answers):
            seen.extend(answers)
            return [answer["completion"].count("e") for answer in answers]

        prompts = [{"prompt": f"The {animal}", "kind": "animal"} for animal in ("cat", "dog", "fox", "owl")] * 2
        run = fovea.finetune(
            text_model(), prompts, self.folder() / "run", objective="grpo", reward=reward, steps=2, prompts=2, generations=4, answer_tokens=8
        )
        self.assertEqual(run.result.step, 2)
        self.assertEqual(seen[0]["record"]["kind"], "animal")
        with self.assertRaisesRegex(ValueError, "reward: 1 numbers for"):
            fovea.finetune(
                text_model(), prompts, self.folder() / "other", objective="grpo", reward=lambda answers: [0], steps=2, prompts=2, generations=4, answer_tokens=8
            )

    def test_an_environment_of_several_turns(self):
        seen = []

        def environment(episodes):
            seen.extend((each["number"], each["turn"], len(each["messages"]), each["evaluation"]) for each in episodes)
            return [(" and", float(each["turn"]), each["turn"] == 2) for each in episodes]

        prompts = [{"prompt": f"The {animal}"} for animal in ("cat", "dog", "fox", "owl")] * 2
        given = {"objective": "grpo", "environment": environment, "steps": 2, "prompts": 2, "generations": 4, "answer_tokens": 120, "validation": 0.0}
        run = fovea.finetune(text_model(), prompts, self.folder() / "run", **given)
        self.assertEqual(run.result.step, 2)
        self.assertEqual({number for number, turn, _, _ in seen if turn == 0}, set(range(16)))
        self.assertEqual({(turn, messages) for _, turn, messages, _ in seen if turn < 2}, {(0, 2), (1, 4)})
        curves = run.log.curves
        self.assertEqual(curves["reward_environment"], curves["reward"])
        self.assertGreater(curves["turns"][0][1], 1)
        with self.assertRaisesRegex(ValueError, "environment: replied with no message"):
            fovea.finetune(text_model(), prompts, self.folder() / "run", **{**given, "environment": lambda all: [(None, 0, False)] * len(all)})

    def test_tools_are_an_environment(self):
        def add(a: int, b: int = 0) -> int:
            """Adds two numbers.

            Both are whole."""
            return a + b

        tools = fovea.Tools(add, turns=3)
        function = tools.schemas[0]["function"]
        self.assertEqual((function["name"], function["description"], function["parameters"]["required"]), ("add", "Adds two numbers.", ["a"]))
        self.assertEqual(function["parameters"]["properties"], {"a": {"type": "integer"}, "b": {"type": "integer"}})
        self.assertEqual(tools.prompts(["1 + 2?"])[0]["tools"], tools.schemas)

        def reply(answer, turn=0):
            messages = [{"role": "user", "content": "1 + 2?"}, {"role": "assistant", "content": answer}]
            return tools([{"number": 5, "turn": turn, "messages": messages, "record": {}, "evaluation": False}])[0]

        call = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
        said, reward, done = reply(call)
        self.assertEqual((said[1]["role"], said[1]["content"], reward, done), ("tool", "3", 0.0, False))
        self.assertEqual(said[0]["tool_calls"][0]["function"], {"name": "add", "arguments": {"a": 1, "b": 2}})
        self.assertEqual(said[0]["tool_calls"][0]["id"], reply(call)[0][0]["tool_calls"][0]["id"])
        self.assertIn("TypeError", reply('<tool_call>{"name": "add", "arguments": {"c": 1}}</tool_call>')[0][1]["content"])
        for answer, turn in (("3", 0), (call, 2)):
            self.assertEqual(reply(answer, turn), (None, 0.0, True))
        data = tools.prompts([{"prompt": "Add 1 and 2.", "answer": "3"}] * 4)
        run = fovea.finetune(
            text_model(), data, self.folder() / "run", objective="grpo", environment=tools, rewards=["exact"], chat_template=str(CHATML), steps=1, prompts=2,
            generations=2, answer_tokens=8, validation=0.0,
        )  # fmt: skip
        self.assertEqual(run.result.step, 1)

    def test_adapters(self):
        run = fovea.finetune(text_model(), documents(), self.folder() / "run", lora=2, steps=2)
        self.assertTrue((self.path(run) / "adapter_model.safetensors").exists())
        self.assertIsInstance(run.model.generate("The", max_tokens=3), str)

    def test_an_encoder_is_trained(self):
        pairs = self.folder() / "pairs.tsv"
        pairs.write_text("a house\ta small house\ntwo\ttwo words\nrain\tit rains\nhill\tthe mountain\n", encoding="utf-8")
        result = fovea.train_embedder(GOLDENS / "sentence_model", str(pairs), self.folder() / "run", batch=2)
        self.assertGreater(result.step, 0)
        encoder, judge = fovea.Encoder(GOLDENS / "sentence_model"), fovea.Reranker(str(GOLDENS / "cross_encoder"))
        mined = fovea.mine_negatives(encoder, pairs, corpus=["the fox"], reranker=judge, negatives=2)
        self.assertEqual([pair.anchor for pair in mined.pairs], ["a house", "two", "rain", "hill"])
        self.assertEqual({(len(pair.negatives), len(pair.scores)) for pair in mined.pairs}, {(2, 3)})
        self.assertEqual(mined.incomplete, 0)
        with self.assertRaisesRegex(fovea.InvalidArgument, "loss: kl, but .* has pairs"):
            fovea.train_embedder(GOLDENS / "sentence_model", str(pairs), self.folder() / "other", loss="kl")

    def test_ctrl_c_saves(self):
        data, out = self.data(), self.folder() / "run"
        code = f"""
import fovea, os, signal
def step(now):
    if now.step == 3:
        os.kill(os.getpid(), signal.SIGINT)
try:
    fovea.train({str(data)!r}, {str(out)!r}, preset="tiny", steps=100000, on_step=step)
except KeyboardInterrupt as stop:
    print(stop.__notes__)
print(fovea.snapshots({str(out)!r})[-1] >= 3)
"""
        printed = python(code).splitlines()
        self.assertIn("the same call resumes it", printed[0])
        self.assertEqual(printed[1], "True")

    def test_plans(self):
        self.assertGreater(fovea.plan("nano").parameters, 100_000)
        self.assertEqual(fovea.plan_training(self.data(), self.folder() / "run", **TINY).steps, 6)
        self.assertGreater(fovea.inference_memory(text_model()).total, 1e5)


if __name__ == "__main__":
    unittest.main()
