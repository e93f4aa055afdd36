#!/usr/bin/env python3
"""Writes tests/goldens/speech/crafted.json: what transformers' Whisper generates with the crafted models of tests/system/crafted_speech.py,
and the temperature of each window. Needs torch, transformers and numpy."""
import pathlib
import tempfile

from harness import write_lines
import make_speech as goldens
import torch
import transformers
from transformers.models.whisper.generation_whisper import WhisperGenerationMixin

import crafted_speech
import synthetic_audio


def record_temperatures():
    """Makes generate() record the last temperature of each window, and whether the window is left out."""
    original, tries = WhisperGenerationMixin._need_fallback, []

    def recorded(self, *arguments):
        again, skip = original(self, *arguments)
        tries.append((arguments[-1], skip))
        return again, skip

    WhisperGenerationMixin._need_fallback = recorded
    return tries


def main():
    windows, tries, results = goldens.record_windows(), record_temperatures(), []
    retrieve = WhisperGenerationMixin._retrieve_segment

    def with_temperature(**arguments):
        found = retrieve(**arguments)
        windows[-1]["temperature"] = tries[-1][0] or 0
        return found

    WhisperGenerationMixin._retrieve_segment = staticmethod(with_temperature)
    ids = {text: goldens.tokenizer_json()[0] + i for i, text in enumerate(goldens.SPECIAL + goldens.TIMES)}
    waveform = goldens.waveform_of(synthetic_audio.samples_of(crafted_speech.SPEECH))
    for name, factor, added, settings in crafted_speech.CASES:
        with tempfile.TemporaryDirectory() as folder:
            crafted_speech.write(pathlib.Path(folder), goldens.FOLDER / "model", factor, added)
            model = transformers.WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        tries.clear()
        case = {"generate": {"return_timestamps": True, **settings["generate"]}}
        _, found = goldens.generated(model, ids, case, windows, waveform)
        texts = [[w["seek"], w["temperature"], s["tokens"]] for w in found["windows"] for s in w["segments"]]
        skipped = sum(skip for _, skip in tries)
        results.append({"name": name, "left_out": skipped, "language": found["language"], "texts": texts})
        print(name, found["language"], "left out:", skipped, "seek, temperature, tokens:", [(seek, t, len(ids)) for seek, t, ids in texts], flush=True)
    write_lines(goldens.FOLDER / "crafted.json", results, separators=(",", ":"))


if __name__ == "__main__":
    main()
