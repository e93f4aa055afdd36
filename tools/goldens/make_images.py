#!/usr/bin/env python3
"""Writes tests/goldens/images: small drawn images in many formats, and what Pillow and the Pillow-based image processors of
transformers make of them.

Needs Pillow, NumPy and transformers (made with Pillow 13.0 and transformers 5.24).
`make_images.py --folder DIR --images N` writes N larger images instead, for one comparison: FOVEA_IMAGE_GOLDENS=DIR
build/release/tests/unit_image. expected.json has the RGB pixels of each file (base64), resized images by filter and size, and for
each processor its config and its results (little-endian float32)."""
import argparse
import base64
import io
import json
import pathlib
import random
import struct
import zlib

from harness import GOLDENS, write_json
import numpy as np
from PIL import Image, ImageOps
from transformers import (BitImageProcessorPil, CLIPImageProcessorPil, DeiTImageProcessorPil, SiglipImageProcessorPil,
                          ViTImageProcessorPil)
from transformers.image_transforms import convert_to_rgb

MODES = ["1", "L", "LA", "P", "P transparent", "RGB", "RGBA", "I;16", "RGB;16", "RGBA;16", "L transparent"]


def encoded(data):
    return base64.b64encode(np.ascontiguousarray(data).tobytes()).decode()


def drawn(height, width, generator):
    """Returns a smooth image with some noise and edges, [H, W, 4]."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(4):
        a, b, c = generator.uniform(0.05, 0.9), generator.uniform(0.05, 0.9), generator.uniform(0, 6)
        planes.append(127 + 120 * np.sin(a * x + b * y + c))
    image = np.stack(planes, -1) + generator.normal(0, 10, (height, width, 4))
    image[height // 3:height // 2 + 1, width // 4:width // 2 + 1] = generator.integers(0, 256, 4)
    return np.clip(image, 0, 255).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_16_bits(samples):
    """A PNG file of [H, W, 3 or 4] samples of 16 bits, which Pillow cannot write."""
    height, width, channels = samples.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)
    header = struct.pack(">IIBBBBB", width, height, 16, 2 if channels == 3 else 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def interlaced_png(samples):
    """A PNG file of [H, W, 3] samples of 8 bits in the 7 passes of Adam7."""
    height, width = samples.shape[:2]
    rows = b""
    for x, y, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = samples[y::dy, x::dx]
        rows += b"".join(b"\0" + row.tobytes() for row in part) if part.shape[1] else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def png(mode, rgba, generator, orientation):
    file = io.BytesIO()
    options = {}
    if orientation:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options["exif"] = exif
    image = Image.fromarray(rgba, "RGBA")
    if mode.endswith(";16"):
        wide = rgba.astype(np.uint16) * 256 + generator.integers(0, 256, rgba.shape).astype(np.uint16)
        if mode == "I;16":
            Image.fromarray(wide[..., 0]).save(file, "PNG")
            return file.getvalue(), np.repeat(rgba[..., :1], 3, -1)  # the upper bytes; Pillow would cut the values to 255
        data = png_of_16_bits(wide[..., :3] if mode == "RGB;16" else wide)
        return data, None
    if mode == "P":
        image = image.convert("RGB").quantize(13)
    elif mode == "P transparent":
        image = image.convert("RGB").quantize(7)
        options["transparency"] = bytes(generator.integers(0, 256, 7).tolist())
    elif mode == "L transparent":
        image = image.convert("L")
        options["transparency"] = int(np.array(image)[0, 0])
    else:
        image = image.convert(mode)
    image.save(file, "PNG", **options)
    return file.getvalue(), None


def jpeg(kind, rgba, orientation):
    file = io.BytesIO()
    options = {"quality": 87}
    if orientation:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options["exif"] = exif
    image = Image.fromarray(rgba, "RGBA").convert("RGB")
    if kind in ("L", "CMYK"):
        image = image.convert(kind)
    elif kind == "progressive":
        options["progressive"] = True
    else:
        options["subsampling"] = kind
    image.save(file, "JPEG", **options)
    return file.getvalue()


def webp(kind, rgba, orientation):
    file = io.BytesIO()
    image = Image.fromarray(rgba, "RGBA")
    options = {"lossless": kind.startswith("lossless")}
    if orientation:
        exif = Image.Exif()
        exif[0x0112] = orientation
        options["exif"] = exif
    if kind == "animated":
        options |= {"save_all": True, "append_images": [image.rotate(180)]}
    if kind.endswith("RGB") or kind == "lossy":
        image = image.convert("RGB")
    image.save(file, "WEBP", **options)
    return file.getvalue()


def variants(generator, orientations):
    """Yields the ending of a file, and a function that encodes it."""
    for mode in MODES:
        yield "png", lambda rgba, o, mode=mode: png(mode, rgba, generator, 0 if mode.endswith("16") else o)
    for kind in ("4:4:4", "4:2:0", "4:2:2", "L", "CMYK", "progressive"):
        yield "jpg", lambda rgba, o, kind=kind: (jpeg(kind, rgba, o), None)
    for kind in ("lossless RGBA", "lossless RGB", "lossy", "lossy RGBA", "animated"):
        yield "webp", lambda rgba, o, kind=kind: (webp(kind, rgba, o), None)
    for orientation in orientations:
        yield "jpg", lambda rgba, _, n=orientation: (jpeg("4:4:4", rgba, n), None)
    yield "png", lambda rgba, _: (interlaced_png(np.ascontiguousarray(rgba[..., :3])), None)


def rgb_of(data):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return convert_to_rgb(image, return_numpy=True)


PROCESSORS = {
    "ViT": (ViTImageProcessorPil, {"size": {"height": 20, "width": 20}}),
    "DeiT": (DeiTImageProcessorPil, {"size": {"height": 24, "width": 24}, "crop_size": {"height": 18, "width": 18}}),
    "CLIP": (CLIPImageProcessorPil, {"size": {"shortest_edge": 18}, "crop_size": {"height": 18, "width": 18}}),
    "Siglip": (SiglipImageProcessorPil, {"size": {"height": 16, "width": 16}, "resample": 2}),
    "Bit": (BitImageProcessorPil, {"size": {"shortest_edge": 21}, "crop_size": {"height": 18, "width": 18}, "resample": 1}),
    "padded": (CLIPImageProcessorPil, {"do_resize": False, "crop_size": {"height": 24, "width": 24}}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=GOLDENS / "images")
    parser.add_argument("--images", type=int, default=0)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    generator, sides = np.random.default_rng(7), random.Random(7)
    expected = {"files": {}, "resized": [], "processors": {}}
    encoders = list(variants(generator, range(1, 9)))
    count = arguments.images or len(encoders)
    most = 180 if arguments.images else 19
    for n in range(count):
        ending, encode = encoders[n % len(encoders)]
        orientation = sides.randrange(0, 9) if arguments.images else 0
        data, rgb = encode(drawn(sides.randrange(1, most), sides.randrange(1, most), generator), orientation)
        name = f"{n:03}.{ending}"
        (folder / name).write_bytes(data)
        rgb = rgb_of(data) if rgb is None else rgb
        expected["files"][name] = {"height": rgb.shape[0], "width": rgb.shape[1], "rgb": encoded(rgb)}
    source = drawn(23, 31, generator)[..., :3]
    expected["source"] = {"height": 23, "width": 31, "rgb": encoded(source)}
    for resample in range(6):
        for height, width in ((23, 12), (9, 31), (11, 13), (40, 37), (1, 1), (5, 60), (10, 14), (2, 6)):
            small = np.array(Image.fromarray(source).resize((width, height), resample))
            expected["resized"].append({"filter": resample, "height": height, "width": width, "rgb": encoded(small)})
    for name, (kind, options) in PROCESSORS.items():
        processor = kind(**options)
        config = json.loads(processor.to_json_string())
        pixels = processor(Image.fromarray(source), return_tensors="np")["pixel_values"][0].astype("<f4")
        expected["processors"][name] = {"config": config, "side": pixels.shape[1], "pixels": encoded(pixels)}
    write_json(folder / "expected.json", expected, indent=1)


if __name__ == "__main__":
    main()
