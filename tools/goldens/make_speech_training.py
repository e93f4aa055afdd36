#!/usr/bin/env python3
"""Writes tests/goldens/speech/training.json: losses of the model of make_speech.py for audio of tests/system/synthetic_audio.py and texts, by
transformers; losses of a few steps of fine-tuning by torch; and error rates by jiwer, with openai-whisper's basic normalizer. Needs torch,
transformers, numpy, jiwer and openai-whisper."""
from harness import write_json
import make_speech as goldens
import jiwer
import torch
from whisper.normalizers import BasicTextNormalizer

import synthetic_audio

PAIRS = [[["voice", 1.5, 3], "the wind and the sun", "en"], [["voice", 2.1, 4], "ein Wanderer, der (leise) kam", "de"],
         [["tones", 2.0, 2], "la la la", "fr"], [["voice", 2.8, 9], "on and on and on it went", "en"],
         [["noise", 0.7, 1], "sh", "it"], [["voice", 1.1, 12], "another one", "es"]]
TEXTS = [["The north wind, and THE sun!", "the north wind and the sun"], ["it is [noise] cold", "It is cold."], ["a b c d", "a x c"],
         ["Ein Straße weiter", "eine Straße weiter"], ["", "two words"], ["ｆｕｌｌ width ½", "full width 1⁄2"], ["don't (laughs) go", "don't go"],
         ["un café très noir", "un cafe tres noir"], ["日本語の文", "日本語 の 文"]]
STEPS, RATE = 5, 1e-3


def batch(ids, tokenizer, pairs):
    labels = []
    for _, text, language in pairs:
        labels.append([ids[f"<|{language}|>"], ids["<|transcribe|>"], ids["<|notimestamps|>"]] + tokenizer.encode(text).ids + [ids["<|endoftext|>"]])
    longest = max(map(len, labels))
    features = torch.cat([goldens.features_of(goldens.waveform_of(synthetic_audio.samples_of([part]))) for part, _, _ in pairs])
    return features, torch.tensor([row + [-100] * (longest - len(row)) for row in labels])


def main():
    model, _, ids = goldens.make_model()
    tokenizer = goldens.tokenizers()
    features, labels = batch(ids, tokenizer, PAIRS)
    with torch.no_grad():
        loss = model(input_features=features, labels=labels).loss.item()
    steps = []
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        step = model(input_features=features, labels=labels).loss
        step.backward()
        optimizer.step()
        steps.append(step.item())
    normalise = BasicTextNormalizer()
    transcripts, references = ([normalise(t[i]) for t in TEXTS] for i in (0, 1))
    found = {"pairs": PAIRS, "loss": loss, "rate": RATE, "steps": steps, "texts": TEXTS, "normalised": [t.strip() for t in transcripts],
             "wer": jiwer.wer(references, transcripts), "cer": jiwer.cer(references, transcripts)}
    write_json(goldens.FOLDER / "training.json", found, ensure_ascii=False, indent=1)
    print(loss, steps, found["wer"], found["cer"], found["normalised"])


if __name__ == "__main__":
    main()
