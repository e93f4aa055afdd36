#!/usr/bin/env python3
"""Checks the device "cuda" on this machine and writes one JSON object.

Usage: check.py FOLDER RESULT; FOLDER is what `tools/gpu_check.sh prepare` gathers. Each part has a limit of time, and all of
them together have 8 minutes: what was not done is named in "left"."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 470  # seconds
KERNELS = "Gpu*:Sums*:LayerNorm.M*:RmsNorm*:Softmax*:CrossEntropy*:Embedding*:Dropout*:PutInPages*:Rotate*:AdamW*:*Activation*/0"


class Check:
    def __init__(self, folder, result):
        self.folder, self.result = pathlib.Path(folder).resolve(), pathlib.Path(result)
        self.began = time.monotonic()
        self.found = {"left": []}

    def left(self):
        return LIMIT - (time.monotonic() - self.began)

    def save(self):
        self.found["seconds"] = round(time.monotonic() - self.began, 1)
        self.result.parent.mkdir(parents=True, exist_ok=True)
        self.result.write_text(json.dumps(self.found, indent=1) + "\n")

    def run(self, name, command, limit, **variables):
        """Runs a command; returns its output, or None if it failed or had no time."""
        limit = min(limit, self.left())
        if limit < 5:
            self.found["left"].append(name)
            return None
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{self.folder}/libraries:{os.environ.get('LD_LIBRARY_PATH', '')}", **variables)
        command = [str(part) for part in command]
        if not shutil.which(command[0], path=environment["PATH"]):
            self.found["left"].append(f"{name}: no {command[0]}")
            return None
        # The programs of this machine take their own libraries.
        if not command[0].startswith(str(self.folder)):
            environment["LD_LIBRARY_PATH"] = os.environ.get("LD_LIBRARY_PATH", "")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment, check=False)
        except subprocess.TimeoutExpired as late:
            self.found["left"].append(f"{name}: more than {limit:.0f} s")
            self.found[f"{name} output"] = str(late.stdout)[-2000:]
            return None
        if done.returncode != 0:
            self.found[f"{name} failed"] = (done.stdout + done.stderr)[-4000:]
            return None
        return done.stdout

    def program(self, name, program, *arguments, limit=60, **variables):
        return self.run(name, [self.folder / program, *arguments], limit, **variables)

    # ---- Parts

    def machine(self):
        self.found["commit"] = (self.folder / "commit").read_text().split()
        cards = self.run("nvidia-smi", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"], 20)
        self.found["card"] = (cards or "").strip()
        report = self.program("doctor", "fovea", "doctor", "--json")
        self.found["doctor"] = json.loads(report)["findings"] if report else None

    def tests(self):
        for program, chosen in (("unit_kernels", f"{KERNELS}:-GpuModel*"), ("unit_loop", "TrainingOnGpu*"), ("unit_generate", "GenerationOnGpu*")):
            output = self.program(program, program, f"--gtest_filter={chosen}", "--gtest_brief=1", limit=90, FOVEA_TEST_GPU="1")
            self.found[f"tests of {program}"] = "passed" if output is not None else "see above"
            self.save()

    def sanitizer(self):
        for tool in ("memcheck", "racecheck"):
            command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", self.folder / "unit_kernels"]
            chosen = "--gtest_filter=GpuMmaAttention.HasTheSameBits*:GpuMma.Continues*:GpuGemm.Continues*:GpuAttention.Adds*"
            environment = {"FOVEA_TEST_GPU": "1", "LD_PRELOAD": ""}
            output = self.run(tool, [*command, chosen], 45, **environment)
            self.found[tool] = output.strip().splitlines()[-1] if output else None

    def kernels(self):
        output = self.program("kernels", "bench_device", "cuda", limit=60)
        self.found["kernels"] = [json.loads(line) for line in output.splitlines()] if output else None

    def training(self):
        output = self.program("training", "fovea", "bench", "--train", "gpt2", "--device", "cuda", "--dtype", "bf16", "--batch", "8", "--json", limit=60)
        self.found["training"] = json.loads(output) if output else None
        self.beside("training", 120)

    def generation(self):
        with tempfile.TemporaryDirectory() as folder:
            for size in ("135M", "1B"):
                model = pathlib.Path(folder) / size
                if self.run(f"model {size}", [sys.executable, HERE / "beside.py", "model", size, model], 60) is None:
                    continue
                output = self.program(f"generation {size}", "fovea", "bench", model, "--device", "cuda", "--dtype", "bf16", "--runs", "3", "--json", limit=60)
                self.found[f"generation {size}"] = json.loads(output) if output else None
                self.beside(f"generation {size}", 60, model)
                self.save()

    def beside(self, what, limit, *arguments):
        output = self.run(f"PyTorch: {what}", [sys.executable, HERE / "beside.py", what.split()[0], *arguments], limit)
        self.found[f"PyTorch: {what}"] = json.loads(output.strip().splitlines()[-1]) if output else None

    def threads(self):
        rates = {}
        for count in (1, 2, 4, 8, 16):
            if count > (os.cpu_count() or 1):
                break
            output = self.program(f"{count} threads", "fovea", "bench", "--train", "nano", "--threads", count, "--steps", "20", "--json", limit=30)
            rates[count] = json.loads(output) if output else None
        self.found["threads"] = rates

    def all(self):
        for part in (self.machine, self.tests, self.kernels, self.training, self.generation, self.sanitizer, self.threads):
            try:
                part()
            except Exception as error:  # the other parts are worth their minutes
                self.found[f"{part.__name__} failed"] = repr(error)
            self.save()
            print(f"{part.__name__}: {time.monotonic() - self.began:.0f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Check(*sys.argv[1:]).all()
