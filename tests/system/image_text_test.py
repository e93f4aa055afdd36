"""Prompts with pictures in fovea generate, chat and serve, by the tiny models of tools/make_image_text_goldens.py."""
import base64
import json
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


class PromptsWithPictures(FoveaTest):
    def ids(self, *arguments, **more):
        return json.loads(self.ok(fovea("generate", *arguments, *GREEDY, "--json", **more)).stdout)["ids"]

    def test_continues_as_transformers_does(self):
        for folder in sorted(MODELS.iterdir()):
            for case in golden(folder)["cases"]:
                pictures = [option for name in case["pictures"] for option in ("--image", IMAGES / name)]
                with self.subTest(model=folder.name, text=case["text"]):
                    self.assertEqual(self.ids(folder, "-p", case["text"], *pictures), case["continuation"])

    def test_a_text_without_marks_begins_with_the_pictures(self):
        picture = IMAGES / "011.jpg"
        self.assertEqual(self.ids(LLAVA, "-p", "what?", "--image", picture), self.ids(LLAVA, "-p", "<image>\nwhat?", "--image", picture))

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
        picture = IMAGES / "005.png"
        deny = lambda *arguments, words: self.refused(fovea("generate", *arguments, *GREEDY), 2, *words)  # noqa: E731
        deny(LLAVA, "-p", "<image>", "--image", picture, "--image", picture, words=["1 marks <image> for 2 pictures"])
        deny(LLAVA, "-p", "<image> or <image>?", "--image", picture, words=["2 marks <image> for 1 pictures"])
        deny(LLAVA, "-p", "<image>?", words=["1 marks <image> for 0 pictures"])
        deny(GOLDENS / "starcoder2", "-p", "x", "--image", picture, words=["reads no pictures"])
        deny(LLAVA, "-p", "x", "--image", self.folder / "none.png", words=["none.png"])
        deny(LLAVA, "-p", "x", "--frames", 3, words=["--frames: requires --image"])
        deny(LLAVA, "--ids", "1,2", "--image", picture, words=["--image: cannot be combined"])
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
        self.refused(fovea("train", self.text, "--from", LLAVA, "--out", self.folder / "out", "--steps", 1), 2, "cannot be trained")

    def test_chats_about_pictures(self):
        talk = f"/image {IMAGES / '005.png'}\nWhat is this?\nAnd now?\n"
        options = ("--greedy", "--predict", 5, "--no-history")
        found = json.loads(self.ok(fovea("chat", LLAVA, *options, "--json", input=talk.encode())).stdout)["messages"]
        self.assertEqual([m["role"] for m in found], ["user", "assistant", "user", "assistant"])
        self.assertEqual(found[0]["content"], [{"type": "image", "path": str(IMAGES / "005.png")}, {"type": "text", "text": "What is this?"}])
        other = self.ok(fovea("chat", LLAVA, *options, input=f"/image {self.folder / 'none.png'}\n".encode()))
        self.assertIn("none.png", other.stderr.decode())

    def test_saved_conversations_keep_their_pictures(self):
        file = self.folder / "talk.json"
        talk = f"/image {IMAGES / '005.png'}\nWhat is this?\n/save {file}\n"
        options = ("--greedy", "--predict", 5, "--no-history")
        self.ok(fovea("chat", LLAVA, *options, input=talk.encode()))
        again = self.ok(fovea("chat", LLAVA, *options, "--json", input=f"/load {file}\nAnd now?\n".encode()))
        whole = self.ok(fovea("chat", LLAVA, *options, "--json", input=(talk + "And now?\n").encode()))
        self.assertEqual(json.loads(again.stdout), json.loads(whole.stdout))


def url(name, kind="png"):
    return f"data:image/{kind};base64," + base64.b64encode((IMAGES / name).read_bytes()).decode()


def asked(*parts, **fields):
    content = [{"type": "text", "text": part} if not part.startswith("data:") and "://" not in part else
               {"type": "image_url", "image_url": {"url": part}} for part in parts]
    return {"messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 12, **fields}


class ServedPictures(ServeTest):
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

    def test_equal_tokens_of_two_clients_never_share_a_picture(self):
        """The prompts are equal tokens, longer than a page of the cache; only the pixels differ."""
        pictures, question = ["005.png", "009.png", "003.png", "011.jpg"], "What is this? " + "y" * 120
        alone = {name: self.chat(f"/image {IMAGES / name}", question) for name in pictures}
        self.assertGreater(len(set(alone.values())), 1)
        for name in pictures + pictures[::-1]:
            self.assertEqual(self.said(url(name), question), alone[name], name)

        def usage(name):
            return self.good("/v1/chat/completions", asked(url(name), question))["usage"]
        again = usage("005.png")  # the keys of the same picture are found again
        self.assertEqual(again["prompt_tokens_details"]["cached_tokens"], (again["prompt_tokens"] - 1) // 64 * 64)
        self.assertEqual(usage("017.webp")["prompt_tokens_details"]["cached_tokens"], 0)

    def test_refuses_what_is_no_picture(self):
        self.bad(asked("https://example.org/cat.png", "?"), "messages[0].content[0].image_url", "https://example.org", "expected a data: URL")
        self.bad(asked("file:///etc/passwd", "?"), "file:///etc/passwd", "expected a data: URL")
        self.bad(asked("data:image/png,abc", "?"), "base64")
        self.bad(asked("data:image/png;base64,@@@@", "?"), "not base64")
        self.bad(asked("data:image/png;base64,aGVsbG8=", "?"), "content[0].image_url: not a picture")
        large = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">IIBBBBB", 65535, 65535, 8, 2, 0, 0, 0) + bytes(4)
        self.bad(asked("data:image/png;base64," + base64.b64encode(large).decode(), "?"), "content[0].image_url")
        self.bad(asked(*[url("005.png")] * 65), "expected at most 64")
        self.bad({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "parts of type text or image_url")
        self.bad({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 5}]}]}, "expected an object with url")

    def test_chats_with_pictures_have_their_own_limit(self):
        padding = {"note": "x" * 3_000_000}
        status, _, _ = self.post("/v1/completions", {"prompt": "x", **padding})
        self.assertEqual(status, 413)
        status, _, answer = self.post("/v1/chat/completions", {**asked("hello"), **padding})
        self.assertEqual(status, 200, answer)


class ServedTexts(ServeTest):
    def test_a_model_of_texts_refuses_pictures(self):
        self.serve()
        status, _, answer = self.post("/v1/chat/completions", asked(url("005.png"), "?"))
        self.assertEqual(status, 400, answer)
        self.assertIn("reads no pictures", answer["error"]["message"])


if __name__ == "__main__":
    unittest.main()
