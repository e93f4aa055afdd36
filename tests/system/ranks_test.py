"""mpirun starts several processes, which divide the lines: the output has the same bytes as that of one process, even if a process
fails, and an interrupted job can be resumed."""
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import time
import unittest

import synthetic_audio
from support import FOVEA, ROOT, FoveaTest, digests, fovea

MODEL = ROOT / "tests/goldens/sentence_model"
TEXTS = json.loads((MODEL / "texts.json").read_text())
# These options allow more ranks than cores, and root in a container; users do not need them.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
NOTE = b"note: mpirun of Open MPI 5 mixes results on standard output with messages; expected --out FILE, or mpirun --output :raw\n"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("OMPI_")}
MPI = shutil.which("mpirun") and pathlib.Path(FOVEA).with_name("fovea_mpi.so").exists()
BLOCK = 512  # lines that embed sends to a rank at a time
if MPI and " 4." not in subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout:
    # Open MPI 5 otherwise mixes the streams, and complains about machines without a network.
    MPIRUN += ["--output", ":raw", "--mca", "btl", "^tcp"]


def command_of(ranks, *arguments):
    return [*MPIRUN, "-n", str(ranks), FOVEA, *map(str, arguments)]


def errors_in(message):
    """Returns the errors of fovea in the output of mpirun, of which that of Open MPI 5 ends its own message about an abort with a NUL."""
    return [line for line in message.replace("\0", "").splitlines() if line.startswith("fovea: error: ")]


def lines(count, seed=3):
    generator = random.Random(seed)
    return "".join(f"{generator.choice(TEXTS)} {i}\n" for i in range(count)).encode()


@unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
class Ranks(FoveaTest):
    def mpirun(self, ranks, *arguments, **more):
        more.setdefault("input", b"")
        result = subprocess.run(command_of(ranks, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                                env=ENVIRONMENT, check=False, **more)
        result.stderr = result.stderr.replace(NOTE, b"")
        return result

    def expect_one_line(self, result, *mentions):
        """Expects exactly one line from fovea in the output of mpirun."""
        message = result.stderr.decode(errors="replace")
        told = errors_in(message)
        self.assertEqual(len(told), 1, message)
        self.assertNotEqual(result.returncode, 0)
        for mention in mentions:
            self.assertIn(str(mention), told[0])

    def test_ranks_transcribe_whole_files(self):
        folder = self.folder / "recordings"
        folder.mkdir()
        for i in range(5):
            synthetic_audio.write_wav(folder / f"{i}.wav", synthetic_audio.voice(1 + i % 3, i))
        model = ROOT / "tests/goldens/speech/model"
        arguments = ("transcribe", model, folder, "--format", "srt")
        alone = self.ok(fovea(*arguments)).stdout
        self.ok(fovea(*arguments, "--out", self.folder / "alone"))
        for ranks in (2, 3):
            self.assertEqual(self.ok(self.mpirun(ranks, *arguments)).stdout, alone)
            out = self.folder / f"out{ranks}"
            self.ok(self.mpirun(ranks, *arguments, "--out", out))
            for path in sorted((self.folder / "alone").iterdir()):
                self.assertEqual((out / path.name).read_bytes(), path.read_bytes())
        (folder / "broken.wav").write_bytes(b"RIFF")
        self.expect_one_line(self.mpirun(2, *arguments), "broken.wav")
        self.expect_one_line(self.mpirun(2, "transcribe", model, "-"), "standard input")

    def test_an_index_has_the_same_bytes(self):
        folder = self.folder / "texts"
        folder.mkdir()
        for i in range(9):
            (folder / f"{i}.txt").write_bytes(b"\n\n".join(lines(90, seed=i).splitlines()))
        for name in ("sentence_model", "sparse_model", "multi_vector_model"):
            arguments = ("search", "--build", folder, "--model", ROOT / "tests/goldens" / name, "--passage-tokens", 12, "--out")
            alone = self.ok(fovea(*arguments, self.folder / f"{name}-1"))
            self.assertTrue(digests(self.folder / f"{name}-1"))
            for ranks in (2, 3):
                shared = self.ok(self.mpirun(ranks, *arguments, self.folder / f"{name}-{ranks}"))
                self.assertEqual(shared.stdout, alone.stdout)
                self.assertEqual(digests(self.folder / f"{name}-{ranks}"), digests(self.folder / f"{name}-1"))
            again = self.ok(self.mpirun(2, *arguments, self.folder / f"{name}-1"))
            self.assertIn(b" 0 of them new", again.stdout)

    def test_an_index_of_images_has_the_same_bytes(self):
        folder = self.folder / "images"
        shutil.copytree(ROOT / "tests/goldens/images", folder)
        arguments = ("search", "--build", folder, "--model", ROOT / "tests/goldens/vision/clip", "--out")
        alone = self.ok(fovea(*arguments, self.folder / "1"))
        self.assertTrue(digests(self.folder / "1"))
        for ranks in (2, 3):
            shared = self.ok(self.mpirun(ranks, *arguments, self.folder / str(ranks)))
            self.assertEqual(shared.stdout, alone.stdout)
            self.assertEqual(digests(self.folder / str(ranks)), digests(self.folder / "1"))
        self.assertIn(b" 0 of them new", self.ok(self.mpirun(2, *arguments, self.folder / "1")).stdout)
        (folder / "zz.png").write_bytes(b"no image")  # which the last rank reads
        self.expect_one_line(self.mpirun(2, *arguments, self.folder / "2"), "zz.png")

    def test_runs_of_a_scaling_law_are_shared(self):
        text = self.file("text.txt", lines(200).decode())
        arguments = ("scale", text, "--widths", "4,8,12,16", "--steps", "2,4,6", "--layers", 1, "--length", 16, "--batch", 2, "--json")
        alone = json.loads(self.ok(fovea(*arguments, "--out", self.folder / "alone")).stdout)
        for ranks in (2, 3):
            shared = self.ok(self.mpirun(ranks, *arguments, "--out", self.folder / f"scale{ranks}"))
            self.assertEqual(json.loads(shared.stdout), {**alone, "out": str(self.folder / f"scale{ranks}")})
            self.assertEqual((self.folder / f"scale{ranks}/table.md").read_text(), (self.folder / "alone/table.md").read_text())

    def translator(self):
        """Returns a small translator after ten training steps."""
        out = self.folder / "translator"
        if not out.exists():
            source = self.file("train.de", "red dog\nsun tree\n" * 40)
            target = self.file("train.en", "dog red\ntree sun\n" * 40)
            self.ok(fovea("train", "--preset", "translate-tiny", "--layers", "1", "--encoder-layers", "1", "--pairs", source, target,
                          "--steps", "10", "--evaluate-every", "0", "--tokenizer", "bpe:270", "--out", out))
        return out

    def test_vectors_have_the_same_bytes(self):
        text = self.file("many.txt", lines(5 * BLOCK + 3))
        for name in ("v.npy", "v.jsonl", "v.txt"):
            alone = self.folder / name
            self.ok(fovea("embed", MODEL, text, "--out", alone))
            for ranks in (1, 2, 3) if name == "v.npy" else (3,):
                shared = self.folder / f"{ranks}-{name}"
                self.ok(self.mpirun(ranks, "embed", MODEL, text, "--out", shared))
                self.assertEqual(shared.read_bytes(), alone.read_bytes(), f"{ranks} ranks, {name}")
        left = [path.name for path in self.folder.iterdir() if path.suffix in (".part", ".journal")]
        self.assertEqual(left, [])

    def test_an_experiment_is_divided_and_continues(self):
        def runs(folder):
            return sorted(line.split('"seconds"')[0] + line.split('"values"')[1] for line in (folder / "runs.jsonl").read_text().splitlines()[1:])

        lab = ("lab", "score-variance")
        alone, shared = self.folder / "alone", self.folder / "shared"
        first = self.ok(fovea(*lab, "--out", alone, "--json")).stdout
        for ranks in (3, 1, 2):  # the second command finds all runs
            found = json.loads(self.ok(self.mpirun(ranks, *lab, "--out", shared, "--json")).stdout)
            self.assertEqual(found["conclusions"], json.loads(first)["conclusions"])
            self.assertEqual(runs(shared), runs(alone))
        lines_of_journal = (shared / "runs.jsonl").read_text().splitlines(keepends=True)
        (shared / "runs.jsonl").write_text("".join(lines_of_journal[:3]))
        self.ok(self.mpirun(2, *lab, "--out", shared))
        self.assertEqual(runs(shared), runs(alone))
        self.expect_one_line(self.mpirun(2, "lab", "residuals", "--out", self.folder / "x"), "--data")
        self.assertEqual(self.ok(self.mpirun(2, "lab", "list")).stdout, self.ok(fovea("lab", "list")).stdout)

    def test_standard_output_has_the_same_bytes(self):
        text = lines(2 * BLOCK + 9)
        for more in ((), ("--format", "npy"), ("--precision", "int8", "--format", "jsonl")):
            alone = self.ok(fovea("embed", MODEL, *more, input=text)).stdout
            self.assertEqual(self.ok(self.mpirun(2, "embed", MODEL, *more, input=text)).stdout, alone)

    def test_fewer_lines_than_ranks_give_the_same_bytes(self):
        for text in (b"", b"night\n", b"night", b"\n\n", b"a\r\nb\r\n"):
            alone = self.ok(fovea("embed", MODEL, input=text))
            shared = self.ok(self.mpirun(3, "embed", MODEL, input=text))
            self.assertEqual(shared.stdout, alone.stdout, text)
        self.assertEqual(self.ok(self.mpirun(3, "embed", MODEL, "--format", "npy")).stdout,
                         self.ok(fovea("embed", MODEL, "--format", "npy", input=b"")).stdout)

    def test_warnings_are_printed_once_and_name_the_first_line(self):
        text = self.file("long.txt", lines(BLOCK + 5) + b"fox " * 40 + b"\n")
        alone, shared = fovea("embed", MODEL, text), self.mpirun(2, "embed", MODEL, text)
        self.assertEqual(shared.stderr, alone.stderr)
        self.assertIn(b"long.txt: line ", shared.stderr)
        self.expect_one_line(self.mpirun(2, "embed", MODEL, text, "--no-truncate"), "rank ", "long.txt: line ")

    def test_translations_have_the_same_bytes(self):
        model = self.translator()
        words = ["red", "dog", "sun", "tree"]
        generator = random.Random(5)
        text = "".join(" ".join(generator.choice(words) for _ in range(generator.randint(0, 6))) + "\n" for _ in range(700)).encode()
        for more in ((), ("--beams", "2", "--n-best", "2"), ("--beams", "1", "--alignment"), ("--beams", "2", "--json")):
            arguments = ("translate", model, "--max-tokens", "8", *more)
            alone = self.ok(fovea(*arguments, input=text)).stdout
            for ranks in (2, 3):
                self.assertEqual(self.ok(self.mpirun(ranks, *arguments, input=text)).stdout, alone, more)

    def test_an_error_of_all_ranks_is_printed_once(self):
        self.expect_one_line(self.mpirun(3, "embed", self.folder / "none"), "rank ", "none")
        self.expect_one_line(self.mpirun(2, "embed", MODEL, "--format", "xml"), "rank ", "--format")
        self.expect_one_line(self.mpirun(2, "embed", MODEL, self.folder / "none"), "rank ", "none")
        self.expect_one_line(self.mpirun(2, "generate", MODEL, "-p", "a fox"), "generate", "2 ranks of mpirun")
        self.expect_one_line(self.mpirun(2, "embed", MODEL, "--evaluate", self.text), "embed", "2 ranks of mpirun")

    def run_different_commands(self, *commands):
        """Runs a different command on each rank, as on machines with different files."""
        # Open MPI 5.0.7 crashes on several commands with ":" between them.
        lines_of_script = ["case $OMPI_COMM_WORLD_RANK in"]
        lines_of_script += [f"{rank}) exec {shlex.join([str(FOVEA), *map(str, command)])};;" for rank, command in enumerate(commands)]
        script = self.file("ranks.sh", "\n".join([*lines_of_script, "esac\n"]))
        return subprocess.run([*MPIRUN, "-n", str(len(commands)), "sh", script], input=lines(20), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, env=ENVIRONMENT, check=False)

    def test_the_installed_program_finds_its_module(self):
        prefix, text = self.folder / "prefix", b"night\nday\n"
        build = os.environ.get("FOVEA_BUILD", ROOT / "build/release")
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], stdout=subprocess.DEVNULL, check=True)
        program = prefix / "bin/fovea"
        command = [*MPIRUN, "-n", "2", program, "embed", MODEL]
        done = subprocess.run(command, input=text, capture_output=True, timeout=120, env=ENVIRONMENT, check=False)
        self.assertEqual(self.ok(done).stdout, self.ok(fovea("embed", MODEL, input=text)).stdout)
        for module in prefix.rglob("fovea_mpi.so"):
            module.unlink()
        (self.folder / "fovea_mpi.so").write_text("not a module")  # the current directory is not searched
        done = subprocess.run(command, input=text, capture_output=True, timeout=120, env=ENVIRONMENT, cwd=self.folder, check=False)
        self.expect_one_line(done, "mpirun: this fovea has no MPI module", "libopenmpi-dev")
        self.ok(subprocess.run([program, "embed", MODEL], input=text, capture_output=True, env=ENVIRONMENT, check=False))

    def test_a_rank_without_the_model_is_named(self):
        self.expect_one_line(self.run_different_commands(("embed", MODEL), ("embed", self.folder / "none")), "rank 1 (", "none")

    def test_ranks_with_different_models_or_options_are_refused(self):
        other = self.folder / "other"
        shutil.copytree(MODEL, other)
        weights = other / "2_Dense/model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"\x3e")
        self.expect_one_line(self.run_different_commands(("embed", MODEL), ("embed", other)), "rank 1 (", "model")
        self.expect_one_line(self.run_different_commands(("embed", MODEL), ("embed", MODEL, "--dimensions", "4")), "rank 1 (", "differs")


@unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
class KilledRanks(FoveaTest):
    def started(self, *command):
        process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=ENVIRONMENT)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def until(self, true):
        end = time.monotonic() + 60
        while not true():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def rank_process(self, rank):
        """Returns the process of this rank that the test's mpirun started."""
        mark = f"OMPI_COMM_WORLD_RANK={rank}".encode()
        for folder in os.listdir("/proc"):
            try:
                with open(f"/proc/{folder}/cmdline", "rb") as command, open(f"/proc/{folder}/environ", "rb") as environment:
                    if str(self.folder).encode() in command.read() and mark in environment.read().split(b"\0"):
                        return int(folder)
            except (OSError, ValueError):
                pass
        return None

    def test_a_killed_rank_is_named_and_the_job_can_be_resumed(self):
        text = self.file("many.txt", lines(300 * BLOCK))
        alone, out = self.folder / "alone.npy", self.folder / "v.npy"
        self.ok(fovea("embed", MODEL, text, "--out", alone))
        journal = self.folder / "v.npy.journal"
        for killed in (1, 0):
            process = self.started(*command_of(2, "embed", MODEL, text, "--out", out))
            before = len(journal.read_bytes().splitlines()) if journal.exists() else 0
            self.until(lambda: journal.exists() and len(journal.read_bytes().splitlines()) > before + 3)
            os.kill(self.rank_process(killed), signal.SIGKILL)
            _, error = process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn(f"fovea: error: rank {killed} (".encode(), error)
            self.assertFalse(out.exists())
            self.assertTrue(journal.exists())
        done = self.ok(fovea("embed", MODEL, text, "--out", out))
        self.assertIn(b"resumes after line", done.stderr)
        self.assertEqual(out.read_bytes(), alone.read_bytes())
        self.assertFalse(journal.exists())


class ResumedJobs(FoveaTest):
    """A single process keeps the same journal as several ranks."""

    def setUp(self):
        super().setUp()
        self.many = self.file("many.txt", lines(40000))
        self.out = self.folder / "v.npy"
        self.part, self.journal = self.folder / "v.npy.part", self.folder / "v.npy.journal"

    def interrupted(self):
        process = self.start("embed", MODEL, self.many, "--out", self.out)
        end = time.monotonic() + 60
        while not self.journal.exists() or self.journal.read_bytes().count(b"\n") < 3:
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll(), "it was too fast to be interrupted")
        code, rest = self.end(process)
        self.assertEqual(code, 130)
        self.assertIn("the same command resumes the job", rest)

    def test_a_job_resumes_after_an_interrupt(self):
        alone = self.ok(fovea("embed", MODEL, self.many, "--format", "npy")).stdout
        self.interrupted()
        self.refused(fovea("embed", MODEL, self.many, "--out", self.out, "--precision", "int8"), 2, "v.npy.part", "--precision", "int8")
        self.refused(fovea("embed", MODEL, self.text, "--out", self.out), 2, "v.npy.part", "different input lines")
        # A killed process may leave an incomplete line, and output that the journal does not record.
        with self.journal.open("ab") as journal, self.part.open("ab") as part:
            journal.write(b'{"lines": 99')
            part.write(b"half a vector")
        self.assertIn(b"resumes after line", self.ok(fovea("embed", MODEL, self.many, "--out", self.out)).stderr)
        self.assertEqual(self.out.read_bytes(), alone)
        self.assertFalse(self.part.exists() or self.journal.exists())

    def test_damaged_output_is_computed_again(self):
        """Regression: a byte of FILE.part that changed between two runs was copied to FILE, with exit code 0."""
        alone = self.ok(fovea("embed", MODEL, self.many, "--format", "npy")).stdout
        for place in (200, -5):  # in the first block and in the last
            with self.subTest(place):
                self.interrupted()
                part = bytearray(self.part.read_bytes())
                part[place if place > 0 else json.loads(self.journal.read_text().splitlines()[-1])["bytes"] + place] ^= 4
                self.part.write_bytes(part)
                self.assertIn(b"is computed again", self.ok(fovea("embed", MODEL, self.many, "--out", self.out)).stderr)
                self.assertEqual(self.out.read_bytes(), alone)
                self.out.unlink()

    def test_one_process_uses_the_blocks_of_many_ranks(self):
        """Regression: a single process wrote 4,096 lines between two entries of the journal, and lost all of them when it was killed."""
        self.interrupted()
        lines_done = [json.loads(line)["lines"] for line in self.journal.read_text().splitlines()[1:]]
        self.assertEqual(lines_done, [BLOCK * (n + 1) for n in range(len(lines_done))])

    def test_jobs_with_an_invalid_journal_are_refused(self):
        self.interrupted()
        for content in (b"no json\n", b"[" * 1_000_000 + b"\n"):
            self.journal.write_bytes(content)
            self.refused(fovea("embed", MODEL, self.many, "--out", self.out), 2, "v.npy.journal: is not a journal")
        self.journal.unlink()
        os.mkfifo(self.journal)  # regression: opening it waited for a writer
        self.refused(fovea("embed", MODEL, self.many, "--out", self.out), 2, "v.npy.journal")
        self.part.write_bytes(b"")  # without its journal the job starts again
        self.journal.unlink()
        self.assertNotIn(b"resumes after", self.ok(fovea("embed", MODEL, self.many, "--out", self.out)).stderr)

    def test_an_interrupted_stream_cannot_be_resumed(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        process = self.start("embed", MODEL, self.many, "--out", fifo, "--format", "jsonl")
        with fifo.open("rb") as reader:
            reader.readline()
            process.send_signal(signal.SIGINT)
            reader.read()
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertNotIn("resumes", process.stderr.read())

    def test_a_device_is_written_directly(self):
        self.ok(fovea("embed", MODEL, self.text, "--out", "/dev/null"))
        self.ok(fovea("embed", MODEL, self.text, "--out", "/dev/null", "--format", "npy"))
        self.assertFalse(os.path.isfile("/dev/null"))


if __name__ == "__main__":
    unittest.main()
