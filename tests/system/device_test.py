"""--device: the model of a GPU, which every machine has, and the messages where there is no GPU."""
import json
import shutil
import unittest

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

    def test_what_has_no_kernel_is_refused_by_name(self):
        result = fovea("train", self.text, "--preset", "t5-small", "--layers", 1, "--encoder-layers", 1, "--heads", 2, "--width", 16, "--context", 16,
                       "--tokenizer", "unigram:300", "--batch", 2, "--steps", 2, "--out", self.folder / "out", "--device", "cuda-model")
        self.refused(result, 2, "attention_backward", "position bias", "cpu")


if __name__ == "__main__":
    unittest.main()
