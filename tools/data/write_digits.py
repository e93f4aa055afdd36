#!/usr/bin/env python3
"""Writes images of digits as PNG files, for `fovea train --images`: FOLDER/train/DIGIT/N.png and FOLDER/test/DIGIT/N.png.

    python3 tools/data/write_digits.py FOLDER                     # draws 400 images of each digit
    python3 tools/data/write_digits.py FOLDER --scikit-learn      # the 1797 handwritten digits of scikit-learn, 8 x 8 pixels

A quarter of each digit's images is the test part; --seed chooses which. docs/images.md has the results.
"""
import argparse
import math
import pathlib
import random
import struct
import zlib

SIDE = 16  # pixels of a drawn image

# The strokes of each digit: points (x, y) from the top left corner (0, 0) to the bottom right corner (1, 1).
STROKES = {
    0: [[(0.5, 0.05), (0.2, 0.2), (0.12, 0.5), (0.2, 0.8), (0.5, 0.95), (0.8, 0.8), (0.88, 0.5), (0.8, 0.2), (0.5, 0.05)]],
    1: [[(0.3, 0.25), (0.55, 0.05), (0.55, 0.95)]],
    2: [[(0.15, 0.3), (0.25, 0.1), (0.5, 0.05), (0.8, 0.15), (0.82, 0.38), (0.5, 0.65), (0.15, 0.95), (0.88, 0.95)]],
    3: [[(0.18, 0.12), (0.5, 0.05), (0.8, 0.2), (0.72, 0.42), (0.45, 0.48), (0.78, 0.58), (0.85, 0.8), (0.5, 0.95), (0.15, 0.85)]],
    4: [[(0.65, 0.95), (0.65, 0.05), (0.12, 0.68), (0.9, 0.68)]],
    5: [[(0.82, 0.05), (0.25, 0.05), (0.2, 0.45), (0.55, 0.4), (0.83, 0.58), (0.8, 0.82), (0.5, 0.95), (0.15, 0.87)]],
    6: [[(0.75, 0.08), (0.4, 0.2), (0.18, 0.55), (0.22, 0.83), (0.5, 0.95), (0.8, 0.82), (0.8, 0.6), (0.5, 0.5), (0.2, 0.65)]],
    7: [[(0.12, 0.05), (0.88, 0.05), (0.55, 0.5), (0.4, 0.95)]],
    8: [[(0.5, 0.48), (0.22, 0.3), (0.3, 0.1), (0.5, 0.05), (0.7, 0.1), (0.78, 0.3), (0.5, 0.48),
         (0.18, 0.68), (0.25, 0.88), (0.5, 0.95), (0.75, 0.88), (0.82, 0.68), (0.5, 0.48)]],
    9: [[(0.8, 0.35), (0.5, 0.5), (0.2, 0.38), (0.22, 0.15), (0.5, 0.05), (0.8, 0.18), (0.8, 0.45), (0.6, 0.8), (0.3, 0.95)]],
}


def distance(x, y, a, b):
    """Returns the distance of a point from a line segment."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    along = max(0.0, min(1.0, ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy + 1e-12)))
    return math.hypot(x - a[0] - along * dx, y - a[1] - along * dy)


def drawn(digit, generator):
    """Returns SIDE rows of grey values: the strokes of a digit, turned, slanted, stretched, moved and bent, and noise."""
    angle, slant = generator.uniform(-0.25, 0.25), generator.uniform(-0.3, 0.3)
    wide, high = generator.uniform(0.4, 0.75) * SIDE, generator.uniform(0.6, 0.85) * SIDE
    x0, y0 = SIDE / 2 + generator.uniform(-1, 1), SIDE / 2 + generator.uniform(-1, 1)
    thick, ink, paper = generator.uniform(0.5, 1.1), generator.uniform(150, 255), generator.uniform(0, 60)

    def placed(point):
        u, v = ((c - 0.5 + generator.gauss(0, 0.025)) * size for c, size in zip(point, (wide, high)))
        u -= slant * v
        return x0 + u * math.cos(angle) - v * math.sin(angle), y0 + u * math.sin(angle) + v * math.cos(angle)

    lines = [[placed(point) for point in stroke] for stroke in STROKES[digit]]
    segments = [pair for line in lines for pair in zip(line, line[1:])]
    rows = []
    for y in range(SIDE):
        away = [min(distance(x + 0.5, y + 0.5, a, b) for a, b in segments) for x in range(SIDE)]
        shares = [max(0.0, min(1.0, thick + 0.5 - d)) for d in away]
        rows.append([max(0, min(255, round(paper + (ink - paper) * share + generator.gauss(0, 12)))) for share in shares])
    return rows


def drawn_digits(count, seed):
    generator = random.Random(seed)
    return [(drawn(digit, generator), digit) for _ in range(count) for digit in range(10)]


def handwritten_digits():
    from sklearn.datasets import load_digits
    digits = load_digits()  # grey values of 0 to 16
    return [([[min(255, int(value) * 16) for value in row] for row in image], int(label))
            for image, label in zip(digits.images, digits.target)]


def png(rows):
    """Returns a PNG file of grey rows."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def write(digits, folder, seed):
    """Writes the images; a quarter of each digit's, chosen by the seed, becomes the test part."""
    for label in range(10):
        images = [rows for rows, digit in digits if digit == label]
        random.Random(1000 * seed + label).shuffle(images)
        for i, rows in enumerate(images):
            path = folder / ("test" if 4 * i < len(images) else "train") / str(label) / f"{i:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scikit-learn", action="store_true", help="the digits of scikit-learn instead of drawn ones")
    parser.add_argument("--count", type=int, default=400, help="drawn images of each digit")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(handwritten_digits() if given.scikit_learn else drawn_digits(given.count, given.seed), given.folder, given.seed)


if __name__ == "__main__":
    main()
