"""Models whose files are links, temporary files, and exit codes of programs that wait."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from hostile import SHAPES, HostileTest, weights
from support import ENVIRONMENT, FOVEA

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"


class HostileFolder(HostileTest):
    def test_links_out_of_the_folder_are_refused(self):
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            with self.subTest(name):
                outside = self.folder / f"outside {name}"
                (self.model / name).rename(outside)
                (self.model / name).symlink_to(outside)
                self.refused(f"{name}: is a symbolic link out of the model's folder", codes=(2,))
                (self.model / name).unlink()
                outside.rename(self.model / name)
        link = self.folder / "name of the model"
        link.symlink_to(self.model)
        self.accepted("trace", link, "--ids", "1,2", "--out", self.folder / "out.safetensors")

    def test_adapters_have_no_links_out(self):
        adapter = self.folder / "adapter"
        shutil.copytree(GOLDENS / "peft", self.folder / "peft")
        found = next(path.parent for path in sorted((self.folder / "peft").rglob("adapter_config.json")))
        found.rename(adapter)
        file = adapter / "adapter_model.safetensors"
        file.rename(self.folder / "outside.safetensors")
        file.symlink_to("../outside.safetensors")
        self.refused("adapter_model.safetensors: is a symbolic link out", "generate", self.model, "--adapter", adapter, "-p", "a", "-n", "1")

    def test_the_cache_of_hugging_face_keeps_working(self):
        cache = self.folder / "models--a--b"
        snapshot = cache / "snapshots/0123"
        snapshot.mkdir(parents=True)
        (cache / "blobs").mkdir()
        for number, file in enumerate(sorted(self.model.iterdir())):
            file.rename(cache / f"blobs/{number}")
            (snapshot / file.name).symlink_to(f"../../blobs/{number}")
        arguments = ("trace", snapshot, "--ids", "1,2", "--out", self.folder / "out.safetensors")
        self.accepted(*arguments)
        outside = self.folder / "outside.safetensors"
        outside.write_bytes(weights(SHAPES))
        (snapshot / "model.safetensors").unlink()
        (snapshot / "model.safetensors").symlink_to(outside)
        self.refused("model.safetensors: is a symbolic link out", *arguments)

    def test_temporary_files_are_in_tmpdir(self):
        """Spectrograms were kept in /tmp, whatever TMPDIR said."""
        audio = GOLDENS.parent / "fuzz/corpus/audio/tiny.flac"
        command = [FOVEA, "transcribe", str(GOLDENS / "speech/model"), str(audio)]
        for folder, code in ((self.folder, 0), (self.folder / "none", 1)):
            result = subprocess.run(command, env={**ENVIRONMENT, "TMPDIR": str(folder)}, capture_output=True, text=True)
            self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("TMPDIR", result.stderr)

    def test_a_fifo_is_no_audio(self):
        fifo = self.folder / "a.wav"
        os.mkfifo(fifo)
        self.refused("a.wav: is a FIFO; expected a regular file", "transcribe", GOLDENS / "speech/model", fifo, codes=(2,))

    def test_pages_end_with_the_code_of_the_signal(self):
        for verb in (["inspect", str(self.model)], ["learn"]):
            for which, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
                with self.subTest(verb=verb[0], signal=which):
                    process = subprocess.Popen([FOVEA, *verb, "--no-browser"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                    process.stdout.readline()
                    process.send_signal(which)
                    process.communicate(timeout=30)
                    self.assertEqual(process.returncode, code)

    def test_a_waiting_reward_program_ends_with_the_run(self):
        """The run ended after --reward-timeout, with code 1; a second signal left the program running."""
        data = self.folder / "prompts.jsonl"
        data.write_text((json.dumps({"messages": [{"role": "user", "content": "1+1"}], "answer": "2"}) + "\n") * 4)
        for which, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out, begun = self.folder / f"out{code}", self.folder / f"begun{code}"
            process = subprocess.Popen(
                [FOVEA, "train", str(data), "--objective", "grpo", "--from", str(GOLDENS / "fine_tuning/model"), "--lora", "4", "--out", str(out),
                 "--prompts", "2", "--generations", "2", "--answer-tokens", "4", "--steps", "2", "--reward-command", f"echo $$ > '{begun}'; exec sleep 7777",
                 "--reward-timeout", "60"], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while process.poll() is None and not (begun.exists() and begun.read_text().strip()):
                time.sleep(0.02)
            process.send_signal(which)
            _, message = process.communicate(timeout=30)
            self.assertEqual(process.returncode, code, message)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(begun.read_text()), 0)


if __name__ == "__main__":
    unittest.main()
