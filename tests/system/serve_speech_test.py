"""The server's routes for audio: OpenAI's and whisper.cpp's, with plain HTTP and, if installed, the client of openai."""
import json
import threading
import unittest

import synthetic_audio
from serving import ServeTest
from support import ROOT, fovea

MODEL = ROOT / "tests/goldens/speech/model"
TYPE = "multipart/form-data; boundary=----edge"


def form(audio, *fields):
    parts = [b'------edge\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + audio + b"\r\n"] if audio is not None else []
    parts += [f'------edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields]
    return b"".join(parts) + b"------edge--\r\n"


class ServeSpeechTest(ServeTest):
    def served_model(self, context=256):
        return MODEL

    def setUp(self):
        super().setUp()
        path = self.folder / "a.wav"
        synthetic_audio.write_wav(path, synthetic_audio.voice(4.5, 5))
        self.audio = path.read_bytes()
        self.expected = json.loads(self.ok(fovea("transcribe", MODEL, path, "--json", "--word-timestamps")).stdout)

    def transcribe(self, *fields, path="/v1/audio/transcriptions", audio=None):
        return self.post(path, form(self.audio if audio is None else audio, *fields), headers={"Content-Type": TYPE})

    def test_formats_are_those_of_the_command(self):
        self.serve()
        status, _, answer = self.transcribe(("model", "model"))
        self.assertEqual((status, answer["text"]), (200, self.expected["text"]))
        self.assertEqual(answer["usage"], {"type": "duration", "seconds": 5})
        for name in ("text", "srt", "vtt"):
            command = self.ok(fovea("transcribe", MODEL, self.folder / "a.wav", "--format", name)).stdout
            self.assertEqual(self.transcribe(("response_format", name))[2], command)
        verbose = self.transcribe(("response_format", "verbose_json"), ("timestamp_granularities[]", "word"),
                                  ("timestamp_granularities[]", "segment"))[2]
        self.assertEqual((verbose["task"], verbose["language"], verbose["duration"]), ("transcribe", "german", 4.5))
        for found, segment in zip(verbose["segments"], self.expected["segments"], strict=True):
            self.assertEqual(found, {key: value for key, value in segment.items() if key != "words"})
        words = [{key: w[key] for key in ("word", "start", "end")} for s in self.expected["segments"] for w in s.get("words", [])]
        self.assertEqual(verbose["words"], words)
        self.assertNotIn("words", self.transcribe(("response_format", "verbose_json"))[2])
        self.assertEqual(self.transcribe(path="/v1/audio/translations", *[("response_format", "verbose_json")])[2]["task"], "translate")
        self.assertEqual(self.transcribe(("language", "de"), ("temperature_inc", "0.2"), ("no_timestamps", "false"),
                                         path="/inference")[2]["text"], self.expected["text"])

    def test_streams_have_a_delta_for_each_segment(self):
        self.serve()
        body = self.transcribe(("stream", "true"))[2].decode()
        events = [json.loads(line[6:]) for line in body.split("\n\n") if line.startswith("data: {")]
        self.assertEqual([e["delta"] for e in events[:-1]], [s["text"] for s in self.expected["segments"]])
        self.assertEqual((events[-1]["type"], events[-1]["text"]), ("transcript.text.done", self.expected["text"]))
        self.assertTrue(body.endswith("data: [DONE]\n\n"))

    def test_wrong_requests_are_named(self):
        self.serve("--max-upload", "300k")
        cases = (([("response_format", "yaml")], 400, "response_format: expected json, text, srt, vtt or verbose_json"),
                 ([("temperature", "hot")], 400, "temperature: expected a number from 0 to 2"),
                 ([("language", "klingon")], 400, "language: 'klingon' is unknown"),
                 ([("chunking_strategy", "auto")], 400, "chunking_strategy: is not supported"),
                 ([("timestamp_granularities[]", "letter")], 400, "timestamp_granularities: expected word or segment"),
                 ([("model", "other")], 404, "model: \"other\" was not found"),
                 ([("prompt", "a"), ("prompt", "b")], 400, "prompt: occurs twice"))
        for fields, code, text in cases:
            status, _, answer = self.transcribe(*fields)
            self.assertEqual(status, code, answer)
            self.assertIn(text, answer["error"]["message"])
        self.assertEqual(self.post("/v1/audio/transcriptions", form(None), headers={"Content-Type": TYPE})[0], 400)
        self.assertIn("a.wav: is not an audio file", self.transcribe(audio=b"text")[2]["error"]["message"])
        self.assertIn("MP4", self.transcribe(audio=b"\0\0\0\x20ftypM4A ")[2]["error"]["message"])
        self.assertEqual(self.transcribe(audio=bytes(400_000))[0], 413)
        status, _, answer = self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
        self.assertEqual(status, 400)
        self.assertEqual(self.transcribe()[0], 200)

    def test_requests_at_the_same_time_give_the_same_texts(self):
        self.serve()
        texts = []
        threads = [threading.Thread(target=lambda: texts.append(self.transcribe()[2]["text"])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(texts, 4 * [self.expected["text"]])
        self.assertNotEqual(self.stop(), 1)

    def test_the_client_of_openai_works(self):
        try:
            import openai
        except ImportError:
            self.skipTest("needs the Python package openai")
        self.serve()
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none")
        with open(self.folder / "a.wav", "rb") as file:
            self.assertEqual(client.audio.transcriptions.create(model="model", file=file).text, self.expected["text"])
        with open(self.folder / "a.wav", "rb") as file:
            verbose = client.audio.transcriptions.create(model="model", file=file, response_format="verbose_json",
                                                         timestamp_granularities=["word"])
            self.assertEqual([w.word for w in verbose.words], [w["word"] for s in self.expected["segments"] for w in s.get("words", [])])
        with open(self.folder / "a.wav", "rb") as file:
            events = list(client.audio.transcriptions.create(model="model", file=file, stream=True))
            self.assertEqual(events[-1].text, self.expected["text"])
        with open(self.folder / "a.wav", "rb") as file:
            self.assertTrue(client.audio.translations.create(model="model", file=file).text is not None)


if __name__ == "__main__":
    unittest.main()
