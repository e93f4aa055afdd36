#!/usr/bin/env python3
"""Writes tests/goldens/image_text: tiny models of texts with images, and the results of transformers for them.

Needs torch, transformers (made with 5.24), tokenizers and safetensors; run it after
tools/goldens/make_images.py, whose images it reads. Each folder is a model with expected.json, a list of cases: the text, the images, the
token ids after the marks of images are expanded, the greedy continuation, and in expected.safetensors the logits of the last tokens. `chat` is
a conversation and the text that the chat template makes of it; `labels` has the log-probabilities of some answers after the first text."""
from harness import GOLDENS, image, shaken, write_json, write_tensors
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (CLIPImageProcessorPil, CLIPVisionConfig, Idefics3Config, Idefics3ForConditionalGeneration, Idefics3ImageProcessorPil,
                          Idefics3Processor, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor, MistralConfig,
                          PreTrainedTokenizerFast, SiglipImageProcessorPil, SiglipVisionConfig, SmolVLMConfig, SmolVLMForConditionalGeneration,
                          SmolVLMImageProcessorPil)

VISION = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
TEXT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24,
        "max_position_embeddings": 512}
ROWS = 6  # of logits that are stored
LABELS = ["cat", "a dog", "is this of the", "n"]
SPLIT = ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]


def byte_tokenizer(specials):
    """Bytes and a few merges: among them two line breaks, which follow the rows of an image's parts."""
    vocabulary = {"<s>": 0, "</s>": 1, "<pad>": 2}
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[letter] = len(vocabulary)
    merges = [("Ċ", "Ċ"), ("t", "h"), ("Ġ", "a"), ("i", "s"), ("o", "f"), ("Ġ", "th")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ["<s>", "</s>", "<pad>", *specials]])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)])
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def label_logprobs(model, processor, text, names):
    """Returns the log-probability of each label after the text: the sum over its tokens."""
    images = [image(n) for n in names]
    before = processor(images=images, text=text, return_tensors="pt")["input_ids"][0]
    found = []
    for label in LABELS:
        inputs = processor(images=images, text=f"{text} {label}", return_tensors="pt")
        inputs = {k: v for k, v in inputs.items() if k != "token_type_ids"}
        ids = inputs["input_ids"][0]
        assert ids[:len(before)].equal(before), "the tokens before the label changed"
        with torch.no_grad():
            logprobs = model(**inputs).logits[0].double().log_softmax(-1)
        places = range(len(before), len(ids))
        found.append(sum(logprobs[i - 1, ids[i]].item() for i in places))
    return dict(zip(LABELS, found))


def write(name, model, processor, cases, messages):
    folder = GOLDENS / "image_text" / name
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.pad_token_id = 2
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    tensors, written = {}, []
    for i, (text, names) in enumerate(cases):
        inputs = processor(images=[image(n) for n in names] or None, text=text, return_tensors="pt")
        inputs = {k: v for k, v in inputs.items() if k != "token_type_ids"}
        with torch.no_grad():
            logits = model(**inputs).logits[0]
            out = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0]
        ids = inputs["input_ids"][0]
        best = logits[-1].topk(2).values
        assert best[0] - best[1] > 1e-3, "a tie decides the continuation"
        tensors[f"logits.{i}"] = logits[-ROWS:]
        new = [t for t in out[len(ids):].tolist() if t != model.generation_config.eos_token_id]
        written.append({"text": text, "images": names, "ids": ids.tolist(), "continuation": new})
    write_tensors(folder / "expected.safetensors", tensors)
    shown = processor.apply_chat_template(messages, add_generation_prompt=True)
    labels = label_logprobs(model, processor, *cases[0])
    write_json(folder / "expected.json", {"cases": written, "chat": {"messages": messages, "text": shown}, "labels": labels})


CHAT = ("{% for m in messages %}{{ m['role'] + ': ' }}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for part in m['content'] %}"
        "{% if part['type'] == 'image' %}{{ '<image>' }}{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}")
MESSAGES = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is this?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
            {"role": "user", "content": [{"type": "text", "text": "And "}, {"type": "image"}, {"type": "text", "text": "this?"}]}]


def llava(name, tower, text, image_processor, strategy, layer, additional, seed):
    tokenizer = byte_tokenizer(["<image>"])
    ends = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = LlavaConfig(vision_config=tower, text_config=text(**TEXT, **ends), image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
                         vision_feature_select_strategy=strategy, vision_feature_layer=layer, image_seq_length=9)
    model = shaken(LlavaForConditionalGeneration(config), 0.2, seed).eval()
    processor = LlavaProcessor(image_processor, tokenizer, patch_size=4, vision_feature_select_strategy=strategy, chat_template=CHAT,
                               num_additional_image_tokens=additional)
    write(name, model, processor, [("USER: <image>\nWhat is this? ASSISTANT:", ["005.png"]),
                                   ("<image> and <image>: which of them is a cat?", ["011.jpg", "017.webp"]),
                                   ("no picture", [])], MESSAGES)


def idefics3(name, config_class, model_class, image_processor, patches, seed):
    tags = [f"<row_{r}_col_{c}>" for r in range(1, 5) for c in range(1, 5)]
    tokenizer = byte_tokenizer([*SPLIT, "<image>", *tags])
    image = 2 * patches
    ends = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config = config_class(vision_config={**VISION, "image_size": image, "patch_size": 2}, text_config={**TEXT, **ends, "model_type": "llama"},
                          image_token_id=tokenizer.convert_tokens_to_ids("<image>"), scale_factor=2, pad_token_id=2)
    model = shaken(model_class(config), 0.2, seed).eval()
    model.generation_config.eos_token_id, model.generation_config.bos_token_id = 1, 0
    processor = Idefics3Processor(image_processor, tokenizer, image_seq_len=(patches // 2) ** 2, chat_template=CHAT)
    write(name, model, processor, [("User: <image>What is this?\nAssistant:", ["009.png"]),
                                   ("<image><image>\nof these?", ["011.jpg", "005.png"]),
                                   ("no picture", [])], MESSAGES)


def main():
    torch.manual_seed(0)  # the first model's initial weights
    clip = CLIPVisionConfig(**VISION, image_size=12, patch_size=4, projection_dim=8)
    llava("llava", clip, LlamaConfig, CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12}), "default", -2, 1, 1)
    siglip = SiglipVisionConfig(**VISION, image_size=12, patch_size=4, vision_use_head=False)
    llava("llava_siglip", siglip, MistralConfig, SiglipImageProcessorPil(size={"height": 12, "width": 12}), "full", -1, 0, 2)
    split = {"size": {"longest_edge": 60}, "max_image_size": {"longest_edge": 20}}
    idefics3("idefics3", Idefics3Config, Idefics3ForConditionalGeneration, Idefics3ImageProcessorPil(**split), 10, 3)
    whole = {"size": {"longest_edge": 24}, "max_image_size": {"longest_edge": 12}, "do_image_splitting": False}
    idefics3("smolvlm", SmolVLMConfig, SmolVLMForConditionalGeneration, SmolVLMImageProcessorPil(**whole), 6, 4)


if __name__ == "__main__":
    main()
