#!/usr/bin/env python3
"""Writes tests/goldens/gguf/every_type.gguf with the gguf package (pip install gguf): metadata of every type, blocks of every kind that
fovea decodes with their values, and an F32 tensor encoded in every kind that fovea encodes."""
from harness import GOLDENS
import gguf
import numpy as np

Type = gguf.GGMLQuantizationType
DECODED = (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.Q2_K, Type.Q3_K, Type.IQ4_NL,
           Type.IQ4_XS, Type.MXFP4)
ENCODED = (Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0)
SCALES = {Type.Q4_1: (0, 2), Type.Q5_1: (0, 2), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,), Type.Q2_K: (80, 82),
          Type.Q3_K: (108,), Type.MXFP4: ()}  # offsets of the fp16 scales in bytes; (0,) for all other types


def blocks(random, kind, count):
    """Returns random bits, except that scales are finite."""
    bits = random.integers(0, 256, (count, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
    for place in SCALES.get(kind, (0,)):
        bits[:, place:place + 2] = random.normal(0, 0.1, (count, 1)).astype(np.float16).view(np.uint8)
    if kind == Type.MXFP4:
        bits[:, 0] = np.arange(count)  # exponents of subnormal and of the smallest normal scales
    return bits


def inputs(random):
    """Returns rows of ordinary numbers, zeros, powers of two, ties, and numbers that half precision cannot represent."""
    rows = [random.normal(0, 1, 32), np.zeros(32), np.ldexp(1.0, np.arange(32) - 16), np.arange(32) - 15.5,
            np.concatenate([random.normal(0, 1e-7, 16), random.normal(0, 1e4, 16)]), -np.abs(random.normal(0, 3, 32))]
    return np.array(rows, dtype=np.float32)


def main():
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(GOLDENS / "gguf/every_type.gguf", "goldens")
    for name, add, value in (("u8", writer.add_uint8, 255), ("i8", writer.add_int8, -128), ("u16", writer.add_uint16, 65535),
                             ("i16", writer.add_int16, -32768), ("u32", writer.add_uint32, 2**32 - 1), ("i32", writer.add_int32, -2**31),
                             ("u64", writer.add_uint64, 2**64 - 1), ("i64", writer.add_int64, -2**63), ("f32", writer.add_float32, 0.5),
                             ("f64", writer.add_float64, 0.1), ("bool", writer.add_bool, True), ("text", writer.add_string, "naïve ▁ text")):
        add(f"scalar.{name}", value)
    for name, value in (("integers", [-1, 0, 7]), ("numbers", [0.25, -2.0]), ("booleans", [True, False]), ("texts", ["a", "", "▁b"])):
        writer.add_array(f"array.{name}", value)
    for kind in DECODED:
        bits = blocks(random, kind, 3)
        writer.add_tensor(f"{kind.name}.blocks", bits, raw_dtype=kind)
        writer.add_tensor(f"{kind.name}.values", gguf.dequantize(bits, kind))
    values = inputs(random)
    writer.add_tensor("encode.F32", values)
    for kind in ENCODED:
        writer.add_tensor(f"encode.{kind.name}", gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
