"""fovea serve --jobs: files and fine-tuning jobs as OpenAI's API has them, with plain requests and with OpenAI's client."""
import json
import os
import pathlib
import time
import unittest

from serving import ServeTest
from support import fovea

try:
    import openai
except ImportError:
    openai = None

KEY = "secret-of-the-test"


def chats(count, answer="a fox sleeps"):
    return "".join(json.dumps({"messages": [{"role": "user", "content": f"What is {i}?"}, {"role": "assistant", "content": answer}]}) + "\n"
                   for i in range(count))


class Jobs(ServeTest):
    """A server with jobs, and its client."""

    def start(self, *options):
        self.jobs = self.folder / "jobs"
        return self.serve("--jobs", self.jobs, *options, env={"FOVEA_API_KEY": KEY})

    def ask(self, method, path, body=None, headers=None, timeout=60):
        return super().ask(method, path, body, {"Authorization": f"Bearer {KEY}", **(headers or {})}, timeout)

    def get(self, path):
        status, _, answer = self.ask("GET", path)
        self.assertEqual(status, 200, answer)
        return answer

    def upload(self, text, name="chats.jsonl"):
        body = (f'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nfine-tune\r\n'
                f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{text}\r\n--x--\r\n')
        return self.ask("POST", "/v1/files", body.encode(), {"Content-Type": "multipart/form-data; boundary=x"})

    def uploaded(self, text):
        status, _, answer = self.upload(text)
        self.assertEqual(status, 200, answer)
        return answer["id"]

    def create(self, **more):
        return self.good("/v1/fine_tuning/jobs", {"model": "model", **more})

    def wait_for(self, job, *states):
        self.wait_until(lambda: self.get(f"/v1/fine_tuning/jobs/{job['id']}")["status"] in states, seconds=120)
        return self.get(f"/v1/fine_tuning/jobs/{job['id']}")

    def events(self, job):
        return self.get(f"/v1/fine_tuning/jobs/{job['id']}/events?limit=100")["data"]

    def children(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                if parent == str(self.process.pid):
                    found.append(int(entry.name))
            except (OSError, IndexError, ValueError):
                continue
        return found


class ServeJobs(Jobs):
    def test_a_job_trains_a_model_that_is_then_served(self):
        self.start()
        job = self.create(training_file=self.uploaded(chats(20)), validation_file=self.uploaded(chats(4)), suffix="fox", seed=3,
                          method={"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 2, "batch_size": 5,
                                                                                           "learning_rate_multiplier": 20}}})
        self.assertEqual(job["status"], "validating_files")
        done = self.wait_for(job, "succeeded", "failed")
        self.assertEqual((done["status"], done["error"]), ("succeeded", None))
        name = done["fine_tuned_model"]
        self.assertRegex(name, r"^ft:model:fox:[0-9a-f]{12}$")
        self.assertGreater(done["trained_tokens"], 100)
        events = self.events(job)
        steps = [event["data"] for event in reversed(events) if event["type"] == "metrics" and "train_loss" in event["data"]]
        self.assertEqual([step["step"] for step in steps], list(range(1, steps[0]["total_steps"] + 1)))
        self.assertLess(steps[-1]["train_loss"], steps[0]["train_loss"])
        self.assertEqual(sum("full_valid_loss" in (event["data"] or {}) for event in events), 2, "once per epoch")
        checkpoints = self.get(f"/v1/fine_tuning/jobs/{job['id']}/checkpoints")["data"]
        self.assertEqual([each["step_number"] for each in checkpoints], [steps[0]["total_steps"], steps[0]["total_steps"] // 2])
        self.assertLess(checkpoints[0]["metrics"]["full_valid_loss"], checkpoints[1]["metrics"]["full_valid_loss"])
        self.assertIn(name, [model["id"] for model in self.get("/v1/models")["data"]])
        ask = {"messages": [{"role": "user", "content": "What is 3?"}], "max_tokens": 12, "temperature": 0}
        answers = [self.good("/v1/chat/completions", {**ask, "model": model})["choices"][0]["message"]["content"] for model in ("model", name)]
        self.assertNotEqual(*answers)
        adapter = self.jobs / "jobs" / job["id"] / "model"
        self.assertTrue((adapter / "adapter_model.safetensors").exists())
        # After a restart the result is served as before.
        self.assertEqual(self.stop(), 143)
        self.start()
        self.assertEqual(self.good("/v1/chat/completions", {**ask, "model": name})["choices"][0]["message"]["content"], answers[1])
        self.assertEqual(self.get(f"/v1/fine_tuning/jobs/{job['id']}"), done)

    def test_a_job_learns_preferences_and_its_checkpoints_are_served(self):
        self.start()
        pairs = "".join(json.dumps({"input": {"messages": [{"role": "user", "content": f"What is {i}?"}]},
                                    "preferred_output": [{"role": "assistant", "content": "a fox"}],
                                    "non_preferred_output": [{"role": "assistant", "content": "dogs"}]}) + "\n" for i in range(12))
        job = self.create(training_file=self.uploaded(pairs), validation_file=self.uploaded(pairs), seed=3,
                          method={"type": "dpo", "dpo": {"hyperparameters": {"n_epochs": 2, "batch_size": 4, "beta": 0.5,
                                                                             "learning_rate_multiplier": 200}}})
        done = self.wait_for(job, "succeeded", "failed")
        self.assertEqual((done["status"], done["error"]), ("succeeded", None))
        self.assertEqual(done["method"]["dpo"]["hyperparameters"]["beta"], 0.5)
        steps = [event["data"] for event in reversed(self.events(job)) if "train_loss" in (event["data"] or {})]
        self.assertGreater(steps[-1]["train_margin"], steps[0]["train_margin"])
        checkpoints = self.get(f"/v1/fine_tuning/jobs/{job['id']}/checkpoints")["data"]
        self.assertEqual([each["step_number"] for each in checkpoints], [6, 3])
        names = [each["fine_tuned_model_checkpoint"] for each in checkpoints]
        models = [model["id"] for model in self.get("/v1/models")["data"]]
        self.assertEqual(sorted(models), sorted(["model", done["fine_tuned_model"], *names]))
        ask = {"messages": [{"role": "user", "content": "What is 3?"}], "max_tokens": 4, "temperature": 0, "logprobs": True}
        found = {name: self.good("/v1/chat/completions", {**ask, "model": name})["choices"][0]["logprobs"]["content"][0]["logprob"]
                 for name in ("model", *names)}
        self.assertEqual(len(set(found.values())), 3, found)

    def test_a_job_learns_from_a_grader(self):
        self.start()
        prompts = "".join(json.dumps({"messages": [{"role": "user", "content": f"{i}+1"}], "answer": str(i + 1)}) + "\n" for i in range(8))
        grader = {"type": "multi", "calculate_output": "same + 0.1 * short",
                  "graders": {"same": {"type": "string_check", "name": "same", "input": "{{sample.output_text}}",
                                       "reference": "{{item.answer}}", "operation": "like"},
                              "short": {"type": "length", "least": 0, "most": 4}}}
        options = {"hyperparameters": {"n_epochs": 2, "batch_size": 4, "answer_tokens": 6, "eval_interval": 2}, "grader": grader}
        file = self.uploaded(prompts)
        job = self.create(training_file=file, validation_file=file, method={"type": "reinforcement", "reinforcement": options})
        done = self.wait_for(job, "succeeded", "failed")
        self.assertEqual((done["status"], done["error"]), ("succeeded", None))
        self.assertEqual(done["method"]["reinforcement"]["grader"], grader)
        data = [event["data"] or {} for event in self.events(job)]
        self.assertEqual(sum("train_reward" in each for each in data), 4)
        self.assertTrue(any("valid_reward" in each for each in data))
        self.assertEqual([each["step_number"] for each in self.get(f"/v1/fine_tuning/jobs/{job['id']}/checkpoints")["data"]], [4, 2])
        lacking = json.dumps({"messages": [{"role": "user", "content": "1+1"}]}) + "\n"
        wrong = self.uploaded(prompts + lacking)
        failed = self.wait_for(self.create(training_file=wrong, method={"type": "reinforcement", "reinforcement": options}), "failed", "succeeded")
        self.assertEqual(failed["error"]["code"], "invalid_training_file")
        self.assertIn(f"{wrong}:9: answer is missing", failed["error"]["message"])
        grader["graders"]["same"]["reference"] = "{{item.answer"
        failed = self.wait_for(self.create(training_file=file, method={"type": "reinforcement", "reinforcement": options}), "failed", "succeeded")
        self.assertEqual((failed["error"]["code"], failed["error"]["param"]), ("invalid_grader", "method.reinforcement.grader"))
        self.assertNotIn("jobs/", failed["error"]["message"])

    def test_wrong_records_are_named_and_jobs_are_cancelled(self):
        self.start()
        wrong = self.uploaded(chats(1) + '{"messages": [{"content": "a"}]}\n')
        failed = self.wait_for(self.create(training_file=wrong), "failed", "succeeded")
        self.assertEqual(failed["error"], {"code": "invalid_training_file", "param": "training_file",
                                           "message": f"{wrong}:2: messages[0].role is missing; expected a text"})
        file = self.uploaded(chats(400))
        long, waiting = [self.create(training_file=file, hyperparameters={"n_epochs": 50, "batch_size": 1}) for _ in range(2)]
        self.wait_for(long, "running", "succeeded")
        self.wait_for(waiting, "queued", "running", "succeeded")
        status, _, answer = self.ask("POST", f"/v1/fine_tuning/jobs/{waiting['id']}/cancel")
        self.assertEqual((status, answer["status"]), (200, "cancelled"), answer)
        status, _, answer = self.ask("POST", f"/v1/fine_tuning/jobs/{long['id']}/cancel")
        self.wait_until(lambda: not self.children())
        self.assertEqual(self.wait_for(waiting, "cancelled")["fine_tuned_model"], None)
        self.assertEqual(self.ask("DELETE", f"/v1/files/{file}")[2], {"id": file, "object": "file", "deleted": True})
        self.expect_healthy()

    def test_a_killed_server_continues_its_job(self):
        self.start()
        job = self.create(training_file=self.uploaded(chats(200)), hyperparameters={"n_epochs": 50, "batch_size": 1}, seed=1)
        self.wait_for(job, "running")
        self.wait_until(lambda: len(self.events(job)) > 5)
        self.process.kill()
        self.process.wait()
        # The training process saves a snapshot when its server ends.
        model = self.jobs / "jobs" / job["id"] / "model"
        self.wait_until(lambda: any(model.glob("checkpoint-*")))
        steps = max(int(each.name.split("-")[1]) for each in model.glob("checkpoint-*"))
        self.start()
        self.assertIn("The server restarted; the job continues from its last snapshot", [event["message"] for event in self.events(job)])
        log = model / "log.jsonl"
        self.wait_until(lambda: json.loads(log.read_text().splitlines()[-1])["step"] > steps, seconds=60)
        self.assertEqual(json.loads(log.read_text().splitlines()[0])["step"], 0, "the log continues")
        self.ask("POST", f"/v1/fine_tuning/jobs/{job['id']}/cancel")
        self.wait_for(job, "cancelled")
        self.stop()

    def test_jobs_are_off_by_default_and_need_a_key(self):
        self.serve()
        self.assertEqual(super().ask("GET", "/v1/files")[0], 404)
        self.stop()
        self.refused(fovea("serve", self.served_model(), "--jobs", self.folder / "jobs", "--insecure"), 2, "--jobs: no API key")
        self.start("--max-upload", 2000)
        for method, path in (("GET", "files"), ("POST", "files"), ("DELETE", "files/a"), ("GET", "files/a/content"), ("POST", "fine_tuning/jobs"),
                             ("GET", "fine_tuning/jobs"), ("GET", "fine_tuning/jobs/a/events"), ("POST", "fine_tuning/jobs/a/cancel")):
            self.assertEqual(ServeTest.ask(self, method, f"/v1/{path}")[0], 401, path)
        self.assertEqual(self.upload("x" * 3000)[0], 413)
        self.assertEqual(os.stat(self.jobs).st_mode & 0o777, 0o700)
        self.assertEqual(self.upload(chats(2), "../../../etc/passwd")[2]["filename"], "../../../etc/passwd")
        self.assertEqual(sorted(each.name for each in self.jobs.iterdir()), [".lock", "files", "jobs"])

    @unittest.skipUnless(openai, "needs the Python package openai")
    def test_the_client_of_openai(self):
        self.start()
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=KEY, max_retries=0)
        path = self.file("chats.jsonl", chats(20))
        with open(path, "rb") as content:
            file = client.files.create(file=content, purpose="fine-tune")
        self.assertEqual(file.filename, "chats.jsonl")
        self.assertEqual(client.files.content(file.id).read(), path.read_bytes())
        self.assertEqual([each.id for each in client.files.list()], [file.id])
        job = client.fine_tuning.jobs.create(model="model", training_file=file.id, suffix="o",
                                             method={"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 1}}})
        end = time.monotonic() + 120
        while client.fine_tuning.jobs.retrieve(job.id).status not in ("succeeded", "failed"):
            self.assertLess(time.monotonic(), end, self.log()[-2000:])
            time.sleep(0.1)
        job = client.fine_tuning.jobs.retrieve(job.id)
        self.assertEqual(job.status, "succeeded", job.error)
        events = list(client.fine_tuning.jobs.list_events(job.id, limit=5))  # several pages
        self.assertGreater(len(events), 5)
        self.assertEqual(events[-1].message, f"Created fine-tuning job: {job.id}")
        self.assertEqual(len(list(client.fine_tuning.jobs.checkpoints.list(job.id))), 1)
        self.assertEqual([each.id for each in client.fine_tuning.jobs.list()], [job.id])
        answer = client.chat.completions.create(model=job.fine_tuned_model, messages=[{"role": "user", "content": "What?"}], max_tokens=3)
        self.assertEqual(answer.model, job.fine_tuned_model)
        with self.assertRaises(openai.BadRequestError) as caught:
            client.fine_tuning.jobs.create(model="model", training_file=file.id, method={"type": "reinforcement"})
        self.assertEqual(caught.exception.param, "method.reinforcement.grader")
        grader = {"type": "string_check", "name": "a", "input": "{{sample.output_text}}", "reference": "a fox", "operation": "like"}
        asked = client.fine_tuning.jobs.create(model="model", training_file=file.id,
                                               method={"type": "reinforcement", "reinforcement": {"grader": grader}})
        self.assertEqual(asked.method.reinforcement.grader.operation, "like")
        self.assertEqual(client.fine_tuning.jobs.cancel(asked.id).status, "cancelled")
        with self.assertRaises(openai.BadRequestError):
            client.fine_tuning.jobs.cancel(job.id)
        self.assertTrue(client.files.delete(file.id).deleted)
        with self.assertRaises(openai.NotFoundError):
            client.files.retrieve(file.id)


if __name__ == "__main__":
    unittest.main()
