"""The logs of training runs: fovea runs, event files of TensorBoard, and runs that continue."""
import json
import os
import pathlib
import shlex
import struct
import unittest

from support import FoveaTest, fovea


def crc32c(data):
    """The checksum of RFC 3720, appendix B.4, computed bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """Returns the fields of a message of protocol buffers: pairs (number, value)."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at
    at, found = 0, []
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(at)
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def events(folder):
    """Returns the events of the files in a folder, after checking every checksum."""
    found = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        data = path.read_bytes()
        while data:
            size, = struct.unpack("<Q", data[:8])
            assert struct.unpack("<I", data[8:12])[0] == masked(data[:8]), path
            record = data[12:12 + size]
            assert struct.unpack("<I", data[12 + size:16 + size])[0] == masked(record), path
            found.append(fields(record))
            data = data[16 + size:]
    return found


class Runs(FoveaTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", "the eye of a fox sees what light falls on it and never sleeps\n" * 60)
        self.out = self.folder / "out"

    def train(self, *options, **more):
        return self.ok(fovea("train", self.text, "--out", self.out, "--preset", "tiny", "--layers", "1", "--heads", "2", "--width", "16",
                             "--context", "16", "--batch", "4", "--dtype", "fp32", "--seed", "3", *options, **more))

    def log(self, folder=None):
        return [json.loads(line) for line in ((folder or self.out) / "log.jsonl").read_text().splitlines()]

    def test_short_runs_have_a_short_warm_up_and_evaluations(self):
        self.train("--steps", "40", "--sample-tokens", "5")
        log = self.log()
        rates = [line["learning_rate"] for line in log if "learning_rate" in line]
        self.assertEqual(rates.index(max(rates)), 2)  # a twentieth of the steps
        self.assertEqual([line["step"] for line in log if "eval_loss" in line], [5, 10, 15, 20, 25, 30, 35, 40])
        self.assertEqual([line["step"] for line in log if "sample" in line], [10, 20, 30, 40])

    def test_epochs_determine_the_steps_of_a_text(self):
        done = json.loads(self.train("--epochs", "2", "--sample-tokens", "0", "--json").stdout)
        plan = json.loads(self.ok(fovea("train", self.text, "--dry-run", "--json", "--preset", "tiny", "--context", "16", "--batch", "4",
                                        "--epochs", "4")).stdout)
        self.assertAlmostEqual(plan["steps"], 2 * done["steps"], delta=1)

    def test_schedules_fall_from_the_warm_up_to_the_end(self):
        for schedule, more in (("linear", ()), ("wsd", ("--decay-fraction", "0.9"))):
            self.train("--steps", "20", "--warmup", "15", "--schedule", schedule, *more, "--final-rate", "0",
                       "--learning-rate", "0.01", "--evaluate-every", "0", "--sample-tokens", "0", "--out", self.folder / schedule)
            rates = [line["learning_rate"] for line in self.log(self.folder / schedule) if "learning_rate" in line]
            self.assertEqual(rates[15], 0.01, schedule)  # no jump where the decay begins
            self.assertTrue(all(a > b for a, b in zip(rates[15:], rates[16:])), rates)

    def test_a_run_continues_by_its_directory_alone(self):
        self.train("--steps", "6", "--sample-tokens", "0")
        done = self.ok(fovea("train", "--out", self.out, "--steps", "9", cwd="/"))
        self.assertIn(b"Resuming the run of\n  fovea train ", done.stderr)
        self.assertIn(b"continues to step 9", done.stderr)
        self.assertEqual([line["step"] for line in self.log() if "loss" in line], list(range(1, 10)))
        # The command that continued is complete, too.
        self.ok(fovea("train", "--out", self.out, "--steps", "10", cwd="/"))
        self.assertEqual(self.log()[-1]["step"], 10)
        self.refused(fovea("train", "--out", self.folder / "none"), 2, "DATA: not given")

    def test_a_directory_does_not_choose_a_program(self):
        self.train("--steps", "2", "--sample-tokens", "0")
        log = self.out / "log.jsonl"
        log.write_text(json.dumps({"step": 0, "version": "1", "command": ["train", str(self.text), "--reward-command", "touch /tmp/x"],
                                   "folder": "/"}) + "\n" + log.read_text().split("\n", 1)[1])
        self.refused(fovea("train", "--out", self.out), 2, "--reward-command", "must not choose")

    def test_the_log_says_how_the_run_was_made(self):
        done = json.loads(self.train("--steps", "4", "--json").stdout)
        begin, *_, end = self.log()
        self.assertEqual(begin["command"][:2], ["train", str(self.text)])
        self.assertIn("--width", begin["command"])
        self.assertTrue(begin["version"] and begin["time"].endswith("Z") and begin["folder"])
        self.assertGreater(end["run_seconds"], 0)
        self.assertGreater(end["planned_mem_bytes"], 0)
        self.assertTrue(any("sample" in line for line in self.log()))
        self.assertGreater(max(line["seconds"] for line in self.log() if "loss" in line), 0)
        for key in ("planned_seconds", "planned_tokens_per_second", "planned_bytes"):
            self.assertGreater(done[key], 0)

    def test_plans_count_evaluations_samples_and_snapshots(self):
        def plan(*options):
            return json.loads(self.ok(fovea("train", self.text, "--dry-run", "--json", "--preset", "tiny", "--steps", "100", "--sample-tokens", "0",
                                            *options)).stdout)
        often, seldom = plan("--evaluate-every", "1", "--evaluate-windows", "0"), plan("--evaluate-every", "0", "--evaluate-windows", "0")
        self.assertGreater(often["pause_seconds"], 2 * seldom["pause_seconds"])
        self.assertGreater(often["seconds"], often["pause_seconds"])

    def test_event_files_have_curves_samples_and_weights(self):
        self.train("--steps", "4", "--tensorboard", "--evaluate-every", "2", "--sample-tokens", "5")
        self.ok(fovea("train", "--out", self.out, "--steps", "6"))
        found = {}
        for event in events(self.out / "tensorboard"):
            values = dict(event)
            for number, content in event:
                for _, value in fields(content) if number == 5 else []:
                    value = dict(fields(value))
                    found.setdefault(value[1].decode(), {})[values.get(2, 0)] = value
        log = self.log()
        for step, value in found["train/loss"].items():
            logged = next(line["loss"] for line in log if line["step"] == step and "loss" in line)
            self.assertAlmostEqual(struct.unpack("<f", value[2])[0], logged, places=5)
        self.assertEqual(sorted(found["train/loss"]), [1, 2, 3, 4, 5, 6])
        self.assertEqual(sorted(found["eval/loss"]), [2, 4, 6])
        sample = dict(fields(found["sample/text_summary"][4][8]))[8].decode()
        self.assertIn(sample, [line["sample"] for line in log if "sample" in line])
        name = next(tag for tag in found if tag.startswith("weights/") and "embedding" in tag)
        histogram = dict(fields(found[name][4][5]))
        counts = struct.unpack(f"<{len(histogram[7]) // 8}d", histogram[7])
        self.assertEqual(sum(counts), struct.unpack("<d", histogram[3])[0])
        self.assertEqual(len(histogram[6]), len(histogram[7]))
        starts = [dict(event).get(2, 0) for event in events(self.out / "tensorboard") if 7 in dict(event)]
        self.assertEqual(starts, [1, 5])

    def test_csv_has_the_numbers_of_the_log(self):
        self.train("--steps", "4", "--csv", "--evaluate-every", "2", "--sample-tokens", "5")
        self.ok(fovea("train", "--out", self.out, "--steps", "6"))
        header, *lines = (self.out / "metrics.csv").read_text().splitlines()
        self.assertEqual(header, "step,metric,value")
        expected = [(line["step"], name, value) for line in self.log() for name, value in line.items()
                    if name != "step" and isinstance(value, (int, float)) and not isinstance(value, bool)]
        found = [line.split(",") for line in lines]
        self.assertEqual([(int(step), name, float(value)) for step, name, value in found], expected)
        self.assertIn((6, "eval_loss"), [(step, name) for step, name, _ in expected])

    def test_numbers_may_have_a_unit(self):
        def steps(typed):
            return json.loads(self.ok(fovea("train", self.text, "--dry-run", "--json", "--preset", "tiny", "--steps", typed)).stdout)["steps"]
        self.assertEqual((steps("2k"), steps("1.5k"), steps("1M")), (2000, 1500, 1000000))
        for typed in ("k", "1.2345k", "2kk", "5x", "9999T"):
            self.refused(fovea("train", self.text, "--dry-run", "--preset", "tiny", "--steps", typed), 2, "--steps")

    def test_evaluations_read_a_part_of_the_data(self):
        self.train("--steps", "2", "--sample-tokens", "0")
        def evaluate(*options):
            return json.loads(self.ok(fovea("eval", self.out, *options, "--json")).stdout)
        whole = evaluate(self.text)
        part = evaluate(self.text, "--limit", "3")
        context = json.loads((self.out / "config.json").read_text())["n_positions"]
        self.assertEqual(part["tokens"], 3 * context)
        self.assertLess(part["bytes"], whole["bytes"] / 10)
        first = self.file("first.txt", self.text.read_text()[:3 * context + 1])
        self.assertAlmostEqual(part["loss"], evaluate(first)["loss"], places=12)
        self.assertEqual(evaluate(self.text, "--limit", "1M"), whole)
        self.refused(fovea("eval", self.out, self.text, "--against", self.out, "--limit", "3"), 2, "--against: cannot be combined with --limit")

    def test_the_end_names_the_page_of_the_model(self):
        self.assertIn(f"fovea inspect {shlex.quote(str(self.out))}", self.train("--steps", "1", "--sample-tokens", "0").stderr.decode())

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_plan_refuses_a_folder_that_cannot_be_written(self):
        self.refused(fovea("train", self.text, "--dry-run", "--preset", "tiny", "--out", "/usr/run"), 2, "--out: /usr/run: no files can be created")

    def test_runs_are_listed_compared_and_overlaid(self):
        for width in ("16", "24"):
            self.train("--steps", "6", "--width", width, "--sample-tokens", "0", "--out", self.folder / "runs" / width)
        svg = self.folder / "all.svg"
        text = self.ok(fovea("runs", self.folder / "runs", "--out", svg)).stdout.decode()
        self.assertIn("spec.width\n", text)
        for width in ("16", "24"):
            self.assertIn(str(self.folder / "runs" / width), text)
            self.assertIn(f"runs/{width} ", svg.read_text())
        self.assertIn("eval_loss", text)
        self.assertEqual(svg.read_text().count("<polyline"), 2)
        rows = self.ok(fovea("runs", self.folder / "runs", "--csv")).stdout.decode().splitlines()
        self.assertEqual(rows[0], "run,step,metric,value")
        losses = [line["loss"] for line in self.log(self.folder / "runs/16") if "loss" in line]
        self.assertEqual([float(row.split(",")[3]) for row in rows if row.split(",")[0].endswith("16") and ",loss," in row], losses)
        runs = json.loads(self.ok(fovea("runs", self.folder / "runs", "--json")).stdout)["runs"]
        self.assertEqual([run["settings"]["spec.width"] for run in runs], ["16", "24"])
        self.refused(fovea("runs", self.folder / "runs", "--metric", "f1"), 2, "--metric: f1", "eval_loss")
        self.refused(fovea("runs", self.text.parent / "none"), 2, "holds no training run")


if __name__ == "__main__":
    unittest.main()
