"""Measures seconds of audio per second of a speech model with CTranslate2, without spectrograms. Every window gets the same number of tokens.
For bf16, which it lacks on most CPUs, it computes in fp32."""
import argparse
import os

import ctranslate2
import numpy as np
from ct2_folder import kept
from result import median_seconds, report

PROMPT = [50258, 50259, 50359, 50363]  # start, English, transcribe, no times
END = 50257


def specification(folder):
    """Returns the model as CTranslate2 describes it, in fp32."""
    import torch
    import transformers
    from ctranslate2.converters.transformers import WhisperLoader
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    loader = WhisperLoader()
    spec = loader.get_model_spec(model)
    names = {END: "<|endoftext|>", 50258: "<|startoftranscript|>", 50259: "<|en|>", 50358: "<|translate|>", 50359: "<|transcribe|>",
             50360: "<|startoflm|>", 50361: "<|startofprev|>", 50362: "<|nospeech|>", 50363: "<|notimestamps|>"}
    spec.register_vocabulary([names.get(i, f"t{i}") for i in range(model.config.vocab_size)])
    spec.config.suppress_ids = spec.config.suppress_ids_begin = []
    spec.config.alignment_heads = [[0, 0]]
    spec.config.lang_ids = [50259]
    return spec


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", required=True)
    options.add_argument("--dtype", choices=("fp32", "bf16", "int8"), required=True)
    options.add_argument("--windows", type=int, required=True)
    options.add_argument("--beams", type=int, required=True)
    options.add_argument("--tokens", type=int, required=True)
    options.add_argument("--runs", type=int, required=True)
    options.add_argument("--threads", type=int, required=True)
    given = options.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    kind = "int8" if given.dtype == "int8" else "float32"
    model = ctranslate2.models.Whisper(kept(given.model, lambda: specification(given.model)), device="cpu", compute_type=kind, inter_threads=1, intra_threads=given.threads)
    noise = np.random.default_rng(0).normal(0, 0.5, (given.windows, 80, 3000)).astype(np.float32)
    features = ctranslate2.StorageView.from_array(noise)
    # CTranslate2 generates at most half of max_length.
    settings = {"beam_size": given.beams, "max_length": 2 * given.tokens, "suppress_tokens": [END], "suppress_blank": False}

    def run():
        for result in model.generate(features, [PROMPT] * given.windows, **settings):
            if len(result.sequences_ids[0]) != given.tokens:
                raise SystemExit(f"CTranslate2 generated {len(result.sequences_ids[0])} tokens; expected {given.tokens}")

    seconds = median_seconds(run, given.runs)
    report(30 * given.windows / seconds, ctranslate2.__version__, f"compute type {kind}")


if __name__ == "__main__":
    main()
