#!/usr/bin/env python3
"""Writes tests/goldens/gpt_oss_mxfp4: a tiny gpt-oss whose experts have MXFP4 weights, as its published files have them, and the logits of
transformers with the weights that its own code decodes. Needs torch, transformers (made with 5.24) and safetensors."""
from harness import GOLDENS, one_thread, remove, shaken, write_json, write_tensors
import torch
from transformers import GptOssConfig, GptOssForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

QUANTIZED = ("gate_up_proj", "down_proj")


def main():
    one_thread()
    torch.manual_seed(3)
    config = GptOssConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
                          vocab_size=37, max_position_embeddings=36, num_local_experts=3, num_experts_per_tok=2, sliding_window=5,
                          bos_token_id=1, eos_token_id=2, pad_token_id=0,
                          rope_parameters={"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                           "original_max_position_embeddings": 16, "truncate": False})
    model = GptOssForCausalLM(config).eval()
    shaken(model, 0.15)
    state = model.state_dict()
    tensors = {}
    for name, value in state.items():
        if not name.endswith(QUANTIZED):
            tensors[name] = value
            continue
        experts, inputs, outputs = value.shape
        blocks = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
        scales = torch.randint(121, 126, (experts, outputs, inputs // 32), dtype=torch.uint8)
        tensors[name + "_blocks"], tensors[name + "_scales"] = blocks, scales
        state[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).contiguous()
    model.load_state_dict(state)
    ids = torch.randint(3, 37, (2, 12))
    with torch.no_grad():
        logits = model(ids).logits
    folder = GOLDENS / "gpt_oss_mxfp4"
    remove(folder)
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config.to_dict() | {"architectures": ["GptOssForCausalLM"], "quantization_config": {
        "quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}})
    write_tensors(folder / "model.safetensors", tensors)
    write_tensors(folder / "expected.safetensors", {"tokens": ids, "logits": logits})


main()
