#!/usr/bin/env python3
"""Writes tests/goldens/fine_tuning: a tiny Llama with a tokenizer and a chat template, conversations, a new adapter of PEFT, and 20 steps of
PyTorch's AdamW on the conversations, of all weights and of the adapter.

    python3 tools/make_fine_tuning_goldens.py      (needs: pip install torch transformers peft jinja2)

expected.safetensors contains the ids, assistant masks and lengths of the conversations as computed by apply_chat_template, the loss of each
token at the start (0 = not trained), and for each run the losses and the final weights."""
import json
import pathlib
import shutil

import torch
from make_chat_mask_goldens import byte_level
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/goldens/fine_tuning"
STEPS, RATE, LONGEST = 20, 1e-3, 64
CONVERSATIONS = [
    [("user", "the cat"), ("assistant", "sat on the mat")],
    [("user", "2+2?"), ("assistant", "4."), ("user", "the dog"), ("assistant", "on the log")],
    [("system", "tool"), ("user", "What is the log?"), ("assistant", "the mat")],
    [("user", "Größe"), ("assistant", "日本")],
    [("user", "the mat and the dog"), ("assistant", "and the cat sat")],
    [("user", "user"), ("assistant", "assistant")],
]


def write_model():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                        clean_up_tokenization_spaces=False)
    tokenizer.chat_template = (ROOT / "tests/goldens/chat_templates/training_spans.jinja").read_text(encoding="utf-8")
    torch.manual_seed(7)
    config = LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         vocab_size=len(tokenizer), max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    for part in (model, tokenizer):
        part.save_pretrained(FOLDER / "model")


def write_conversations():
    """Returns the ids and masks of the conversations."""
    lines = [{"messages": [{"role": role, "content": text} for role, text in each]} for each in CONVERSATIONS]
    (FOLDER / "chats.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(FOLDER / "model")
    made = [tokenizer.apply_chat_template(line["messages"], return_assistant_tokens_mask=True, return_dict=True) for line in lines]
    ids, masks = [each["input_ids"] for each in made], [each["assistant_masks"] for each in made]
    assert max(map(len, ids)) <= LONGEST and all(map(any, masks))
    return ids, masks


def batch_of(ids, masks):
    """Returns the arguments of the model for all conversations as one batch, padded on the right."""
    rows, labels, valid = (torch.full((len(ids), LONGEST), value) for value in (0, -100, 0))
    for row, (tokens, mask) in enumerate(zip(ids, masks)):
        rows[row, :len(tokens)] = torch.tensor(tokens)
        labels[row, :len(tokens)] = torch.where(torch.tensor(mask) == 1, torch.tensor(tokens), -100)
        valid[row, :len(tokens)] = 1
    return {"input_ids": rows, "labels": labels, "attention_mask": valid}


def opened():
    return LlamaForCausalLM.from_pretrained(FOLDER / "model", attn_implementation="eager").train()


def token_losses(batch):
    """Returns the loss of each token, in the order of the conversations."""
    with torch.no_grad():
        logits = opened()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    found = torch.zeros(batch["labels"].shape)
    found[:, 1:] = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch["labels"][:, 1:], reduction="none")
    return found[batch["attention_mask"] == 1]


def steps(model, batch):
    """Takes the steps, and returns their losses."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": [p for p in trained if p.dim() == 2], "weight_decay": 0.1},
                                   {"params": [p for p in trained if p.dim() != 2], "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.999), eps=1e-8, foreach=False)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
    return torch.stack(losses)


def main():
    torch.set_num_threads(1)  # the order of a sum must not depend on the machine
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_model()
    ids, masks = write_conversations()
    batch = batch_of(ids, masks)
    found = {"ids": torch.tensor(sum(ids, [])), "mask": torch.tensor(sum(masks, [])), "lengths": torch.tensor(list(map(len, ids))),
             "token_losses": token_losses(batch)}
    model = opened()
    found["full.losses"] = steps(model, batch)
    found |= {f"full.{name}": p.detach().clone() for name, p in model.named_parameters()}
    torch.manual_seed(11)
    model = get_peft_model(opened(), LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.peft_config["default"].base_model_name_or_path = "../model"
    model.save_pretrained(FOLDER / "adapter")
    found["lora.losses"] = steps(model, batch)
    found |= {f"lora.{name.replace('.default', '')}": p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
    save_file(found, FOLDER / "expected.safetensors")
    for name in ("adapter/README.md", "model/generation_config.json"):
        (FOLDER / name).unlink(missing_ok=True)
    print(f"{FOLDER.relative_to(ROOT)}: {sum(path.stat().st_size for path in FOLDER.rglob('*') if path.is_file())} bytes")


if __name__ == "__main__":
    main()
