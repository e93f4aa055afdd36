"""Text: the same as from the command line, streams, chats, constraints, and errors."""

import json
import unittest

import numpy as np
from support import CHATML, TestCase, program, text_model

import fovea


class Generation(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = text_model()
        cls.model = fovea.load(cls.path, chat_template=CHATML)

    def test_greedy_text_is_that_of_the_command_line(self):
        printed = program("generate", self.path, "The cat", "-n", 30, "--temperature", 0)
        self.assertEqual(self.model.generate("The cat", max_tokens=30, temperature=0), printed.removesuffix("\n"))

    def test_sampled_text_is_that_of_the_command_line(self):
        printed = program("generate", self.path, "The cat", "-n", 30, "--seed", 7)
        self.assertEqual(self.model.generate("The cat", max_tokens=30, seed=7), printed.removesuffix("\n"))

    def test_a_list_has_the_texts_of_single_calls(self):
        prompts = ["The cat", "The", "and the owl"]
        together = self.model.generate(prompts, max_tokens=20, seed=3)
        self.assertEqual(together, [self.model.generate(each, max_tokens=20, seed=3) for each in prompts])

    def test_a_text_beyond_the_context_is_that_of_a_single_call(self):
        options = {"max_tokens": 200, "temperature": 0, "ignore_end": True}
        self.assertEqual(self.model.generate(["The cat"], **options), [self.model.generate("The cat", **options)])

    def test_a_stream_has_the_same_text_and_its_log_probabilities(self):
        tokens = list(self.model.stream("The cat", max_tokens=20, temperature=0))
        whole = self.model.samples("The cat", max_tokens=20, temperature=0, logprobs=0)[0]
        self.assertEqual("".join(token.text for token in tokens), whole.text)
        self.assertEqual([token.token for token in tokens if token.token >= 0], whole.ids)
        np.testing.assert_array_equal([token.logprob for token in tokens if token.token >= 0], whole.logprobs)
        self.assertEqual(tokens[-1].finish, whole.finish)
        self.assertTrue(all(a.seconds <= b.seconds for a, b in zip(tokens, tokens[1:])))

    def test_pieces_arrive_and_can_end_the_text(self):
        pieces = []
        text = self.model.generate("The cat", max_tokens=50, temperature=0, on_text=lambda piece: pieces.append(piece) or len(pieces) < 3)
        self.assertEqual(len(pieces), 3)
        self.assertTrue(text.startswith("".join(pieces[:2])))

    def test_logits_can_be_changed(self):
        token = self.model.tokenizer.encode("e")[0]

        def without(ids, logits):
            self.assertEqual(logits.shape, (len(self.model.tokenizer),))
            logits[token] = -np.inf

        generation = self.model.samples("Th", max_tokens=30, temperature=0, logits=without)[0]
        self.assertNotIn(token, generation.ids)

    def test_an_error_in_a_callback_ends_the_call(self):
        def fails(ids, logits):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.model.generate("The", max_tokens=5, logits=fails)

    def test_grammars_constrain_the_text(self):
        self.assertRegex(self.model.generate("The", regex="[0-9]{3}", max_tokens=10, seed=1), r"^[0-9]{3}$")
        schema = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"], "additionalProperties": False}
        self.assertIsInstance(json.loads(self.model.generate("The", schema=schema, max_tokens=40, seed=1))["n"], bool)

    def test_a_chat_is_the_servers_dict(self):
        messages = [{"role": "user", "content": "The cat"}]
        answer = self.model.chat(messages, max_tokens=8, temperature=0)
        self.assertEqual(answer["object"], "chat.completion")
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")
        pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in self.model.chat(messages, max_tokens=8, temperature=0, stream=True)]
        self.assertEqual("".join(pieces), answer["choices"][0]["message"]["content"])

    def test_a_chat_fulfils_a_schema(self):
        schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
        answer = self.model.chat([{"role": "user", "content": "Hi"}], schema=schema, max_tokens=60, seed=2)
        self.assertIsInstance(json.loads(answer["choices"][0]["message"]["content"])["a"], bool)

    def test_scores_are_log_probabilities(self):
        ids = self.model.prompt_ids("The cat sees")
        logprobs, rivals = self.model.score(ids, alternatives=2)
        logits = self.model.trace(ids, what="logits")["logits"][0].astype(np.float64)
        expected = (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(len(ids) - 1), ids[1:]]
        np.testing.assert_allclose(logprobs[1:], expected, atol=1e-4)
        self.assertEqual(len(rivals[1]), 2)

    def test_errors_name_the_argument(self):
        with self.assertRaisesRegex(ValueError, "^temperature: -1"):
            self.model.generate("x", temperature=-1)
        with self.assertRaisesRegex(TypeError, "temprature: unknown keyword argument; did you mean temperature"):
            self.model.generate("x", temprature=1)
        with self.assertRaisesRegex(fovea.InvalidArgument, "^max_tokens: 'x'; expected an integer"):
            self.model.generate("x", max_tokens="x")
        with self.assertRaises(fovea.BadFile) as raised:
            fovea.load("/nowhere/at/all")
        self.assertIsInstance(raised.exception, OSError)
        self.assertNotIn("\n", str(raised.exception))

    def test_options_are_in_the_docstring(self):
        self.assertIn("temperature (float, 0 to", fovea.Model.generate.__doc__)


if __name__ == "__main__":
    unittest.main()
