#!/usr/bin/env python3
"""Writes small models of timm and their logits for images: tests/goldens/timm. Needs timm, PyTorch and Pillow."""
from harness import GOLDENS, shaken, write_json, write_tensors
import timm
import torch
from make_vision import IMAGES, images
from timm.data import create_transform, resolve_data_config
from timm.models._hub import save_for_hf

SIZES = {"img_size": 12, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "num_classes": 3}
MODELS = {"vit": ("vit_tiny_patch16_224", {}), "deit": ("deit_tiny_distilled_patch16_224", {}), "features": ("vit_small_patch16_224", {"num_classes": 0})}


def main():
    for seed, (name, (architecture, more)) in enumerate(MODELS.items()):
        model = shaken(timm.create_model(architecture, pretrained=False, pretrained_cfg_overlay={"input_size": (3, 12, 12)}, **{**SIZES, **more}), 0.15,
                       seed).eval()
        folder = GOLDENS / "timm" / name
        save_for_hf(model, folder, model_args={**SIZES, **more}, safe_serialization=True)
        for unused in folder.glob("*.bin"):
            unused.unlink()
        transform = create_transform(**resolve_data_config({}, model=model))
        pixels = torch.stack([transform(image) for image in images()])
        write_tensors(folder / "expected.safetensors", {"pixel_values": pixels, "output": model(pixels)})
        write_json(folder / "expected.json", {"images": IMAGES}, indent=2)


if __name__ == "__main__":
    main()
