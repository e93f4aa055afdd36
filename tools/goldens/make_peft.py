#!/usr/bin/env python3
"""Writes tests/goldens/peft: small base models, adapters of PEFT that change the head, the pooler or the embedding, and the logits of
PEFT with them. Needs peft, PyTorch and transformers (made with peft 0.21 and transformers 5.24)."""
import json
import shutil

from harness import GOLDENS, quiet, remove, write_json
import torch
from peft import LoraConfig, get_peft_model
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

FOLDER = GOLDENS / "peft"
IDS = [[3, 7, 9, 11, 5, 2]]
LLAMA = dict(vocab_size=24, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
             max_position_embeddings=32, initializer_range=0.3, bos_token_id=None, eos_token_id=1)
BERT = dict(vocab_size=24, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32,
            initializer_range=0.3, pad_token_id=0)
BASES = {
    "tied": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=True)),
    "untied": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA, tie_word_embeddings=False)),
    "labels": lambda: BertForSequenceClassification(BertConfig(**BERT, num_labels=3)),
    "masks": lambda: BertForMaskedLM(BertConfig(**BERT)),
}
TASKS = {"tied": "CAUSAL_LM", "untied": "CAUSAL_LM", "labels": "SEQ_CLS", "masks": None}
ADAPTERS = {  # by base
    "tied": {
        "head": {"target_modules": ["q_proj", "lm_head"]},
        "embedding": {"target_modules": ["q_proj", "embed_tokens"]},
        "saved_head": {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        "saved_embedding": {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"]},
        "saved_both": {"target_modules": ["q_proj"], "modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
        "adapted_both": {"target_modules": ["q_proj", "embed_tokens"], "ensure_weight_tying": True},
        "tokens": {"target_modules": ["q_proj"], "trainable_token_indices": [3, 9]},
        "tokens_of_both": {"target_modules": ["q_proj"], "trainable_token_indices": {"embed_tokens": [3, 9], "lm_head": [2, 3, 4]}},
        "parameters": {"target_modules": [], "target_parameters": ["mlp.up_proj.weight"]},
    },
    "untied": {
        "both": {"target_modules": ["lm_head", "embed_tokens"], "use_rslora": True},
        "dora_head": {"target_modules": ["lm_head"], "use_dora": True},
        "tokens": {"target_modules": ["q_proj"], "trainable_token_indices": [3, 9]},
    },
    "labels": {"all": {"target_modules": "all-linear"}},
    "masks": {"all": {"target_modules": "all-linear"}},
}


def main():
    quiet()
    torch.manual_seed(1)
    shutil.rmtree(FOLDER, ignore_errors=True)
    expected = {}
    for base, build in BASES.items():
        build().eval().save_pretrained(FOLDER / base)
        for name, options in ADAPTERS[base].items():
            model = type(build()).from_pretrained(FOLDER / base)
            model = get_peft_model(model, LoraConfig(r=2, lora_alpha=5, task_type=TASKS[base], **options)).eval()
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.requires_grad:
                        parameter += torch.randn_like(parameter) / 4
                logits = model(torch.tensor(IDS)).logits[0]
            folder = FOLDER / f"{base}_{name}"
            model.save_pretrained(folder)
            remove(folder, "README.md")
            config = folder / "adapter_config.json"
            kept = {key: value for key, value in json.loads(config.read_text()).items() if value not in (None, False, {}, [])}
            kept["base_model_name_or_path"] = f"../{base}"
            for key in ("target_modules", "modules_to_save"):
                if isinstance(kept.get(key), list):
                    kept[key] = sorted(kept[key])
            write_json(config, kept, indent=1, sort_keys=True)
            expected[folder.name] = logits.flatten().tolist()
    write_json(FOLDER / "expected.json", {"ids": IDS[0], "logits": expected})


if __name__ == "__main__":
    main()
