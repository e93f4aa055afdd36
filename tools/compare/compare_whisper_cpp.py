#!/usr/bin/env python3
"""Exchanges ggml files with whisper.cpp: whisper-cli reads the files that `fovea convert` writes and hears the same text as in its own
converter's, and fovea reads the files of whisper-quantize.

    compare_whisper_cpp.py SOURCE BUILD          SOURCE: whisper.cpp's repository; BUILD: its build with whisper-cli and whisper-quantize

Needs the program FOVEA_BIN, torch, transformers and openai-whisper, whose list of tokens and mel filters the converter needs."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import PROGRAM  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import whisper  # noqa: E402
from transformers.convert_slow_tokenizer import TikTokenConverter  # noqa: E402

import other_formats  # noqa: E402
import synthetic_audio  # noqa: E402

KINDS = ["fp32", "fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
SAME_TEXTS = ["fp32", "fp16", "q8_0"]


def write_model(folder):
    """Writes a random model of the shape tiny, whose texts depend on the audio."""
    assets = pathlib.Path(whisper.__file__).parent / "assets"
    special = whisper.tokenizer.get_tokenizer(True).encoding._special_tokens
    added = sorted(special, key=special.get)
    converter = TikTokenConverter(vocab_file=str(assets / "multilingual.tiktoken"), extra_special_tokens=added)
    made = converter.converted()
    made.save(str(folder / "tokenizer.json"))
    vocabulary = {token: i for token, i in made.get_vocab().items() if i < special["<|endoftext|>"]}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))  # of the converter
    (folder / "added_tokens.json").write_text(json.dumps(special))
    assert all(made.token_to_id(token) == i for token, i in special.items())
    torch.manual_seed(5)
    end, start = special["<|endoftext|>"], special["<|startoftranscript|>"]
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
        decoder_ffn_dim=1536, vocab_size=51865, init_std=0.1, bos_token_id=end, eos_token_id=end, pad_token_id=end,
        decoder_start_token_id=start, suppress_tokens=None, begin_suppress_tokens=None)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "encoder_attn.out_proj.weight" in name or "encoder_attn.v_proj.weight" in name:
                value.mul_(2)  # the audio matters
        table = model.model.decoder.embed_tokens.weight
        table[3000:].mul_(0.4)  # frequent tokens
        for value in model.parameters():
            value.copy_(value.half().float())
    model.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=start, bos_token_id=end, eos_token_id=end, pad_token_id=end, max_length=448, is_multilingual=True,
        no_timestamps_token_id=special["<|notimestamps|>"], prev_sot_token_id=special["<|startofprev|>"], max_initial_timestamp_index=50,
        lang_to_id={f"<|{code}|>": special[f"<|{code}|>"] for code in whisper.tokenizer.LANGUAGES if f"<|{code}|>" in special},
        task_to_id={"transcribe": special["<|transcribe|>"], "translate": special["<|translate|>"]})
    model.half().save_pretrained(folder)


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True).stdout.decode(errors="replace")


class Check:
    def __init__(self, options, folder):
        self.source, self.build, self.folder, self.failures = options.source, options.build, folder, 0
        self.fovea = PROGRAM

    def say(self, name, good, detail=""):
        self.failures += not good
        print(f"{name}: {'equal' if good else 'DIFFERENT'}{detail}", flush=True)

    def heard(self, model):
        """The text that whisper.cpp hears greedily in the audio, without fallback."""
        return run(self.build / "bin/whisper-cli", "-m", model, "-f", self.folder / "a.wav", "-l", "en", "-bs", 1, "-bo", 1, "-nf", "-np",
                   "-nfa", "-mc", 0, "-nt", "-t", 1)

    def transcribed(self, model):
        return run(self.fovea, "transcribe", model, self.folder / "a.wav", "--language", "en", "--beams", 1, "--temperature", 0,
                   "--no-previous-text", "--no-timestamps", "--max-tokens", 60, "--format", "json", "--dtype", "fp32")

    def converted_by_whisper_cpp(self, kind):
        if kind in ("fp32", "fp16"):
            script = self.source / "models/convert-h5-to-ggml.py"
            run(sys.executable, script, self.folder / "model", pathlib.Path(whisper.__file__).parent.parent, self.folder,
                *(["use-f32"] if kind == "fp32" else []))
            return self.folder / ("ggml-model-f32.bin" if kind == "fp32" else "ggml-model.bin")
        made = self.folder / f"theirs-{kind}.bin"
        run(self.build / "bin/whisper-quantize", self.folder / "ggml-model.bin", made, kind)
        return made

    def compare(self, kind):
        theirs, ours = self.converted_by_whisper_cpp(kind), self.folder / f"ours-{kind}.bin"
        ours.unlink(missing_ok=True)
        run(self.fovea, "convert", self.folder / "model", ours, "--dtype", kind)
        a, b = (other_formats.read_ggml(path) for path in (theirs, ours))
        different = [name for name in a[3] if a[3][name] != b[3].get(name)]
        kinds = [name for name in a[3] if a[3][name][:2] != b[3].get(name, [None, None])[:2]]
        self.say(f"{kind}: sizes, filters and tokens", a[:3] == b[:3], f" ({a[0]}, {b[0]})")
        self.say(f"{kind}: tensors' names, types and shapes", sorted(a[3]) == sorted(b[3]) and not kinds, f" {kinds[:5]}")
        print(f"{kind}: {len(a[3]) - len(different)} of {len(a[3])} tensors have the same bytes")
        texts = [self.heard(theirs), self.heard(ours)]
        # Blocks of fewer bits differ: fovea chooses their scales by the error, whisper-quantize by the largest weight.
        same = texts[0] == texts[1] or kind not in SAME_TEXTS
        self.say(f"{kind}: whisper.cpp's text of both files", same and texts[1].strip() != "", f" ({len(texts[1])} bytes)")
        run(self.fovea, "convert", theirs, self.folder / "back", "--dtype", "fp32")
        own = [json.loads(self.transcribed(model)) for model in (theirs, self.folder / "back")]
        self.say(f"{kind}: fovea's text of whisper.cpp's file and of its weights in fp32", own[0] == own[1] and own[0]["text"] != "")
        tokens = [s["tokens"] for s in own[0]["segments"]]
        print(f"{kind}: {sum(map(len, tokens))} tokens; fovea's text begins {own[0]['text'][:60]!r}, whisper.cpp's {texts[0].strip()[:60]!r}")
        run("rm", "-r", self.folder / "back")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        check = Check(options, folder)
        (folder / "model").mkdir(parents=True, exist_ok=True)
        if not (folder / "model/model.safetensors").exists():
            write_model(folder / "model")
        synthetic_audio.write_wav(folder / "a.wav", synthetic_audio.voice(6, 5))
        for kind in options.kinds.split(","):
            check.compare(kind)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
