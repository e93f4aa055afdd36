#!/usr/bin/env python3
"""Writes the training of the models of tests/goldens/image_text: loss and gradients of chats with images, as transformers computes them.

Needs torch and transformers (made with 5.24); run it after tools/goldens/make_image_text.py, whose models it reads. Each folder gets
chats.jsonl and training.safetensors: the loss, which is the mean over the tokens of all answers, and `grad.NAME` for each parameter of the
decoder and of the connector, by its name in transformers."""
import json

from harness import GOLDENS, image, quiet, write_tensors
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

CHATS = [[("user", ["005.png", "What is this?"]), ("assistant", ["A cat."]), ("user", ["Of what?"]), ("assistant", ["the sea"])],
         [("user", ["Is ", "011.jpg", " or ", "017.webp", " a dog?"]), ("assistant", ["the first of them"])],
         [("user", ["How are you?"]), ("assistant", ["fine, thanks"])]]


def is_image(part):
    return part.endswith((".png", ".jpg", ".webp"))


def messages_of(chat, image_part):
    return [{"role": role, "content": [image_part(p) if is_image(p) else {"type": "text", "text": p} for p in parts]} for role, parts in chat]


def ids_of(processor, messages, prompt):
    text = processor.apply_chat_template([{**m, "content": [{"type": "image"} if p["type"] == "image" else p for p in m["content"]]} for m in messages],
                                         add_generation_prompt=prompt)
    images = [image(p["path"]) for m in messages for p in m["content"] if p["type"] == "image"]
    inputs = processor(images=images or None, text=text, add_special_tokens=False, return_tensors="pt")
    return {k: v for k, v in inputs.items() if k != "token_type_ids"}


def labels_of(processor, messages, ids):
    """The answers, which the tokens of the prompt before them precede."""
    labels = torch.full_like(ids, -100)
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = ids_of(processor, messages[:i], True)["input_ids"][0]
        after = ids_of(processor, messages[:i + 1], False)["input_ids"][0]
        assert ids[:len(before)].equal(before) and ids[:len(after)].equal(after), "the tokens before an answer changed"
        labels[len(before):len(after)] = ids[len(before):len(after)]
    return labels


def write(folder):
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    chats = [messages_of(chat, lambda name: {"type": "image", "path": name}) for chat in CHATS]
    total, count = 0, 0
    for messages in chats:
        inputs = ids_of(processor, messages, False)
        labels = labels_of(processor, messages, inputs["input_ids"][0])
        logits = model(**inputs).logits[0]
        total = total + torch.nn.functional.cross_entropy(logits[:-1], labels[1:], reduction="sum", ignore_index=-100)
        count += int((labels[1:] >= 0).sum())
    loss = total / count
    loss.backward()
    tensors = {"loss": loss.detach().reshape(1)}
    for name, parameter in model.named_parameters():
        if not any(part in name for part in ("vision_tower", "vision_model")):
            tensors[f"grad.{name}"] = parameter.grad
    write_tensors(folder / "training.safetensors", tensors)
    lines = [json.dumps({"messages": messages_of(chat, lambda name: {"type": "image", "path": f"../../images/{name}"})}) for chat in CHATS]
    (folder / "chats.jsonl").write_text("".join(line + "\n" for line in lines))


def main():
    quiet()
    for folder in sorted((GOLDENS / "image_text").iterdir()):
        write(folder)


if __name__ == "__main__":
    main()
