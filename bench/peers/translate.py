"""Measures output tokens per second of a Marian translator with CTranslate2. Every line gets the same number of tokens."""
import argparse
import json
import os
import pathlib

import ctranslate2
from ct2_folder import kept
from result import median_seconds, report


def specification(folder):
    """Returns the model as CTranslate2 describes it, in fp32."""
    import torch
    import transformers
    from ctranslate2.converters.transformers import BartLoader, MarianMTLoader
    model = transformers.MarianMTModel.from_pretrained(folder, dtype=torch.float32)
    config = model.config
    config.normalize_before = config.normalize_embedding = config.add_final_layer_norm = False
    tokens = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text())["model"]["vocab"]
    vocabulary = sorted(tokens, key=tokens.get)
    # The loader of Marian's family reads a tokenizer of SentencePiece; that of its parent class reads the weights alone.
    spec = BartLoader.get_model_spec(MarianMTLoader(), model)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.eos_token = vocabulary[config.eos_token_id]
    spec.config.decoder_start_token = vocabulary[config.decoder_start_token_id]
    spec.config.unk_token = vocabulary[1]
    return spec


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", required=True)
    options.add_argument("--lines", required=True)
    options.add_argument("--dtype", choices=("fp32", "int8"), required=True)
    options.add_argument("--beams", type=int, required=True)
    options.add_argument("--tokens", type=int, required=True)
    options.add_argument("--runs", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    kind = {"fp32": "float32", "int8": "int8"}[given.dtype]
    translator = ctranslate2.Translator(kept(given.model, lambda: specification(given.model)), device="cpu", compute_type=kind, inter_threads=1, intra_threads=given.threads)
    lines = [[*line.split(), "</s>"] for line in pathlib.Path(given.lines).read_text(encoding="utf-8").splitlines()]
    length = {"max_decoding_length": given.tokens, "min_decoding_length": given.tokens}
    seconds = median_seconds(lambda: translator.translate_batch(lines, beam_size=given.beams, **length), given.runs)
    isa = ", ".join(sorted(ctranslate2.get_supported_compute_types("cpu")))
    report(len(lines) * given.tokens / seconds, ctranslate2.__version__, f"compute types {isa}")


if __name__ == "__main__":
    main()
