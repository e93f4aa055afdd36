"""Prompts with images in fovea generate, chat and serve, by the tiny models of tools/goldens/make_image_text.py."""
import base64
import json
import math
import shutil
import struct
import unittest

from serving import TEMPLATE, ServeTest
from support import ROOT, FoveaTest, fovea

GOLDENS = ROOT / "tests/goldens"
IMAGES, MODELS = GOLDENS / "images", GOLDENS / "image_text"
LLAVA, IDEFICS = MODELS / "llava", MODELS / "idefics3"
GREEDY = ("--greedy", "--predict", 12)


def golden(folder):
    return json.loads((folder / "expected.json").read_text())


class PromptsWithImages(FoveaTest):
    def ids(self, *arguments, **more):
        return json.loads(self.ok(fovea("generate", *arguments, *GREEDY, "--json", **more)).stdout)["ids"]

    def test_continues_as_transformers_does(self):
        for folder in sorted(MODELS.iterdir()):
            for case in golden(folder)["cases"]:
                images = [option for name in case["images"] for option in ("--image", IMAGES / name)]
                with self.subTest(model=folder.name, text=case["text"]):
                    self.assertEqual(self.ids(folder, "-p", case["text"], *images), case["continuation"])

    def test_a_text_without_marks_begins_with_the_images(self):
        image = IMAGES / "011.jpg"
        self.assertEqual(self.ids(LLAVA, "-p", "what?", "--image", image), self.ids(LLAVA, "-p", "<image>\nwhat?", "--image", image))

    def test_a_folder_is_a_video_of_frames(self):
        frames = self.folder / "frames"
        frames.mkdir()
        for i, name in enumerate(("005.png", "011.jpg", "017.webp", "009.png", "003.png")):
            shutil.copy(IMAGES / name, frames / f"{i:03}{name[-4:]}".replace("webp", ".webp").replace("..", "."))
        names = sorted(frames.iterdir())
        three = [option for i in (0, 2, 4) for option in ("--image", names[i])]
        self.assertEqual(self.ids(LLAVA, "-p", "<image><image><image>?", "--image", frames, "--frames", 3),
                         self.ids(LLAVA, "-p", "<image><image><image>?", *three))
        self.assertEqual(len(self.ids(LLAVA, "-p", "all", "--image", frames)), 12)

    def test_wrong_uses_are_one_line(self):
        image = IMAGES / "005.png"
        deny = lambda *arguments, words: self.refused(fovea("generate", *arguments, *GREEDY), 2, *words)  # noqa: E731
        deny(LLAVA, "-p", "<image>", "--image", image, "--image", image, words=["1 marks <image> for 2 images"])
        deny(LLAVA, "-p", "<image> or <image>?", "--image", image, words=["2 marks <image> for 1 images"])
        deny(LLAVA, "-p", "<image>?", words=["1 marks <image> for 0 images"])
        deny(GOLDENS / "starcoder2", "-p", "x", "--image", image, words=["reads no images"])
        deny(LLAVA, "-p", "x", "--image", self.folder / "none.png", words=["none.png"])
        deny(LLAVA, "-p", "x", "--frames", 3, words=["--frames: requires --image"])
        deny(LLAVA, "--ids", "1,2", "--image", image, words=["--image: cannot be combined"])
        deny(IDEFICS, "-p", "x", *["--image", IMAGES / "009.png"] * 4, words=["prompt: ", "tokens; expected at most 512"])
        for name, start, kind in (("a.mp4", b"\0\0\0\x20ftypisom", "a video"), ("b.mkv", b"\x1a\x45\xdf\xa3", "a video"),
                                  ("c.avi", b"RIFF\0\0\0\0AVI ", "a video"), ("d.gif", b"GIF89a", "a GIF")):
            (self.folder / name).write_bytes(start + bytes(100))
            deny(LLAVA, "-p", "x", "--image", self.folder / name, words=[name, kind, "expected a PNG, JPEG or WebP"])

    def test_damaged_models_are_one_line(self):
        def changed(name, file, change):
            folder = self.folder / name
            shutil.copytree(LLAVA, folder)
            (folder / file).write_text(json.dumps(change(json.loads((folder / file).read_text()))))
            return folder
        deny = lambda folder, *words: self.refused(  # noqa: E731
            fovea("generate", folder, "-p", "<image>", "--image", IMAGES / "005.png", *GREEDY), 2, *words)
        deny(changed("a", "config.json", lambda c: {**c, "vision_feature_layer": [1, 2]}), "vision_feature_layer", "expected one layer")
        deny(changed("b", "config.json", lambda c: {**c, "vision_feature_layer": -9}), "vision_feature_layer is -9")
        deny(changed("c", "config.json", lambda c: {**c, "image_token_index": 99999}), "the token 99999")
        deny(changed("d", "config.json", lambda c: {**c, "vision_config": 5}), "vision_config is not an object")
        deny(changed("e", "config.json", lambda c: {**c, "surprise": 5}), "surprise is not known")
        deny(changed("f", "config.json", lambda c: {**c, "vision_config": {**c["vision_config"], "image_size": 16}}), "position_embedding")
        larger = lambda c: {**c, "image_processor": {**c["image_processor"], "crop_size": {"height": 16, "width": 16}}}  # noqa: E731
        deny(changed("g", "processor_config.json", larger), "16 x 16 pixels; expected 12 x 12")
        deny(changed("h", "config.json", lambda c: {**c, "text_config": {**c["text_config"], "hidden_size": 20}}), "embed_tokens")

    def test_other_verbs_use_the_model_of_texts_or_refuse(self):
        self.ok(fovea("plan", LLAVA))
        self.ok(fovea("trace", LLAVA, "--text", "hello", "--list"))
        self.ok(fovea("convert", LLAVA, self.folder / "text.gguf"))
        self.ok(fovea("generate", self.folder / "text.gguf", "-p", "hello", *GREEDY))
        self.refused(fovea("train", self.text, "--from", LLAVA, "--out", self.folder / "out", "--steps", 1), 2, "--from", "reads images", "expected chats")

    def test_chats_about_images(self):
        talk = f"/image {IMAGES / '005.png'}\nWhat is this?\nAnd now?\n"
        options = ("--greedy", "--predict", 5, "--no-history")
        found = json.loads(self.ok(fovea("chat", LLAVA, *options, "--json", input=talk.encode())).stdout)["messages"]
        self.assertEqual([m["role"] for m in found], ["user", "assistant", "user", "assistant"])
        self.assertEqual(found[0]["content"], [{"type": "image", "path": str(IMAGES / "005.png")}, {"type": "text", "text": "What is this?"}])
        other = self.ok(fovea("chat", LLAVA, *options, input=f"/image {self.folder / 'none.png'}\n".encode()))
        self.assertIn("none.png", other.stderr.decode())

    def test_saved_conversations_keep_their_images(self):
        file = self.folder / "talk.json"
        talk = f"/image {IMAGES / '005.png'}\nWhat is this?\n/save {file}\n"
        options = ("--greedy", "--predict", 5, "--no-history")
        self.ok(fovea("chat", LLAVA, *options, input=talk.encode()))
        again = self.ok(fovea("chat", LLAVA, *options, "--json", input=f"/load {file}\nAnd now?\n".encode()))
        whole = self.ok(fovea("chat", LLAVA, *options, "--json", input=(talk + "And now?\n").encode()))
        self.assertEqual(json.loads(again.stdout), json.loads(whole.stdout))


class TrainedOnChats(FoveaTest):
    def train(self, model, chats, *more, out="out"):
        return fovea("train", chats, "--from", model, "--out", self.folder / out, "--steps", 3, "--batch", 1, "--dtype", "fp32", *more)

    def test_a_trained_model_answers_about_images(self):
        for model in (LLAVA, IDEFICS):
            out = f"of-{model.name}"
            told = self.ok(self.train(model, model / "chats.jsonl", "--validation", 0, out=out)).stderr.decode()
            self.assertIn("the encoder of images is not", told)
            found = self.ok(fovea("generate", self.folder / out, "-p", "<image>What?", "--image", IMAGES / "005.png", *GREEDY, "--json"))
            self.assertTrue(json.loads(found.stdout)["ids"])
            before, after = (json.loads(self.ok(fovea("eval", folder, model / "chats.jsonl", "--json")).stdout)["loss"]
                             for folder in (model, self.folder / out))
            self.assertLess(after, before)

    def test_wrong_chats_are_one_line_before_the_first_step(self):
        file = self.folder / "chats.jsonl"
        lines = (LLAVA / "chats.jsonl").read_text().replace("../../images", str(IMAGES)).splitlines()
        (self.folder / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n damaged")
        for path, words in (("none.png", "none.png"), (str(self.folder / "bad.png"), "bad.png"), ("http://127.0.0.1/a.png", "nothing is fetched")):
            file.write_text("\n".join([lines[0], lines[1].replace(str(IMAGES / "017.webp"), path)]) + "\n")
            self.refused(self.train(LLAVA, file), 2, "chats.jsonl:2: messages[0].content[3]", words)
        self.refused(self.train(GOLDENS / "fine_tuning/model", file), 2, "chats.jsonl:1: messages[0].content[0]", "reads no images")
        self.assertFalse((self.folder / "out").exists())


class ConvertedModels(FoveaTest):
    def test_a_gguf_file_has_its_encoder_beside_it(self):
        """Idefics3's images are prepared in the same way by both programs, so the answers are equal."""
        text, encoder = self.folder / "text.gguf", self.folder / "mmproj-text.gguf"
        done = json.loads(self.ok(fovea("convert", IDEFICS, text, "--json")).stdout)
        self.assertEqual(done["mmproj"], str(encoder))
        for case in golden(IDEFICS)["cases"][:2]:
            images = [option for name in case["images"] for option in ("--image", IMAGES / name)]
            found = self.ok(fovea("generate", text, "--mmproj", encoder, "-p", case["text"], *images, *GREEDY, "--dtype", "fp32", "--json"))
            self.assertEqual(json.loads(found.stdout)["ids"], case["continuation"])
        labels = golden(IDEFICS)["labels"]
        case = golden(IDEFICS)["cases"][0]
        found = self.ok(fovea("classify", text, "--mmproj", encoder, IMAGES / case["images"][0], "--question", case["text"],
                              "--labels", ",".join(labels), "--raw", "--dtype", "fp32", "--json"))
        for each in json.loads(found.stdout)["labels"]:
            self.assertAlmostEqual(each["score"], labels[each["label"]], delta=1e-4)
        other = self.folder / "other.gguf"
        encoder.rename(self.folder / "mmproj-other.gguf")
        self.refused(fovea("convert", IDEFICS, other), 2, "mmproj-other.gguf", "exists already")
        self.assertFalse(other.exists())

    def test_an_encoder_that_the_format_cannot_express_is_left_out(self):
        text = self.folder / "text.gguf"
        done = self.ok(fovea("convert", MODELS / "smolvlm", text))
        self.assertIn("not divided into tiles", done.stderr.decode())
        self.assertEqual([file.name for file in self.folder.glob("*.gguf")], ["text.gguf"])


class AnswersAboutImages(FoveaTest):
    def lines(self, *arguments, **more):
        return [json.loads(line) for line in self.ok(fovea("classify", *arguments, "--json", **more)).stdout.splitlines()]

    def test_scores_of_labels_are_those_of_transformers(self):
        for folder in sorted(MODELS.iterdir()):
            expected = golden(folder)["labels"]
            case = golden(folder)["cases"][0]
            image, asked = IMAGES / case["images"][0], ("--question", case["text"], "--labels", ",".join(expected))
            with self.subTest(model=folder.name):
                found = self.lines(folder, image, *asked, "--raw")[0]
                self.assertEqual(found["file"], str(image))
                for each in found["labels"]:
                    self.assertAlmostEqual(each["score"], expected[each["label"]], delta=1e-4)
                shares = {label: math.exp(score - max(expected.values())) for label, score in expected.items()}
                labels = self.lines(folder, image, *asked)[0]["labels"]
                self.assertEqual([each["label"] for each in labels], sorted(shares, key=shares.get, reverse=True))
                for each in labels:
                    self.assertAlmostEqual(each["score"], shares[each["label"]] / sum(shares.values()), delta=1e-4)
                self.assertEqual(self.lines(folder, image, *asked, "--top", 1)[0]["labels"], labels[:1])

    def test_answers_are_the_greedy_continuations(self):
        case = golden(LLAVA)["cases"][0]
        image = IMAGES / case["images"][0]
        found = self.lines(LLAVA, image, "--question", case["text"], "--answer-tokens", 12)[0]
        whole = json.loads(self.ok(fovea("generate", LLAVA, "-p", case["text"], "--image", image, *GREEDY, "--json", "--logprobs", 0)).stdout)
        self.assertEqual(found["answer"], whole["text"].strip())
        self.assertAlmostEqual(found["score"], math.exp(sum(each["logprob"] for each in whole["logprobs"])), delta=1e-6)

    def test_a_question_without_a_mark_is_a_message_of_a_chat(self):
        images = [IMAGES / "005.png", IMAGES / "011.jpg"]
        found = self.lines(LLAVA, *images, "--question", "What is this?", "--answer-tokens", 12)
        for image, one in zip(images, found):
            said = self.ok(fovea("chat", LLAVA, *GREEDY, "--no-history", "--json", input=f"/image {image}\nWhat is this?\n".encode()))
            self.assertEqual(one["answer"], json.loads(said.stdout)["messages"][-1]["content"].strip())
        options = (LLAVA, *images, "--question", "What is this?")
        text = self.ok(fovea("classify", *options, "--labels", "cat, dog")).stdout.decode().splitlines()
        self.assertEqual([line.split("\t")[0] for line in text], [str(image) for image in images])
        self.assertEqual({len(line.split("\t")) for line in text}, {5})
        self.assertEqual([len(line.split("\t")) for line in self.ok(fovea("classify", *options)).stdout.decode().splitlines()], [3, 3])

    def test_wrong_questions_are_one_line(self):
        image, question = IMAGES / "005.png", ("--question", "What?")
        deny = lambda *arguments, words: self.refused(fovea("classify", *arguments), 2, *words)  # noqa: E731
        deny(GOLDENS / "starcoder2", image, *question, words=["reads no images", "fovea classify MODEL QUESTION --context TEXT"])
        deny(GOLDENS / "vision/clip", image, *question, words=["--question", "writes no texts"])
        deny(LLAVA, image, words=["--question", "question"])
        deny(LLAVA, image, "--question", "<image> <image>?", words=["2 marks <image>; expected one"])
        deny(LLAVA, image, *question, "--top", 2, words=["--top: requires --labels"])
        deny(LLAVA, image, *question, "--context", "x", words=["--context"])
        deny(LLAVA, image, *question, "--hypothesis", "{}", words=["--hypothesis: cannot be combined"])
        deny(LLAVA, self.folder / "none.png", *question, words=["none.png"])
        deny(LLAVA, image, "--mmproj", "x.gguf", words=["--mmproj: requires --question"])


class TracesOfImages(FoveaTest):
    def test_a_text_without_a_mark_begins_with_the_image(self):
        traced = []
        for i, text in enumerate(("What?", "<image>\nWhat?")):
            out = self.folder / f"{i}.safetensors"
            self.ok(fovea("trace", LLAVA, "--text", text, "--image", IMAGES / "005.png", "--out", out))
            traced.append(out.read_bytes())
        self.assertEqual(*traced)
        other = self.folder / "other.safetensors"
        self.ok(fovea("trace", LLAVA, "--text", "What?", "--image", IMAGES / "003.png", "--out", other))
        self.assertNotEqual(other.read_bytes(), traced[0])

    def test_encoders_read_the_image_alone(self):
        listed = self.ok(fovea("trace", GOLDENS / "vision/clip", "--image", IMAGES / "005.png", "--list")).stdout.decode()
        self.assertIn("attention.0 [", listed)
        self.assertNotIn("input_ids", listed)

    def test_wrong_traces_are_one_line(self):
        image = ("--image", IMAGES / "005.png")
        deny = lambda *arguments, words: self.refused(fovea(*arguments), 2, *words)  # noqa: E731
        deny("trace", GOLDENS / "vision/clip", *image, "--text", "x", "--list", words=["--image: cannot be combined"])
        deny("trace", GOLDENS / "starcoder2", *image, "--text", "x", "--list", words=["reads no images"])
        deny("trace", LLAVA, *image, "--ids", "5,6,7", "--list", words=["9 tokens"])
        deny("trace", LLAVA, *image, "--text", "x", "--explain", words=["--image: cannot be combined with --explain"])
        deny("trace", LLAVA, "--image", self.folder / "none.png", "--text", "x", "--list", words=["none.png"])
        deny("inspect", GOLDENS / "starcoder2", *image, words=["--image", "reads no images"])
        deny("inspect", LLAVA, "--image", self.folder / "none.png", words=["none.png"])
        deny("inspect", LLAVA, "a text", *image, words=["--image: cannot be combined with TEXT"])


def url(name, kind="png"):
    return f"data:image/{kind};base64," + base64.b64encode((IMAGES / name).read_bytes()).decode()


def asked(*parts, **fields):
    content = [{"type": "text", "text": part} if not part.startswith("data:") and "://" not in part else
               {"type": "image_url", "image_url": {"url": part}} for part in parts]
    return {"messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 12, **fields}


class ServedImages(ServeTest):
    def served_model(self, context=256):
        return LLAVA

    def setUp(self):
        super().setUp()
        self.serve()

    def chat(self, *lines):
        """Returns the answer of `fovea chat`, a process of its own without any cached prefix."""
        found = self.ok(fovea("chat", LLAVA, *GREEDY, "--no-history", "--chat-template", TEMPLATE, "--json", input="\n".join(lines).encode()))
        return json.loads(found.stdout)["messages"][-1]["content"]

    def said(self, *parts, **fields):
        return self.good("/v1/chat/completions", asked(*parts, **fields))["choices"][0]["message"]["content"]

    def bad(self, body, *words):
        status, _, answer = self.post("/v1/chat/completions", body)
        self.assertEqual(status, 400, answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])

    def test_answers_about_data_urls(self):
        self.assertEqual(self.said(url("005.png"), "What is this?"), self.chat(f"/image {IMAGES / '005.png'}", "What is this?"))
        self.assertEqual(self.said("plain"), self.chat("plain"))

    def test_equal_tokens_of_two_clients_never_share_an_image(self):
        """The prompts are equal tokens, longer than a page of the cache; only the pixels differ."""
        images, question = ["005.png", "009.png", "003.png", "011.jpg"], "What is this? " + "y" * 120
        alone = {name: self.chat(f"/image {IMAGES / name}", question) for name in images}
        self.assertGreater(len(set(alone.values())), 1)
        for name in images + images[::-1]:
            self.assertEqual(self.said(url(name), question), alone[name], name)

        def usage(name):
            return self.good("/v1/chat/completions", asked(url(name), question))["usage"]
        again = usage("005.png")  # the keys of the same image are found again
        self.assertEqual(again["prompt_tokens_details"]["cached_tokens"], (again["prompt_tokens"] - 1) // 64 * 64)
        self.assertEqual(usage("017.webp")["prompt_tokens_details"]["cached_tokens"], 0)

    def test_refuses_what_is_no_image(self):
        self.bad(asked("https://example.org/cat.png", "?"), "messages[0].content[0].image_url", "https://example.org", "expected a data: URL")
        self.bad(asked("file:///etc/passwd", "?"), "file:///etc/passwd", "expected a data: URL")
        self.bad(asked("data:image/png,abc", "?"), "not an image")  # bytes, as RFC 2397 has them
        self.bad(asked("data:image/png;base64,@@@@", "?"), "not base64")
        self.bad(asked("data:image/png;base64,aGVsbG8=", "?"), "content[0].image_url: not an image")
        large = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">IIBBBBB", 65535, 65535, 8, 2, 0, 0, 0) + bytes(4)
        self.bad(asked("data:image/png;base64," + base64.b64encode(large).decode(), "?"), "content[0].image_url")
        self.bad(asked(*[url("005.png")] * 65), "expected at most 64")
        self.bad({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "parts of type text or image_url")
        self.bad({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 5}]}]}, "expected an object with url")

    def test_chats_with_images_have_their_own_limit(self):
        padding = {"note": "x" * 3_000_000}
        status, _, _ = self.post("/v1/completions", {"prompt": "x", **padding})
        self.assertEqual(status, 413)
        status, _, answer = self.post("/v1/chat/completions", {**asked("hello"), **padding})
        self.assertEqual(status, 200, answer)


class ServedTexts(ServeTest):
    def test_a_model_of_texts_refuses_images(self):
        self.serve()
        status, _, answer = self.post("/v1/chat/completions", asked(url("005.png"), "?"))
        self.assertEqual(status, 400, answer)
        self.assertIn("reads no images", answer["error"]["message"])


if __name__ == "__main__":
    unittest.main()
