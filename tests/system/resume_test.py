"""A run that was interrupted, killed or extended ends with the same bits as an uninterrupted one."""
import json
import random
import re
import signal
import time
import unittest

from support import SMALL, SOAK, FoveaTest, digests, fovea

STEPS = 120
CADENCE = ["--evaluate-every", "40", "--save-every", "10", "--keep", "1"]


class Resume(FoveaTest):
    def arguments(self, out, *more):
        return ["train", self.text, "--out", out, *SMALL, *CADENCE, "--steps", STEPS, *more]

    def unbroken(self, *more):
        out = self.folder / "unbroken"
        self.ok(fovea(*self.arguments(out, *more)))
        self.assertGreaterEqual(len(digests(out)), 2, "weights and training state")
        return out

    def test_an_interrupted_run_resumes_with_the_same_bits(self):
        out = self.folder / "out"
        process = self.start(*self.arguments(out))
        self.wait_for(process, "saved")
        code, rest = self.end(process)
        self.assertEqual(code, 130, rest)
        self.assertIn("Resume with:", rest)
        self.assertIn("fovea train", rest)
        again = self.ok(fovea(*self.arguments(out)))
        self.assertRegex(again.stderr.decode(), r"from .*step [1-9]")
        self.assertEqual(digests(out), digests(self.unbroken()))

    def test_a_terminated_run_resumes_in_either_precision(self):
        for dtype in ("fp32", "bf16"):
            out = self.folder / dtype
            process = self.start(*self.arguments(out, "--dtype", dtype))
            self.wait_for(process, "saved")
            code, rest = self.end(process, signal.SIGTERM)
            self.assertEqual(code, 143, rest)
            self.ok(fovea(*self.arguments(out, "--dtype", dtype)))
            whole = self.folder / (dtype + " whole")
            self.ok(fovea(*self.arguments(whole, "--dtype", dtype)))
            self.assertEqual(digests(out), digests(whole), dtype)

    def test_hangups_stop_a_run_gently(self):
        """The training of a server that was killed got one signal for each thread of the server, and ended without a snapshot."""
        out = self.folder / "out"
        process = self.start(*self.arguments(out))
        self.wait_for(process, "saved")
        process.send_signal(signal.SIGHUP)
        code, rest = self.end(process, signal.SIGHUP)
        self.assertEqual(code, 129, rest)
        self.assertIn("Resume with:", rest)

    def test_a_run_killed_at_any_time_can_be_resumed(self):
        generator = random.Random(5)
        whole = digests(self.unbroken())
        before = time.monotonic()
        self.ok(fovea(*self.arguments(self.folder / "timed")))
        seconds = time.monotonic() - before
        for _ in range(20 if SOAK else 2):
            out = self.folder / f"killed {generator.random()}"
            saved = self.killed_rounds(out, generator, seconds, kills=10 if SOAK else 4)
            self.check_restart(self.ok(fovea(*self.arguments(out))).stderr.decode(), saved)
            self.assertEqual(digests(out), whole)
            self.assertEqual([p for p in out.rglob("*") if "tmp" in p.name or "part" in p.name], [], "no temporary files are left")

    def killed_rounds(self, out, generator, seconds, kills):
        saved = 0
        for _ in range(kills):
            process = self.start(*self.arguments(out))
            time.sleep(generator.uniform(0.02, seconds / 2))
            process.kill()
            told = process.stderr.read()
            process.wait()
            self.check_restart(told, saved)
            saved = max([saved] + [int(step) for step in re.findall(r"step (\d+): saved", told)])
        return saved

    def check_restart(self, told, saved):
        """A snapshot that was reported as saved is never lost."""
        begun = re.search(r"^  from .*?(?:, step (\d+))?$", told, re.MULTILINE)
        if begun:
            self.assertGreaterEqual(int(begun[1] or 0), saved, told)

    def test_the_number_of_threads_does_not_change_the_bits(self):
        one, two = self.folder / "one", self.folder / "two"
        self.ok(self.train(one, "-t", "1", steps=30))
        self.ok(self.train(two, "-t", "2", steps=30))
        self.assertEqual(digests(one), digests(two))

    def test_repeating_the_command_changes_nothing(self):
        out = self.unbroken()
        before = digests(out)
        self.ok(fovea(*self.arguments(out)))
        self.assertEqual(digests(out), before)

    def test_changed_options_are_refused(self):
        out = self.model(20)
        for change in (["--seed", "8"], ["--batch", "5"], ["--lr", "0.5"], ["--width", "64"]):
            with self.subTest(change=change):
                self.refused(self.train(out, *change, steps=40), 2, change[0].strip("-").replace("lr", "learning"))

    def test_changed_text_is_refused_unless_allowed(self):
        out = self.model(20)
        self.text.write_text(self.text.read_text().replace("fox", "owl"))
        self.refused(self.train(out, steps=40), 2)
        self.ok(self.train(out, "--allow-change", steps=40))

    def test_a_damaged_snapshot_is_never_used(self):
        out = self.folder / "out"
        self.ok(fovea(*self.arguments(out, "--steps", "40", "--keep", "3", "--schedule", "constant")))
        states = [p for p in out.rglob("*.safetensors") if p.parent != out]
        self.assertTrue(states)
        newest = max(states, key=lambda p: p.stat().st_mtime_ns)
        content = bytearray(newest.read_bytes())
        content[len(content) // 2] ^= 1
        newest.write_bytes(bytes(content))
        result = self.ok(fovea(*self.arguments(out, "--keep", "3", "--schedule", "constant", "--allow-change")))
        self.assertRegex(result.stderr.decode(), r"(?i)damaged|checksum|corrupt|falls? back|not whole")


class Exclusive(FoveaTest):
    def test_a_second_trainer_is_refused(self):
        out = self.folder / "out"
        arguments = ["train", self.text, "--out", out, *SMALL, "--steps", "1000000", "--save-every", "10"]
        first = self.start(*arguments)
        self.wait_for(first, "saved")
        self.refused(fovea(*arguments), 1, out)
        self.assertIsNone(first.poll(), "the first continues")
        code, rest = self.end(first)
        self.assertEqual(code, 130, rest)

    def test_the_lock_of_a_killed_trainer_is_ignored(self):
        out = self.folder / "out"
        first = self.start("train", self.text, "--out", out, *SMALL, "--steps", "1000000", "--save-every", "10")
        self.wait_for(first, "saved")
        first.kill()
        first.wait()
        self.ok(self.train(out, "--allow-change", steps=5000, timeout=200) if SOAK else fovea("doctor", out))

    def test_a_second_signal_ends_the_run_immediately(self):
        first = self.start("train", self.text, "--out", self.folder / "out", *SMALL, "--steps", "1000000", "--save-every", "10")
        self.wait_for(first, "saved")
        first.send_signal(signal.SIGINT)
        first.send_signal(signal.SIGTERM)
        first.stderr.read()
        self.assertIn(first.wait(timeout=60), (130, 143))


class Limits(FoveaTest):

    def test_a_run_takes_at_most_the_planned_memory(self):
        shapes = [("--batch", "64"), ("--width", "16", "--layers", "1"), ("--tokenizer", "bpe:300", "--width", "128")]
        for dtype in ("fp32", "bf16"):
            for shape in shapes:
                with self.subTest(dtype=dtype, shape=shape):
                    out = self.folder / (dtype + shape[1])
                    r = json.loads(self.ok(self.train(out, "--dtype", dtype, *shape, "--json", steps=2)).stdout)
                    self.assertLess(r["peak_bytes"], r["planned_bytes"])
                    self.assertLess(r["planned_bytes"], 2 * r["peak_bytes"])

    def test_non_finite_numbers_end_the_run(self):
        result = self.train(self.folder / "out", "--lr", "1000", "--clip", "0", "--warmup", "0", "--dtype", "fp32", steps=300)
        if result.returncode != 0:
            self.refused(result, 1)


if __name__ == "__main__":
    unittest.main()
