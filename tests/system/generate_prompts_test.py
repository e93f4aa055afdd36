"""fovea generate --prompts: a file of requests is answered in its order, with the same bytes for any number of processes, and a run
that was killed continues."""
import json
import os
import signal
import subprocess
import time
import unittest

from ranks_test import MPI, command_of
from serving import TEMPLATE, ServeTest
from support import FOVEA, edit_json, fovea


def line(number, url="/v1/chat/completions", **body):
    if not {"messages", "prompt", "input"} & set(body):
        body["messages"] = [{"role": "user", "content": f"What does fox {number} see?"}]
    return {"custom_id": f"request-{number}", "method": "POST", "url": url, "body": {"model": "any", "max_tokens": 8, **body}}


class GeneratePrompts(ServeTest):
    def setUp(self):
        super().setUp()
        self.model = self.served_model()
        edit_json(self.model / "tokenizer_config.json", {"chat_template": TEMPLATE.read_text()})
        self.out = self.folder / "out.jsonl"

    def prompts(self, *lines):
        return self.file("prompts.jsonl", "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))

    def answers(self, file, *options, out=None):
        out = out or self.out
        self.ok(fovea("generate", self.model, "--prompts", file, "--output", out, *options))
        return [json.loads(each) for each in out.read_text().splitlines()]

    def test_each_route_answers_in_the_order_of_the_lines(self):
        file = self.prompts(
            line(1), {"prompt": "The eye", "max_tokens": 3}, line(3, "/v1/completions", prompt=["a", "b"]),
            {"messages": [{"role": "user", "content": "Who?"}], "max_tokens": 1, "custom_id": "mine"},
            {**line(5, "/v1/responses", input="a fox"), "body": {"input": "a fox", "max_output_tokens": 4}},
            line(6, "/v1/messages"), line(7, n=2, logprobs=True, top_logprobs=2, temperature=0))
        answers = self.answers(file)
        self.assertEqual([each["custom_id"] for each in answers],
                         ["request-1", "2", "request-3", "mine", "request-5", "request-6", "request-7"])
        for each in answers:
            self.assertEqual(set(each), {"id", "custom_id", "response", "error"})
            self.assertIsNone(each["error"])
            self.assertEqual(each["response"]["status_code"], 200, each)
            self.assertEqual(each["response"]["request_id"], each["id"])
        bodies = [each["response"]["body"] for each in answers]
        self.assertEqual([each.get("object") or each["type"] for each in bodies],
                         ["chat.completion", "text_completion", "text_completion", "chat.completion", "response", "message", "chat.completion"])
        self.assertEqual((bodies[0]["model"], bodies[0]["created"]), ("model", 0))
        self.assertEqual(len(bodies[2]["choices"]), 2)
        self.assertEqual(len(bodies[6]["choices"][0]["logprobs"]["content"]), 8)
        self.assertEqual(len({each["id"] for each in answers} | {each["id"] for each in bodies}), 14)

    def test_an_answer_is_that_of_the_request_alone(self):
        lines = [line(i, seed=i, temperature=1) for i in range(20)]
        together = self.answers(self.prompts(*lines), "--parallel", 64)
        for i in (0, 7, 19):
            alone = self.answers(self.prompts(lines[i]), "--parallel", 1)
            self.assertEqual(alone[0]["response"]["body"]["choices"], together[i]["response"]["body"]["choices"])
        # Without a seed, the number of the line and --seed decide.
        file = self.prompts(*[line(1, temperature=1)] * 3)
        texts = [[each["response"]["body"]["choices"][0]["message"]["content"] for each in self.answers(file, "--seed", seed)] for seed in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.assertEqual(len(set(texts[0])), 3)

    def test_options_are_the_defaults_of_requests(self):
        request = {"prompt": "The eye"}
        usage = lambda *options: self.answers(self.prompts(request, {**request, "max_tokens": 5}), *options)
        tokens = [each["response"]["body"]["usage"]["completion_tokens"] for each in usage("--predict", 3)]
        self.assertEqual(tokens, [3, 5])
        greedy = usage("--greedy", "--seed", 1)[0]["response"]["body"]["choices"][0]["text"]
        self.assertEqual(greedy, usage("--greedy", "--seed", 2)[0]["response"]["body"]["choices"][0]["text"])

    def test_a_wrong_line_does_not_stop_the_run(self):
        good = line(1)
        cases = [("", "line 2: "), ("{", "line 3: "), ("[1]", "line 4: expected a JSON object"),
                 ("{\"a\": 1}", "line 5: expected url and body, or a body with messages or prompt"),
                 ({**good, "url": "/v1/files"}, "line 6: url: expected /v1/chat/completions, "),
                 ({**good, "method": "GET"}, "line 7: method: expected POST"), ({**good, "body": 3}, "line 8: body: expected an object"),
                 ({**good, "custom_id": 5}, "line 9: custom_id: expected a text"), (line(1, stream=True), "line 10: stream: expected false")]
        file = self.prompts(good, *[each for each, _ in cases], line(11, temperature=-1), line(12, max_tokens=2))
        result = fovea("generate", self.model, "--prompts", file, "--output", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = [json.loads(each) for each in self.out.read_text().splitlines()]
        self.assertEqual(len(answers), 12)
        for answer, (_, message) in zip(answers[1:], cases):
            self.assertIsNone(answer["response"])
            self.assertEqual(answer["error"]["code"], "invalid_line")
            self.assertIn("prompts.jsonl: " + message, answer["error"]["message"])
            self.assertNotIn("\n", answer["error"]["message"])
        self.assertEqual(answers[5]["custom_id"], "request-1")
        self.assertEqual(answers[1]["custom_id"], "2")
        self.assertEqual((answers[10]["response"]["status_code"], answers[10]["error"]), (400, None))
        self.assertEqual(answers[10]["response"]["body"]["error"]["param"], "temperature")
        self.assertEqual(answers[11]["response"]["status_code"], 200)
        self.assertIn(b"12 lines, 10 errors", result.stderr)
        self.assertIn(b"warning: 10 lines with errors, the first: ", result.stderr)

    def test_wrong_commands_are_refused(self):
        file = self.prompts(line(1))
        for options, words in ((["--echo"], ["--echo", "no --prompts"]), (["-p", "a"], ["--prompt", "no --prompts"]), (["--seed", -1], ["--seed: -1"]),
                               (["--json-schema", "{}"], ["--json-schema"]), (["--parallel", 0], ["--parallel"])):
            self.refused(fovea("generate", self.model, "--prompts", file, *options), 2, *words)
        self.refused(fovea("generate", self.model, "-p", "a", "--output", self.out), 2, "--out", "--prompts")
        self.refused(fovea("generate", self.model, "--prompts", self.folder / "none"), 2, "none")
        self.refused(fovea("generate", "tests/goldens/sentence_model", "--prompts", file), 2, "sentence_model")
        self.assertFalse(list(self.folder.glob("out.jsonl*")))

    def long_file(self, count=120):
        return self.prompts(*[line(i, max_tokens=40 + i % 50) if i % 10 else "wrong" for i in range(count)])

    def test_a_killed_run_continues(self):
        file = self.long_file()
        options = ["--parallel", 8, "--seed", 3]
        self.answers(file, *options)
        alone = self.out.read_bytes()
        out, journal = self.folder / "again.jsonl", self.folder / "again.jsonl.journal"
        for how in (signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([FOVEA, *map(str, ["generate", self.model, "--prompts", file, "--output", out, *options])],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            before = journal.read_bytes().count(b"\n") if journal.exists() else 0
            self.wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > before + 3, seconds=60)
            begin = time.monotonic()
            process.send_signal(how)
            error = process.communicate(timeout=60)[1]
            self.assertLess(time.monotonic() - begin, 20)
            self.assertEqual(process.returncode, -9 if how == signal.SIGKILL else 130, error)
            self.assertFalse(out.exists())
        self.assertIn(b"the same command resumes the job", error)
        self.refused(fovea("generate", self.model, "--prompts", file, "--output", out, "--seed", 4), 2, "again.jsonl.part", "--seed")
        done = self.ok(fovea("generate", self.model, "--prompts", file, "--output", out, "--parallel", 3, "--seed", 3))
        self.assertIn(b"resumes after line", done.stderr)
        self.assertIn(b"120 lines, 12 errors", done.stderr)
        self.assertEqual(out.read_bytes(), alone)
        self.assertFalse(journal.exists())

    def test_standard_streams(self):
        file = self.prompts(line(1), line(2))
        self.answers(file)
        piped = self.ok(fovea("generate", self.model, "--prompts", "-", input=file.read_bytes()))
        self.assertEqual(piped.stdout, self.out.read_bytes())

    def start_ranks(self, ranks, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OMPI_")}
        return subprocess.Popen(command_of(ranks, "generate", self.model, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment)

    @unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
    def test_ranks_give_the_same_bytes(self):
        file = self.long_file(60)
        self.answers(file, "--parallel", 4)
        for ranks in (2, 3):
            out = self.folder / f"out{ranks}.jsonl"
            process = self.start_ranks(ranks, "--prompts", file, "--output", out, "--parallel", 4)
            error = process.communicate(timeout=120)[1]
            self.assertEqual(process.returncode, 0, error)
            self.assertEqual(out.read_bytes(), self.out.read_bytes())
        process = self.start_ranks(3, "--prompts", self.folder / "none")
        error = process.communicate(timeout=120)[1]
        self.assertEqual(error.count(b"fovea: error: "), 1, error)

    @unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
    def test_interrupted_ranks_continue_as_one_process(self):
        file = self.long_file(1500)
        self.answers(file)
        out, journal = self.folder / "again.jsonl", self.folder / "again.jsonl.journal"
        process = self.start_ranks(3, "--prompts", file, "--output", out, "--parallel", 2)
        self.wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 5, seconds=60)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertFalse(out.exists())
        done = self.ok(fovea("generate", self.model, "--prompts", file, "--output", out))
        self.assertIn(b"resumes after line", done.stderr)
        self.assertEqual(out.read_bytes(), self.out.read_bytes())

    def test_a_chat_template_replaces_the_models(self):
        edit_json(self.model / "tokenizer_config.json", {"chat_template": None})
        file = self.prompts(line(1))
        self.assertEqual(self.answers(file)[0]["response"]["body"]["error"]["code"], "no_chat_template")
        self.assertEqual(self.answers(file, "--chat-template", TEMPLATE)[0]["response"]["status_code"], 200)


if __name__ == "__main__":
    unittest.main()
