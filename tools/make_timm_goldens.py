#!/usr/bin/env python3
"""Writes small models of timm and their logits for pictures: tests/goldens/timm. Needs timm, PyTorch and Pillow."""
import json
import pathlib

import timm
import torch
from make_vision_goldens import GOLDENS, PICTURES, pictures, randomised
from safetensors.torch import save_file
from timm.data import create_transform, resolve_data_config
from timm.models._hub import save_for_hf

SIZES = {"img_size": 12, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "num_classes": 3}
MODELS = {"vit": ("vit_tiny_patch16_224", {}), "deit": ("deit_tiny_distilled_patch16_224", {}), "features": ("vit_small_patch16_224", {"num_classes": 0})}


def main():
    for seed, (name, (architecture, more)) in enumerate(MODELS.items()):
        model = randomised(timm.create_model(architecture, pretrained=False, pretrained_cfg_overlay={"input_size": (3, 12, 12)}, **{**SIZES, **more}), seed)
        folder = GOLDENS / "timm" / name
        save_for_hf(model, folder, model_args={**SIZES, **more}, safe_serialization=True)
        for unused in folder.glob("*.bin"):
            unused.unlink()
        transform = create_transform(**resolve_data_config({}, model=model))
        pixels = torch.stack([transform(picture) for picture in pictures()])
        save_file({"pixel_values": pixels, "output": model(pixels).detach().contiguous()}, folder / "expected.safetensors")
        (folder / "expected.json").write_text(json.dumps({"pictures": PICTURES}, indent=2) + "\n")


if __name__ == "__main__":
    main()
