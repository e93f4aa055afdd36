#!/usr/bin/env python3
"""Writes tests/goldens/images/operations.json: images after each operation of torchvision's RandAugment. Needs torchvision and Pillow."""
from harness import GOLDENS, write_lines
from PIL import Image
from torchvision.transforms import InterpolationMode, RandAugment
from torchvision.transforms.autoaugment import _apply_op

SIZES = [(13, 9), (19, 17)]  # width, height; the second one has enough pixels for Equalize
MAGNITUDES = [9, 30]


def drawn_image(width, height):
    """Returns an image that the test makes too."""
    image = Image.new("RGB", (width, height))
    image.putdata([(40 + (x * 7 + y * 13) % 180, (x * x + 3 * y) % 200, 90 + (x * y) % 120) for y in range(height) for x in range(width)])
    return image


def main():
    cases = []
    for width, height in SIZES:
        image = drawn_image(width, height)
        space = RandAugment()._augmentation_space(31, (height, width))
        for name, (magnitudes, signed) in space.items():
            for magnitude in MAGNITUDES if magnitudes.ndim else [0]:
                strength = magnitudes[magnitude].item() if magnitudes.ndim else 0.0
                for sign in (1, -1) if signed and strength else (1,):
                    result = _apply_op(image, name, sign * float(strength), InterpolationMode.NEAREST, None)
                    cases.append({"width": width, "height": height, "operation": list(space).index(name), "magnitude": magnitude,
                                  "sign": sign, "pixels": result.tobytes().hex()})
    write_lines(GOLDENS / "images/operations.json", cases, "[", "]\n")


if __name__ == "__main__":
    main()
