#!/usr/bin/env python3
"""Writes tests/goldens/speech/recordings.json: the tokens that transformers' Whisper generates with the model of make_speech.py for
the recordings of tests/system/recordings.py, and recording_words.json: the times of the words of openai-whisper with the same weights and
tokens. Needs espeak-ng, torch, transformers, openai-whisper, numpy and soxr."""
import json
import pathlib
import tempfile
import wave

from harness import write_lines
import make_speech as goldens
import numpy as np
import soxr

import recordings

SETTINGS = [
    {"name": "greedy", "options": [], "generate": {"return_timestamps": True}},
    {"name": "beams, previous text", "options": ["--beams", "3", "--previous-text", "true"],
     "generate": {"return_timestamps": True, "num_beams": 3, "condition_on_prev_tokens": True}},
    {"name": "fallback", "options": ["--temperature", "0,0.0000001", "--samples", "1", "--logprob-threshold", "-1.6", "--no-speech-threshold", "0.0002"],
     "generate": {"return_timestamps": True, "temperature": (0.0, 1e-7), "top_k": 0, "logprob_threshold": -1.6, "no_speech_threshold": 0.0002,
                  "compression_ratio_threshold": 1e9}},
    # As in openai-whisper, whose alignment reads the whole text of a window.
    {"name": "words", "options": ["--max-tokens", "32"], "generate": {"return_timestamps": True, "max_new_tokens": goldens.CONTEXT // 2}},
]
MOST_WORDS = 500


def waveform_of(path):
    """Reads a recording as one channel at 16 kHz."""
    with wave.open(str(path)) as file:
        rate, frames = file.getframerate(), file.readframes(file.getnframes())
        samples = np.frombuffer(frames, dtype=np.int16).reshape(-1, file.getnchannels()).mean(axis=1).astype(np.float32) / 32768
    return samples if rate == 16000 else soxr.resample(samples, rate, 16000, quality="HQ")


def main():
    model, _, ids = goldens.make_model()
    windows, lines, words = goldens.record_windows(), [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.wav"
        for recording in recordings.RECORDINGS:
            samples = recordings.samples_of(recording)
            recordings.write(path, recording, samples)
            texts = {}
            for setting in SETTINGS:
                waveform = waveform_of(path)
                features, found = goldens.generated(model, ids, setting, windows, waveform)
                if setting["name"] == "words":
                    segments = goldens.whisper_words(model, features, len(waveform) // 160, found, ids)
                    words[recording[0]] = [[word, round(start, 2), round(end, 2)] for segment in segments for word, start, end, _ in segment]
                    print(f"{recording[0]}: {len(words[recording[0]])} words", flush=True)
                texts[setting["name"]] = [[w["seek"], s["tokens"]] for w in found["windows"] for s in w["segments"]]
            lines.append({"name": recording[0], "samples": recordings.digest(samples), "language": found["language"], "texts": texts})
            print(recording[0], found["language"], {name: sum(len(s[1]) for s in text) for name, text in texts.items()}, flush=True)
    # The words of ten minutes would make a large file.
    kept = {name: found for name, found in words.items() if len(found) < MOST_WORDS}
    (goldens.FOLDER / "recording_words.json").write_text(
        "{\n" + ",\n".join(json.dumps(name) + ": " + json.dumps(found, separators=(",", ":")) for name, found in kept.items()) + "\n}\n")
    settings = {s["name"]: s["options"] for s in SETTINGS}
    begin = json.dumps({"settings": settings})[:-1] + ', "recordings": [\n'
    write_lines(goldens.FOLDER / "recordings.json", lines, begin, "\n]}\n", separators=(",", ":"))


if __name__ == "__main__":
    main()
