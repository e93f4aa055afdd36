#!/usr/bin/env python3
"""Changes one key of a family's config.json at a time, and compares fovea's logits with those of transformers.

Usage: compare_config_keys.py [--fovea PROGRAM] [FAMILY...]; default: all families. Needs a Python with torch and transformers. If a change
affects transformers' logits, fovea must give the same logits or refuse the change; otherwise the exit code is 1. Changes that fovea refuses
although they have no effect are only reported."""
import argparse
import contextlib
import copy
import io
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program, one_thread, quiet, shaken  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

TOLERANCE = 2e-4  # relative to the largest logit
TOKENS, VOCABULARY = 20, 96

LLAMA = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             head_dim=8, max_position_embeddings=64, pad_token_id=3, bos_token_id=1, eos_token_id=2)
BERT = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
            pad_token_id=1, bos_token_id=0, eos_token_id=2)
BART = dict(vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            decoder_start_token_id=2, forced_eos_token_id=2)
LATENT = LLAMA | dict(num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=12, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=10, n_routed_experts=4,
                      num_experts_per_tok=2, moe_intermediate_size=24, n_group=2, topk_group=1)
FAMILIES = {
    "gpt2": dict(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0),
    "llama": LLAMA, "mistral": LLAMA | dict(sliding_window=6), "mixtral": LLAMA | dict(num_local_experts=4), "qwen2": LLAMA,
    "qwen3": LLAMA, "qwen3_moe": LLAMA | dict(num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=24),
    "gemma2": LLAMA | dict(sliding_window=6, query_pre_attn_scalar=8), "gemma3_text": LLAMA | dict(sliding_window=6, query_pre_attn_scalar=8),
    "phi3": LLAMA | dict(original_max_position_embeddings=64), "olmo2": LLAMA,
    "opt": dict(vocab_size=VOCABULARY, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
                word_embed_proj_dim=32, pad_token_id=1, bos_token_id=2, eos_token_id=2),
    "bloom": dict(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=3),
    "gpt_neox": dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                     max_position_embeddings=64, pad_token_id=3, bos_token_id=0, eos_token_id=2),
    "deepseek_v2": LATENT | dict(first_k_dense_replace=1, topk_method="group_limited_greedy"), "deepseek_v3": LATENT | dict(first_k_dense_replace=1),
    "glm4_moe_lite": LATENT,
    "bert": BERT, "roberta": BERT, "mpnet": BERT, "camembert": BERT, "data2vec-text": BERT, "roberta-prelayernorm": BERT,
    "albert": BERT | dict(embedding_size=16), "roformer": BERT | dict(embedding_size=16), "jina_embeddings_v3": BERT, "nomic_bert": BERT,
    "rembert": BERT | dict(input_embedding_size=16, output_embedding_size=24), "gte": BERT, "eurobert": LLAMA,
    "distilbert": dict(vocab_size=VOCABULARY, dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=64, pad_token_id=0),
    "modernbert": BERT | dict(num_hidden_layers=4, local_attention=6, pad_token_id=3, cls_token_id=1, sep_token_id=2),
    "deberta": BERT | dict(relative_attention=True, max_relative_positions=6, pos_att_type=["c2p", "p2c"]),
    "deberta-v2": BERT | dict(relative_attention=True, max_relative_positions=9, position_buckets=4, pos_att_type=["c2p", "p2c"],
                              norm_rel_ebd="layer_norm", share_att_key=True),
    "t5": dict(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0),
    "bart": BART, "marian": BART | dict(decoder_vocab_size=VOCABULARY),
    "vit": dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4),
    "whisper": {k: v for k, v in BART.items() if k != "max_position_embeddings"} | dict(num_mel_bins=8, max_source_positions=12, max_target_positions=32, suppress_tokens=None, begin_suppress_tokens=None),
}
TRANSLATORS = ("t5", "bart", "marian", "whisper")
MASKED = ("bert", "roberta", "mpnet", "distilbert", "modernbert", "camembert", "data2vec-text", "roberta-prelayernorm", "albert", "roformer",
          "jina_embeddings_v3", "nomic_bert", "rembert", "gte", "eurobert", "deberta", "deberta-v2")
ROPE = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "phi3", "olmo2", "gemma2", "gpt_neox",
        "deepseek_v2", "deepseek_v3", "glm4_moe_lite")
# Keys that determine the sizes of tensors, or that only affect initialisation and storage.
LEFT_OUT = {"vocab_size", "hidden_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "dim", "model_type", "architectures",
            "transformers_version", "dtype", "torch_dtype", "id2label", "label2id", "rope_parameters", "layer_types", "num_mel_bins"}
OLD_AND_COMMON = {"is_encoder_decoder": [True], "is_decoder": [True], "add_cross_attention": [True], "tie_word_embeddings": [True, False],
                  "chunk_size_feed_forward": [2], "pruned_heads": [{"0": [1]}], "tie_encoder_decoder": [True], "use_bfloat16": [True],
                  "position_embedding_type": ["relative_key"], "attention_bias": [True], "mlp_bias": [True], "sliding_window": [3],
                  "attn_implementation": ["eager"], "rotary_dim": [4], "use_alibi": [True], "no_rope_layers": [[0, 1]],
                  "attention_multiplier": [0.5], "residual_multiplier": [0.5], "logits_scaling": [2.0], "embedding_multiplier": [2.0]}


def scalings(width):
    pairs = width // 2
    longrope = {"rope_type": "longrope", "short_factor": [1 + 0.1 * i for i in range(pairs)], "long_factor": [2 + 0.5 * i for i in range(pairs)],
                "rope_theta": 10000.0}
    return [{"rope_theta": 100.0, "rope_type": "default"}, {"rope_theta": 100.0, "rope_type": "linear", "factor": 3.0},
            {"rope_theta": 100.0, "rope_type": "dynamic", "factor": 2.0},
            {"rope_theta": 100.0, "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8},
            {"rope_theta": 100.0, "rope_type": "yarn", "factor": 2.0, "beta_fast": 4, "beta_slow": 0.5, "attention_factor": 1.5},
            {"rope_theta": 100.0, "rope_type": "yarn", "factor": 2.0, "mscale": 1.0, "mscale_all_dim": 0.5},
            {"rope_theta": 100.0, "rope_type": "yarn", "factor": 2.0, "truncate": False},
            {"rope_theta": 100.0, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 16},
            longrope | {"original_max_position_embeddings": 8}, longrope | {"original_max_position_embeddings": 32},
            longrope | {"original_max_position_embeddings": 8, "factor": 4.0},
            longrope | {"original_max_position_embeddings": 8, "attention_factor": 2.0}]


def values_for(key, value):
    """Returns other possible values of a key."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(value // 2, 1), None] if "id" not in key else [4, None]
    if isinstance(value, float):
        return [value * 2 + 0.125, 0.0]
    if isinstance(value, str):
        return ["relu", "silu", "mean"] if "act" in key or "pooling" in key else ["other"]
    return [True, 3, 0.5] if value is None else []


def changes(family, config):
    """Yields (description, changed config)."""
    for key, value in sorted(config.items()):
        if key not in LEFT_OUT:
            yield from ((f"{key}={v!r}", config | {key: v}) for v in values_for(key, value))
            yield f"without {key}", {k: v for k, v in config.items() if k != key}
    for key, values in OLD_AND_COMMON.items():
        yield from ((f"{key}={v!r}", config | {key: v}) for v in values if config.get(key) != v)
    if "layer_types" in config:
        kinds = ["full_attention", "sliding_attention"]
        yield "layer_types inverted", config | {"layer_types": [kinds[t == kinds[0]] for t in config["layer_types"]]}
        yield "without layer_types", {k: v for k, v in config.items() if k != "layer_types"}
    if family in ROPE:
        for scaling in scalings(4 if family == "gpt_neox" else 8):
            share = {"partial_rotary_factor": 0.25} if family == "gpt_neox" else {}
            short = {"max_position_embeddings": 16} if scaling["rope_type"] == "dynamic" else {}
            yield f"rope {scaling}", config | short | {"rope_parameters": scaling | share}
            old = {k: v for k, v in config.items() if k != "rope_parameters"} | short | share
            theta = {"rope_theta": scaling["rope_theta"]}
            if scaling["rope_type"] != "default":
                inside = {k: v for k, v in scaling.items() if k not in ("rope_theta", "rope_type")} | {"type": scaling["rope_type"]}
                yield f"old rope {inside}", old | theta | {"rope_scaling": inside}
            else:
                yield f"old rope {theta}", old | theta


def class_of(family, task):
    if family == "vit":
        return transformers.AutoModelForImageClassification
    if task == "sequence":
        return transformers.AutoModelForSequenceClassification
    if family in MASKED:
        return transformers.AutoModelForMaskedLM
    if family == "whisper":
        return transformers.AutoModelForSpeechSeq2Seq
    return transformers.AutoModelForSeq2SeqLM if family in TRANSLATORS else transformers.AutoModelForCausalLM


def inputs_for(family):
    generator = torch.Generator().manual_seed(5)
    ids = lambda n: torch.randint(5, VOCABULARY, (2, n), generator=generator)
    if family == "vit":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
    if family == "whisper":
        return {"input_features": torch.randn(2, 8, 24, generator=generator), "labels": ids(7)}
    inputs = {"input_ids": ids(TOKENS), "attention_mask": torch.ones(2, TOKENS, dtype=torch.int64)}
    return inputs | ({"labels": ids(7)} if family in TRANSLATORS else {})


class Bench:
    def __init__(self, program, family, task, folder):
        self.program, self.family, self.task, self.folder = program, family, task, pathlib.Path(folder)
        torch.manual_seed(1)
        config = transformers.CONFIG_MAPPING[family](**FAMILIES[family])
        model = class_of(family, task).from_config(config)
        shaken(model, 0.15).save_pretrained(folder)
        self.inputs = inputs_for(family)
        save_file(self.inputs, self.folder / "input.safetensors")
        self.config = json.loads((self.folder / "config.json").read_text())
        self.base = self.theirs()

    def theirs(self):
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            model, told = class_of(self.family, self.task).from_pretrained(self.folder, output_loading_info=True)
            if told["missing_keys"] or told["unexpected_keys"] or told["mismatched_keys"]:
                raise ValueError("other tensors")
            return model.eval().float()(**self.inputs).logits

    def ours(self):
        """Returns the logits, or the message of the refusal."""
        out = self.folder / "trace.safetensors"
        done = subprocess.run([self.program, "trace", self.folder, "--input", self.folder / "input.safetensors", "--out", out],
                              capture_output=True, text=True, check=False)
        return load_file(out)["logits"] if done.returncode == 0 else done.stderr.strip()

    def check(self, what, config):
        """Returns None, or (whether it is an error, a line)."""
        (self.folder / "config.json").write_text(json.dumps(config))
        try:
            expected = self.theirs()
        except Exception:  # transformers refuses with various exceptions
            return None
        found = self.ours()
        name = f"{self.family} ({self.task}), {what}"
        if isinstance(found, str):
            foreign = any(what.startswith(key + "=") for key in OLD_AND_COMMON) and what.split("=")[0] not in self.config
            same = not foreign and expected.shape == self.base.shape and torch.allclose(expected, self.base, atol=1e-6)
            return (False, f"{name}: refused although it has no effect: {found}") if same else None
        if found.shape != expected.shape or not (found - expected).abs().max() <= TOLERANCE * expected.abs().max():
            return True, f"{name}: {'different shapes' if found.shape != expected.shape else f'different by {(found - expected).abs().max():.3g}'}"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    add_program(parser)
    options = parser.parse_args()
    quiet()
    transformers.logging.set_verbosity(50)
    one_thread()
    wrong = checked = 0
    for family in options.families:
        for task in ("words",) if family in (*TRANSLATORS, "vit", "glm4_moe_lite") else ("words", "sequence"):
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(options.fovea, family, task, folder)
                for what, config in [("unchanged", bench.config), *changes(family, copy.deepcopy(bench.config))]:
                    found = bench.check(what, config)
                    checked += 1
                    if found:
                        wrong += found[0]
                        print(("WRONG " if found[0] else "      ") + found[1], flush=True)
    print(f"{checked} configs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
