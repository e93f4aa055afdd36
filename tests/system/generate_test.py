"""What `fovea generate` writes."""
import json
import unittest

from support import FoveaTest, fovea


class Generate(FoveaTest):
    def write(self, *arguments, **how):
        return self.ok(fovea("generate", self.model(60), *arguments, **how))

    def said(self, *arguments, **how):
        return self.write(*arguments, **how).stdout.decode()

    def test_the_same_seed_writes_the_same(self):
        first = self.said("-p", "The ", "-n", "80", "--seed", "3")
        self.assertEqual(self.said("-p", "The ", "-n", "80", "--seed", "3"), first)
        self.assertEqual(self.said("-p", "The ", "-n", "80", "--seed", "3", "-t", "1"), first)
        self.assertNotEqual(self.said("-p", "The ", "-n", "80", "--seed", "4"), first)

    def test_without_a_seed_each_run_differs(self):
        self.assertNotEqual(self.said("-n", "80", "--temperature", "1.5", "--top-k", "0", "--top-p", "1"),
                            self.said("-n", "80", "--temperature", "1.5", "--top-k", "0", "--top-p", "1"))

    def test_greedy_has_many_names(self):
        greedy = self.said("-p", "The ", "-n", "40", "--greedy")
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--temp", "0", "--seed", "9"), greedy)
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--top-k", "1"), greedy)

    def test_prompt_from_option_file_and_pipe(self):
        expected = self.said("-p", "The fox", "-n", "40", "--greedy")
        self.assertEqual(self.said("-f", self.file("prompt.txt", "The fox\n"), "-n", "40", "--greedy"), expected)
        self.assertEqual(self.said("-n", "40", "--greedy", input=b"The fox\n"), expected)
        self.assertEqual(self.said("-p", "The fox", "-n", "40", "--greedy", "--echo"), "The fox" + expected)

    def test_json_and_stream_agree(self):
        r = json.loads(self.said("-p", "The ", "-n", "40", "--seed", "3", "--json"))
        self.assertEqual(self.said("-p", "The ", "-n", "40", "--seed", "3").rstrip("\n"), r["text"].rstrip("\n"))
        self.assertEqual((len(r["ids"]), r["finish"], r["prompt_tokens"]), (40, "length", 4))

    def test_length(self):
        for count in (0, 1, 500):  # 500: far beyond the context of 32
            self.assertEqual(json.loads(self.said("-n", count, "--ignore-eos", "--json"))["tokens"], count)

    def test_stop_strings(self):
        whole = json.loads(self.said("-p", "The ", "-n", "60", "--seed", "3", "--json"))["text"]
        stop = whole[20:23]
        r = json.loads(self.said("-p", "The ", "-n", "60", "--seed", "3", "--stop", "~~~", "--stop", stop, "--json"))
        self.assertEqual(r["finish"], "stop")
        self.assertEqual(r["text"], whole[:whole.index(stop)])
        streamed = self.said("-p", "The ", "-n", "60", "--seed", "3", "--stop", stop)
        self.assertEqual(streamed.rstrip("\n"), r["text"].rstrip("\n"))

    def test_unknown_characters_are_named(self):
        result = self.write("-p", "The é fox 漢", "-n", "5")
        self.assertIn("é", result.stderr.decode())
        self.assertIn("漢", result.stderr.decode())
        self.assertNotIn("error", result.stderr.decode())

    def test_odd_prompts(self):
        for prompt in ("", " ", "\n", "T", "The " * 2000, "\x1b[2J"):
            with self.subTest(prompt[:10]):
                self.write("-p", prompt, "-n", "3")
        self.write("-n", "3", input=b"\xff\xfe The")
        self.write("-n", "3", input=b"")

    def test_speed_line(self):
        self.assertRegex(self.write("-p", "The ", "-n", "5").stderr.decode(), r"prompt: 4 tokens, .* generation: 5 tokens, .*/s")

    def test_refused(self):
        self.refused(fovea("generate", self.model(60), "-f", self.folder / "none"), 2, "none")
        self.refused(fovea("generate", self.model(60), "-p", "a", "-f", self.text), 2, "--file")
        self.refused(fovea("generate", self.model(60), "--stop", ""), 2, "--stop")


if __name__ == "__main__":
    unittest.main()
