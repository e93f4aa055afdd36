#!/usr/bin/env python3
"""Writes tests/goldens/fine_tuning: a tiny Llama with a tokenizer and a chat template, conversations, a new adapter of PEFT, and 20 steps of
PyTorch's AdamW on the conversations, of all weights and of the adapter.

    python3 tools/goldens/make_fine_tuning.py      (needs: pip install torch transformers peft jinja2)

expected.safetensors contains the ids, assistant masks and lengths of the conversations as computed by apply_chat_template, the loss of each
token at the start (0 = not trained), and for each run the losses and the final weights."""
import shutil

from harness import GOLDENS, adamw_steps, copies, one_thread, remove, report, shaken, write_records, write_tensors
import torch
from make_chat_masks import byte_level
from peft import LoraConfig, get_peft_model
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

FOLDER = GOLDENS / "fine_tuning"
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
    tokenizer.chat_template = (GOLDENS / "chat_templates/training_spans.jinja").read_text(encoding="utf-8")
    torch.manual_seed(7)
    config = LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         vocab_size=len(tokenizer), max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2)
    model = shaken(LlamaForCausalLM(config), 0.1)
    for part in (model, tokenizer):
        part.save_pretrained(FOLDER / "model")


def write_conversations():
    """Returns the ids and masks of the conversations."""
    lines = [{"messages": [{"role": role, "content": text} for role, text in each]} for each in CONVERSATIONS]
    write_records(FOLDER / "chats.jsonl", lines)
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
    return adamw_steps(trained, lambda: model(**batch).loss, STEPS, RATE)


def main():
    one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_model()
    ids, masks = write_conversations()
    batch = batch_of(ids, masks)
    found = {"ids": torch.tensor(sum(ids, [])), "mask": torch.tensor(sum(masks, [])), "lengths": torch.tensor(list(map(len, ids))),
             "token_losses": token_losses(batch)}
    model = opened()
    found["full.losses"] = steps(model, batch)
    found |= copies((f"full.{name}", p) for name, p in model.named_parameters())
    torch.manual_seed(11)
    model = get_peft_model(opened(), LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.peft_config["default"].base_model_name_or_path = "../model"
    model.save_pretrained(FOLDER / "adapter")
    found["lora.losses"] = steps(model, batch)
    found |= copies((f"lora.{name.replace('.default', '')}", p) for name, p in model.named_parameters() if p.requires_grad)
    write_tensors(FOLDER / "expected.safetensors", found)
    remove(FOLDER, "adapter/README.md", "model/generation_config.json")
    report(FOLDER)


if __name__ == "__main__":
    main()
