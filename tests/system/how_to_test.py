"""The commands of the how-to pages and of the first steps run, and print what the pages show.

The blocks `sh` of a page run in one shell, in a folder with small data and small models under the names of the page. A block `text` has
lines of the output of the block before it, in order: numbers stand for any numbers, and `...` for any text. A block of data, C, C++ or
CMake is the file that the sentence before it names."""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import wave

from support import ENVIRONMENT, FOVEA, ROOT, FoveaTest, text_of

GOLDENS = ROOT / "tests/goldens"
BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", pathlib.Path(FOVEA).parent))
# Small models under the names of the pages.
MODELS = {"SmolLM2-135M-Instruct": "fine_tuning/model", "SmolVLM-256M-Instruct": "image_text/smolvlm", "all-MiniLM-L6-v2": "sentence_model", "ms-marco-MiniLM-L6-v2": "cross_encoder",
          "whisper-base": "speech/model", "distilbert-base-uncased": "classifiers/texts", "bert-base-uncased": "sparse_model"}
FILES = {"nomic-embed-text-v1.5.gguf": "nomic_bert.gguf", "bge-reranker-v2-m3.gguf": "xlm_roberta_reranker.gguf"}
# Commands that take minutes, or depend on the machine, and what runs instead.
INSTEAD = {
    "fovea train book.txt --out model\n": "fovea train book.txt --out model --preset tiny --steps 100\n",
    "--pairs train.de train.en": "--preset translate-tiny --steps 250 --pairs train.de train.en",
    "mpirun ": "mpirun --allow-run-as-root --oversubscribe ",
    "--tokenizer tokenizer --out model\n": "--tokenizer tokenizer --out model --preset tiny --steps 20\n",
    "8080": "PORT",
    "build/release": "BUILD",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w.]+)`[^`]*$")
NUMBER = r"[+-]?\d[\d.,:]*(?:e-?\d+)?[kMB]?"
WORDS = {"haus": "house", "hund": "dog", "katze": "cat", "rot": "red", "baum": "tree"}


def pattern_of(line):
    """Returns a regular expression for a line of expected output."""
    parts = re.split(rf"(\.\.\.|(?<![\w.]){NUMBER}|\s+)", line.strip())
    return "".join(r"\s+" if part.isspace() else ".*" if part == "..." else NUMBER if re.fullmatch(NUMBER, part) else re.escape(part) for part in parts if part)


class HowTo(FoveaTest):
    def prepare(self):
        for name, golden in MODELS.items():
            shutil.copytree(GOLDENS / golden, self.folder / name)
        for name, golden in FILES.items():
            shutil.copy(GOLDENS / "gguf_encoders" / golden, self.folder / name)
        shutil.copy(self.text, self.folder / "book.txt")
        self.file("lines.txt", "A fox sees at night.\nBread needs flour and water.\n")
        self.file("reviews.txt", "A fine film.\nA dull film.\n")
        self.file("test.tsv", "A fine film.\tpositive\nA dull film.\tnegative\n")
        for name, sentence in {"fox": "A fox sees at night.", "bread": "Bread needs flour and water."}.items():
            (self.folder / "notes").mkdir(exist_ok=True)
            self.file(f"notes/{name}.txt", sentence)
        sentences = [[list(WORDS)[(i // 5**k) % 5] for k in range(1 + i % 4)] for i in range(600)]
        for part, chosen in {"train": sentences, "test": sentences[::30]}.items():
            self.file(f"{part}.de", "".join(" ".join(words) + "\n" for words in chosen))
            self.file(f"{part}.en", "".join(" ".join(WORDS[word] for word in words) + "\n" for words in chosen))
        (self.folder / "recordings").mkdir()
        for path in ("talk.wav", "recordings/talk.wav"):
            with wave.open(str(self.folder / path), "wb") as audio:
                audio.setparams((1, 2, 16000, 0, "NONE", ""))
                audio.writeframes(b"".join(int(8000 * ((i // 40) % 2 - 0.5)).to_bytes(2, "little", signed=True) for i in range(32000)))

    def run_page(self, path):
        self.prepare()
        text = path.read_text(encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        script, outputs = ["set -e"], []
        for block in BLOCK.finditer(text):
            language, content = block.groups()
            if language == "sh":
                for before, after in INSTEAD.items():
                    content = content.replace(before, after.replace("PORT", port).replace("BUILD", f"'{BUILD}'"))
                script.append(f"{{\n{content}}} > block-{len(outputs)} 2>&1")
                outputs.append((content, []))
            elif language == "text":
                outputs[-1][1].extend(content.splitlines())
            else:
                name = FILE.search(text[:block.start()])
                self.assertTrue(name, f"{path.name}: no file is named before\n{content}")
                self.file(name[1], content * (10 if language == "json" else 1))
        self.assertTrue(outputs, path.name)
        places = os.pathsep.join([str(pathlib.Path(FOVEA).parent), ENVIRONMENT["PATH"]])
        environment = {**ENVIRONMENT, "PATH": places, "HOME": str(self.folder), "COLUMNS": "100", "CMAKE_GENERATOR": "Ninja"}
        process = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            code = process.wait(timeout=200)
        finally:
            subprocess.run(["kill", "--", f"-{process.pid}"], stderr=subprocess.DEVNULL, check=False)  # servers, too
            process.stderr.close()
        for number, (content, lines) in enumerate(outputs):
            written = self.folder / f"block-{number}"
            said = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
            last = not (self.folder / f"block-{number + 1}").exists()
            self.assertFalse(code and last, f"{path.name}: exit code {code}\n{content}{said[-2000:]}")
            rest = said
            for line in lines:
                found = re.search(f"^.*?{pattern_of(line)}", rest, re.MULTILINE)
                self.assertTrue(found, f"{path.name}: {line!r} is not in the output of\n{content}{said[-3000:]}")
                rest = rest[found.end():]

    def how_to(self):
        self.run_page(ROOT / "docs/how-to" / (self._testMethodName.removeprefix("test_").replace("_", "-") + ".md"))

    def test_first_steps(self):
        self.file("text.txt", text_of(60000))
        self.run_page(ROOT / "docs/first-steps.md")

    def test_install(self):
        self.how_to()

    def test_distil_a_chat_model(self):
        self.file("test.jsonl", '{"messages": [{"role": "user", "content": "the eye"}, {"role": "assistant", "content": "sees"}]}\n')
        self.how_to()

    def test_fine_tune_on_chats(self):
        self.file("test.jsonl", '{"messages": [{"role": "user", "content": "the eye"}, {"role": "assistant", "content": "sees"}]}\n')
        self.how_to()

    def test_fine_tune_on_images(self):
        shutil.copytree(GOLDENS / "images", self.folder / "photos")
        self.how_to()

    def test_train_on_a_large_text(self):
        for name, text in {"books": text_of(60000), "test": text_of(20000, 2)}.items():
            (self.folder / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
        documents = [" ".join(f"word{i * j % 997}" for j in range(400)) for i in range(1, 23)]
        documents += [documents[0] + "\n", documents[1] + " and more"]
        (self.folder / "web.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps({"text": text}) + "\n" for text in documents).encode()))
        self.how_to()

    def test_align_with_preferences(self):
        self.file("test.jsonl", '{"prompt": "the eye", "chosen": "sees", "rejected": "sleeps"}\n' * 3)
        self.how_to()

    def test_train_a_classifier(self):
        self.how_to()

    def test_train_a_translator(self):
        self.how_to()

    @unittest.skipUnless(shutil.which("curl"), "needs curl")
    def test_serve_for_other_programs(self):
        self.how_to()

    def test_train_an_embedder(self):
        self.how_to()

    def test_embed_and_search(self):
        self.how_to()

    def test_embed_with_gguf_files(self):
        self.how_to()

    def test_train_a_retriever(self):
        self.how_to()

    def test_measure_an_embedder(self):
        self.how_to()

    def test_transcribe_speech(self):
        self.how_to()

    def test_quantise_a_model(self):
        self.how_to()

    def test_evaluate_a_model(self):
        (self.folder / "runs").mkdir()
        for name in ("a", "b"):
            self.ok(self.train(self.folder / "runs" / name, steps=5))
        self.how_to()

    def test_look_inside_a_model(self):
        self.model()
        self.how_to()

    @unittest.skipUnless(shutil.which("mpirun") and pathlib.Path(FOVEA).with_name("fovea_mpi.so").exists(), "no mpirun here, or a build without MPI")
    def test_use_several_machines(self):
        self.how_to()

    def built(self):
        cache = BUILD / "CMakeCache.txt"
        if not cache.exists() or "FOVEA_SANITIZE:STRING=\n" not in cache.read_text():
            self.skipTest("a build with sanitizers is not installed")
        self.model()

    def test_use_from_cpp(self):
        self.built()
        self.how_to()

    @unittest.skipUnless(shutil.which("pkg-config"), "needs pkg-config")
    def test_use_from_c(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)  # $(pkg-config) is split at spaces
        self.built()
        self.how_to()


class Pages(unittest.TestCase):
    def test_every_page_is_tested_and_is_one_screen(self):
        for page in (ROOT / "docs/how-to").glob("*.md"):
            self.assertTrue(hasattr(HowTo, "test_" + page.stem.replace("-", "_")), page.name)
            self.assertIn(len(page.read_text(encoding="utf-8").splitlines()), range(25, 61), page.name)


if __name__ == "__main__":
    unittest.main()
