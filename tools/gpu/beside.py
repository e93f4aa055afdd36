#!/usr/bin/env python3
"""Measures PyTorch on this GPU, beside fovea; prints a JSON object.

Usage: beside.py training              steps of GPT-2 (124M), 8 x 1024 tokens in bf16, compiled
       beside.py generation FOLDER     a prompt of 512 tokens and 64 tokens after it, with a static cache, compiled
       beside.py model SIZE FOLDER     makes a Llama of 135M or 1B with random weights"""
import json
import statistics
import sys
import time

import torch
import transformers

SIZES = {
    "135M": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
             "vocab_size": 49152, "tie_word_embeddings": True},
    "1B": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
           "vocab_size": 128256, "tie_word_embeddings": True},
}


def seconds_of(call, count):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def make_model(size, folder):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(max_position_embeddings=2048, head_dim=64, **SIZES[size])
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)


def training():
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, vocab_size=50304)
    model = transformers.GPT2LMHeadModel(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, 50000, (8, 1024), device="cuda")
    torch.set_float32_matmul_precision("high")
    compiled = torch.compile(model)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(5):
        step()
    times = [seconds_of(step, 1) for _ in range(30)]
    return {"milliseconds_per_step": 1e3 * statistics.median(times), "tokens_per_second": 8192 / statistics.median(times)}


def generation(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).cuda().eval()
    model.generation_config.cache_implementation = "static"
    ids = torch.randint(0, 40000, (1, 512), device="cuda")

    def generate(count):
        model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0)

    with torch.inference_mode():
        for _ in range(2):
            generate(65)
        prompt = min(seconds_of(lambda: generate(1), 1) for _ in range(3))
        both = min(seconds_of(lambda: generate(65), 1) for _ in range(3))
    return {"prompt_tokens_per_second": 512 / prompt, "decode_tokens_per_second": 64 / (both - prompt)}


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "model":
        make_model(*given)
    else:
        print(json.dumps({"training": training, "generation": generation}[what](*given)))
