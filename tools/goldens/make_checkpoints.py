#!/usr/bin/env python3
"""Writes tests/goldens: tiny checkpoints of families of decoders and text encoders, and the results of transformers for them.

Usage: make_checkpoints.py [NAME...]; default: all. Needs torch, transformers (made with 5.23 and 5.24) and safetensors. Each folder contains config.json,
model.safetensors and expected.safetensors: input_ids, attention_mask, labels, logits, hidden.*, attention.*, loss, grad.*, padded.* (a
second row with four padding tokens on the left) and greedy (the prompt and 24 tokens, with the end token ignored); of encoders, neither padded.* nor greedy, and of Gemma, which sees all tokens, no greedy.
adamw.safetensors contains ten optimizer steps from gpt2_relu."""
import json
import os
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # BitNet's roundings are compiled otherwise

from harness import GOLDENS, copies, greedy, one_thread, remove, shaken, write_json, write_tensors
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.integrations.bitnet import AutoBitLinear
from transformers import GPT2Config, GPT2LMHeadModel, Starcoder2Config, Starcoder2ForCausalLM

SIZES = {"n_embd": 24, "n_layer": 2, "n_head": 3, "vocab_size": 37, "n_positions": 36, "n_inner": 40, "bos_token_id": 1, "eos_token_id": 2,
         "pad_token_id": 0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
DECODER = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "vocab_size": 37, "max_position_embeddings": 36, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
STARCODER2 = {**DECODER, "sliding_window": 5}
ENCODER = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 37,
           "max_position_embeddings": 38, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# The classes of encoders, and what differs from ENCODER.
ENCODERS = {
    "xlm_roberta": ("XLMRobertaForMaskedLM", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "camembert": ("CamembertForMaskedLM", {"type_vocab_size": 1}),
    "data2vec_text": ("Data2VecTextForMaskedLM", {"tie_word_embeddings": False}),
    "roberta_prelayernorm": ("RobertaPreLayerNormForMaskedLM", {}),
    "albert": ("AlbertForMaskedLM", {"embedding_size": 16, "num_hidden_layers": 4, "num_hidden_groups": 2}),
    "roformer": ("RoFormerForMaskedLM", {"embedding_size": 16}),
    "rembert": ("RemBertForMaskedLM", {"input_embedding_size": 16, "output_embedding_size": 20}),
    "nomic_bert": ("NomicBertForMaskedLM", {}),
    "jina_embeddings_v3": ("JinaEmbeddingsV3ForMaskedLM", {}),
    "gte": ("GteForMaskedLM", {"rope_parameters": {"rope_type": "linear", "rope_theta": 160000.0, "factor": 1.5}}),
    "eurobert": ("EuroBertForMaskedLM", {"num_key_value_heads": 2, "mlp_bias": True}),
}
DEBERTA = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 37,
           "max_position_embeddings": 36, "type_vocab_size": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "relative_attention": True,
           "position_biased_input": False, **WITHOUT_DROPOUT}
GEMMA3 = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
          "vocab_size": 37, "max_position_embeddings": 36, "sliding_window": 6, "query_pre_attn_scalar": 8, "use_bidirectional_attention": True,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
DECODER = {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 37,
           "max_position_embeddings": 36, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 4, "vocab_size": 37, "n_positions": 36, "n_inner": 20, "bos_token_id": 1, "eos_token_id": 2,
       "pad_token_id": 0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
PAIR = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "encoder_attention_heads": 4,
        "decoder_attention_heads": 2, "vocab_size": 37, "max_position_embeddings": 36, "dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
        "pad_token_id": 0, "decoder_start_token_id": 1}
FALCON = {"hidden_size": 16, "ffn_hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 37, "max_position_embeddings": 36,
          "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LOCAL = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 12, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 5}
DELTA = {"layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
         "linear_value_head_dim": 4, "head_dim": 8}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 12}
MAMBA = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 37, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
HYBRID = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 2, "mamba_d_state": 5, "mamba_d_conv": 3}
# Decoders: their classes, and what differs from DECODER, unless they have all sizes. Each has parts of its own.
DECODERS = {
    "phi": ("PhiForCausalLM", {"num_key_value_heads": 4, "qk_layernorm": True}),
    "cohere2": ("Cohere2ForCausalLM", LOCAL),
    "granitemoeshared": ("GraniteMoeSharedForCausalLM", {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6,
                                                         "logits_scaling": 6.0, "num_local_experts": 3, "shared_intermediate_size": 12}),
    "glm4": ("Glm4ForCausalLM", {"head_dim": 8}),
    "smollm3": ("SmolLM3ForCausalLM", {"no_rope_layer_interval": 2}),
    "exaone4": ("Exaone4ForCausalLM", LOCAL),
    "falcon_grouped": ("FalconForCausalLM", FALCON | {"num_kv_heads": 2, "new_decoder_architecture": True, "bias": True}),
    "falcon_one_head": ("FalconForCausalLM", FALCON),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", GPT),
    "codegen": ("CodeGenForCausalLM", GPT | {"rotary_dim": 2, "n_ctx": 36}),
    "nemotron": ("NemotronForCausalLM", {"head_dim": 4, "attention_bias": True, "mlp_bias": True}),
    "ministral3": ("Ministral3ForCausalLM", {"head_dim": 4, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}}),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", {"head_dim": 4, "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0,
                                                                                          "factor": 1.0, "alpha": 50.0}}),
    "nanochat": ("NanoChatForCausalLM", {}),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", {"moe_num_experts": 3, "moe_k": 2, "moe_intermediate_size": 12, "moe_num_shared_experts": 1}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", EXPERTS | {"num_experts": 3, "shared_expert_intermediate_size": 10}),
    "cohere_plus": ("CohereForCausalLM", {"use_qk_norm": True}),
    "apertus": ("ApertusForCausalLM", {}),
    "bitnet": ("BitNetForCausalLM", {"attention_bias": True}),
    "phimoe": ("PhimoeForCausalLM", {"num_local_experts": 4, "router_jitter_noise": 0.4, "lm_head_bias": True, "attention_bias": True}),
    "glm4_moe": ("Glm4MoeForCausalLM", EXPERTS | {"n_routed_experts": 4, "n_shared_experts": 2, "routed_scaling_factor": 1.5, "head_dim": 8,
                                                  "use_qk_norm": True}),
    "gpt_oss": ("GptOssForCausalLM", LOCAL | {"num_experts_per_tok": 2, "num_local_experts": 3, "head_dim": 8, "swiglu_limit": 0.5, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 16, "truncate": False}}),
    # Its feed-forward layers become 16 wide.
    "lfm2": ("Lfm2ForCausalLM", {"layer_types": ["conv", "full_attention"], "conv_bias": True, "conv_L_cache": 4, "block_multiple_of": 16,
                                 "block_ffn_dim_multiplier": 0.75}),
    "lfm2_moe": ("Lfm2MoeForCausalLM", EXPERTS | {"layer_types": ["full_attention", "conv"], "num_experts": 4, "num_dense_layers": 1}),
    "deepseek_v2": ("DeepseekV2ForCausalLM", EXPERTS | LATENT | {
        "q_lora_rank": None, "n_routed_experts": 6, "n_shared_experts": 2, "topk_method": "group_limited_greedy", "n_group": 3,
        "topk_group": 2, "routed_scaling_factor": 1.5, "first_k_dense_replace": 1, "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 9,
            "mscale": 0.707, "mscale_all_dim": 0.707}}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", EXPERTS | LATENT | {
        "q_lora_rank": 10, "n_routed_experts": 6, "n_shared_experts": 1, "n_group": 3, "topk_group": 2, "first_k_dense_replace": 1,
        "rope_interleave": False, "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 9,
            "mscale": 0.8, "mscale_all_dim": 1.2}}),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", EXPERTS | LATENT | {
        "q_lora_rank": 10, "n_routed_experts": 4, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "mlp_layer_types": ["sparse", "dense"]}),
    "mamba2": ("Mamba2ForCausalLM", MAMBA | {"num_heads": 4, "head_dim": 8, "state_size": 5, "n_groups": 2, "conv_kernel": 3}),
    "bamba": ("BambaForCausalLM", HYBRID | {"attn_layer_indices": [1], "attention_bias": True, "mlp_bias": True, "time_step_limit": (1.2, 1.5)}),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", HYBRID | {
        "layer_types": ["attention", "mamba"], "position_embedding_type": "rope", "num_local_experts": 3, "shared_intermediate_size": 12,
        "embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6, "logits_scaling": 6.0}),
    # Its layers have no positions and no experts.
    "granitemoehybrid_dense": ("GraniteMoeHybridForCausalLM", HYBRID | {
        "layer_types": ["mamba", "attention"], "num_local_experts": 0, "shared_intermediate_size": 12, "mamba_conv_bias": False}),
    "olmo_hybrid": ("OlmoHybridForCausalLM", {
        "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
        "linear_value_head_dim": 4, "rope_parameters": {"rope_type": "default", "rope_theta": None}}),
    "qwen3_next": ("Qwen3NextForCausalLM", EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 12, "decoder_sparse_step": 1}),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", DELTA),
    "qwen3_5_moe_text": ("Qwen3_5MoeForCausalLM", EXPERTS | DELTA | {"num_experts": 4, "shared_expert_intermediate_size": 12}),
}
# The classes, sizes and seeds of others.
OTHERS = {
    "deberta": ("DebertaForMaskedLM", {**DEBERTA, "max_relative_positions": 6, "pos_att_type": ["c2p", "p2c"]}, 1007),
    # The published files of DeBERTa-v3 share their layers with distances; this one has layers for them.
    "deberta_v2": ("DebertaV2ForMaskedLM", {**DEBERTA, "max_relative_positions": 10, "position_buckets": 6, "pos_att_type": "p2c|c2p",
                                            "norm_rel_ebd": "layer_norm", "share_att_key": False}, 1008),
    "gemma3_bidirectional": ("Gemma3ForCausalLM", GEMMA3, 1009),
    "blenderbot_small": ("BlenderbotSmallForConditionalGeneration", PAIR | {"scale_embedding": True}, 1200),
    **{name: (kind, options if "vocab_size" in options else DECODER | options, 1100 + number)
       for number, (name, (kind, options)) in enumerate(DECODERS.items())},
}
VARIANTS = {
    "gpt2_relu": {"activation_function": "relu"},
    "gpt2_untied_silu": {"tie_word_embeddings": False, "activation_function": "silu"},
    "gpt2_bf16": {},
    "gpt2_bare_names": {},
    "gpt2_fp16_shards": {"layer_norm_epsilon": 1e-3, "activation_function": "gelu", "n_head": 4},
    "starcoder2": STARCODER2,
    **{name: ENCODER | (WITHOUT_DROPOUT if name != "eurobert" else {}) | options for name, (_, options) in ENCODERS.items()},
    **{name: options for name, (_, options, _) in OTHERS.items()},
}
STORED = {"gpt2_bf16": torch.bfloat16, "gpt2_fp16_shards": torch.float16}
TOKENS, NEW, PADS = 11, 24, 4


def make_ternary(model):
    """Replaces the products of the layers by those that round the matrices and their inputs."""
    for module in model.model.layers.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear):
                ternary = AutoBitLinear(child.in_features, child.out_features, child.bias is not None, online_quant=True)
                ternary.load_state_dict(child.state_dict())
                setattr(module, name, ternary)
    model.config.quantization_config = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}


def build(name, seed, options):
    torch.manual_seed(seed)
    if name == "starcoder2":
        model = Starcoder2ForCausalLM(Starcoder2Config(**options, attn_implementation="eager")).eval()
    elif name in {**ENCODERS, **OTHERS}:
        kind = getattr(transformers, {**ENCODERS, **OTHERS}[name][0])
        model = kind(kind.config_class(**options, attn_implementation="eager")).eval()
    else:
        model = GPT2LMHeadModel(GPT2Config(**{**SIZES, **options}, attn_implementation="eager")).eval()
    shaken(model, 0.15)
    for key, bias in model.named_buffers():  # of the choice of experts
        if key.endswith("e_score_correction_bias"):
            bias.copy_(torch.cos(torch.arange(len(bias))) / 5)
    if name == "bitnet":
        make_ternary(model)
    if name == "roformer":  # sines and cosines, which are no weights
        model.roformer.encoder.embed_positions.weight.copy_(model.roformer.encoder.embed_positions.create_weight())
    return model


def expected_of_pair(model):
    ids, labels = torch.randint(3, SIZES["vocab_size"], (1, TOKENS)), torch.randint(3, SIZES["vocab_size"], (1, 7))
    mask = torch.ones_like(ids)
    out = model(input_ids=ids, attention_mask=mask, labels=labels, output_hidden_states=True, output_attentions=True)
    out.loss.backward()
    found = {"input_ids": ids, "attention_mask": mask, "labels": labels, "logits": out.logits, "loss": out.loss.reshape(1)}
    for kind, key in (("encoder_hidden", "encoder_hidden_states"), ("decoder_hidden", "decoder_hidden_states"),
                      ("encoder_attention", "encoder_attentions"), ("decoder_attention", "decoder_attentions"), ("cross_attention", "cross_attentions")):
        found |= {f"{kind}.{i}": value for i, value in enumerate(out[key])}
    return found | {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


def expected(model):
    if model.config.is_encoder_decoder:
        return expected_of_pair(model)
    ids = torch.randint(3, SIZES["vocab_size"], (1, TOKENS))
    mask = torch.ones_like(ids)
    out = model(input_ids=ids, attention_mask=mask, labels=ids, output_hidden_states=True, output_attentions=True)
    out.loss.backward()
    found = {"input_ids": ids, "attention_mask": mask, "labels": ids.clone(), "logits": out.logits,
             "loss": out.loss.reshape(1)}
    found |= {f"hidden.{i}": hidden for i, hidden in enumerate(out.hidden_states)}
    found |= {f"attention.{i}": attention for i, attention in enumerate(out.get("attentions") or ())}
    found |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    if type(model).__name__.endswith("ForMaskedLM"):
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
    if name == "olmo_hybrid":  # transformers writes a name of other layers, which published files do not have
        weights = load_file(folder / "model.safetensors")
        weights = {key.replace("1.feedforward_layer_norm", "1.post_attention_layernorm"): value for key, value in weights.items()}
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
    names = sys.argv[1:]
    for number, (variant, chosen) in enumerate(VARIANTS.items()):
        if not names or variant in names:
            write(variant, OTHERS[variant][2] if variant in OTHERS else 1000 + number, chosen)
    if not names:
        write_optimizer_steps()
