"""Readers of the formats of other speech programs, apart from those of fovea: CTranslate2's model.bin, and ggml's .bin of whisper.cpp."""
import struct

CT2_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


class Bytes:
    def __init__(self, path):
        self.data, self.at = path.read_bytes(), 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def number(self, kind):
        return struct.unpack("<" + kind, self.take(struct.calcsize(kind)))[0]


def read_ct2(path):
    """Returns the specification, its revision, and {name: (type, shape, bytes)}, also under the names of aliases."""
    file = Bytes(path)
    name = lambda: file.take(file.number("H"))[:-1].decode()
    assert file.number("I") == 6
    specification, revision, variables = name(), file.number("I"), {}
    for _ in range(file.number("I")):
        known = name()
        shape = [file.number("I") for _ in range(file.number("B"))]
        kind = CT2_TYPES[file.number("B")]
        variables[known] = kind, shape, file.take(file.number("I"))
    aliases = {name(): name() for _ in range(file.number("I"))}
    assert file.at == len(file.data)
    return specification, revision, {**variables, **{alias: variables[known] for alias, known in aliases.items()}}


def read_ggml(path):
    """Returns the eleven sizes, the shape of the mel filters, the tokens, and {name: (type, shape, bytes)}."""
    file = Bytes(path)
    assert file.number("I") == 0x67676d6c
    sizes = [file.number("i") for _ in range(11)]
    filters = file.number("i"), file.number("i")
    file.take(4 * filters[0] * filters[1])
    tokens = [file.take(file.number("i")) for _ in range(file.number("i"))]
    tensors = {}
    while file.at < len(file.data):
        axes, length, kind = (file.number("i") for _ in range(3))
        shape = [file.number("i") for _ in range(axes)][::-1]
        name = file.take(length).decode()
        count = 1
        for extent in shape:
            count *= extent
        block, size = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34)}[kind]
        tensors[name] = kind, shape, file.take(count // block * size)
    return sizes, filters, tokens, tensors
