"""Each option of a verb changes the result of a run or is refused by name. FOVEA_SOAK=1 walks all options of all cases."""
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import zlib

from option_walk import HARMLESS, World, training_cases, training_values, value_of, verb_cases, verb_values
from option_walk_unchanged import UNCHANGED
from support import FOVEA, SOAK, fovea

TABLES = json.loads(fovea("--list-options").stdout) if os.path.exists(FOVEA) else {}
# Without FOVEA_SOAK, one in this number of the options of each case is tried, always the same ones.
TRAINING_SHARE, VERB_SHARE = (1, 1) if SOAK else (30, 8)


def tried(case, option, share):
    return zlib.crc32(f"{case} {option}".encode()) % share == 0


class OptionWalk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="fovea walk ")
        cls.addClassCleanup(holder.cleanup)
        cls.world = World(pathlib.Path(holder.name))

    def result(self, verb, arguments):
        """Runs a verb. Returns its process and what it gives: the text on standard output and the digests of its files, without
        times."""
        arguments = [str(each) for each in arguments]
        out = pathlib.Path(arguments[arguments.index("--out") + 1]) if "--out" in arguments else None
        if out and out.is_dir():
            shutil.rmtree(out)
        for file in ("prompt.cache", "predictions.jsonl", "samples.jsonl"):
            (self.world.folder / file).unlink(missing_ok=True)
        process = fovea(verb, *arguments, timeout=600)
        given = [] if verb == "train" else [process.stdout]
        if out and out.is_dir():
            for path in sorted(out.glob("*")):
                if path.suffix in (".safetensors", ".json", ".txt"):
                    given.append((path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
            if (out / "log.jsonl").exists():
                lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
                given += [{key: line[key] for key in line if not is_time(key)} for line in lines
                          if "sample" not in line and "version" not in line and "run_seconds" not in line]
        elif out and out.is_file():
            given.append(hashlib.sha256(out.read_bytes()).hexdigest())
        return process, given

    def walk(self, verb, name, command, values, share):
        options = [each for each in TABLES[verb] if each["kind"] != "positional" and each["name"] not in HARMLESS and tried(name, each["name"], share)]
        if not options:
            return
        with self.subTest(verb=verb, case=name):
            process, plain = self.result(verb, command)
            self.assertEqual(process.returncode, 0, process.stderr.decode(errors="replace"))
            self.assertEqual(self.result(verb, command)[1], plain, "the walk compares results, which must not vary")
        for option in options:
            with self.subTest(verb=verb, case=name, option=option["name"]):
                words = value_of(option, values)
                process, changed = self.result(verb, [*command, *words])
                message = process.stderr.decode(errors="replace")
                known = UNCHANGED.get((verb, option["name"]), {})
                if process.returncode != 0:
                    self.assertEqual(process.returncode, 2, message)
                    error = message.splitlines()[-1]
                    named = [option["name"], *map(str, words[1:])]
                    if option["name"].startswith("--encoder-"):
                        named.append("encoder.")  # the model has no encoder, or its field is named
                    self.assertTrue(any(each in error for each in named) or name in known or "*" in known, f"refused without its name: {error}")
                elif changed == plain:
                    self.assertTrue(name in known or "*" in known, f"{words} changes nothing and is not refused")

    def test_options_of_training(self):
        values = training_values(self.world)
        for name, command in training_cases(self.world).items():
            self.walk("train", name, [*command, "--out", self.world.folder / "out"], values, TRAINING_SHARE)

    def test_options_of_other_verbs(self):
        values = verb_values(self.world)
        for (verb, name), command in verb_cases(self.world).items():
            self.walk(verb, name, command, values, VERB_SHARE)


def is_time(key):
    return "sec" in key or "bytes" in key or key.endswith("_ms") or key in ("time", "command")


if __name__ == "__main__":
    unittest.main()
