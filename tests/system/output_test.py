"""Destinations of results: full disks, closed pipes, locations that cannot be written, and JSON."""
import json
import math
import os
import signal
import subprocess
import time
import unittest

from support import FOVEA, ROOT, FoveaTest, fovea


class Places(FoveaTest):
    def test_a_location_that_cannot_hold_a_model_is_refused(self):
        taken = self.file("taken", "something")
        for out in (taken, taken / "below", "/proc/fovea", "/proc/self/fovea/model"):
            with self.subTest(out=str(out)):
                self.refused(self.train(out), (1, 2), "/proc/self/fovea" if "self" in str(out) else out)
        self.assertEqual(taken.read_bytes(), b"something")

    def test_a_location_that_cannot_hold_a_trace_is_refused(self):
        for out in (self.folder, "/proc/fovea.safetensors", self.folder / "none/x.safetensors", "/dev/full"):
            with self.subTest(out=str(out)):
                self.refused(fovea("trace", self.model(), "--text", "The", "--out", out), (1, 2), out)

    def test_a_dry_run_writes_nothing(self):
        before = sorted(self.folder.rglob("*"))
        self.ok(self.train(self.folder / "out", "--dry-run"))
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_a_relative_out_in_an_unwritable_folder_is_refused(self):
        self.refused(self.train("out", cwd="/proc"), (1, 2), "out")


class Streams(FoveaTest):
    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["--version"], ["train", "--help"], ["generate", self.model(), "-p", "The", "-n", "20"],
                              ["eval", self.model(), self.text]):
                with self.subTest(arguments[0]):
                    self.refused(fovea(*arguments, stdout=full), 1, "standard output", "No space left")

    def test_a_closed_pipe_ends_the_program_quietly(self):
        process = subprocess.Popen([FOVEA, "generate", str(self.model()), "-n", "1000000", "-p", "The"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(process.stdout.read(10))
        process.stdout.close()
        _, message = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, message)
        self.assertNotIn(b"error", message)

    def test_an_interrupt_ends_a_generation(self):
        for which, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("generate", self.model(), "-n", "-1", "--ignore-eos", "-p", "The")
            self.assertTrue(process.stdout.read(10))
            before = time.monotonic()
            process.send_signal(which)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, code)
            print(f"stopped after {time.monotonic() - before:.2f} s")

    def test_standard_output_contains_results_only(self):
        result = self.ok(self.train(self.folder / "out"))
        self.assertEqual(result.stdout, b"")
        self.assertNotIn(b"\x1b", result.stderr)
        self.assertNotIn(b"\r", result.stderr)


class Json(FoveaTest):
    def result(self, *arguments):
        result = self.ok(fovea(*arguments, "--json"))
        self.assertEqual(result.stdout.count(b"\n"), 1)
        return json.loads(result.stdout)

    def test_train_reports_its_plan_and_result(self):
        plan = json.loads(self.ok(self.train(self.folder / "out", "--dry-run", "--json")).stdout)
        self.assertEqual(plan["tokens_per_step"], 4 * 2 * 32)
        self.assertEqual(plan["spec"]["width"], 32)
        done = json.loads(self.ok(self.train(self.folder / "out", "--json")).stdout)
        self.assertEqual((done["step"], done["interrupted"]), (12, False))
        self.assertTrue(0 < done["loss"] < 10)

    def test_eval_reports_consistent_metrics(self):
        r = self.result("eval", self.model(), self.text)
        self.assertAlmostEqual(r["perplexity"], math.exp(r["loss"]), places=3)
        self.assertAlmostEqual(r["bits_per_byte"], r["loss"] * r["tokens"] / r["bytes"] / math.log(2), places=4)
        self.assertEqual(r["unknown"], 0)
        self.assertEqual(self.result("eval", self.model(), self.text), r)

    def test_eval_refuses_invalid_requests(self):
        for path in (self.folder / "none", self.file("empty", "")):
            self.refused(fovea("eval", self.model(), path), 2, path)

    def test_trace_lists_the_tensors_of_its_file(self):
        out = self.folder / "trace.safetensors"
        r = self.result("trace", self.model(), "--text", "The fox", "--gradients", "--out", out)
        for name in ("logits", "hidden.0", "hidden.2", "attention.0", "attention.1", "loss"):
            self.assertIn(name, r["tensors"])
        self.assertTrue(any(name.startswith("grad.") for name in r["tensors"]))
        header = int.from_bytes(out.read_bytes()[:8], "little")
        names = set(json.loads(out.read_bytes()[8:8 + header])) - {"__metadata__"}
        self.assertEqual(names, set(r["tensors"]))

    def test_trace_refuses_invalid_requests(self):
        out = self.folder / "trace.safetensors"
        for ids in ("", "x", "1,,2", "1,", "-1", "1.5", str(2**31), "99999"):
            with self.subTest(ids=ids):
                self.refused(fovea("trace", self.model(), "--ids", ids, "--out", out), 2)
        self.refused(fovea("trace", self.model(), "--out", out), 2, "--text, --ids, --input")
        self.refused(fovea("trace", self.model(), "--text", "a", "--ids", "1", "--out", out), 2, "exactly one")
        self.refused(fovea("trace", self.model(), "--ids", "1"), 2, "--out")
        self.refused(fovea("trace", self.model(), "--input", self.text, "--out", out), 2, self.text)
        self.assertFalse(out.exists())

    def test_doctor_reports_findings_in_machine_and_model(self):
        result = fovea("doctor", "--json")
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if report["good"] else 1)
        self.assertGreaterEqual(len(report["findings"]), 2)
        self.ok(fovea("doctor", self.model()))
        weights = self.model() / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4])
        self.assertIn(fovea("doctor", self.model()).returncode, (1, 2))

    def test_doctor_names_the_family_that_is_nearest_to_an_unknown_one(self):
        config = self.model() / "config.json"
        known = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps({**known, "model_type": "mystery", "logit_scale": 0.5}), encoding="utf-8")
        result = fovea("doctor", self.model())
        config.write_text(json.dumps(known), encoding="utf-8")
        self.assertEqual(result.returncode, 1)
        for part in (b'model_type "mystery" is not known', f"nearest family     {known['model_type']}: has ".encode(), b"no such keys or values: logit_scale"):
            self.assertIn(part, result.stdout)

    def test_bench_reports_the_speed(self):
        r = self.result("bench", "--train", "tiny", "--dtype", "fp32", "--steps", "2", "--batch", "2")
        self.assertEqual((r["preset"], r["precision"], r["steps"], r["batch"]), ("tiny", "fp32", 2, 2))
        self.assertGreater(r["tokens_per_second"], 0)
        self.refused(fovea("bench", "--train", "tiyn"), 2, "tiyn", "tiny")
        r = self.result("bench", "--train", "lstm", "--steps", "1", "--batch", "2")
        self.assertAlmostEqual(r["tokens_per_second"], 128 * r["sequences_per_second"], delta=1)
        self.refused(fovea("bench", "--train", "lstm", "--heads", "loop"), 2, "--train: lstm has no attention; expected a preset such as nano")

    def test_bench_measures_images(self):
        r = self.result("bench", "--train", "vit-tiny", "--steps", "1", "--batch", "2")
        self.assertAlmostEqual(r["tokens_per_second"], 65 * r["sequences_per_second"], delta=1)
        r = self.result("bench", ROOT / "tests/goldens/deit", "--images", "3", "--runs", "1")
        self.assertEqual(r["images"], 3)
        self.assertGreater(r["images_per_second"], 0)
        self.refused(fovea("bench", "--images", "3"), 2, "--images: requires a MODEL; expected a model directory")

    def test_bench_decodes_after_a_prompt_of_a_given_length(self):
        r = self.result("bench", self.model(), "--prompt", "8", "--decode", "4", "--depth", "20")
        self.assertEqual((r["decode"], r["depth"]), (4, 20))
        self.refused(fovea("bench", self.model(), "--prompt", "8", "--depth", "1000"), 2, "--depth", "context of 32")

    def test_bench_reports_the_rates_of_the_machine(self):
        rates = self.result("bench", "--machine")
        self.assertEqual(list(rates), ["cpu", "isa", "threads", "fp32_flops", "bf16_flops", "int8_operations",
                                       "one_thread_bytes_per_second", "bytes_per_second"])
        self.assertTrue(all(rate > 0 for rate in list(rates.values())[2:]))
        self.refused(fovea("bench", self.model(), "--machine"), 2, "--machine")


class Environment(FoveaTest):
    def test_locale_time_zone_home_and_umask_have_no_effect(self):
        from support import digests
        plain = self.folder / "plain"
        self.ok(self.train(plain, "--lr", "0.002"))
        odd = self.folder / "odd"
        odd_world = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "HOME": "/nonexistent", "COLUMNS": "7"}
        self.ok(self.train(odd, "--lr", "0.002", env=odd_world, cwd="/proc", preexec_fn=lambda: os.umask(0o077) and None))
        self.assertEqual(digests(plain), digests(odd))


if __name__ == "__main__":
    unittest.main()
