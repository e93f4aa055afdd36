#!/usr/bin/env python3
"""Writes tests/goldens: tiny GPT-2, StarCoder 2, XLM-RoBERTa, DeBERTa and bidirectional Gemma 3 checkpoints and the results of transformers for them.

Needs torch, transformers (made with 5.23; DeBERTa and Gemma with 5.24) and safetensors. Each folder contains config.json,
model.safetensors and expected.safetensors: input_ids, attention_mask, labels, logits, hidden.*, attention.*, loss, grad.*, padded.* (a
second row with four padding tokens on the left) and greedy (the prompt and 24 tokens, with the end token ignored); of the encoders, neither padded.* nor greedy, and of Gemma, which sees all tokens, no greedy. adamw.safetensors contains ten
optimizer steps from gpt2_relu."""
import json
import sys

from harness import GOLDENS, copies, greedy, one_thread, remove, shaken, write_json, write_tensors
import torch
from safetensors.torch import load_file, save_file
from transformers import (DebertaConfig, DebertaForMaskedLM, DebertaV2Config, DebertaV2ForMaskedLM, Gemma3ForCausalLM, Gemma3TextConfig,
                          GPT2Config, GPT2LMHeadModel, Starcoder2Config, Starcoder2ForCausalLM, XLMRobertaConfig, XLMRobertaForMaskedLM)

SIZES = {"n_embd": 24, "n_layer": 2, "n_head": 3, "vocab_size": 37, "n_positions": 36, "n_inner": 40, "bos_token_id": 1, "eos_token_id": 2,
         "pad_token_id": 0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
STARCODER2 = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "vocab_size": 37, "max_position_embeddings": 36, "sliding_window": 5, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
XLM_ROBERTA = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 37,
               "max_position_embeddings": 38, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 2,
               "pad_token_id": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DEBERTA = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 37,
           "max_position_embeddings": 36, "type_vocab_size": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "hidden_dropout_prob": 0.0,
           "attention_probs_dropout_prob": 0.0, "relative_attention": True, "position_biased_input": False}
# The published files of DeBERTa-v3 share their layers with distances; this one has layers for them.
DEBERTA_V2 = {**DEBERTA, "max_relative_positions": 10, "position_buckets": 6, "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm",
              "share_att_key": False}
GEMMA3 = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
          "vocab_size": 37, "max_position_embeddings": 36, "sliding_window": 6, "query_pre_attn_scalar": 8, "use_bidirectional_attention": True,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
CLASSES = {"starcoder2": (Starcoder2ForCausalLM, Starcoder2Config), "xlm_roberta": (XLMRobertaForMaskedLM, XLMRobertaConfig),
           "deberta": (DebertaForMaskedLM, DebertaConfig), "deberta_v2": (DebertaV2ForMaskedLM, DebertaV2Config),
           "gemma3_bidirectional": (Gemma3ForCausalLM, Gemma3TextConfig)}
VARIANTS = {
    "gpt2_relu": {"activation_function": "relu"},
    "gpt2_untied_silu": {"tie_word_embeddings": False, "activation_function": "silu"},
    "gpt2_bf16": {},
    "gpt2_bare_names": {},
    "gpt2_fp16_shards": {"layer_norm_epsilon": 1e-3, "activation_function": "gelu", "n_head": 4},
    "starcoder2": STARCODER2,
    "xlm_roberta": XLM_ROBERTA,
    "deberta": {**DEBERTA, "max_relative_positions": 6, "pos_att_type": ["c2p", "p2c"]},
    "deberta_v2": DEBERTA_V2,
    "gemma3_bidirectional": GEMMA3,
}
STORED = {"gpt2_bf16": torch.bfloat16, "gpt2_fp16_shards": torch.float16}
TOKENS, NEW, PADS = 11, 24, 4


def build(name, seed, options):
    torch.manual_seed(seed)
    model_class, config_class = CLASSES.get(name, (GPT2LMHeadModel, GPT2Config))
    sizes = {} if name in CLASSES else SIZES
    return shaken(model_class(config_class(**{**sizes, **options}, attn_implementation="eager")).eval(), 0.15)


def expected(model):
    ids = torch.randint(3, SIZES["vocab_size"], (1, TOKENS))
    mask = torch.ones_like(ids)
    out = model(input_ids=ids, attention_mask=mask, labels=ids, output_hidden_states=True, output_attentions=True)
    out.loss.backward()
    found = {"input_ids": ids, "attention_mask": mask, "labels": ids.clone(), "logits": out.logits,
             "loss": out.loss.reshape(1)}
    found |= {f"hidden.{i}": hidden for i, hidden in enumerate(out.hidden_states)}
    found |= {f"attention.{i}": attention for i, attention in enumerate(out.attentions)}
    found |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    if not model.config.architectures[0].endswith(("CausalLM", "LMHeadModel")):
        return found
    with torch.no_grad():
        short = ids[:, PADS:]
        pads = torch.zeros(1, PADS, dtype=ids.dtype)
        found["padded.input_ids"] = torch.cat([ids, torch.cat([pads, short], 1)])
        found["padded.attention_mask"] = torch.cat([mask, torch.cat([pads, torch.ones_like(short)], 1)])
        found["padded.logits"] = model(input_ids=short).logits
        if getattr(model.config, "use_bidirectional_attention", False):
            return found
        found["greedy"] = greedy(lambda row: model(input_ids=row).logits, ids, NEW)
    return found


def write(name, seed, options):
    folder = GOLDENS / name
    model = build(name, seed, options)
    model.to(STORED.get(name, torch.float32))
    model.save_pretrained(folder, max_shard_size="10KB" if name == "gpt2_fp16_shards" else "1GB")
    model.float()  # stored weights are rounded; the results are computed from the rounded weights in float32
    remove(folder, "generation_config.json")
    values = expected(model)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if name == "gpt2_bf16":
        config["torch_dtype"] = config.pop("dtype")  # the spelling of transformers 4
    write_json(path, config, indent=2)
    if name == "gpt2_bare_names":
        # Like the first GPT-2 checkpoints: no prefix, and the causal mask among the weights.
        weights = {key.removeprefix("transformer."): value for key, value in load_file(folder / "model.safetensors").items()}
        side = SIZES["n_positions"]
        for i in range(SIZES["n_layer"]):
            weights[f"h.{i}.attn.bias"] = torch.tril(torch.ones(side, side)).reshape(1, 1, side, side)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    write_tensors(folder / "expected.safetensors", values)


def write_optimizer_steps():
    """Writes ten steps of PyTorch's AdamW from gpt2_relu, with clipping: the losses, norms and resulting weights."""
    torch.manual_seed(2000)
    model = GPT2LMHeadModel.from_pretrained(GOLDENS / "gpt2_relu", attn_implementation="eager").train()
    named = dict(model.named_parameters())
    decays = [p for name, p in named.items() if p.dim() == 2 and "wpe" not in name]
    others = [p for name, p in named.items() if p.dim() != 2 or "wpe" in name]
    # The large epsilon prevents full-size steps from gradients that consist of rounding errors.
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=1e-2, betas=(0.9, 0.99), eps=1e-4, foreach=False)
    ids = torch.randint(3, SIZES["vocab_size"], (10, 2, TOKENS))
    losses, norms, found = [], [], {"ids": ids}
    for step, batch in enumerate(ids, 1):
        optimizer.zero_grad()
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        losses.append(loss.detach())
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).detach())
        optimizer.step()
        if step in (1, 10):
            found |= copies((f"step{step}.{name}", p) for name, p in named.items())
    found |= {"losses": torch.stack(losses), "norms": torch.stack(norms)}
    write_tensors(GOLDENS / "adamw.safetensors", found)


if __name__ == "__main__":
    one_thread()
    wanted = sys.argv[1:] or [*VARIANTS, "adamw"]
    for number, (variant, chosen) in enumerate(VARIANTS.items()):
        if variant in wanted:
            write(variant, 1000 + number, chosen)
    if "adamw" in wanted:
        write_optimizer_steps()
