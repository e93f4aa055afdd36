#!/usr/bin/env python3
"""Compares the greedy text of llama.cpp with that of fovea for the same .gguf files, and that of transformers for the same model directory.

Usage: compare_gguf_text.py [--llama FOLDER] MODEL... [--prompt TEXT]... [--tokens N]

MODEL is a .gguf file, which the llama-server in FOLDER opens, or a directory, which transformers opens. The programs round activations in
different ways, so the text of a quantised model may differ after some tokens; that of a directory in fp32 must not. Prints the texts; the
exit code is 1 if those of a directory differ. FOVEA_BIN is the program (default: build/release/fovea)."""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import PROGRAM  # noqa: E402

PORT = 18733


def text_of_fovea(model, prompt, tokens):
    command = [PROGRAM, "generate", model, "-p", prompt, "-n", tokens, "--temperature", 0, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[0])["text"]


def texts_of_llama(folder, model, prompts, tokens):
    address = f"http://127.0.0.1:{PORT}"
    command = [folder / "llama-server", "-m", model, "--port", PORT, "-t", 2, "-np", 1, "--no-webui"]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(120):
                try:
                    with urllib.request.urlopen(f"{address}/health", timeout=2):
                        break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.5)
            texts = []
            for prompt in prompts:
                body = json.dumps({"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": False}).encode()
                request = urllib.request.Request(f"{address}/completion", body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=120) as reply:
                    texts.append(json.load(reply)["content"])
            return texts
        finally:
            server.terminate()


def texts_of_transformers(folder, prompts, tokens):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        found = model.generate(ids, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
        texts.append(tokenizer.decode(found[0, ids.shape[1]:], skip_special_tokens=True))
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--llama", type=pathlib.Path)
    parser.add_argument("--prompt", action="append", default=[])
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()
    prompts = options.prompt or ["And it came to pass", "The word of the", "In those days", "Behold, the king"]
    different = 0
    for model in options.models:
        if model.is_dir():
            texts = texts_of_transformers(model, prompts, options.tokens)
        else:
            texts = texts_of_llama(options.llama, model, prompts, options.tokens)
        for prompt, other in zip(prompts, texts):
            own = text_of_fovea(model, prompt, options.tokens)
            same = own.strip() == other.strip()
            different += not same and model.is_dir()
            print(f"{model.name}: {prompt!r}: {'the same text: ' + repr(own) if same else f'fovea {own!r}, the other program {other!r}'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
