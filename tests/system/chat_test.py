"""Conversations of `fovea chat`, from a pipe and on a terminal."""
import json
import os
import pty
import select
import subprocess
import time
import unittest

from support import FOVEA, FoveaTest, fovea

TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


class Chat(FoveaTest):
    def talker(self, context=256):
        """Returns a model after four training steps, with a byte-level tokenizer and an end-of-text token."""
        out = self.folder / "model"
        if not out.exists():
            self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 300, self.text, "--out", self.folder / "tokenizer"))
            self.ok(fovea("train", self.text, "--out", out, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32,
                          "--batch", 1, "--context", context, "--length", 128, "--tokenizer", self.folder / "tokenizer", "--steps", 4,
                          "--sample-every", 0, "--evaluate-windows", 1, "--seed", 7))
            (out / "chat_template.jinja").write_text(TEMPLATE)
        return out

    def chat(self, typed, *options, context=256):
        return self.ok(fovea("chat", self.talker(context), "-n", 12, "--greedy", "--ignore-eos", *options, input=typed.encode()))

    def messages(self, typed, *options, **how):
        return json.loads(self.chat(typed, "--json", *options, **how).stdout)["messages"]

    def test_answers_are_written_to_standard_output(self):
        said = self.messages("Hello\nAnd now?\n", "--system", "Be kind.")
        self.assertEqual([m["role"] for m in said], ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual(said[3]["content"], "And now?")
        answers = "".join(m["content"] + "\n" for m in said if m["role"] == "assistant")
        self.assertEqual(self.chat("Hello\nAnd now?\n", "--system", "Be kind.").stdout.decode(), answers)

    def test_the_prompt_includes_earlier_messages(self):
        prompt = "<|user|>Hello\n<|assistant|>{}\n<|user|>More\n<|assistant|>"
        first, second = [m["content"] for m in self.messages("Hello\nMore\n") if m["role"] == "assistant"]
        alone = self.ok(fovea("generate", self.talker(), "-p", prompt.format(first), "-n", 12, "--greedy", "--ignore-eos", "--json"))
        self.assertEqual(json.loads(alone.stdout)["text"], second)

    def test_a_draft_model_does_not_change_the_answers(self):
        typed = "Hello\nAnd now?\nMore\n"
        said = self.chat(typed, "--draft", self.talker(), "--draft-tokens", 3)
        self.assertEqual(said.stdout, self.chat(typed).stdout)
        self.assertEqual(said.stderr.decode().count("accepted (100%)"), 3)

    def test_commands_and_messages_of_several_lines_are_read(self):
        said = self.messages('one\\\ntwo\n"""a\n\nb"""\n/new\n/system Short.\nHi\n/nonsense\n/again\n/help\n\n')
        self.assertEqual([m["role"] for m in said], ["system", "user", "assistant"])
        self.assertEqual((said[0]["content"], said[1]["content"]), ("Short.", "Hi"))
        self.assertEqual(self.messages('one\\\ntwo\n')[0]["content"], "one\ntwo")
        self.assertEqual(self.messages('"""a\n\nb"""\n')[0]["content"], "a\n\nb")
        self.assertIn("/nonsense: unknown command", self.chat("/nonsense\n").stderr.decode())

    def test_typed_special_tokens_are_text(self):
        note = self.chat("<|endoftext|>\n").stderr.decode()
        shorter = self.chat("\n".join(["x"]) + "\n").stderr.decode()
        count = lambda text: int(text.split("prompt: ")[1].split(" tokens")[0])
        self.assertGreater(count(note), count(shorter) + 2)  # more than one token

    def test_a_full_context_drops_the_oldest_messages(self):
        typed = "".join(f"This is question number {i}, and it is long.\n" for i in range(8))
        result = self.chat(typed, context=160)
        self.assertIn("the context is full", result.stderr.decode())
        too_long = fovea("chat", self.talker(160), "-n", 2, input=b"much too long " * 90 + b"\n")
        self.refused(too_long, (2, 3), "expected fewer than 160")

    def test_a_model_without_a_template_is_refused_without_an_option(self):
        (self.talker() / "chat_template.jinja").unlink()
        self.refused(fovea("chat", self.talker(), input=b"Hi\n"), (2, 3), "no chat template", "--chat-template FILE")
        template = self.file("template.jinja", TEMPLATE)
        self.ok(fovea("chat", self.talker(), "-n", 2, "--chat-template", template, input=b"Hi\n"))

    def test_ctrl_c_ends_only_the_answer(self):
        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "HOME": str(self.folder)}
        process = subprocess.Popen([FOVEA, "chat", str(self.talker(65536)), "--ignore-eos", "--greedy"], stdin=slave, stdout=slave,
                                   stderr=slave, env=environment, start_new_session=True,
                                   preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))

        seen = b""

        def wait_for(mark, seconds=60):
            nonlocal seen  # the output after the last mark
            end = time.monotonic() + seconds
            while mark not in seen:
                self.assertLess(time.monotonic(), end, seen)
                if select.select([master], [], [], 0.2)[0]:
                    seen += os.read(master, 65536)
            seen = seen.split(mark, 1)[1]

        wait_for(b"> ")
        os.write(master, b"half a li\x03")  # Ctrl-C at the prompt discards the line
        wait_for(b"> ")
        os.write(master, b"Go on for ever\n")
        wait_for(b"Go on for ever")
        while len(seen) < 50:  # the answer has started; it lasts for long, even if this process waits for a core
            self.assertTrue(select.select([master], [], [], 60)[0], seen)
            seen += os.read(master, 65536)
        os.write(master, b"\x03")
        wait_for(b"interrupted")
        wait_for(b"> ")
        self.assertIsNone(process.poll())
        os.write(master, b"/exit\n")
        self.assertEqual(process.wait(timeout=30), 0)


if __name__ == "__main__":
    unittest.main()
