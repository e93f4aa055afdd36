"""fovea serve --models-dir and --jobs: models that requests load, unload and delete."""
import concurrent.futures
import shutil
import time
import unittest

from serve_jobs_test import KEY, chats
import serve_jobs_test
from serving import ServeTest
from support import fovea

QUESTION = {"prompt": "The eye", "max_tokens": 5, "temperature": 0}


class Loading(ServeTest):
    def folder_of(self, *names):
        """Returns a folder with models of these names, which differ."""
        folder = self.folder / "models"
        for seed, name in enumerate(names):
            self.ok(fovea("train", self.text, "--out", folder / name, "--preset", "tiny", "--layers", 2, "--heads", 2, "--width", 32, "--steps", 1,
                          "--batch", 1, "--context", 256, "--sample-every", 0, "--evaluate-windows", 1, "--seed", seed, "--dtype", "fp32"))
        return folder

    def states(self):
        return {model["id"]: model["status"] for model in self.ask("GET", "/models")[2]["data"]}

    def text_of(self, name, **more):
        return self.good("/v1/completions", {**QUESTION, "model": name, **more})["choices"][0]["text"]

    def test_requests_load_models_within_the_memory(self):
        names = ("one", "two", "three")
        folder = self.folder_of(*names)
        shutil.copy(folder / "one/config.json", self.folder / "config.json")  # beside the folder
        alone = {}
        for name in names:
            self.serve(models=[folder / name])
            alone[name] = self.text_of(name)
            self.stop()
        weights = (folder / "one/model.safetensors").stat().st_size
        self.serve("--models-dir", folder, "--models-memory", int(2.5 * weights), models=[])
        self.assertEqual(set(self.states().values()), {"unloaded"})
        self.assertEqual({model["id"] for model in self.ask("GET", "/v1/models")[2]["data"]}, set(names))
        self.assertEqual({model["name"] for model in self.ask("GET", "/api/tags")[2]["models"]}, {name + ":latest" for name in names})
        self.assertEqual(self.ask("GET", "/v1/models/two")[2]["id"], "two")
        status, _, answer = self.post("/v1/completions", QUESTION)
        self.assertEqual((status, answer["error"]["param"]), (400, "model"))
        for name in ("../one", "models", "", "four"):
            self.assertIn(self.post("/v1/completions", {**QUESTION, "model": name})[0], (400, 404), name)
        for name in ("one", "two"):
            self.assertEqual(self.text_of(name), alone[name])
        self.text_of("one")  # two is now the one whose last use is longest ago
        self.assertEqual(self.states(), {"one": "loaded", "two": "loaded", "three": "unloaded"})
        self.assertEqual(self.text_of("three"), alone["three"])
        self.assertEqual(self.states(), {"one": "loaded", "two": "unloaded", "three": "loaded"})
        self.assertEqual([model["name"] for model in self.ask("GET", "/api/ps")[2]["models"]], ["one:latest", "three:latest"])
        message = {"messages": [{"role": "user", "content": "The eye"}], "max_tokens": 3}
        self.good("/v1/messages", {**message, "model": "two"})
        self.good("/api/chat", {"model": "one:latest", "messages": message["messages"], "stream": False})
        self.good("/tokenize", {"model": "three", "content": "The"})
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            asked = [names[i % 3] for i in range(24)]
            self.assertEqual(list(pool.map(self.text_of, asked)), [alone[name] for name in asked])
        self.assertEqual(self.stop(), 143)

    def test_models_that_do_not_fit_or_are_damaged_are_refused(self):
        folder = self.folder_of("one")
        (folder / "damaged").mkdir()
        shutil.copy(folder / "one/config.json", folder / "damaged")
        self.serve("--models-dir", folder, "--models-memory", 5000, models=[])
        status, _, answer = self.post("/v1/completions", {**QUESTION, "model": "one"})
        self.assertEqual((status, answer["error"]["code"]), (503, "model_too_large"))
        status, _, answer = self.post("/v1/completions", {**QUESTION, "model": "damaged"})
        self.assertGreaterEqual(status, 400)
        self.assertNotIn(str(folder), answer["error"]["message"])

    def test_a_running_request_ends_before_its_model_is_unloaded(self):
        folder = self.folder_of("one", "two")
        weights = (folder / "one/model.safetensors").stat().st_size
        self.serve("--models-dir", folder, "--models-memory", int(1.5 * weights), models=[])
        self.text_of("one")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            long = pool.submit(self.good, "/v1/completions", {**QUESTION, "model": "one", "max_tokens": 200, "ignore_eos": True})
            self.wait_until(lambda: long.done() or self.metric('fovea_sequences_running{model="one"') == 1)
            self.text_of("two")
            self.assertEqual(long.result()["usage"]["completion_tokens"], 200)
        self.assertEqual(self.states(), {"one": "unloaded", "two": "loaded"})

    def test_names_of_gguf_files(self):
        folder = self.folder / "models"
        folder.mkdir()
        self.ok(fovea("convert", self.served_model(), folder / "third.gguf"))
        for name in ("mmproj-third.gguf", "parts-00002-of-00002.gguf", "parts-00001-of-00002.gguf", "notes.txt"):
            (folder / name).write_bytes(b"")
        self.serve("--models-dir", folder, models=[])
        self.assertEqual(set(self.states()), {"third", "parts"})

    def test_models_are_loaded_and_unloaded(self):
        shutil.copytree(self.served_model(), self.folder / "models/second")
        self.ok(fovea("convert", self.served_model(), self.folder / "models/third.gguf"))
        (self.folder / "models/empty").mkdir()
        self.serve("--models-dir", self.folder / "models")

        def states():
            return {model["id"]: model["status"] for model in self.ask("GET", "/models")[2]["data"]}
        self.assertEqual(states(), {"model": "loaded", "second": "unloaded", "third": "unloaded"})
        question = {"prompt": "The eye", "max_tokens": 5, "temperature": 0}
        expected = self.good("/v1/completions", question)["choices"][0]["text"]
        for name in ("second", "third", "second"):
            self.assertEqual(self.good("/models/load", {"model": name})["status"], "loaded")
            self.good("/v1/completions", {**question, "model": name})
        self.assertEqual(self.good("/v1/completions", {**question, "model": "second"})["choices"][0]["text"], expected)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # a running request ends first
            running = pool.submit(self.good, "/v1/completions", {**question, "model": "second", "max_tokens": 200, "ignore_eos": True})
            self.wait_until(lambda: running.done() or self.metric('fovea_sequences_running{model="second"') == 1)
            self.assertEqual(self.good("/models/unload", {"model": "second"})["status"], "unloaded")
            self.assertEqual(running.result()["usage"]["completion_tokens"], 200)
        self.assertEqual(states(), {"model": "loaded", "second": "unloaded", "third": "loaded"})
        for path, body, status in (("load", {"model": "../model"}, 404), ("load", {"model": "empty"}, 404), ("load", {}, 400),
                                   ("unload", {"model": "second"}, 404)):
            self.assertEqual(self.post("/models/" + path, body)[0], status, (path, body))
        for name in ("model", "third"):
            self.good("/models/unload", {"model": name})
        self.assertEqual(states(), {"second": "unloaded", "third": "unloaded"})

    # Regression: each unload waited on a handler, so two of them kept all other clients waiting.
    def test_waiting_to_unload_keeps_no_handler_busy(self):
        shutil.copytree(self.served_model(context=4096), self.folder / "models/second")
        self.serve("--models-dir", self.folder / "models")
        self.good("/models/load", {"model": "second"})
        running = 'fovea_sequences_running{model="second"'
        with self.open_stream(model="second"), concurrent.futures.ThreadPoolExecutor() as pool:
            self.wait_until(lambda: self.metric(running) == 1)
            unloads = [pool.submit(self.post, "/models/unload", {"model": "second"}) for _ in range(3)]
            time.sleep(0.2)
            self.good("/tokenize", {"content": "The eye", "model": "model"})
            self.assertFalse(all(each.done() for each in unloads), "the request waited for the unloads, or the stream ended too early")
            self.assertEqual(self.stop(), 143)  # ends the stream and the waiting


class JobsAndModels(serve_jobs_test.Jobs):
    def test_results_are_deleted_and_bases_stay(self):
        shutil.copytree(self.served_model(), self.folder / "models/second")
        self.start("--models-dir", self.folder / "models")
        job = self.create(training_file=self.uploaded(chats(8)), suffix="fox")
        name = self.wait_for(job, "succeeded", "failed")["fine_tuned_model"]
        self.good("/v1/completions", {**QUESTION, "model": "second"})
        self.good("/v1/completions", {**QUESTION, "model": name})
        self.assertEqual(self.post("/models/unload", {"model": "model"})[0], 409)
        for wrong in ("model", "second", "ft:model:fox:0", "..%2Fmodel"):
            self.assertEqual(self.ask("DELETE", "/v1/models/" + wrong)[0], 404, wrong)
        self.assertEqual(self.ask("DELETE", "/v1/models/" + name)[2], {"id": name, "object": "model", "deleted": True})
        self.assertEqual(self.ask("DELETE", "/v1/models/" + name)[0], 404)
        self.assertEqual(self.post("/v1/completions", {**QUESTION, "model": name})[0], 404)
        self.assertEqual(list(self.jobs.glob("jobs/*/model/adapter_*")), [])
        self.stop()
        self.start()
        self.assertNotIn(name, [model["id"] for model in self.get("/v1/models")["data"]])
        self.assertNotIn("is not served", self.log())
        self.assertEqual(self.get(f"/v1/fine_tuning/jobs/{job['id']}")["status"], "succeeded")


if __name__ == "__main__":
    unittest.main()
