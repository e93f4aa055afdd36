#!/usr/bin/env python3
"""Writes tests/goldens: tiny encoders of images and models of images and texts, and the results of transformers for them.

Needs torch, transformers (made with 5.24), tokenizers and safetensors; run it after
tools/goldens/make_images.py, whose images it reads. deit, dinov2 and dinov2_registers are folders as those of tools/goldens/make_checkpoints.py, with
pixel_values instead of input_ids, and preprocessor_config.json; vision/NAME has expected.safetensors with the vectors of the images and
texts in expected.json, and dinov2_small reads images that are smaller than its table of positions."""
from harness import GOLDENS, image, shaken, write_json, write_tensors
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (BitImageProcessorPil, CLIPConfig, CLIPImageProcessorPil, CLIPModel, DeiTConfig, DeiTForImageClassificationWithTeacher,
                          DeiTImageProcessorPil, Dinov2Config, Dinov2ForImageClassification, Dinov2WithRegistersConfig, Dinov2Model,
                          Dinov2WithRegistersForImageClassification, PreTrainedTokenizerFast, SiglipConfig, SiglipImageProcessorPil, SiglipModel)

STACK = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
IMAGE = {"image_size": 12, "patch_size": 4}
IMAGES = ["005.png", "011.jpg", "017.webp", "003.png"]
TEXTS = ["a photo of a cat", "two dogs", "The quick brown fox, again and again and again and again", "x"]


def randomised(model, seed):
    return shaken(model, 0.15, seed).eval()


def images():
    return [image(name) for name in IMAGES]


def save(folder, model, processor):
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(processor.to_json_string())


def classifier(name, model, processor, seed):
    folder = GOLDENS / name
    model = randomised(model, seed)
    save(folder, model, processor)
    pixels = processor(images()[:2], return_tensors="pt")["pixel_values"]
    labels = torch.tensor([1, 2])
    out = model(pixel_values=pixels, output_hidden_states=True, output_attentions=True)
    loss = torch.nn.functional.cross_entropy(out.logits, labels)
    loss.backward()
    found = {"pixel_values": pixels, "labels": labels, "logits": out.logits, "loss": loss.reshape(1)}
    found |= {f"hidden.{i}": hidden for i, hidden in enumerate(out.hidden_states)}
    found |= {f"attention.{i}": attention for i, attention in enumerate(out.attentions)}
    found |= {f"grad.{n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    write_tensors(folder / "expected.safetensors", found)


def write_expected(folder, found, **more):
    write_tensors(folder / "expected.safetensors", {name: value.float() for name, value in found.items()})
    write_json(folder / "expected.json", {"images": IMAGES, **more}, indent=2)


def small_dinov2(seed):
    """DINOv2 of 20 pixels a side, whose processor makes images of 12."""
    folder = GOLDENS / "vision" / "dinov2_small"
    config = Dinov2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, mlp_ratio=2, image_size=20, patch_size=4)
    model = randomised(Dinov2Model(config), seed)
    processor = BitImageProcessorPil(size={"shortest_edge": 14}, crop_size={"height": 12, "width": 12})
    save(folder, model, processor)
    pixels = torch.cat([processor([p], return_tensors="pt")["pixel_values"] for p in images()])
    write_expected(folder, {"image_embeds": model(pixel_values=pixels).pooler_output})


def clip_tokenizer():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    for letter in letters:
        vocabulary[letter + "</w>"] = len(vocabulary)
    merges = [("a", "t</w>"), ("o", "f</w>"), ("p", "h"), ("ph", "o"), ("d", "o"), ("a", "g"), ("i", "n</w>")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    for token in ("<|startoftext|>", "<|endoftext|>"):
        vocabulary[token] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<|endoftext|>", continuing_subword_prefix="",
                                     end_of_word_suffix="</w>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    start, end = (vocabulary[t] for t in ("<|startoftext|>", "<|endoftext|>"))
    tokenizer.post_processor = processors.RobertaProcessing(("<|endoftext|>", end), ("<|startoftext|>", start), trim_offsets=False,
                                                            add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|startoftext|>", eos_token="<|endoftext|>",
                                   pad_token="<|endoftext|>", unk_token="<|endoftext|>", model_max_length=14)


def siglip_tokenizer():
    words = ["<unk>", "</s>", "▁a", "▁photo", "▁of", "▁cat", "▁two", "▁dogs", "▁the", "▁", *"abcdefghijklmnopqrstuvwxyz,"]
    tokenizer = Tokenizer(models.Unigram([(word, -1.0 - 0.3 * i) for i, word in enumerate(words)], unk_id=0))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="</s>", unk_token="<unk>", model_max_length=14)


def towers(name, model, processor, tokenizer, padding, seed):
    folder = GOLDENS / "vision" / name
    model = randomised(model, seed)
    save(folder, model, processor)
    tokenizer.save_pretrained(folder)
    pixels = torch.cat([processor([p], return_tensors="pt")["pixel_values"] for p in images()])
    text = [tokenizer(t, padding=padding, truncation=True, max_length=14, return_tensors="pt")["input_ids"] for t in TEXTS]
    vectors = torch.cat([model.get_text_features(input_ids=ids).pooler_output for ids in text])
    image = model.get_image_features(pixel_values=pixels).pooler_output
    logits = torch.cat([model(input_ids=ids, pixel_values=pixels).logits_per_image for ids in text], 1)
    write_expected(folder, {"image_embeds": image, "text_embeds": vectors, "logits_per_image": logits, **loss_of(model, pixels, text)},
                   texts=TEXTS)


def loss_of(model, pixels, text):
    """Returns the contrastive loss and all of its gradients."""
    length = max(ids.shape[1] for ids in text)
    ids = torch.tensor([list(one[0]) + [1] * (length - one.shape[1]) for one in text])
    mask = torch.tensor([[1] * one.shape[1] + [0] * (length - one.shape[1]) for one in text])
    loss = model(input_ids=ids, pixel_values=pixels, attention_mask=mask, return_loss=True).loss
    loss.backward()
    return {"loss": loss.reshape(1), **{f"grad.{n}": p.grad.reshape(p.shape or [1]) for n, p in model.named_parameters() if p.grad is not None}}


def main():
    twelve = {"height": 12, "width": 12}
    classifier("deit", DeiTForImageClassificationWithTeacher(DeiTConfig(**STACK, **IMAGE, num_labels=3, attn_implementation="eager")),
               DeiTImageProcessorPil(size={"height": 14, "width": 14}, crop_size=twelve), 1)
    dino = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_labels": 3, "attn_implementation": "eager", **IMAGE}
    bit = BitImageProcessorPil(size={"shortest_edge": 14}, crop_size=twelve)
    classifier("dinov2", Dinov2ForImageClassification(Dinov2Config(**dino, use_swiglu_ffn=True, mlp_ratio=3)), bit, 2)
    classifier("dinov2_registers", Dinov2WithRegistersForImageClassification(Dinov2WithRegistersConfig(**dino, mlp_ratio=2,
                                                                                                         num_register_tokens=3)), bit, 3)
    small_dinov2(4)
    tokenizer = clip_tokenizer()
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    clip = CLIPConfig(text_config={**STACK, **ends, "vocab_size": len(tokenizer), "max_position_embeddings": 14},
                      vision_config={**STACK, **IMAGE}, projection_dim=10)
    towers("clip", CLIPModel(clip), CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size=twelve), tokenizer, False, 5)
    tokenizer = siglip_tokenizer()
    siglip = SiglipConfig(text_config={**STACK, "vocab_size": len(tokenizer), "max_position_embeddings": 14, "bos_token_id": 0,
                                       "eos_token_id": 1, "pad_token_id": 1}, vision_config={**STACK, **IMAGE})
    towers("siglip", SiglipModel(siglip), SiglipImageProcessorPil(size=twelve), tokenizer, "max_length", 6)


if __name__ == "__main__":
    main()
