#!/usr/bin/env python3
"""Writes tests/goldens/longrope_texts: a small Phi-3 with LongRoPE, and the tokens that transformers generates past the original context,
where the frequencies change. Needs PyTorch and transformers (made with 5.24)."""
from harness import GOLDENS, remove, write_json
import torch
from transformers import Phi3Config, Phi3ForCausalLM

FOLDER = GOLDENS / "longrope_texts"


def main():
    torch.manual_seed(4)
    config = Phi3Config(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                        max_position_embeddings=64, original_max_position_embeddings=16, initializer_range=0.6, pad_token_id=0,
                        bos_token_id=None, eos_token_id=None,
                        rope_scaling={"type": "longrope", "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.1, 1.3, 1.6],
                                      "long_factor": [1.5, 3.0, 6.0, 12.0], "original_max_position_embeddings": 16})
    model = Phi3ForCausalLM(config).eval()
    model.save_pretrained(FOLDER)
    remove(FOLDER, "generation_config.json")
    cases = []
    for first, length in ((3, 12), (5, 15), (7, 16), (9, 17), (11, 4)):
        prompt = [(first * i + i * i) % 39 + 1 for i in range(length)]
        found = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, length, dtype=torch.long), max_new_tokens=24, do_sample=False)
        cases.append({"prompt": prompt, "generated": found[0, length:].tolist()})
    write_json(FOLDER / "texts.json", {"cases": cases})


if __name__ == "__main__":
    main()
