"""fovea serve --jobs: batches as OpenAI's API has them, with plain requests and with OpenAI's client."""
import json
import time
import unittest

from serving import ServeTest

try:
    import openai
except ImportError:
    openai = None


def line(number, url="/v1/chat/completions", **body):
    body.setdefault("messages", [{"role": "user", "content": f"What does fox {number} see?"}])
    return json.dumps({"custom_id": f"request-{number}", "method": "POST", "url": url, "body": {"model": "model", "max_tokens": 8, **body}}) + "\n"

KEY = "secret-of-the-test"


class ServeBatches(ServeTest):
    def start(self, *options):
        self.jobs = self.folder / "jobs"
        return self.serve("--jobs", self.jobs, *options, env={"FOVEA_API_KEY": KEY})

    def ask(self, method, path, body=None, headers=None, timeout=60):
        return super().ask(method, path, body, {"Authorization": f"Bearer {KEY}", **(headers or {})}, timeout)

    def get(self, path):
        status, _, answer = self.ask("GET", path)
        self.assertEqual(status, 200, answer)
        return answer

    def uploaded(self, text):
        status, _, answer = self.upload(text)
        self.assertEqual(status, 200, answer)
        return answer["id"]

    def upload(self, text, name="batch.jsonl", purpose="batch"):
        body = (f'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
                f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{text}\r\n--x--\r\n')
        return self.ask("POST", "/v1/files", body.encode(), {"Content-Type": "multipart/form-data; boundary=x"})

    def batch(self, text, endpoint="/v1/chat/completions"):
        return self.good("/v1/batches", {"input_file_id": self.uploaded(text), "endpoint": endpoint, "completion_window": "24h"})

    def wait_for(self, batch, *states):
        self.wait_until(lambda: self.get(f"/v1/batches/{batch['id']}")["status"] in states, seconds=120)
        return self.get(f"/v1/batches/{batch['id']}")

    def content(self, file):
        status, _, content = self.ask("GET", f"/v1/files/{file}/content")
        self.assertEqual(status, 200)
        return [json.loads(each) for each in content.decode().splitlines()]

    def test_a_batch_is_answered_beside_other_requests(self):
        self.start("--parallel", 8)
        batch = self.batch("".join(line(i, seed=i, temperature=-1 if i == 5 else 1) for i in range(40)))
        self.assertEqual(self.good("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2})["object"], "chat.completion")
        done = self.wait_for(batch, "completed", "failed")
        self.assertEqual((done["status"], done["request_counts"]), ("completed", {"total": 40, "completed": 39, "failed": 1}), done)
        answers, errors = self.content(done["output_file_id"]), self.content(done["error_file_id"])
        self.assertEqual([each["custom_id"] for each in answers], [f"request-{i}" for i in range(40) if i != 5])
        self.assertEqual((errors[0]["custom_id"], errors[0]["response"]["status_code"]), ("request-5", 400))
        alone = self.good("/v1/chat/completions", json.loads(line(7, seed=7, temperature=1))["body"])
        self.assertEqual(answers[6]["response"]["body"]["choices"], alone["choices"])
        self.assertGreater(answers[0]["response"]["body"]["created"], 0)
        listed = self.get("/v1/files?purpose=batch_output")["data"]
        self.assertEqual({each["id"] for each in listed}, {done["output_file_id"], done["error_file_id"]})
        self.assertEqual(self.ask("DELETE", f"/v1/files/{done['input_file_id']}")[2]["deleted"], True)

    def test_a_killed_server_continues_its_batch(self):
        self.start("--parallel", 4)
        batch = self.batch("".join(line(i, seed=i, max_tokens=100) for i in range(150)))
        self.wait_until(lambda: self.get(f"/v1/batches/{batch['id']}")["request_counts"]["completed"] > 5, seconds=60)
        self.process.kill()
        self.process.wait()
        self.start("--parallel", 4)
        self.wait_until(lambda: self.get(f"/v1/batches/{batch['id']}")["request_counts"]["completed"] > 20, seconds=60)
        begin = time.monotonic()
        self.assertEqual(self.stop(), 143)  # ends soon, and keeps what is finished
        self.assertLess(time.monotonic() - begin, 15)
        self.start("--parallel", 16)
        self.wait_until(lambda: "resumes after line" in self.log(), seconds=60)  # which later requests move out of the end of the log
        done = self.wait_for(batch, "completed", "failed")
        self.assertEqual(done["request_counts"], {"total": 150, "completed": 150, "failed": 0})
        answers = self.content(done["output_file_id"])
        self.assertEqual([each["custom_id"] for each in answers], [f"request-{i}" for i in range(150)])
        self.assertEqual(len({each["id"] for each in answers}), 150)

    def test_wrong_batches_fail_and_a_batch_is_cancelled(self):
        self.start("--parallel", 4)
        failed = self.wait_for(self.batch(line(1) + "{\n" + line(3, "/v1/completions")), "failed", "completed")
        self.assertEqual([each["line"] for each in failed["errors"]["data"]], [2, 3])
        self.assertIn(f"{failed['input_file_id']}: line 3: url: expected /v1/chat/completions", failed["errors"]["data"][1]["message"])
        long = self.batch("".join(line(i, max_tokens=150) for i in range(500)))
        self.wait_for(long, "in_progress")
        self.assertEqual(self.ask("DELETE", f"/v1/files/{long['input_file_id']}")[0], 400)
        self.assertEqual(self.ask("POST", f"/v1/batches/{long['id']}/cancel")[2]["status"], "cancelling")
        cancelled = self.wait_for(long, "cancelled", "completed")
        self.assertEqual(cancelled["status"], "cancelled")
        self.assertLess(cancelled["request_counts"]["completed"], 500)
        self.assertNotIn(str(self.jobs), json.dumps(failed))
        status, _, answer = self.ask("POST", "/v1/fine_tuning/jobs", {"model": "model", "training_file": long["input_file_id"]})
        self.assertEqual((status, answer["error"]["param"]), (400, "training_file"))

    @unittest.skipUnless(openai, "needs the Python package openai")
    def test_the_client_of_openai(self):
        self.start()
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=KEY, max_retries=0)
        path = self.file("batch.jsonl", "".join(line(i, "/v1/responses", messages=None, input="a fox", max_tokens=None) for i in range(3)))
        with open(path, "rb") as content:
            file = client.files.create(file=content, purpose="batch")
        self.assertEqual(file.purpose, "batch")
        batch = client.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h", metadata={"a": "b"})
        end = time.monotonic() + 60
        while client.batches.retrieve(batch.id).status not in ("completed", "failed"):
            self.assertLess(time.monotonic(), end, self.log()[-2000:])
            time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
        self.assertEqual((batch.status, batch.request_counts.completed, batch.metadata), ("completed", 3, {"a": "b"}), batch)
        answers = [json.loads(each) for each in client.files.content(batch.output_file_id).text.splitlines()]
        self.assertEqual([each["response"]["body"]["object"] for each in answers], ["response"] * 3)
        self.assertEqual([each.id for each in client.batches.list()], [batch.id])
        with self.assertRaises(openai.BadRequestError):
            client.batches.cancel(batch.id)
        with self.assertRaises(openai.NotFoundError):
            client.batches.retrieve("batch_1")
        other = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
        while (other := client.batches.retrieve(other.id)).status != "failed":
            time.sleep(0.05)
        self.assertEqual(other.errors.data[0].code, "mismatched_endpoint")
        self.assertEqual({each.purpose for each in client.files.list()}, {"batch", "batch_output"})


if __name__ == "__main__":
    unittest.main()
