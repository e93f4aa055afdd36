#!/usr/bin/env python3
"""Writes tests/goldens/chat_masks.json: conversations, and their ids and assistant masks as computed by transformers' apply_chat_template
with templates that have {% generation %} blocks, for two small tokenizers.

    python3 tools/goldens/make_chat_masks.py      (needs: pip install transformers jinja2)"""
import json

from harness import GOLDENS, report, write_json
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
TEXT = ["the cat sat on the mat and the dog sat on the log", "What is 2+2? 4. Größe 日本 😀", "assistant user system tool"] * 4
CALL = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 2}}}
CONVERSATIONS = [
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "the cat"}],
    [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": " 4.\n"},
     {"role": "user", "content": "Größe 日本"}, {"role": "assistant", "content": "😀 sat"}],
    [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
     {"role": "tool", "content": "21"}, {"role": "assistant", "content": "日本"}],
    [{"role": "assistant", "content": ""}, {"role": "user", "content": "on the mat"}],
]


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False,
                                                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def with_marks():
    """A BPE of characters in the style of SentencePiece: a mark replaces each space and begins the text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=120, special_tokens=SPECIAL, show_progress=False))
    return tokenizer


def fast_tokenizer(tokenizer):
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", clean_up_tokenization_spaces=False)


def main():
    folder = GOLDENS / "chat_templates"
    found = []
    for tokenizer in (byte_level(), with_marks()):
        fast = fast_tokenizer(tokenizer)
        cases = []
        for template in ("training_spans.jinja", "training_spans_tools.jinja"):
            source = (folder / template).read_text(encoding="utf-8")
            for messages in CONVERSATIONS:
                if "tool" in messages[-2]["role"] and template == "training_spans.jinja":
                    continue  # this template has no calls
                made = fast.apply_chat_template(messages, chat_template=source, return_assistant_tokens_mask=True, return_dict=True)
                texts = [{"ids": made["input_ids"], "mask": made["assistant_masks"]}]
                cases.append({"template": template, "record": {"messages": messages}, "texts": texts})
        found.append({"tokenizer": json.loads(tokenizer.to_str()), "cases": cases})
    path = GOLDENS / "chat_masks.json"
    write_json(path, found, ensure_ascii=False, separators=(",", ":"))
    report(path)


if __name__ == "__main__":
    main()
