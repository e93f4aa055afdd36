"""Conversations of `fovea chat`, from a pipe and on a terminal."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unittest

from support import FOVEA, FoveaTest, fovea

TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


class Talker(FoveaTest):
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


class Chat(Talker):
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
        said = self.chat(typed, "--verbose", "--draft", self.talker(), "--draft-tokens", 3)
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
        note = self.chat("<|endoftext|>\n", "--verbose").stderr.decode()
        shorter = self.chat("x\n", "--verbose").stderr.decode()
        count = lambda text: int(text.split("prompt: ")[1].split(" tokens")[0])
        self.assertGreater(count(note), count(shorter) + 2)  # more than one token

    def test_a_full_context_drops_the_oldest_messages(self):
        typed = "".join(f"This is question number {i}, and it is long.\n" for i in range(8))
        result = self.chat(typed, context=160)
        self.assertIn("the context is full", result.stderr.decode())
        too_long = fovea("chat", self.talker(160), "-n", 2, input=b"much too long " * 90 + b"\n")
        self.refused(too_long, (2, 3), "expected fewer than 160")
        self.assertEqual(too_long.stderr.decode().count("expected fewer than"), 1)

    def test_a_model_without_a_template_is_refused_without_an_option(self):
        (self.talker() / "chat_template.jinja").unlink()
        self.refused(fovea("chat", self.talker(), input=b"Hi\n"), (2, 3), "no chat template", "--chat-template FILE")
        template = self.file("template.jinja", TEMPLATE)
        self.ok(fovea("chat", self.talker(), "-n", 2, "--chat-template", template, input=b"Hi\n"))

    def test_aliases_of_commands_of_other_programs(self):
        said = self.messages("one\n/clear\ntwo\n/set system Short.\n/regenerate\n/bye\nthree\n")
        self.assertEqual([m["content"] for m in said if m["role"] != "assistant"], ["Short.", "two"])
        note = self.chat("/?\n/sytem\n/system Be kind.\n/system\n/system off\n").stderr.decode()
        self.assertEqual(note.count("system message: Be kind."), 2)  # regression: "/system" alone removed it
        for expected in ("/clear", "/save FILE", "/sytem: unknown command; did you mean /system?", "system message: Be kind.", "no system message"):
            self.assertIn(expected, note)

    def test_options_are_set_between_answers(self):
        short = self.messages("/set predict 3\nHello\n")[1]["content"]
        usual = self.messages("Hello\n")[1]["content"]
        self.assertTrue(usual.startswith(short) and len(short) < len(usual), (short, usual))
        self.assertEqual(self.messages("/set parameter num-predict 3\n/set n-predict 3\nHello\n")[1]["content"], short)
        note = self.chat("/set temperature 0.25\n/set\n/set temperature hot\n/set temprature 1\n/set top_k -1\n/set draft x\n").stderr.decode()
        self.assertRegex(note, r"\n  temperature +0.25\n")
        self.assertIn('/set: --temperature: "hot" is not a number; expected 0 to 100', note)
        self.assertIn("/set: temprature: unknown setting; did you mean temperature?", note)
        self.assertIn('--top-k: "-1" is out of range', note)
        self.assertIn("/set: draft: unknown setting", note)

    def test_statistics_are_printed_on_demand(self):
        self.assertNotIn("tokens/s", self.chat("Hello\n").stderr.decode())
        self.assertEqual(self.chat("Hello\n/stats\n").stderr.decode().count("tokens/s; answer: 12 tokens"), 1)
        self.assertEqual(self.chat("/stats\nHello\n/set verbose\nHello\n/set quiet\nHello\n").stderr.decode().count("tokens/s; answer"), 1)
        self.assertEqual(self.chat("Hello\nHello\n", "--verbose").stderr.decode().count("tokens/s; answer"), 2)

    def test_a_conversation_is_saved_and_continued(self):
        path = self.folder / "chat.json"
        whole = self.messages("one\ntwo\n")
        saved = self.chat(f"one\n/save {path}\n").stderr.decode()
        self.assertIn(f"{path}: 2 messages", saved)
        self.assertEqual(json.loads(path.read_text())["messages"], whole[:2])
        self.assertEqual(self.messages(f"/load {path}\ntwo\n"), whole)
        for content, wrong in (("{", "not JSON"), ("[]", "no messages"), ('{"messages": [3]}', "messages[0]: no role"),
                               ('{"messages": [{"role": "bot", "content": "a"}]}', 'messages[0]: role "bot"; expected system, user or assistant')):
            self.assertIn(wrong, self.fails(f"/load {self.file('bad.json', content)}"))
        self.assertIn("none.json: cannot be read", self.fails(f"/load {self.folder}/none.json"))
        self.assertIn("/save: expected the name of a file", self.chat("/save\n").stderr.decode())

    def fails(self, command):
        """A command that fails changes nothing. Returns the message."""
        note = self.chat(command + "\nHello\n").stderr.decode()
        self.assertIn(command.split()[0] + ": ", note)
        return note

    def test_a_grammar_restricts_each_answer(self):
        said = self.messages("one\ntwo\n", "--choice", "the fox", "--choice", "light")
        self.assertTrue(all(m["content"] in ("the fox", "light") for m in said if m["role"] == "assistant"), said)


class Terminal:
    """A conversation on a pseudo-terminal."""

    def __init__(self, test, model, *options, columns=80, term="dumb"):
        self.test, self.seen = test, b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**os.environ, "TERM": term, "HOME": str(test.folder), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
        for name in ("XDG_STATE_HOME", "COLUMNS"):
            environment.pop(name, None)
        self.process = subprocess.Popen([FOVEA, "chat", str(model), "--ignore-eos", "--greedy", *map(str, options)], stdin=slave, stdout=slave,
                                        stderr=slave, env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        test.addCleanup(os.close, self.master)
        test.addCleanup(lambda: self.process.poll() is None and (self.process.kill(), self.process.wait()))

    def type(self, keys):
        os.write(self.master, keys)

    def wait_for(self, mark, seconds=60):
        """Returns the output up to a mark; the next call begins behind it."""
        end = time.monotonic() + seconds
        while mark not in self.seen:
            self.test.assertLess(time.monotonic(), end, self.seen)
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
        before, self.seen = self.seen.split(mark, 1)
        return before

    def wait_for_answer(self):
        """Waits until an answer has begun; it lasts for long, even if this process waits for a core."""
        while len(self.seen) < 50:
            self.test.assertTrue(select.select([self.master], [], [], 60)[0], self.seen)
            self.seen += os.read(self.master, 65536)

    def end(self):
        """Leaves by Ctrl-D; returns the last output."""
        self.type(b"\x04")
        self.test.assertEqual(self.process.wait(timeout=30), 0)
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                break
        return self.seen


class OnATerminal(Talker):
    def open(self, *options, context=256, **how):
        return Terminal(self, self.talker(context), *options, **how)

    def test_ctrl_c_ends_only_the_answer(self):
        chat = self.open(context=65536)
        chat.wait_for(b"> ")
        chat.type(b"half a li\x03")  # Ctrl-C at the prompt discards the line
        chat.wait_for(b"> ")
        chat.type(b"Go on for ever\n")
        chat.wait_for(b"Go on for ever")
        chat.wait_for_answer()
        chat.type(b"\x03")
        chat.wait_for(b"interrupted")
        chat.wait_for(b"> ")
        self.assertIsNone(chat.process.poll())
        chat.type(b"/exit\n")
        self.assertEqual(chat.process.wait(timeout=30), 0)

    def test_typed_keys_wait_for_the_next_message(self):
        chat = self.open("-n", 20000, context=65536)
        chat.wait_for(b"> ")
        chat.type(b"Go on for long\n")
        chat.wait_for(b"Go on for long")
        chat.wait_for_answer()
        chat.type(b"XYZZY")
        self.assertNotIn(b"XYZZY", chat.wait_for(b"cut off at the length limit"))
        chat.wait_for(b"> ")
        chat.wait_for(b"XYZZY")

    def test_generate_names_chat_on_a_terminal(self):
        model = self.talker(256)
        master, slave = pty.openpty()
        with subprocess.Popen([FOVEA, "generate", str(model), "-p", "Hello", "-n", "2"], stdout=subprocess.DEVNULL, stderr=slave) as process:
            os.close(slave)
            self.assertIn(b"fovea chat holds conversations", os.read(master, 4096))
            self.assertEqual(process.wait(timeout=30), 0)
        os.close(master)
        self.assertNotIn(b"fovea chat", self.ok(fovea("generate", model, "-p", "Hello", "-n", "2")).stderr)

    def test_the_model_is_named_and_the_answer_set_apart(self):
        chat = self.open("-n", 12)
        greeting = chat.wait_for(b"> ").decode()
        self.assertRegex(greeting, r"model: [\d.]+k parameters, context of 256 tokens; /\? lists the commands")
        chat.type(b"Hello\n")
        chat.wait_for(b"Hello\r\n")
        said = chat.wait_for(b"\r\n> ").decode()
        said = said.removeprefix("Hello\r\n")  # the terminal may echo keys too, before the program reads them
        self.assertRegex(said, r"(?s)^\r\n[^\r].*\r\n\r\ncut off at the length limit$")
        self.assertTrue(chat.end().endswith(b"\r\n"))  # the shell's prompt begins a line

    def test_lines_break_between_words(self):
        said = self.messages("Hello\n", "-n", 150)[1]["content"]
        chat = self.open("-n", 150, columns=30, term="xterm")
        chat.wait_for(b"> ")
        chat.type(b"Hello\n")
        chat.wait_for(b"Hello\r\n\r\n")
        screen = self.screen(chat.wait_for(b"\r\n> ").decode().rsplit("\r\n\r\n", 1)[0])
        letters = lambda text: re.sub(r"[^a-zA-Z.]", "", text)
        self.assertEqual(letters("".join(screen)), letters(said))
        self.assertLessEqual(max(map(len, screen)), 29)
        early = sum(len(line) + 1 + len(after.split(" ")[0]) <= 29 for line, after in zip(screen, screen[1:]))
        self.assertLessEqual(early, said.count("\n"), "a line ends early only at a line break")

    def screen(self, output):
        """Returns the lines that a terminal shows: moves to the left and erasures are applied."""
        lines = [""]
        for part in re.split(r"(\x1b\[\d+D\x1b\[K|\r\n|\n)", output):
            move = re.match(r"\x1b\[(\d+)D", part)
            if move:
                lines[-1] = lines[-1][:-int(move[1])]
            elif part in ("\r\n", "\n"):
                lines.append("")
            else:
                lines[-1] += part
        return [line.rstrip() for line in lines]

    def test_ctrl_d_ends_the_conversation_before_single_keys_are_read(self):
        """The system passes a Ctrl-D of the time before as NUL, after which no Ctrl-D ended the conversation."""
        chat = self.open("-n", 2)
        chat.wait_for(b"> ")
        chat.type(b"\0")
        self.assertEqual(chat.process.wait(timeout=30), 0)

    def test_lines_are_recalled_in_later_sessions(self):
        first = self.open("-n", 2)
        first.wait_for(b"> ")
        first.type(b"a line to remember\n")
        first.wait_for(b"\r\n> ")
        first.end()
        path = self.folder / ".local/state/fovea/chat_history"
        self.assertEqual(path.read_text(), "a line to remember\n")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        second = self.open("-n", 2)
        second.wait_for(b"> ")
        second.type(b"\x10")  # Ctrl-P: the previous line
        second.wait_for(b"a line to remember")
        second.type(b"\x15")
        second.end()
        third = self.open("-n", 2, "--no-history")
        third.wait_for(b"> ")
        third.type(b"a secret\n")
        third.wait_for(b"\r\n> ")
        third.end()
        self.assertEqual(path.read_text(), "a line to remember\n")


if __name__ == "__main__":
    unittest.main()
