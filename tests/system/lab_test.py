"""Experiments, scaling laws, budgets and evaluations on records, from a user's point of view."""
import json
import signal
import subprocess
import time

from support import FOVEA, ROOT, FoveaTest, fovea

MODEL, RECORDS = ROOT / "tests/goldens/fine_tuning/model", ROOT / "tests/goldens/tasks/choices.jsonl"


class Lab(FoveaTest):
    def test_the_list_has_claims_and_rules(self):
        text = self.ok(fovea("lab", "list")).stdout.decode()
        self.assertIn("CLM-01", text)
        for each in json.loads(fovea("lab", "list", "--json").stdout):
            self.assertIn(each["name"], text)
            self.assertTrue(each["rule"] and each["claims"] and each["metric"])

    def test_an_experiment_writes_its_results_and_is_not_repeated(self):
        out = self.folder / "variance"
        first = self.ok(fovea("lab", "score-variance", "--out", out)).stdout.decode()
        result = json.loads((out / "result.json").read_text())
        self.assertEqual(result["conclusions"][0]["verdict"], "held")
        self.assertIn(result["conclusions"][0]["sentence"], first)
        self.assertIn("| 256 |", (out / "table.md").read_text())
        runs = (out / "runs.jsonl").read_text()
        again = self.ok(fovea("lab", "score-variance", "--out", out, "--json"))
        self.assertEqual((out / "runs.jsonl").read_text(), runs)
        self.assertEqual(json.loads(again.stdout)["conclusions"], result["conclusions"])

    def test_an_interrupted_experiment_continues(self):
        out = self.folder / "cut"
        with subprocess.Popen([FOVEA, "lab", "saturation", "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            while process.poll() is None and (not (out / "runs.jsonl").exists() or (out / "runs.jsonl").read_text().count("\n") < 3):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.communicate()
        if process.returncode == 0:
            self.skipTest("it finished before the signal")
        self.assertEqual(process.returncode, 130)
        runs = (out / "runs.jsonl").read_text()
        self.assertFalse((out / "result.json").exists())
        self.ok(fovea("lab", "saturation", "--out", out))
        self.assertTrue((out / "runs.jsonl").read_text().startswith(runs))

    def test_a_result_is_judged_again_or_void(self):
        judged = self.ok(fovea("lab", "judge", ROOT / "lab/results/pooling.json")).stdout.decode()
        self.assertIn("CLM-09: mean pooling beats the first token: undecided (mean 0.383, first 0.358", judged)
        result = json.loads((ROOT / "lab/results/pooling.json").read_text(encoding="utf-8"))
        other = self.folder / "other.json"
        other.write_text(json.dumps({**result, "rule": "each holds if its mean is greater"}))
        conclusions = json.loads(self.ok(fovea("lab", "judge", other, "--json")).stdout)["conclusions"]
        self.assertEqual([each["sentence"] for each in conclusions], ["void: the rule changed"] * 2)
        # Runs under another rule are not continued.
        out = self.folder / "masked"
        self.ok(fovea("lab", "masked-weights", "--out", out))
        runs = (out / "runs.jsonl").read_text()
        settings = json.loads(runs.split("\n", 1)[0])
        (out / "runs.jsonl").write_text(runs.replace(settings["rule"], "0123456789abcdef"))
        self.refused(fovea("lab", "masked-weights", "--out", out), 2, "runs of other settings")

    def test_wrong_results_are_refused(self):
        self.refused(fovea("lab", "judge"), 2, "FILE: not given", "result.json")
        self.refused(fovea("lab", "recall", "result.json"), 2, "result.json: unexpected", "fovea lab judge")
        self.refused(fovea("lab", "judge", self.folder / "none.json"), 2, "none.json")
        for text, words in [("[1]", "wrong.json"), ("{}", "wrong.json"), ('{"experiment": "poling"}', '"poling" is not an experiment')]:
            wrong = self.folder / "wrong.json"
            wrong.write_text(text)
            self.refused(fovea("lab", "judge", wrong), 2, words)

    def test_wrong_experiments_are_refused(self):
        self.refused(fovea("lab"), 2, "NAME: not given", "expected list")
        self.refused(fovea("lab", "recal"), 2, "\"recal\" is not an experiment", "did you mean recall?")
        self.refused(fovea("lab", "residuals"), 2, "--data: none", "expected a file")
        self.refused(fovea("lab", "recall", "--data", self.text), 2, "--data: given", "expected none")
        self.refused(fovea("lab", "recall", "--short", "--long"), 2, "--short: cannot be combined with --long")
        self.refused(fovea("lab", "residuals", "--data", self.folder / "missing.txt", "--out", self.folder / "o"), 2, "missing.txt")


class Scale(FoveaTest):
    def test_a_law_is_fitted_and_checked(self):
        out = self.folder / "scale"
        options = ["scale", self.text, "--out", out, "--widths", "8,12,16,24", "--steps", "4,8,16", "--length", "16", "--batch", "4", "--budget", "1e12"]
        law = json.loads(self.ok(fovea(*options, "--json")).stdout)
        self.assertAlmostEqual(6 * law["parameters"]["value"] * law["tokens"]["value"] / 1e12, 1)
        self.assertLessEqual(law["loss"]["low"], law["loss"]["high"])
        runs = json.loads((out / "result.json").read_text())["runs"]
        self.assertEqual([run["left_out"] for run in runs], [False] * 9 + [True] * 3)
        journal = (out / "runs.jsonl").read_text()
        self.assertIn("left out", self.ok(fovea(*options)).stdout.decode())
        self.assertEqual((out / "runs.jsonl").read_text(), journal)
        self.assertIn("</svg>", (out / "chart.svg").read_text())

    def test_wrong_grids_are_refused(self):
        self.refused(fovea("scale"), 2, "DATA: not given")
        self.refused(fovea("scale", self.text, "--widths", "8,16"), 2, "--widths: 8,16", "at least 4, ascending")
        self.refused(fovea("scale", self.text, "--widths", "8,16,32,33"), 2, "--widths: 33", "multiples of 4")
        self.refused(fovea("scale", self.text, "--steps", "5,4,8"), 2, "--steps: 5,4,8", "at least 3, ascending")


class Budget(FoveaTest):
    def test_a_budget_has_a_size_tokens_and_a_loss(self):
        plan = json.loads(self.ok(fovea("plan", "--budget", "5.76e23", "--json")).stdout)
        self.assertAlmostEqual(plan["parameters"] / 7e10, 1, delta=0.02)  # Chinchilla's
        self.assertAlmostEqual(plan["tokens"] / plan["parameters"], 20)
        self.assertIn("69.28 billion", fovea("plan", "--budget", "5.76e23").stdout.decode())
        hours = json.loads(self.ok(fovea("plan", "--hours", "10", "--speed", "1T", "--utilisation", "0.5", "--json")).stdout)
        self.assertAlmostEqual(hours["flops"] / (36000 * 0.5e12), 1)
        self.assertGreater(json.loads(self.ok(fovea("plan", "--hours", "1", "--json")).stdout)["flops"], 1e10)

    def test_wrong_budgets_are_refused(self):
        self.refused(fovea("plan", "gpt2", "--budget", "1e20"), 2, "--budget, --hours: cannot be combined with MODEL")
        self.refused(fovea("plan", "--budget", "1e20", "--hours", "1"), 2, "--budget: cannot be combined with --hours")
        self.refused(fovea("plan", "--budget", "0"), 2, "--budget, --hours: 0")


class Tasks(FoveaTest):
    def test_choices_are_evaluated_with_shots_and_a_limit(self):
        samples = self.folder / "samples.jsonl"
        found = fovea("eval", MODEL, "--tasks", RECORDS, "--shots", "2", "--limit", "5", "--samples-out", samples, "--json")
        result = json.loads(self.ok(found).stdout)
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        self.assertEqual((result["records"], len(rows)), (5, 5))
        self.assertEqual(result["accuracy"], sum(row["chosen"] == row["gold"] for row in rows) / 5)
        self.assertEqual(rows[0]["context"].count("\n\n"), 2)
        self.assertIn("accuracy per byte", self.ok(fovea("eval", MODEL, "--tasks", RECORDS)).stdout.decode())

    def test_wrong_evaluations_are_refused(self):
        self.refused(fovea("eval", MODEL, "--shots", "2"), 2, "--shots", "--tasks")
        self.refused(fovea("eval", MODEL, self.text, "--tasks", RECORDS), 2, "--tasks: cannot be combined with DATA")
        self.refused(fovea("eval", MODEL, "--tasks", RECORDS, "--shots", "100"), 2, "--shots: 100", "at most 16")
        self.refused(fovea("eval", MODEL, "--tasks", self.folder / "missing.jsonl"), 2, "missing.jsonl")
