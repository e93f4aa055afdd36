#!/usr/bin/env python3
"""Writes tests/goldens/fused_experts: a tiny Mixtral and an adapter of PEFT on its fused experts (target_parameters) and on a linear layer, with
the logits of both.

    python3 tools/goldens/make_fused_experts.py      (needs: pip install torch transformers peft)"""
import shutil

from harness import GOLDENS, one_thread, remove, report, shaken, write_tensors
import torch
from peft import LoraConfig, get_peft_model
from transformers import MixtralConfig, MixtralForCausalLM

FOLDER = GOLDENS / "fused_experts"


def main():
    one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    torch.manual_seed(3)
    config = MixtralConfig(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=32,
                           num_local_experts=3, num_experts_per_tok=2, max_position_embeddings=32, router_jitter_noise=0.0)
    model = shaken(MixtralForCausalLM(config).eval(), 0.1)
    model.save_pretrained(FOLDER / "model")
    ids = torch.randint(0, 32, (2, 12))
    found = {"ids": ids, "base": model(ids).logits}
    adapted = get_peft_model(model, LoraConfig(r=2, lora_alpha=6, target_modules=["q_proj"], init_lora_weights=False,
                                               target_parameters=["mlp.experts.down_proj", "mlp.experts.gate_up_proj"]))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.2)
    adapted.peft_config["default"].base_model_name_or_path = "../model"
    adapted.save_pretrained(FOLDER / "adapter")
    found["adapted"] = adapted.eval()(ids).logits
    write_tensors(FOLDER / "expected.safetensors", found)
    remove(FOLDER, "adapter/README.md", "model/generation_config.json")
    report(FOLDER, f"; the adapter changes logits by up to {(found['adapted'] - found['base']).abs().max():.3f}")


if __name__ == "__main__":
    main()
