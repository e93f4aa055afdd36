"""Models by name: the cache of the Hugging Face Hub, fetching into it from a local server, its faults, and what may not happen."""
import fcntl
import json
import os
import pathlib
import pty
import random
import select
import shutil
import subprocess
import sys
import time
import unittest

import hub_server
from support import FOVEA, ROOT, SMALL, FoveaTest, fovea, text_of

COURSE = ROOT / "apps/inspector/course_model"
TOKEN = "hf_secret"


def course_files():
    return {path.name: path.read_bytes() for path in COURSE.iterdir()}


class HubTest(FoveaTest):
    """Each test has an empty cache, and a server with the repository you/course."""

    def setUp(self):
        super().setUp()
        self.cache = self.folder / "hub cache"
        self.hub = hub_server.Hub({"you/course": hub_server.Repository({**course_files(), "README.md": b"# A model", "pytorch_model.bin": b"pickle"})})
        self.addCleanup(self.hub.close)
        self.environment = {"HF_ENDPOINT": self.hub.address, "HF_HUB_CACHE": str(self.cache), "HF_HOME": str(self.folder / "home"),
                            "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "no_proxy": "*"}

    def run_hub(self, *arguments, env=None, **more):
        return fovea(*arguments, env={**self.environment, **(env or {})}, **more)

    def pull(self, *arguments, **more):
        done = self.run_hub("pull", *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return pathlib.Path(done.stdout.decode().strip())

    def refused(self, *arguments, code=2, containing="", **more):
        done = self.run_hub(*arguments, **more)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, code, error)
        self.assertIn("fovea: error: ", error)
        self.assertIn(containing, error)
        self.assertEqual(error[error.index("fovea: error: "):].count("\n"), 1, error)
        return error

    def folder_of(self, name="models--you--course"):
        return self.cache / name

    def test_a_pull_writes_the_cache_of_huggingface_hub(self):
        path = self.pull("you/course")
        repository = self.hub.repositories["you/course"]
        folder = self.folder_of()
        self.assertEqual(path, folder / "snapshots" / repository.commit)
        self.assertEqual((folder / "refs/main").read_text(), repository.commit)
        self.assertEqual(sorted(each.name for each in path.iterdir()), sorted(course_files()))  # no README, no pickle
        for file in path.iterdir():
            self.assertEqual(os.readlink(file), f"../../blobs/{repository.etag(file.name)}")
            self.assertEqual(file.read_bytes(), course_files()[file.name])
        locks = self.cache / ".locks/models--you--course"
        self.assertEqual(sorted(each.name for each in locks.iterdir()),
                         sorted(repository.etag(name) + ".lock" for name in course_files()))
        self.assertTrue((self.cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55"))

    def test_every_verb_takes_a_name_that_is_in_the_cache(self):
        self.pull("you/course")
        requests = len(self.hub.requests)
        prompt = ["-p", "The", "-n", "5", "--greedy"]
        expected = fovea("generate", COURSE, *prompt).stdout
        for name in ("you/course", "hf:you/course", f"{self.hub.address}/you/course", "https://huggingface.co/you/course/tree/main"):
            self.assertEqual(self.run_hub("generate", name, *prompt).stdout, expected, name)
        self.assertEqual(self.run_hub("doctor", "you/course").returncode, 0)
        self.assertEqual(self.run_hub("plan", "you/course").returncode, 0)
        self.assertEqual(self.run_hub("generate", "you/course", *prompt, env={"HF_HUB_OFFLINE": "1"}).stdout, expected)
        self.assertEqual(len(self.hub.requests), requests)  # no network for what is here

    def test_a_local_path_comes_first(self):
        (self.folder / "you").mkdir()
        shutil.copytree(COURSE, self.folder / "you/course")
        self.assertEqual(self.run_hub("generate", "you/course", "-p", "The", "-n", "2", cwd=self.folder).returncode, 0)
        # A folder that is here makes a name a path, so a typing error asks nobody.
        self.refused("generate", "you/cours", "-p", "The", cwd=self.folder, containing="is missing")
        self.assertEqual(self.hub.requests, [])

    def test_nothing_is_fetched_without_being_asked(self):
        error = self.refused("generate", "hf:you/course", "-p", "The", containing="fovea pull you/course")
        self.assertIn("--yes", error)
        self.assertEqual(self.hub.requests, [])
        done = self.run_hub("generate", "hf:you/course", "-p", "The", "-n", "2", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("you/course: ", done.stderr.decode())

    def on_terminal(self, answer, *arguments):
        """Runs the program on a terminal, types the answer when it asks, and returns what it printed and its exit code."""
        parent, child = pty.openpty()
        process = subprocess.Popen([FOVEA, *arguments], stdin=child, stderr=child, stdout=subprocess.PIPE,
                                   env={**os.environ, **self.environment, "TERM": "xterm"})
        os.close(child)
        shown, typed = b"", False
        while True:
            if not select.select([parent], [], [], 30)[0]:
                break
            try:
                piece = os.read(parent, 4096)
            except OSError:  # the terminal is closed
                break
            shown += piece
            if b"[Y/n]" in shown and not typed:
                os.write(parent, answer)
                typed = True
        process.stdout.close()
        os.close(parent)
        return shown.decode(), process.wait(30)

    def test_a_terminal_is_asked(self):
        shown, code = self.on_terminal(b"n\n", "generate", "you/course", "-p", "The", "-n", "2")
        self.assertEqual(code, 2, shown)
        self.assertIn("licence apache-2.0", shown)
        self.assertFalse(self.folder_of().exists())
        shown, code = self.on_terminal(b"\n", "generate", "you/course", "-p", "The", "-n", "2")
        self.assertEqual(code, 0, shown)
        self.assertTrue((self.folder_of() / "refs/main").exists())

    def test_the_token_goes_to_the_hub_alone(self):
        self.hub.repositories["you/course"].token = TOKEN
        self.refused("pull", "you/course", containing="HF_TOKEN")
        self.pull("you/course", env={"HF_TOKEN": TOKEN})
        to_data = [each for each in self.hub.requests if each[1] == "data"]
        self.assertTrue(to_data)
        self.assertEqual({each[3] for each in to_data}, {None})
        shutil.rmtree(self.cache)
        (self.folder / "home").mkdir()
        (self.folder / "home/token").write_text(TOKEN + "\n")  # as hf auth login writes it
        self.pull("you/course")

    def test_cuts_are_resumed(self):
        content = random.Random(1).randbytes(3_000_000)
        self.hub.repositories["you/big"] = hub_server.Repository({**course_files(), "model.safetensors": content})
        generator = random.Random(2)
        self.hub.faults["data"].extend(("cut", generator.randrange(1, 140_000)) for _ in range(20))
        path = self.pull("you/big")
        self.assertEqual((path / "model.safetensors").read_bytes(), content)
        ranges = [each[4] for each in self.hub.requests if each[1] == "data" and "model.safetensors" in each[2]]
        self.assertGreater(len([each for each in ranges if each]), 10)

    def test_an_interrupted_pull_goes_on(self):
        content = random.Random(1).randbytes(4_000_000)
        repository = self.hub.repositories["you/big"] = hub_server.Repository({**course_files(), "model.safetensors": content})
        self.hub.rate = 2_000_000
        process = subprocess.Popen([FOVEA, "pull", "you/big"], env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        partial = self.folder_of("models--you--big") / "blobs" / (repository.etag("model.safetensors") + ".incomplete")
        until = time.monotonic() + 20
        while time.monotonic() < until and not (partial.exists() and partial.stat().st_size > 500_000):
            time.sleep(0.02)
        process.kill()
        process.wait()
        self.refused("generate", "you/big", "-p", "x", containing="not on this disk")  # half a model is none
        self.hub.rate = 0
        self.hub.requests.clear()
        self.assertEqual((self.pull("you/big") / "model.safetensors").read_bytes(), content)
        begin = [each[4] for each in self.hub.requests if each[1] == "data" and "model.safetensors" in each[2]]
        self.assertRegex(begin[0], r"bytes=[0-9]{6,}-")
        self.assertFalse(partial.exists())

    def test_a_server_without_ranges_sends_all_again(self):
        content = random.Random(1).randbytes(400_000)
        self.hub.repositories["you/big"] = hub_server.Repository({**course_files(), "model.safetensors": content})
        self.hub.ranges = False
        self.hub.faults["data"].extend([None, ("cut", 100_000), ("cut", 100_000)])
        self.assertEqual((self.pull("you/big") / "model.safetensors").read_bytes(), content)

    def test_wrong_contents_are_refused(self):
        self.hub.faults["data"].extend([("change",)] * 4)
        self.refused("pull", "you/course", code=1, containing="has the hash")
        self.hub.faults["data"].clear()
        self.refused("generate", "you/course", "-p", "x", containing="not on this disk")
        self.assertTrue(self.pull("you/course").exists())

    def test_a_damaged_beginning_is_fetched_again(self):
        repository = self.hub.repositories["you/course"]
        blobs = self.folder_of() / "blobs"
        blobs.mkdir(parents=True)
        (blobs / (repository.etag("model.safetensors") + ".incomplete")).write_bytes(b"x" * 1000)
        self.assertEqual((self.pull("you/course") / "model.safetensors").read_bytes(), (COURSE / "model.safetensors").read_bytes())

    def test_a_busy_server_is_asked_again(self):
        self.hub.faults["hub"].append(("status", 429, {"Retry_After": "1"}))
        self.hub.faults["data"].append(("status", 503, {}))
        started = time.monotonic()
        self.pull("you/course")
        self.assertGreater(time.monotonic() - started, 1)
        self.hub.faults["hub"].append(("status", 429, {"Retry_After": "9999"}))
        self.refused("pull", "you/course", code=1, containing="429")

    def test_refusals_say_what_to_do(self):
        self.refused("pull", "you/nothing", containing="not at the Hub, or is private")
        self.refused("pull", "you/course", "--revision", "v9", containing="revision")
        self.refused("pull", "you/course:Q4_K_M", containing="quantisation")
        self.refused("pull", f"{self.hub.address}/you/course/blob/main/none.gguf", containing="none.gguf")
        self.refused("pull", "hf:../../etc", containing="expected hf:USER/NAME")
        self.refused("pull", "you/course", "--revision", "../../../tmp/x", containing="a branch, a tag or a commit")
        gated = self.hub.repositories["you/gated"] = hub_server.Repository(course_files())
        gated.token, gated.gated = TOKEN, True
        self.refused("pull", "you/gated", code=1, containing="accept")
        self.refused("pull", "you/course", code=1, containing="HF_HUB_OFFLINE", env={"HF_HUB_OFFLINE": "1"})
        for answer, code, said in ((403, 1, "may not read it"), (404, 2, "not at the Hub")):
            self.hub.faults["hub"].append(("status", answer, {}))
            self.refused("pull", "you/course", code=code, containing=said)
        self.refused("pull", "you/course", code=1, containing="127.0.0.1", env={"HF_ENDPOINT": "http://127.0.0.1:1"}, timeout=60)

    def test_hostile_listings_stay_in_the_cache(self):
        for change in ({"rfilename": "../../../x.json"}, {"rfilename": "/etc/x.json"}, {"rfilename": "a\\b.json"}, {"size": -1},
                       {"blobId": "../../x"}, {"lfs": {"sha256": "../../x"}}, {"rfilename": "a\nb.json"}, {"rfilename": ""}):
            repository = hub_server.Repository(course_files())
            repository.entries["config.json"] = {**repository.entries["config.json"], **change}
            self.hub.repositories["you/evil"] = repository
            self.refused("pull", "you/evil", containing="listing")
        self.assertFalse(self.folder_of("models--you--evil").exists())

    def test_certificates_are_checked(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl, which makes a certificate")
        certificate = self.folder / "certificate.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                               "subjectAltName=IP:127.0.0.1", "-keyout", self.folder / "key.pem", "-out", certificate], capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr.decode())
        both = self.folder / "both.pem"
        both.write_bytes(certificate.read_bytes() + (self.folder / "key.pem").read_bytes())
        secure = hub_server.Hub(self.hub.repositories, certificate=both)
        self.addCleanup(secure.close)
        self.refused("pull", "you/course", code=1, containing="ca-certificates", env={"HF_ENDPOINT": secure.address})
        self.pull("you/course", env={"HF_ENDPOINT": secure.address, "CURL_CA_BUNDLE": str(certificate)})
        # A redirect from https to http is refused.
        shutil.rmtree(self.cache)
        secure.data_address = self.hub.data_address
        self.refused("pull", "you/course", code=1, env={"HF_ENDPOINT": secure.address, "CURL_CA_BUNDLE": str(certificate)})

    def test_a_proxy_of_the_environment_is_used(self):
        self.pull("you/course", env={"HF_ENDPOINT": "http://hub.invalid", "http_proxy": self.hub.address, "no_proxy": "127.0.0.1"})
        self.assertTrue(any(each[2].startswith("http://hub.invalid/") for each in self.hub.requests))

    def test_a_renamed_repository_is_followed(self):
        self.hub.repositories["old/course"] = hub_server.Repository({})
        self.hub.repositories["old/course"].renamed = "you/course"
        self.assertIn("models--old--course", str(self.pull("old/course")))

    def test_a_full_disk_keeps_what_is_there(self):
        self.pull("you/course")
        huge = hub_server.Repository(course_files())
        huge.entries["model.safetensors"]["size"] = 10**18
        self.hub.repositories["you/huge"] = huge
        self.refused("pull", "you/huge", code=1, containing="bytes free")
        self.assertEqual(self.run_hub("generate", "you/course", "-p", "The", "-n", "2").returncode, 0)

    def test_two_pulls_at_once_fetch_once(self):
        content = random.Random(1).randbytes(2_000_000)
        self.hub.repositories["you/big"] = hub_server.Repository({**course_files(), "model.safetensors": content})
        self.hub.rate = 2_000_000
        both = [subprocess.Popen([FOVEA, "pull", "you/big"], env={**os.environ, **self.environment}, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for _ in range(2)]
        outputs = [process.communicate(timeout=60) for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0], outputs)
        self.assertEqual(outputs[0][0], outputs[1][0])
        fetched = [each for each in self.hub.requests if each[1] == "data" and "model.safetensors" in each[2]]
        self.assertEqual(len(fetched), 1, fetched)

    def test_a_lock_of_another_program_is_waited_for(self):
        repository = self.hub.repositories["you/course"]
        lock = self.cache / ".locks/models--you--course" / (repository.etag("model.safetensors") + ".lock")
        lock.parent.mkdir(parents=True)
        with open(lock, "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = subprocess.Popen([FOVEA, "pull", "you/course"], env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            time.sleep(1)
            self.assertIsNone(process.poll())
        self.assertIn(b"another program", process.communicate(timeout=30)[1])
        self.assertEqual(process.returncode, 0)

    def test_quantisations_of_a_gguf_file(self):
        text, model = self.folder / "text.txt", self.folder / "model"
        text.write_text(text_of(3000), encoding="utf-8")
        done = fovea("train", text, *SMALL, "--width", "256", "--steps", "1", "--out", model)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        for kind in ("q8_0", "q4_k_m"):
            self.assertEqual(fovea("convert", model, self.folder / f"{kind}.gguf", "--dtype", kind).returncode, 0)
        files = {f"course-{kind.upper()}.gguf": (self.folder / f"{kind}.gguf").read_bytes() for kind in ("q8_0", "q4_k_m")}
        self.hub.repositories["you/gguf"] = hub_server.Repository(files)
        prompt = ["-p", "The", "-n", "5", "--greedy"]
        path = self.pull("hf:you/gguf:q4_k_m")
        self.assertEqual(path.name, "course-Q4_K_M.gguf")
        self.assertEqual(self.run_hub("generate", "you/gguf:Q4_K_M", *prompt).stdout,
                         fovea("generate", self.folder / "q4_k_m.gguf", *prompt).stdout)
        done = self.run_hub("pull", "you/gguf")
        self.assertIn("Q8_0 of 2 quantisations", done.stderr.decode())
        self.assertTrue(done.stdout.decode().strip().endswith("course-Q8_0.gguf"))
        self.refused("generate", "you/gguf:Q2_K", "-p", "x", containing="not on this disk")

    def test_an_adapter_brings_its_base(self):
        adapter = self.folder / "adapter"
        text = self.folder / "text.txt"
        text.write_text(text_of(9000), encoding="utf-8")
        done = fovea("train", text, "--from", COURSE, "--lora", "2", "--steps", "2", "--out", adapter, "--evaluate-every", "0", "--sample-every", "0")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        files = {path.name: path.read_bytes() for path in adapter.iterdir() if path.name in ("adapter_config.json", "adapter_model.safetensors")}
        config = json.loads(files["adapter_config.json"])
        config["base_model_name_or_path"] = "you/course"
        files["adapter_config.json"] = json.dumps(config).encode()
        self.hub.repositories["you/adapter"] = hub_server.Repository(files)
        done = self.run_hub("generate", "you/adapter", "-p", "The", "-n", "2", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(self.folder_of().exists())
        self.assertEqual(self.run_hub("generate", "you/course", "--adapter", "you/adapter", "-p", "The", "-n", "2").returncode, 0)

    def test_named_tasks_have_the_prompts_of_lm_evaluation_harness(self):
        named = ROOT / "tests/goldens/tasks/named"
        expected = json.loads((named / "expected.json").read_text(encoding="utf-8"))
        for folder in named.iterdir():
            if folder.is_dir():
                files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}
                self.hub.repositories["datasets/" + folder.name.replace("--", "/")] = hub_server.Repository(files)
        self.refused("eval", COURSE, "--tasks", "sciq", containing="fovea pull hf:datasets/allenai/sciq")
        samples = self.folder / "samples.jsonl"
        for case, records in expected.items():
            task, _, shots = case.partition(", ")
            with self.subTest(case):
                done = self.run_hub("eval", COURSE, "--tasks", task, "--samples-out", samples, "--yes", "--json",
                                    *(["--shots", shots.split()[0]] if shots else []))
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                found = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
                self.assertEqual([{key: each[key] for key in ("context", "choices", "gold")} for each in found],
                                 [{"context": each["description"] + each["context"], "choices": each["choices"], "gold": each["gold"]}
                                  for each in records])
        done = self.run_hub("eval", COURSE, "--tasks", "hellaswag,mmlu", "--json")
        self.assertEqual([json.loads(line)["task"] for line in done.stdout.decode().splitlines()], ["hellaswag", "mmlu"])
        self.refused("eval", COURSE, "--tasks", "hellaswag,mlu", containing="hellaswag,mlu")

    def test_models_lists_verifies_and_removes(self):
        self.assertIn("suggest", self.run_hub("models").stderr.decode())
        path = self.pull("you/course")
        listed = json.loads(self.run_hub("models", "--json").stdout)["models"]
        self.assertEqual([(each["name"], each["use"], each["path"]) for each in listed], [("you/course", "text", str(path))])
        self.assertEqual(listed[0]["bytes"], sum(len(content) for content in course_files().values()))
        self.assertIn("gpt_neox", self.run_hub("models").stdout.decode())
        self.assertEqual(self.run_hub("models", "verify").returncode, 0)
        blob = (path / "model.safetensors").resolve()
        blob.write_bytes(blob.read_bytes()[:-1] + b"x")
        done = self.run_hub("models", "verify", "you/course")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is damaged", done.stdout.decode())
        self.refused("models", "rm", "you/cours", containing="did you mean you/course?")
        self.assertEqual(self.run_hub("models", "rm", "hf:you/course").returncode, 0)
        self.assertFalse(self.folder_of().exists())
        self.assertIn("chat", self.run_hub("models", "suggest", "chat").stdout.decode())
        self.refused("models", "suggest", "fly", containing="expected one of")
        self.refused("models", "lst", containing="did you mean list?")

    def test_a_data_set_of_parquet_is_trained_on(self):
        table = (ROOT / "tests/goldens/parquet/texts.parquet").read_bytes()
        self.hub.repositories["datasets/you/texts"] = hub_server.Repository({"data/train-00000-of-00001.parquet": table})
        path = self.pull("hf:datasets/you/texts")
        lines = self.folder / "lines.jsonl"
        lines.write_text((ROOT / "tests/goldens/parquet/texts.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
        for data, out in ((path / "data", "a"), (lines, "b")):
            done = fovea("train", data, *SMALL, "--steps", "2", "--out", self.folder / out)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual((self.folder / "a/model.safetensors").read_bytes(), (self.folder / "b/model.safetensors").read_bytes())

    def test_a_data_set(self):
        self.hub.repositories["datasets/you/lines"] = hub_server.Repository({"train.jsonl": b'{"text": "a"}\n', "README.md": b"x"})
        path = self.pull("you/lines", "--dataset")
        self.assertEqual([each.name for each in path.iterdir()], ["train.jsonl"])
        self.assertIn("datasets--you--lines", str(path))

    def test_verbs_of_other_programs_are_answered(self):
        for verb, own in (("run", "fovea chat"), ("list", "fovea models"), ("ps", "/v1/models"), ("show", "fovea doctor")):
            self.assertIn(own, fovea(verb).stderr.decode())

    def test_without_the_module_one_line_says_so(self):
        copy = self.folder / "fovea"
        shutil.copy(FOVEA, copy)
        done = subprocess.run([copy, "pull", "you/course"], env={**os.environ, **self.environment}, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("libcurl", done.stderr.decode())

    def huggingface_hub(self):
        """Returns a Python that has huggingface_hub."""
        for python in (os.environ.get("PEERS_PYTHON", ""), sys.executable):
            if python and subprocess.run([python, "-c", "import huggingface_hub"], capture_output=True, check=False).returncode == 0:
                return python
        return self.skipTest("no Python with huggingface_hub (PEERS_PYTHON)")

    def test_huggingface_hub_reads_this_cache_and_this_program_that_of_huggingface_hub(self):
        python = self.huggingface_hub()
        environment = {**os.environ, **self.environment, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

        def python_path(*arguments):
            code = "import sys, huggingface_hub as h; print(h.snapshot_download(sys.argv[1], " + ", ".join(arguments) + "))"
            done = subprocess.run([python, "-c", code, "you/course"], env=environment, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            return pathlib.Path(done.stdout.decode().strip())

        own = self.pull("you/course")
        self.assertEqual(python_path("local_files_only=True"), own)
        self.hub.requests.clear()
        self.assertEqual(python_path("allow_patterns=['*.json', '*.safetensors']"), own)  # nothing is fetched again
        self.assertEqual([each for each in self.hub.requests if each[1] == "data"], [])
        code = "import huggingface_hub as h; print([(r.repo_id, r.size_on_disk) for r in h.scan_cache_dir().repos])"
        done = subprocess.run([python, "-c", code], env=environment, capture_output=True, check=False)
        self.assertIn(f"('you/course', {sum(len(content) for content in course_files().values())})", done.stdout.decode(), done.stderr.decode())

        shutil.rmtree(self.cache)
        theirs = python_path()
        self.assertEqual(self.run_hub("generate", "you/course", "-p", "The", "-n", "2").returncode, 0)
        self.hub.requests.clear()
        self.assertEqual(self.pull("you/course"), theirs)
        self.assertEqual([each for each in self.hub.requests if each[1] == "data"], [])


if __name__ == "__main__":
    unittest.main()
