"""Hostile images: sizes that lie, bombs, truncated files, cycles in EXIF data, and large profiles of colours."""
import pathlib
import struct
import unittest
import zlib

from hostile import MIB, SANITIZED, SLACK, HostileTest

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
MODEL = GOLDENS / "deit"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data, before=b"", bits=8, kind=2):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + before + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def zeros(count):
    """Returns the compressed form of `count` bytes of 0."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(min(MIB, count - at))) for at in range(0, count, MIB)) + packer.flush()


def progressive_jpeg(side, scans):
    """Returns a grey image of one colour. Each block takes one bit in the first scan, and almost none in the others."""
    def segment(marker, data):
        return bytes((0xFF, marker)) + struct.pack(">H", len(data) + 2) + data

    def scan(first, last, bits):
        return segment(0xDA, bytes((1, 1, 0, first, last, 0))) + bytes(-(-bits // 8))

    def code(kind, symbol):
        return segment(0xC4, bytes((kind, 1, *[0] * 15, symbol)))  # a code of one bit
    blocks = (side // 8) ** 2
    start = b"\xff\xd8" + segment(0xDB, bytes((0, *[1] * 64))) + segment(0xC2, struct.pack(">BHHBBBB", 8, side, side, 1, 1, 0x11, 0))
    others = b"".join(scan(k, k, 15 * -(-blocks // 16384)) for k in range(1, scans))  # runs of 16,384 empty blocks
    return start + code(0x00, 0) + code(0x10, 0xE0) + scan(0, 0, blocks) + others + b"\xff\xd9"


class HostileImages(HostileTest):
    def setUp(self):
        super().setUp()
        code, message, self.usual_memory = self.run_limited("classify", MODEL, GOLDENS / "images/005.png")
        self.assertEqual(code, 0, message)

    def bad(self, pattern, name, content, room=0):
        """Expects that an image is refused; `room` is the memory that its pixels may take."""
        with self.subTest(pattern=pattern):
            path = self.write(name, content)
            code, message, memory = self.run_limited("classify", MODEL, path)
            self.assertEqual(code, 2, message)
            lines = message.splitlines()
            self.assertEqual(len(lines), 1, message)
            self.assertRegex(lines[0], pattern)
            self.assertIn(name, lines[0])
            if not SANITIZED:
                self.assertLessEqual(memory, self.usual_memory + 2 * len(content) + room + SLACK)

    def test_sizes_that_lie_are_refused_before_memory_is_taken(self):
        self.bad("65535 x 65535 pixels; expected at most 100000000", "a.png", png(65535, 65535, zeros(100)))
        self.bad("2147483647 x 1 pixels|damaged PNG", "b.png", png(2**31 - 1, 1, zeros(100)))
        self.bad("cannot hold 4000 x 4000", "c.png", png(4000, 4000, zeros(100)))
        self.bad("damaged PNG", "d.png", png(0, 5, zeros(100)))
        self.bad("damaged PNG", "e.png", png(30, 30, zeros(100)))
        vp8x = b"VP8X" + struct.pack("<I", 10) + bytes(4) + b"\xff\xff\xff" * 2
        self.bad("damaged WebP|16777216 x 16777216 pixels", "f.webp", b"RIFF" + struct.pack("<I", len(vp8x) + 4) + b"WEBP" + vp8x)
        sizes = struct.pack(">HH", 65500, 65500)
        jpeg = b"\xff\xd8\xff\xc0\0\x11\x08" + sizes + b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01"
        self.bad("65500 x 65500 pixels", "g.jpg", jpeg + b"\xff\xda\0\x0c\x03\x01\0\x02\x11\x03\x11\0\x3f\0" + bytes(64))

    def test_pixels_are_limited_by_bytes_and_scans(self):
        """Progressive files of a few kilobytes took 870 MB, and 190 scans of 100 million pixels took 5 s."""
        self.bad("3000 bytes for 9992 x 9992 pixels; expected", "a.jpg", progressive_jpeg(9992, 2)[:3000])
        self.bad("3000 bytes cannot hold 4000 x 4000", "h.jpg", progressive_jpeg(4000, 2)[:3000])
        self.bad("scans of 8000 x 8000 pixels", "b.jpg", progressive_jpeg(8000, 60), room=5 * 8000 * 8000)
        self.accepted("classify", MODEL, self.write("c.jpg", progressive_jpeg(2000, 60)))
        self.accepted("classify", MODEL, self.write("d.jpg", progressive_jpeg(8000, 10)))
        self.bad("178956970 x 1 pixels", "e.png", png(178956970, 1, zeros(100)))
        self.bad("bytes for 9900 x 9900 pixels; expected", "f.png", png(9900, 9900, zeros((9900 * 3 + 1) * 2000)))
        self.accepted("classify", MODEL, self.write("g.png", png(4096, 4096, zeros((4096 // 8 + 1) * 4096), bits=1, kind=0)))

    def test_a_bomb_takes_the_memory_of_its_pixels_only(self):
        """20 million pixels in 60 KB are within the limit; the image is read, and its copies stay small."""
        bomb = self.write("bomb.png", png(5000, 4000, zeros((5000 * 3 + 1) * 4000)))
        code, message, memory = self.run_limited("classify", MODEL, bomb)
        self.assertEqual(code, 0, message)
        if not SANITIZED:
            self.assertLessEqual(memory, self.usual_memory + 4 * 5000 * 4000 + SLACK)

    def test_a_narrow_image_is_refused_by_its_resized_size(self):
        line = png(1, 100_000, zeros(4 * 100_000))
        clip = GOLDENS / "vision/clip"
        path = self.write("line.png", line)
        self.assertEqual(self.run_limited("classify", MODEL, path)[0], 0)  # a processor that does not keep the ratio
        code, message, _ = self.run_limited("embed", clip, self.write("long.png", png(1, 10_000_000, zeros(40_000_000))))
        self.assertEqual(code, 2, message)
        self.assertRegex(message, "long.png: the image has 1 x 10000000 pixels, resized to")

    def test_truncated_files_are_refused(self):
        for name in ("005.png", "012.jpg", "017.webp"):
            content = (GOLDENS / "images" / name).read_bytes()
            for part in (0.2, 0.5, 0.8):
                self.bad("damaged", name, content[:max(30, int(len(content) * part))])
        self.bad("not an image", "empty.png", b"")

    def test_exif_cycles_and_large_profiles_are_harmless(self):
        good = (GOLDENS / "images/012.jpg").read_bytes()
        for directory in (0, 4, 8, 26, 0xFFFFFFF0):
            tiff = b"MM\0*" + struct.pack(">I", directory) + struct.pack(">HHHIHH", 1, 0x8769, 4, 1, 0, 8) + struct.pack(">I", 8)
            segment = b"Exif\0\0" + tiff
            self.accepted("classify", MODEL, self.write("cycle.jpg", good[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + good[2:]))
        rows = zlib.compress((b"\0" + bytes(30)) * 10)
        profile = chunk(b"iCCP", b"x\0\0" + zeros(100 * MIB))
        path = self.write("profile.png", png(10, 10, rows, before=profile))
        code, message, memory = self.run_limited("classify", MODEL, path)
        self.assertIn(code, (0, 2), message)
        if not SANITIZED:
            self.assertLessEqual(memory, self.usual_memory + SLACK)
        stored = chunk(b"zTXt", b"note\0\0" + zeros(100 * MIB))
        code, message, memory = self.run_limited("classify", MODEL, self.write("text.png", png(10, 10, rows, before=stored)))
        self.assertIn(code, (0, 2), message)


if __name__ == "__main__":
    unittest.main()
