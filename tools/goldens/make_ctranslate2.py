#!/usr/bin/env python3
"""Writes tests/goldens/speech/ctranslate2.json: the variables that CTranslate2's converter writes for the model of make_speech.py and
for a translation model, by name: type, shape and a checksum of their bytes; also the weights of the translation model, as a seed. Needs
ctranslate2, torch and transformers."""
import json
import pathlib
import tempfile
import zlib

from harness import GOLDENS, write_json
import make_speech as goldens
import ctranslate2
import torch
import transformers

import other_formats

TEXTS = ["das Meer", "Wind und Sonne", "die Straße am Dorf", "und"]
TRANSLATION = GOLDENS / "translation_tokenizers"


def write_translation(folder):
    """A random translation model of two small layers, with the tokenizers of the tests."""
    vocabulary = json.loads((TRANSLATION / "vocab.json").read_text())
    end, padding = vocabulary["</s>"], vocabulary["<pad>"]
    torch.manual_seed(3)
    model = transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=len(vocabulary), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32, init_std=0.5, scale_embedding=True, activation_function="swish",
        pad_token_id=padding, eos_token_id=end, decoder_start_token_id=padding, forced_eos_token_id=None))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("bias"):
                value.normal_(0, 0.1)
        model.final_logits_bias.normal_(0, 0.5)
        model.final_logits_bias[0, padding] = 0
        model.final_logits_bias[0, end] = 3  # short texts
    model.generation_config = transformers.GenerationConfig(
        pad_token_id=padding, eos_token_id=end, decoder_start_token_id=padding, bad_words_ids=[[padding]], max_length=32, num_beams=1)
    model.half().save_pretrained(folder)
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
        (folder / name).write_bytes((TRANSLATION / name).read_bytes())


def converted(source, quantization, copied):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "model"
        ctranslate2.converters.TransformersConverter(str(source), copy_files=copied).convert(str(target), quantization=quantization)
        specification, revision, variables = other_formats.read_ct2(target / "model.bin")
        texts = None
        if "source.spm" in copied:
            translator = ctranslate2.Translator(str(target), compute_type="float32")
            tokenizer = transformers.AutoTokenizer.from_pretrained(source)
            sources = [tokenizer.convert_ids_to_tokens(tokenizer.encode(text)) for text in TEXTS]
            results = translator.translate_batch(sources, beam_size=1, max_decoding_length=31)
            texts = [[text, tokenizer.decode(tokenizer.convert_tokens_to_ids(r.hypotheses[0]), skip_special_tokens=True)]
                     for text, r in zip(TEXTS, results)]
        return {"specification": specification, "revision": revision, "config": json.loads((target / "config.json").read_text()), "texts": texts,
                "variables": {name: [kind, shape, zlib.crc32(data)] for name, (kind, shape, data) in sorted(variables.items())}}


def main():
    translation = GOLDENS / "ctranslate2/translation_model"
    translation.mkdir(exist_ok=True)
    write_translation(translation)
    found = {"speech": {q: converted(goldens.FOLDER / "model", q, ["tokenizer.json"]) for q in ("float32", "float16", "int8_float32")},
             "translation": {q: converted(translation, q, ["source.spm", "target.spm"]) for q in ("float32", "int8_float32")}}
    write_json(goldens.FOLDER / "ctranslate2.json", found, separators=(",", ":"))


if __name__ == "__main__":
    main()
