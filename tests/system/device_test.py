"""--device: the model of a GPU, which every machine has, and the messages where there is no GPU."""
import json
import shutil
import subprocess
import unittest

from ranks_test import ENVIRONMENT, MPI, command_of, errors_in
from support import ROOT, FoveaTest, fovea


class Devices(FoveaTest):
    def test_unknown_devices_are_refused(self):
        for name in ("tpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", ""):
            with self.subTest(name):
                self.refused(fovea("generate", self.model(), "-p", "The", "--device", name), 2, "device", "cpu, cuda")

    def test_a_machine_without_a_gpu_says_what_is_missing(self):
        report = self.ok(fovea("doctor")).stdout.decode()
        self.assertIn("GPU", report)
        if "none: libcuda.so.1" not in report:
            self.skipTest("this machine has a GPU")
        self.refused(fovea("generate", self.model(), "-p", "The", "--device", "cuda"), 2, "cuda", "libcuda.so.1", "driver")

    def test_a_text_is_the_same_on_the_model_of_a_gpu(self):
        arguments = ("generate", self.model(), "-p", "The ", "-n", "12", "--greedy")
        expected = self.ok(fovea(*arguments)).stdout
        self.assertEqual(self.ok(fovea(*arguments, "--device", "cuda-model")).stdout, expected)

    def test_a_training_has_the_same_weights_on_the_model_of_a_gpu(self):
        for device in ("cpu", "cuda-model"):
            self.ok(self.train(self.folder / device, "--device", device, "--dtype", "fp32", steps=3))
        for name in ("model.safetensors", "tokenizer.json"):
            self.assertEqual((self.folder / "cpu" / name).read_bytes(), (self.folder / "cuda-model" / name).read_bytes(), name)

    def equal_weights(self, *arguments):
        """Checks that a run has the same weights on both devices."""
        for device in ("cpu", "cuda-model"):
            shutil.rmtree(self.folder / device, ignore_errors=True)
            self.ok(fovea(*arguments, "--device", device, "--out", self.folder / device, "--steps", 2, "--batch", 2, "--seed", 3, "--dtype", "fp32"))
        weights = [(self.folder / device / "model.safetensors").read_bytes() for device in ("cpu", "cuda-model")]
        self.assertTrue(weights[0] == weights[1], arguments)

    def test_recurrent_layers_and_moments_in_8_bits(self):
        sizes = ("--layers", 1, "--width", 32, "--context", 32, "--sample-every", 0, "--evaluate-windows", 1)
        for preset in ("rnn", "gru", "lstm"):
            self.equal_weights("train", self.text, "--preset", preset, *sizes)
        self.equal_weights("train", self.text, "--preset", "tiny", "--heads", 2, *sizes, "--moments", "8bit")

    def test_objectives_with_losses_of_their_own(self):
        template = ROOT / "tests/goldens/chat_templates/chatml.jinja"
        text = self.file("text.txt", "<|im_start|>user\nWhat is 0123456789? a fox sleeps, no idea at all<|im_end|>\n" * 40)
        base = self.folder / "base"
        self.ok(fovea("train", text, "--preset", "tiny", "--layers", 1, "--heads", 2, "--width", 32, "--context", 128, "--out", base, "--steps", 2,
                      "--batch", 2, "--sample-every", 0, "--evaluate-windows", 1, "--seed", 3, "--dtype", "fp32"))
        pairs = self.file("pairs.jsonl", "".join(json.dumps({"prompt": f"What is {i}?", "chosen": "a fox", "rejected": "no idea"}) + "\n"
                                                 for i in range(8)))
        prompts = self.file("prompts.jsonl", "".join(json.dumps({"prompt": f"What is {i}?", "answer": str(i)}) + "\n" for i in range(8)))
        tuned = ("--from", base, "--chat-template", template)
        for objective in ("dpo", "kto", "orpo", "reward"):
            self.equal_weights("train", pairs, "--objective", objective, *tuned)
        for objective in ("grpo", "ppo"):
            self.equal_weights("train", prompts, "--objective", objective, "--reward", "numeric:answer", "--answer-tokens", 6, *tuned)
        self.equal_weights("distil", base, "tiny", text, "--context", 64, "--heads", 2, "--width", 32, "--sample-every", 0, "--evaluate-windows", 1)

    def test_vectors_labels_and_texts_of_images_are_the_same(self):
        goldens = ROOT / "tests/goldens"
        image = goldens / "images/011.jpg"
        for arguments in (("embed", goldens / "sparse_model"), ("embed", goldens / "multi_vector_model"), ("embed", goldens / "sentence_model"),
                          ("classify", goldens / "deit", image), ("embed", goldens / "vision/clip", image),
                          ("classify", goldens / "vision/siglip", image, "--labels", "a cat,a dog"),
                          ("generate", goldens / "image_text/llava", "-p", "what?", "--image", image, "--greedy", "-n", 8)):
            with self.subTest(str(arguments[:2])):
                found = [self.ok(fovea(*arguments, "--device", device, input=b"two words\n")).stdout for device in ("cpu", "cuda-model")]
                self.assertTrue(found[0])
                self.assertEqual(found[0], found[1])

    def test_relative_position_biases(self):
        self.equal_weights("train", self.text, "--preset", "t5-small", "--layers", 1, "--encoder-layers", 1, "--heads", 2, "--width", 16, "--context", 16,
                           "--tokenizer", "unigram:300", "--sample-every", 0, "--evaluate-windows", 1)

    def test_traces_and_the_page_have_the_same_bytes(self):
        found = []
        for device in ("cpu", "cuda-model"):
            trace, page = self.folder / f"{device}.safetensors", self.folder / f"{device}.html"
            self.ok(fovea("trace", self.model(), "--text", "The cat", "--device", device, "--out", trace))
            self.ok(fovea("inspect", self.model(), "The cat", "--device", device, "--out", page))
            distances = self.folder / f"{device}-distances.safetensors"
            self.ok(fovea("trace", ROOT / "tests/goldens/deberta_v2", "--ids", "3,4,5,9,11", "--device", device, "--out", distances))
            found.append((trace.read_bytes(), page.read_bytes(), distances.read_bytes()))
        self.assertTrue(found[0] == found[1])

    @unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
    def test_several_ranks_are_refused_by_name(self):
        arguments = ("train", self.text, "--preset", "tiny", "--steps", 2, "--out", self.folder / "out", "--device", "cuda-model")
        made = subprocess.run(command_of(2, *arguments), capture_output=True, timeout=300, env=ENVIRONMENT, check=False)
        message = made.stderr.decode(errors="replace")
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("training on several ranks: not supported on device cuda-model", " ".join(errors_in(message)))


if __name__ == "__main__":
    unittest.main()
