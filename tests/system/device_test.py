"""--device: the model of a GPU, which every machine has, and the messages where there is no GPU."""
import unittest

from support import FoveaTest, fovea


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

    def test_what_has_no_kernel_is_refused_by_name(self):
        result = fovea("train", self.text, "--preset", "lstm", "--layers", "1", "--width", "16", "--context", "16", "--batch", "2", "--steps", "2",
                       "--out", self.folder / "out", "--device", "cuda-model")
        self.refused(result, 2, "recurrent_cell", "cpu")


if __name__ == "__main__":
    unittest.main()
