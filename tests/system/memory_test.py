"""The memory of a process that runs a model: as fovea plan says, and less than the model if that is larger than memory."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import unittest

from support import FOVEA, ROOT, FoveaTest, fovea

CACHE = pathlib.Path(FOVEA).parent / "CMakeCache.txt"
SANITIZED = CACHE.exists() and "\nFOVEA_SANITIZE:STRING=\n" not in CACHE.read_text()

MEGABYTE = 1 << 20
WORK = ["--ids", ",".join(str(7 * i) for i in range(96)), "-n", "32", "--greedy", "--json"]


def folder_with_llama(test, **sizes):
    """Returns a folder for the tests of a class, with a Llama of random weights in its folder `model`."""
    holder = tempfile.TemporaryDirectory(prefix="fovea test ")
    test.addClassCleanup(holder.cleanup)
    sys.path.insert(0, str(ROOT / "tools/bench"))
    test.addClassCleanup(sys.path.pop, 0)
    from bench_models import make_llama  # pylint: disable=import-outside-toplevel
    make_llama(pathlib.Path(holder.name) / "model", **sizes)
    return pathlib.Path(holder.name)


@unittest.skipIf(SANITIZED, "sanitizers take memory")
class Memory(FoveaTest):
    @classmethod
    def setUpClass(cls):
        cls.model = folder_with_llama(cls, layers=12, width=768, heads=12, kv_heads=4, ffn=2048, vocabulary=32000) / "model"  # 197 MB
        cls.gguf = cls.model.with_suffix(".gguf")

    def generate(self, model, *options, **more):
        """Returns the generated ids, and the largest RssAnon + RssFile and RssAnon of the process in bytes."""
        command = [FOVEA, "generate", str(model), *WORK, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more) as process:
            most = private = 0
            while process.poll() is None:
                lines = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
                sizes = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith("Rss")}
                if sizes:
                    most = max(most, sizes["RssAnon"] + sizes["RssFile"])
                    private = max(private, sizes["RssAnon"])
                time.sleep(0.002)
            output = process.stdout.read()
            self.assertEqual(process.returncode, 0, process.stderr.read())
        return json.loads(output)["ids"], most, private

    def test_the_plan_is_the_memory_of_the_process(self):
        self.ok(fovea("convert", self.model, self.gguf, "--quantize", "int8"))
        for model, precision in ((self.model, "stored"), (self.model, "int8"), (self.model, "int4"), (self.gguf, "stored")):
            plan = json.loads(self.ok(fovea("plan", model, "--length", "128", "--json")).stdout)
            planned = plan["bytes"]["inference"][precision]
            options = [] if precision == "stored" else ["--dtype", precision]
            _, measured, _ = self.generate(model, *options)
            self.assertLess(abs(planned / measured - 1), 0.1, f"{model.name}, {precision}: {planned} planned, {measured} measured")

    def test_a_model_larger_than_memory_runs_from_its_file(self):
        ids, _, private = self.generate(self.model)
        self.assertGreater(private, 190 * MEGABYTE)
        limit = 650 * MEGABYTE  # of the address space: too small for the file, its packed weights and a reserve of 256 MB
        limited, _, private = self.generate(self.model, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(limited, ids)
        self.assertLess(private, 100 * MEGABYTE)


if __name__ == "__main__":
    unittest.main()
