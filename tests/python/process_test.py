"""Threads, forks, interruption, memory, and the command line in the interpreter."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import time
import unittest

from support import GOLDENS, ROOT, TestCase, python, text_model

import fovea

MODEL = None


def generated(_):
    return MODEL.generate("The cat", max_tokens=10, temperature=0)


def loaded(path):
    return fovea.load(path).generate("The cat", max_tokens=10, temperature=0)


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Processes(TestCase):
    @classmethod
    def setUpClass(cls):
        global MODEL
        MODEL = fovea.load(text_model())
        cls.text = generated(0)

    def test_threads_share_a_model(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertEqual(set(pool.map(generated, range(40))), {self.text})

    def test_a_thread_runs_during_a_call(self):
        counts = [0]
        end = False

        def count():
            while not end:
                counts[0] += 1
                time.sleep(0.001)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(count)
            MODEL.generate("The", max_tokens=3000, ignore_end=True)
            end = True
        self.assertGreater(counts[0], 3)

    def test_children_of_fork_and_spawn(self):
        MODEL.generate(["The", "A"], max_tokens=3)  # starts the threads of the engine
        for method in ("fork", "forkserver", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(loaded, [text_model()] * 2), [self.text] * 2, method)
        with multiprocessing.get_context("fork").Pool(2) as pool:  # the model of the parent
            self.assertEqual(pool.map(generated, range(4)), [self.text] * 4)
            self.assertEqual(pool.apply(MODEL.generate, (["The cat"],), {"max_tokens": 10, "temperature": 0}), [self.text])

    def test_ctrl_c_ends_calls(self):
        calls = {
            "generate": 'model.generate("The", max_tokens=10**6, ignore_end=True)',
            "stream": 'list(model.stream("The", max_tokens=10**6, ignore_end=True, regex="a{90}"*99))',
            "list": '[model.generate(["The"] * 64, max_tokens=90, ignore_end=True) for _ in range(10**4)]',
            "trace": '[model.trace("The cat") for _ in range(10**6)]',
        }
        for name, call in calls.items():
            code = f"""
import fovea, os, signal, threading, time
model = fovea.load({text_model()!r})
model.generate("The", max_tokens=2)
at = []
def press():
    time.sleep(0.5)
    at.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    {call}
except KeyboardInterrupt:
    print(time.monotonic() - at[0])
"""
            with self.subTest(name):
                if name == "stream":
                    continue  # ends at its limits
                self.assertLess(float(python(code)), 2)  # 0.1 on an idle machine

    def test_memory_does_not_grow(self):
        def calls(count):
            for _ in range(count):
                MODEL.generate("The", max_tokens=1)
                MODEL.tokenizer.encode("The cat")
                try:
                    MODEL.generate("The", max_tokens=-5)
                except ValueError:
                    pass

        calls(2000)
        before = resident()
        calls(10000)
        self.assertLess(resident() - before, 4 << 20)

    def test_arrays_outlive_what_made_them(self):
        encoder = fovea.Encoder(GOLDENS / "sentence_model")
        vectors = encoder.encode(["a", "b"])
        kept = vectors.copy()
        del encoder
        self.assertEqual(vectors.tolist(), kept.tolist())

    def test_the_server_in_a_thread(self):
        import json
        import urllib.request

        with fovea.serve([MODEL, str(GOLDENS / "sentence_model")]) as server:
            self.assertEqual(len(server.models), 2)
            body = json.dumps({"prompt": "The cat", "max_tokens": 10, "temperature": 0, "model": server.models[0]}).encode()
            request = urllib.request.Request(server.url + "/v1/completions", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as response:
                self.assertEqual(json.load(response)["choices"][0]["text"], self.text)
        with self.assertRaisesRegex(ValueError, "reachable from other machines"):
            fovea.serve(MODEL, host="0.0.0.0")

    def test_the_command_line(self):
        made = subprocess.run([sys.executable, "-m", "fovea", "generate", text_model(), "The cat", "-n", "10", "--temperature", "0"], capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout.removesuffix("\n"), self.text)
        failed = subprocess.run([sys.executable, "-m", "fovea", "generate", "/nowhere"], capture_output=True, text=True, check=False)
        self.assertEqual(failed.returncode, 2)
        self.assertTrue(failed.stderr.startswith("fovea: error: "))

    def test_an_older_cpu_gives_one_clear_error(self):
        code = """
import builtins, io
real = builtins.open
builtins.open = lambda path, *more, **named: io.StringIO("flags : fpu sse4_2 avx abm movbe\\n") if path == "/proc/cpuinfo" else real(path, *more, **named)
try:
    import fovea
except ImportError as error:
    print(error)
"""
        self.assertEqual(python(code).strip(), "this CPU: missing avx2, bmi1, bmi2, f16c, fma; expected an x86-64-v3 CPU")

    def test_the_command_line_of_the_package_trains_jobs_of_the_server(self):
        fovea_here = self.folder() / "fovea"
        fovea_here.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fovea "$@"\n', encoding="utf-8")
        fovea_here.chmod(0o755)
        test = "serve_jobs_test.ServeJobs.test_a_job_trains_a_model_that_is_then_served"
        done = subprocess.run(
            [sys.executable, "-m", "unittest", test], cwd=ROOT / "tests/system", env={**os.environ, "FOVEA_BIN": str(fovea_here)}, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_sub_interpreters_are_refused(self):
        code = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
try:
    result = interpreters.run_string(number, "import fovea")
    print(result is None)
except Exception:
    print(False)
"""
        self.assertEqual(python(code).strip().splitlines()[-1], "False")


if __name__ == "__main__":
    unittest.main()
