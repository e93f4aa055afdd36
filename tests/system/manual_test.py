"""The manual pages and the completions of shells, which the program prints from the descriptions of its options."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from support import FOVEA, FoveaTest, fovea

TABLES = json.loads(fovea("--list-options").stdout) if os.path.exists(FOVEA) else {}


def printed(*arguments):
    return fovea(*arguments).stdout.decode()


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"needs {program}")


class Manual(FoveaTest):
    def test_each_verb_has_a_page_with_all_its_options(self):
        self.assertIn("fovea\\-train(1)", printed("--man"))
        for verb, table in TABLES.items():
            page = printed("--man", verb)
            self.assertTrue(page.startswith(f".TH FOVEA\\-{verb.upper()} 1"), page[:80])
            for option in table:
                self.assertIn("\\fB" + option["name"].replace("-", "\\-") + "\\fR", page, verb)
        self.refused(fovea("--man", "trian"), 2, "trian: unknown verb; did you mean train?")

    def test_each_page_has_examples_with_options_of_the_verb(self):
        for verb, table in TABLES.items():
            page = printed("--man", verb).replace("\\-", "-")
            examples = re.findall(r"^\.TP\n\\fB(.*)\\fR$", page.split("\n.SH EXAMPLES\n")[1].split("\n.SH ")[0], re.MULTILINE)
            self.assertIn(len(examples), (2, 3, 4), verb)
            names = {name for option in table for name in (option["name"], *option["aliases"])}
            for example in examples:
                self.assertIn(f"fovea {verb}", example)
                given = set(re.findall(r" (--?[a-z][-a-z]*)", example.split(f"fovea {verb}")[1]))
                self.assertEqual(given - names, set(), example)

    @needs("man")
    def test_the_pages_have_no_warnings(self):
        for verb in ("", *TABLES):
            page = self.file("fovea.1", printed("--man", *filter(None, [verb])))
            shown = subprocess.run(["man", "--warnings", "-l", "-E", "UTF-8", "-Tutf8", "-Z", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   check=False, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual((shown.returncode, shown.stderr.decode()), (0, ""), verb)

    @needs("man")
    def test_a_page_shows_quotes_and_backslashes(self):
        page = self.file("fovea.1", printed("--man", "generate"))
        text = subprocess.run(["man", "-l", page], stdout=subprocess.PIPE, check=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "200"}).stdout.decode()
        self.assertIn("--temperature X", text)
        self.assertIn("sampling temperature; higher is more random", text)


class Completion(FoveaTest):
    def bash(self, *words):
        """Returns what bash offers for the last word."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { echo "compopt $*"; }; _fovea; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", self.file("fovea.bash", printed("--completion", "bash")), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split()

    @needs("bash")
    def test_bash_completes_verbs_options_and_values(self):
        self.assertEqual(self.bash("fovea", "tr"), ["trace", "train", "translate", "transcribe"])
        self.assertEqual(self.bash("fovea", "help", "cha"), ["chat"])
        self.assertEqual(self.bash("fovea", "generate", "--temp"), ["--temperature"])
        self.assertEqual(self.bash("fovea", "generate", "model", "--dtype", "b"), ["bf16"])
        self.assertEqual(self.bash("fovea", "generate", "model", "--dtype", "=", "b"), ["bf16"])
        self.assertEqual(self.bash("fovea", "generate", "model", "--predict", ""), ["compopt", "+o", "default"])
        self.assertEqual(self.bash("fovea", "generate", "mod"), [])  # bash completes files
        self.assertEqual(self.bash("fovea", "generate", "--file", ""), [])

    @needs("bash")
    def test_bash_offers_every_option(self):
        for verb, table in TABLES.items():
            self.assertEqual(sorted(self.bash("fovea", verb, "--")), sorted(option["name"] for option in table if option["name"].startswith("--")))

    @needs("fish")
    def test_fish_completes_verbs_options_and_values(self):
        script = self.file("fovea.fish", printed("--completion", "fish"))

        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source '{script}'; complete -C '{line}'"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=True, env={**os.environ, "HOME": str(self.folder)})
            self.assertEqual(done.stderr, b"")
            return [each.split("\t")[0] for each in done.stdout.decode().splitlines()]

        self.assertEqual(sorted(offered("fovea tr")), ["trace", "train", "transcribe", "translate"])
        self.assertIn("--temperature", offered("fovea generate --temp"))
        self.assertEqual(offered("fovea generate model --dtype b"), ["bf16"])

    @needs("zsh")
    def test_zsh_completes_verbs_options_and_values(self):
        functions = self.folder / "functions"
        functions.mkdir()
        (functions / "_fovea").write_text(printed("--completion", "zsh"))
        master, slave = pty.openpty()
        shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=self.folder,
                                 env={**os.environ, "TERM": "dumb", "HOME": str(self.folder)})
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(lambda: (shell.kill(), shell.wait()))

        def typed(text, mark, seconds=60):
            os.write(master, text)
            seen, end = b"", time.monotonic() + seconds
            while mark not in seen:
                self.assertLess(time.monotonic(), end, seen)
                if select.select([master], [], [], 0.2)[0]:
                    seen += os.read(master, 65536)
            return seen

        typed(f"fpath=('{functions}' $fpath); autoload -Uz compinit; compinit -u -D; unset zle_bracketed_paste; PS1='ready> '\n".encode(), b"\rready> ")
        typed(b"fovea gen\t", b"fovea generate ")
        typed(b"--temper\t", b"--temperature ")
        typed(b"0.5 --dtype b\t", b"--dtype bf16 ")
        typed(b"\x15fovea tra\t", b"translate lines of text")

    def test_other_shells_are_refused(self):
        self.refused(fovea("--completion", "ksh"), 2, "--completion: \"ksh\"", "bash, zsh or fish")


if __name__ == "__main__":
    unittest.main()
