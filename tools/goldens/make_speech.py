#!/usr/bin/env python3
"""Writes tests/goldens/speech: a random speech model of 3-second windows, and the texts that transformers' Whisper generates with it
for the audio of tests/system/synthetic_audio.py. With openai-whisper, also the times of words. Needs torch, transformers and numpy;
`--check SECONDS` compares a longer recording instead, with the program FOVEA_BIN."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import GOLDENS, PROGRAM, byte_characters, write_lines
import numpy as np
import torch
import transformers

import synthetic_audio

FOLDER = GOLDENS / "speech"
POSITIONS, CONTEXT, BINS = 150, 64, 80
MERGES = [(" ", "t"), ("h", "e"), (" t", "he"), ("i", "n"), (" ", "a"), ("o", "n"), (" ", "s"), ("e", "r"), (" a", "n"), (" an", "d"),
          (" ", "w"), ("o", "u"), (".", "."), ("r", "e"), ("a", "t")]
LANGUAGES = ["en", "de", "es", "fr", "it", "ja"]
TIMES = [f"<|{0.02 * i:.2f}|>" for i in range(POSITIONS + 1)]
SPECIAL = (["<|endoftext|>", "<|startoftranscript|>"] + [f"<|{code}|>" for code in LANGUAGES] +
           ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"])


def tokenizer_json():
    written = byte_characters()
    spelled = lambda text: "".join(written[b] for b in text.encode())
    tokens = [written[b] for b in range(256)] + [spelled(a + b) for a, b in MERGES]
    first = len(tokens)
    added = [{"id": first + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": i < len(SPECIAL)} for i, text in enumerate(SPECIAL + TIMES)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    return first, {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
                  "merges": [f"{spelled(a)} {spelled(b)}" for a, b in MERGES]}}


def make_model():
    first, tokenizer = tokenizer_json()
    ids = {text: first + i for i, text in enumerate(SPECIAL + TIMES)}
    config = transformers.WhisperConfig(
        vocab_size=first + len(SPECIAL) + len(TIMES), num_mel_bins=BINS, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=POSITIONS,
        max_target_positions=CONTEXT, init_std=0.3, decoder_start_token_id=ids["<|startoftranscript|>"],
        bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|endoftext|>"], pad_token_id=ids["<|endoftext|>"],
        suppress_tokens=None, begin_suppress_tokens=None)
    torch.manual_seed(11)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("conv1.weight"):
                value.mul_(0.5)
            if "encoder_attn.out_proj.weight" in name or "encoder_attn.v_proj.weight" in name:
                value.mul_(1.6)  # the audio matters
        # Text is mostly ASCII, and a time follows every few tokens.
        table = model.model.decoder.embed_tokens.weight
        table[:32].mul_(0.3)
        table[32:127].mul_(1.3)
        table[127:256].mul_(0.5)
        table[first:].mul_(1.2)
        table[ids[TIMES[0]]:].mul_(0.2)
        for value in model.parameters():
            value.copy_(value.half().float())
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=ids["<|startoftranscript|>"], bos_token_id=ids["<|endoftext|>"], eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"], max_length=CONTEXT, is_multilingual=True, return_timestamps=False,
        no_timestamps_token_id=ids["<|notimestamps|>"], prev_sot_token_id=ids["<|startofprev|>"], max_initial_timestamp_index=50,
        lang_to_id={f"<|{code}|>": ids[f"<|{code}|>"] for code in LANGUAGES},
        task_to_id={task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")},
        alignment_heads=[[0, 1], [1, 0], [1, 1]],
        suppress_tokens=[10, ids["<|translate|>"], ids["<|transcribe|>"], ids["<|startoftranscript|>"], ids["<|startoflm|>"],
                         ids["<|startofprev|>"], ids["<|nospeech|>"]] + [ids[f"<|{code}|>"] for code in LANGUAGES],
        begin_suppress_tokens=[32, ids["<|endoftext|>"]])
    return model, tokenizer, ids


def write_model(folder):
    model, tokenizer, _ = make_model()
    folder.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer"}))


# Recordings, and options of fovea with those of transformers' generate().
VOICE = [["voice", 2.2, 3]]
LONG = [["voice", 4.0, 5], ["silence", 1.5], ["noise", 1.0, 6], ["voice", 3.1, 9]]
TEMPERATURES = "0,0.0001,0.0002"
CASES = [
    {"name": "short", "audio": VOICE, "options": ["--timestamps", "false"], "generate": {}},
    {"name": "short, beams", "audio": VOICE, "options": ["--timestamps", "false", "--beams", "3"], "generate": {"num_beams": 3}},
    {"name": "short, times", "audio": VOICE, "options": [], "generate": {"return_timestamps": True}},
    {"name": "short, language and task", "audio": VOICE, "options": ["--timestamps", "false", "--language", "German", "--translate"],
     "generate": {"language": "de", "task": "translate"}},
    {"name": "a tenth of a second", "audio": [["voice", 0.1, 4]], "options": [], "generate": {"return_timestamps": True}},
    {"name": "silence", "audio": [["silence", 2]], "options": [], "generate": {"return_timestamps": True}},
    {"name": "noise", "audio": [["noise", 3, 8]], "options": [], "generate": {"return_timestamps": True}},
    {"name": "music", "audio": [["tones", 5, 2]], "options": [], "generate": {"return_timestamps": True}},
    {"name": "long", "audio": LONG, "options": [], "generate": {"return_timestamps": True}},
    {"name": "long, beams", "audio": LONG, "options": ["--beams", "4"],
     "generate": {"return_timestamps": True, "num_beams": 4}},
    {"name": "long, previous text", "audio": LONG, "options": ["--previous-text", "true"],
     "generate": {"return_timestamps": True, "condition_on_prev_tokens": True}},
    {"name": "long, previous text, beams, prompt", "audio": LONG, "options": ["--previous-text", "true", "--beams", "2", "--prompt", "the wind and rain"],
     "generate": {"return_timestamps": True, "condition_on_prev_tokens": True, "num_beams": 2}, "prompt": "the wind and rain"},
    {"name": "long, prompt", "audio": LONG, "options": ["--prompt", "on and on"],
     "generate": {"return_timestamps": True}, "prompt": "on and on"},
    {"name": "long, fallback", "audio": LONG, "options": ["--previous-text", "true", "--temperature", TEMPERATURES, "--samples", "1", "--logprob-threshold", "-1.62"],
     "generate": {"return_timestamps": True, "condition_on_prev_tokens": True, "logprob_threshold": -1.62,
                  "temperature": (0.0, 0.0001, 0.0002), "compression_ratio_threshold": 1e9, "no_speech_threshold": 1.0}},
    {"name": "long, windows without speech", "audio": LONG,
     "options": ["--logprob-threshold", "-1.61", "--no-speech-threshold", "0.00015"],
     "generate": {"return_timestamps": True, "logprob_threshold": -1.61, "no_speech_threshold": 0.00015, "temperature": (0.0,),
                  "compression_ratio_threshold": 1e9}},
]


def waveform_of(samples):
    return np.frombuffer(synthetic_audio.pcm16(samples), dtype=np.int16).astype(np.float32) / 32768


def features_of(waveform):
    extractor = transformers.WhisperFeatureExtractor(feature_size=BINS, chunk_length=POSITIONS // 50)
    if len(waveform) <= POSITIONS * 320:
        return extractor(waveform, sampling_rate=synthetic_audio.RATE, return_tensors="pt").input_features
    return extractor(waveform, sampling_rate=synthetic_audio.RATE, return_tensors="pt", truncation=False, padding="longest").input_features


def record_windows():
    """Makes transformers' generate() record the beginning and the segments of each window."""
    from transformers.models.whisper.generation_whisper import WhisperGenerationMixin as mixin
    original, windows = mixin._retrieve_segment, []

    def recorded(**arguments):
        segments, offset = original(**arguments)
        start = float(arguments["time_offset"][arguments["prev_idx"]])
        windows.append({"seek": round(start * 100), "frames": int(arguments["seek_num_frames"][arguments["prev_idx"]]),
                        "segments": [{"start": float(s["start"]), "end": float(s["end"]), "tokens": s["tokens"].tolist()} for s in segments]})
        return segments, offset

    mixin._retrieve_segment = staticmethod(recorded)
    return windows


def generated(model, ids, case, windows, waveform):
    features = features_of(waveform)
    windows.clear()
    options = {"task": "transcribe", "num_beams": 1, **case["generate"]}
    if "prompt" in case:
        text = tokenizers().encode(" " + case["prompt"]).ids
        options["prompt_ids"] = torch.tensor([ids["<|startofprev|>"]] + text)
    model.generation_config.return_timestamps = False
    with torch.no_grad():
        model.generate(features, **options)
        language = model.detect_language(features[:, :, :2 * POSITIONS], generation_config=model.generation_config)
    names = {number: text for text, number in ids.items()}
    code = options.get("language") or names[int(language[0])].strip("<|>")
    return features, {"language": code, "windows": [dict(w) for w in windows]}


def tokenizers():
    import tokenizers as library
    return library.Tokenizer.from_str(json.dumps(tokenizer_json()[1]))


def whisper_words(model, features, frames, expected, ids):
    """The times of words by openai-whisper with the same weights."""
    import tiktoken
    import whisper
    from whisper.timing import add_word_timestamps
    c = model.config
    other = whisper.model.Whisper(whisper.model.ModelDimensions(BINS, POSITIONS, c.d_model, 2, 2, c.vocab_size, CONTEXT, c.d_model, 2, 2))
    parts = [("model.encoder.conv", "encoder.conv"), ("model.", ""), ("layers", "blocks"), ("encoder_attn_layer_norm", "cross_attn_ln"),
             ("self_attn_layer_norm", "attn_ln"), ("encoder_attn", "cross_attn"), ("self_attn", "attn"), ("q_proj", "query"),
             ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "out"), ("fc1", "mlp.0"), ("fc2", "mlp.2"),
             ("final_layer_norm", "mlp_ln"), ("embed_tokens", "token_embedding"), ("encoder.embed_positions.weight", "encoder.positional_embedding"),
             ("decoder.embed_positions.weight", "decoder.positional_embedding"), ("encoder.layer_norm", "encoder.ln_post"),
             ("decoder.layer_norm", "decoder.ln")]
    state = {}
    for name, value in model.state_dict().items():
        if name == "proj_out.weight":
            continue
        for a, b in parts:
            name = name.replace(a, b)
        state[name] = value.float()
    other.load_state_dict(state, strict=False)
    heads = torch.zeros(2, 2, dtype=torch.bool)
    for layer, head in model.generation_config.alignment_heads:
        heads[layer, head] = True
    other.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    ranks = {**{bytes([b]): b for b in range(256)}, **{(a + b).encode(): 256 + i for i, (a, b) in enumerate(MERGES)}}
    encoding = tiktoken.Encoding("test", pat_str=r"""'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""", mergeable_ranks=ranks,
                                 special_tokens=ids)
    tokenizer = whisper.tokenizer.Tokenizer(encoding=encoding, num_languages=len(LANGUAGES), language=None, task=None)
    tokenizer.language = expected["language"]
    tokenizer.sot_sequence = (ids["<|startoftranscript|>"], ids[f"<|{expected['language']}|>"], ids["<|transcribe|>"])
    last, words = 0.0, []
    for window in expected["windows"]:
        mel = features[0, :, window["seek"]:window["seek"] + window["frames"]]
        mel = torch.nn.functional.pad(mel, (0, 2 * POSITIONS - mel.shape[1]))
        segments = [{"seek": window["seek"], **s} for s in window["segments"]]
        audio = min(window["frames"], frames - window["seek"])
        if audio >= 2:  # else the window begins after the audio
            add_word_timestamps(segments=segments, model=other.eval(), tokenizer=tokenizer, mel=mel, num_frames=audio,
                                last_speech_timestamp=last)
        for segment in segments:
            words.append([[w["word"], float(w["start"]), float(w["end"]), round(float(w["probability"]), 5)] for w in segment.get("words", [])])
            if segment.get("words"):
                last = segment["words"][-1]["end"]
    return words


def check(seconds):
    """Compares the program's text of a long recording with that of transformers, token for token."""
    model, _, ids = make_model()
    windows = record_windows()
    parts = []
    for i in range(max(1, round(seconds / 7))):
        parts += [["voice", 4, 100 + i], ["silence", 0.8], ["noise", 1.2, i], ["tones", 1, i]]
    case = {"audio": parts, "generate": {"return_timestamps": True, "condition_on_prev_tokens": True, "num_beams": 2}}
    _, expected = generated(model, ids, case, windows, waveform_of(synthetic_audio.samples_of(parts)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "long.wav"
        synthetic_audio.write_wav(path, synthetic_audio.samples_of(parts))
        found = json.loads(subprocess.run(
            [PROGRAM, "transcribe", FOLDER / "model", path, "--json", "--beams", "2", "--logprob-threshold", "0",
             "--compression-ratio-threshold", "0", "--no-speech-threshold", "1"], check=True, capture_output=True).stdout)
    wanted = [s["tokens"] for w in expected["windows"] for s in w["segments"]]
    equal = [s["tokens"] for s in found["segments"]] == wanted
    print(f"{sum(p[1] for p in parts):.0f} s, {len(expected['windows'])} windows, {sum(map(len, wanted))} tokens: {'equal' if equal else 'DIFFERENT'}")
    return 0 if equal else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", type=float, metavar="SECONDS")
    options = parser.parse_args()
    if options.check:
        return check(options.check)
    write_model(FOLDER / "model")
    model, _, ids = make_model()
    windows, results = record_windows(), []
    for case in CASES:
        features, expected = generated(model, ids, case, windows, waveform_of(synthetic_audio.samples_of(case["audio"])))
        result = {key: case[key] for key in ("name", "audio", "options")} | expected
        if case["name"] in ("long", "short, times"):
            try:
                result["words"] = whisper_words(model, features, len(synthetic_audio.samples_of(case["audio"])) // 160, expected, ids)
            except ImportError:
                print("no openai-whisper: no times of words", file=sys.stderr)
        results.append(result)
        print(case["name"], expected["language"], [(w["seek"], [len(s["tokens"]) for s in w["segments"]]) for w in expected["windows"]])
    write_lines(FOLDER / "expected.json", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
