"""Images in fovea classify, embed, search and train."""
import json
import random
import shutil
import struct
import sys
import unittest

from support import ROOT, FoveaTest, fovea

sys.path.insert(0, str(ROOT / "tools/data"))
import write_digits
from write_digits import png

GOLDENS = ROOT / "tests/goldens"
IMAGES = GOLDENS / "images"
DEIT, CLIP = GOLDENS / "deit", GOLDENS / "vision/clip"


def bars(vertical, generator):
    """Returns noisy bars of 8 x 8 pixels."""
    at = generator.randrange(2, 6)
    return [[min(255, generator.randrange(60) + (190 if (column if vertical else row) == at else 0)) for column in range(8)] for row in range(8)]


class Images(FoveaTest):
    def lines(self, *arguments, **more):
        return self.ok(fovea(*arguments, **more)).stdout.decode().splitlines()

    def test_classifies_files_folders_and_standard_input(self):
        image = IMAGES / "011.jpg"
        file, label, score = self.lines("classify", DEIT, image)[0].split("\t")
        self.assertEqual(file, str(image))
        self.assertIn(label, ("LABEL_0", "LABEL_1", "LABEL_2"))
        typed = self.lines("classify", DEIT, "-", input=image.read_bytes())[0].split("\t")
        self.assertEqual(typed, ["-", label, score])
        folder = self.folder / "images"
        (folder / "more").mkdir(parents=True)
        shutil.copy(image, folder / "a.jpg")
        shutil.copy(image, folder / "more/b.JPEG")
        (folder / "notes.txt").write_text("no image")
        found = [json.loads(line) for line in self.lines("classify", DEIT, folder, image, "--top", "3", "--json")]
        self.assertEqual([one["file"] for one in found], [str(folder / "a.jpg"), str(folder / "more/b.JPEG"), str(image)])
        self.assertEqual(found[0]["labels"], found[1]["labels"])
        self.assertEqual(found[0]["labels"], found[2]["labels"])
        self.assertEqual(len(found[0]["labels"]), 3)

    def test_chooses_among_labels_by_a_model_of_images_and_texts(self):
        found = json.loads(self.lines("classify", CLIP, IMAGES / "005.png", "--labels", "a cat,a dog,a fox", "--json")[0])["labels"]
        self.assertEqual({one["label"] for one in found}, {"a cat", "a dog", "a fox"})
        self.assertAlmostEqual(sum(one["score"] for one in found), 1, places=5)
        self.assertEqual(found, sorted(found, key=lambda one: -one["score"]))
        self.refused(fovea("classify", CLIP, IMAGES / "005.png"), 2, "no head for labels; expected --labels")
        self.refused(fovea("classify", DEIT, IMAGES / "005.png", "--labels", "a,b"), 2, "--labels: ", "reads no texts")
        self.refused(fovea("classify", DEIT, IMAGES / "005.png", "--context", "x"), 2, "--context: ", "is a model of images")

    def test_embeds_images_and_texts_into_one_space(self):
        images = [json.loads(line) for line in self.lines("embed", CLIP, IMAGES / "005.png", IMAGES / "011.jpg", "--format", "jsonl")]
        texts = self.lines("embed", CLIP, input=b"a cat\ntwo dogs\n")
        self.assertEqual(len(images), 2)
        self.assertEqual(len(texts), 2)
        self.assertEqual(len(texts[0].split()), 10)
        self.ok(fovea("embed", CLIP, IMAGES / "005.png", IMAGES / "011.jpg", "--out", self.folder / "x.npy"))
        self.assertIn(b"'shape': (2, 10)", (self.folder / "x.npy").read_bytes())

    def test_searches_images_by_words_and_by_an_image(self):
        index = self.folder / "index"
        build = ("search", "--build", IMAGES, "--model", CLIP, "--out", index)
        count = len(list(IMAGES.glob("0*")))
        self.assertEqual(self.lines(*build), [f"{count} images, {count} of them new"])
        self.assertEqual(self.lines(*build), [f"{count} images, 0 of them new"])
        best = json.loads(self.lines("search", index, "--image", IMAGES / "011.jpg", "--json")[0])["results"]
        self.assertEqual(best[0]["file"], str(IMAGES / "011.jpg"))
        self.assertAlmostEqual(best[0]["score"], 1, places=5)
        self.assertEqual(len(self.lines("search", index, "two dogs", "--top", "3")), 3)
        self.refused(fovea("search", index, "dogs", "--image", IMAGES / "011.jpg"), 2, "--image: cannot be combined")

    def test_errors_name_the_image(self):
        self.refused(fovea("classify", DEIT, self.folder / "none.png"), 2, "none.png")
        text = self.folder / "text.png"
        text.write_text("hello")
        self.refused(fovea("classify", DEIT, IMAGES / "005.png", text), 2, "text.png: not an image; expected a PNG, JPEG or WebP file")
        self.refused(fovea("classify", DEIT), 2, "expected images, folders")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused(fovea("embed", DEIT, empty), 2, "no images")


class TrainImages(FoveaTest):
    def setUp(self):
        super().setUp()
        generator = random.Random(5)
        self.data = self.folder / "data"
        for label in ("lying", "standing"):
            (self.data / label).mkdir(parents=True)
            for i in range(40):
                (self.data / label / f"{i:02}.png").write_bytes(png(bars(label == "standing", generator)))

    def train(self, out, *more, data=None):
        return self.ok(fovea("train", "--images", data or self.data, "--out", out, "--preset", "vit-tiny", "--image-size", "8", "--patch", "2",
                             "--encoder-layers", "2", "--encoder-heads", "2", "--width", "32", "--batch", "16", "--learning-rate", "0.003",
                             "--warmup", "10", "--seed", "3", "--dtype", "fp32", *more))

    def test_learns_and_classifies(self):
        out = self.folder / "out"
        self.train(out, "--steps", "150", "--image-crop", "0.8", "--evaluate-every", "50")
        files = {path.name for path in out.iterdir()}
        self.assertLessEqual({"config.json", "model.safetensors", "preprocessor_config.json"}, files)
        self.assertNotIn("tokenizer.json", files)
        self.assertEqual(json.loads((out / "config.json").read_text())["model_type"], "vit")
        found = [json.loads(line) for line in self.ok(fovea("classify", out, self.data, "--json")).stdout.splitlines()]
        right = sum(one["labels"][0]["label"] in one["file"] for one in found)
        self.assertGreaterEqual(right, 76, found[:3])

    def test_a_resumed_run_has_the_same_bits(self):
        straight, resumed = self.folder / "a", self.folder / "b"
        options = ("--steps", "8", "--image-crop", "0.5", "--image-flip", "--save-every", "4")
        self.train(straight, *options)
        shutil.copytree(straight, resumed)
        snapshots = sorted(path for path in resumed.rglob("*") if path.is_dir() and path.name.endswith("8"))
        self.assertEqual(len(snapshots), 1)
        shutil.rmtree(snapshots[0])
        (resumed / "model.safetensors").unlink()
        self.assertIn(b"step 4", self.train(resumed, *options).stderr)
        self.assertEqual((straight / "model.safetensors").read_bytes(), (resumed / "model.safetensors").read_bytes())

    def test_continues_from_a_checkpoint_with_new_labels(self):
        first, second = self.folder / "a", self.folder / "b"
        self.train(first, "--steps", "3")
        table = self.folder / "table.csv"
        names = sorted(path.relative_to(self.folder) for path in self.data.rglob("*.png"))
        table.write_text("file,label\n" + "".join(f"{name},{i % 3}\n" for i, name in enumerate(names)))
        self.ok(fovea("train", "--images", table, "--from", first, "--out", second, "--steps", "2", "--batch", "8", "--sample-every", "0"))
        self.assertEqual(json.loads((second / "config.json").read_text())["id2label"], {"0": "0", "1": "1", "2": "2"})

    def test_errors_name_the_location(self):
        def refused(pattern, *images):
            self.refused(fovea("train", "--images", *images, "--preset", "vit-tiny", "--out", self.folder / "out"), 2, pattern)
        (self.folder / "empty").mkdir()
        refused("no folders; expected a folder of images for each label", self.folder / "empty")
        refused("is in no label's folder", self.data / "lying")
        table = self.folder / "table.csv"
        table.write_text("none.png,cat\n")
        refused("none.png is missing", table)
        table.write_text("data/lying/00.png\n")
        refused("table.csv:1: ", table)


class Digits(FoveaTest):
    """The example of docs/images.md with three digits and fewer steps."""

    def setUp(self):
        super().setUp()
        generator = random.Random(1)
        write_digits.write([(write_digits.drawn(digit, generator), digit) for _ in range(60) for digit in (0, 1, 7)], self.folder, 1)

    def train(self, out, *more):
        return self.ok(fovea("train", "--images", self.folder / "train", "--validation", "0", "--preset", "vit-tiny", "--image-size", "16",
                             "--patch", "4", "--width", "32", "--encoder-layers", "2", "--encoder-heads", "2", "--init-deviation", "0.08",
                             "--image-crop", "0.7", "--mixup", "0.2", "--batch", "16", "--learning-rate", "0.003", "--dtype", "fp32", "--out", out, *more))

    def test_learns_digits(self):
        out = self.folder / "out"
        self.train(out, "--steps", "600")
        found = json.loads(self.ok(fovea("eval", out, "--images", self.folder / "test", "--json")).stdout)
        self.assertEqual(found["sequences"], 45)
        self.assertGreaterEqual(found["accuracy"], 0.9)
        self.assertEqual(set(found["labels"]), {"0", "1", "7"})

    def test_random_operations_have_the_same_bits_for_any_number_of_threads(self):
        weights = []
        for threads in ("1", "3"):
            out = self.folder / threads
            self.train(out, "--steps", "5", "--rand-augment", "2", "--rand-augment-magnitude", "15", "--threads", threads)
            weights.append((out / "model.safetensors").read_bytes())
        self.assertEqual(*weights)
        plain = self.folder / "plain"
        self.train(plain, "--steps", "5")
        self.assertNotEqual(weights[0], (plain / "model.safetensors").read_bytes())
        self.refused(fovea("train", "--images", self.folder / "train", "--rand-augment-magnitude", "3", "--out", self.folder / "x"), 2,
                     "--rand-augment-magnitude: has no effect in this run; expected --rand-augment")

    def test_adapters_are_trained_and_opened(self):
        base, out = self.folder / "base", self.folder / "adapter"
        self.train(base, "--steps", "2")
        self.ok(fovea("train", "--images", self.folder / "train", "--from", base, "--lora", "4", "--steps", "3", "--batch", "8", "--out", out))
        self.assertLessEqual({"adapter_config.json", "adapter_model.safetensors"}, {path.name for path in out.iterdir()})
        image = self.folder / "test/7/0000.png"

        def scores(*model):
            return self.ok(fovea("classify", *model, image, "--json", "--top", "3")).stdout
        self.assertEqual(scores(out), scores(base, "--adapter", out))
        self.assertNotEqual(scores(out), scores(base))

        expected = scores(out)
        # Modules have the names of transformers 5, which PEFT adapts; those of transformers 4 are read too.
        config = json.loads((out / "adapter_config.json").read_text())
        self.assertEqual(config["target_modules"], ["fc1", "fc2", "k_proj", "o_proj", "q_proj", "v_proj"])
        bytes_ = (out / "adapter_model.safetensors").read_bytes()
        size = struct.unpack("<Q", bytes_[:8])[0]
        header = bytes_[8:8 + size].decode()
        self.assertIn("base_model.model.vit.layers.0.attention.q_proj.lora_A.weight", header)
        for new, old in (("vit.layers.", "vit.encoder.layer."), ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"),
                         ("mlp.fc2", "output.dense"), *((f"attention.{c}_proj", f"attention.attention.{name}")
                                                        for c, name in (("q", "query"), ("k", "key"), ("v", "value")))):
            header = header.replace(new, old)
        header = header.encode()
        (out / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes_[8 + size:])
        config["target_modules"] = ["query", "key", "value", "dense"]
        (out / "adapter_config.json").write_text(json.dumps(config))
        self.assertEqual(scores(out), expected)


class Captions(FoveaTest):
    def setUp(self):
        super().setUp()
        generator = random.Random(4)
        for part, count in (("train", 160), ("test", 32)):
            lines = ["file,caption"]
            for i in range(count):
                standing, place = i % 2 == 0, i // 2 % 4
                rows = [[min(255, generator.randrange(50) + (200 if (column if standing else row) // 2 == place else 0)) for column in range(8)]
                        for row in range(8)]
                (self.folder / f"{part}{i}.png").write_bytes(png(rows))
                lines.append(f'{part}{i}.png,"a bar, {"standing" if standing else "lying"}, number {place + 1}"')
            (self.folder / f"{part}.csv").write_text("\n".join(lines) + "\n")

    def train(self, out, *more):
        return self.ok(fovea("train", "--images", self.folder / "train.csv", "--validation-images", self.folder / "test.csv", "--image-size", "8",
                             "--patch", "2", "--width", "32", "--layers", "2", "--heads", "2", "--encoder-layers", "2", "--encoder-heads", "2",
                             "--batch", "32", "--learning-rate", "0.003", "--out", out, *more))

    def test_learns_to_retrieve_images_and_captions(self):
        for preset, kind, steps in (("clip-tiny", "clip", 400), ("siglip-tiny", "siglip", 20)):
            out = self.folder / kind
            self.train(out, "--preset", preset, "--steps", str(steps), "--init-deviation", "0.06")
            self.assertEqual(json.loads((out / "config.json").read_text())["model_type"], kind)
            found = json.loads(self.ok(fovea("eval", out, "--images", self.folder / "test.csv", "--json")).stdout)
            if kind == "siglip":  # learns several times as slowly; towers_test compares its gradients
                self.assertEqual(found["sequences"], 32)
                continue
            self.assertGreaterEqual(found["text_recall_1"], 0.8, kind)
            self.assertGreaterEqual(found["image_recall_1"], 0.8, kind)
            label = self.ok(fovea("classify", out, self.folder / "test0.png", "--hypothesis", "a bar, {}, number 1", "--labels",
                                  "standing,lying")).stdout.decode().split("\t")[1]
            self.assertEqual(label, "standing")

    def test_errors_name_the_option(self):
        def refused(pattern, *more):
            self.refused(fovea("train", "--images", self.folder / "train.csv", "--preset", "clip-tiny", "--out", self.folder / "x", *more), 2, pattern)
        refused("--mixup: ", "--mixup", "0.2")
        refused("--objective: labels for a model of images and texts", "--objective", "labels")
        refused("--average: ", "--average", "2")
        self.refused(fovea("train", "--images", self.folder / "train.csv", "--preset", "vit-tiny", "--objective", "contrastive", "--out",
                           self.folder / "x"), 2, "--objective: contrastive, but the model does not read images and texts")
        (self.folder / "bad.csv").write_text("train0.png,a bar, standing\n")
        self.refused(fovea("train", "--images", self.folder / "bad.csv", "--preset", "clip-tiny", "--out", self.folder / "x"), 2,
                     "bad.csv:1: ", "in quotes if it has commas")


if __name__ == "__main__":
    unittest.main()
