#!/usr/bin/env python3
"""Writes tests/goldens/token_models.json: small vocabularies and the tokens of Hugging Face's models for pieces of text.

Needs tokenizers (made with 0.23). Texts of byte-level models are strings of code points below 256,
one for each byte. A case is [text, ids, offsets in bytes]. trained_bpe.json: texts and the vocabularies that the trainer of byte-level BPE
finds in them."""
import json
import random

from harness import GOLDENS, byte_characters, write_lines
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SYLLABLES = "ka to mi ra ne su ol an er in the on é ß ж дом 中 文 字 ก 😀 1 2 -".split()
rng = random.Random(5)


def word(most=4):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, most)))


def text(words):
    frequent = [word() for _ in range(60)]
    return " ".join(rng.choice(frequent) if rng.random() < 0.8 else word() for _ in range(words))


TRAINING = "\n".join(text(40) for _ in range(40)) + "\n"


FROM_BYTE = byte_characters()
TO_BYTE = {character: byte for byte, character in FROM_BYTE.items()}


def as_bytes(piece):
    """Converts a piece of a byte-level vocabulary to one code point per byte."""
    return "".join(chr(TO_BYTE[c]) for c in piece)


def trained(model, trainer, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(TRAINING.splitlines(keepends=True), trainer)
    return json.loads(tokenizer.to_str())["model"]


def stretches(extra=()):
    yield from ["a", "é", "\u2028", "😀😀", "\x00", "<unk>", "kakakakakakakakakaka", "中文字中文字", *extra]
    for size in [*range(1, 9)] * 3:
        yield word(size)
    for size in (1, 3, 6):
        yield "".join(rng.choice(["ka", "q", "é", "Ω", "Ω", "😎", "x", "the"]) for _ in range(size * 3))
    yield "".join(word() for _ in range(120))


def cases(model, translate=lambda s: s, back=lambda s: s):
    found = []
    for stretch in stretches():
        given = translate(stretch)
        sizes = [0]  # bytes of the text before each character of the model's input
        for character in given:
            sizes.append(sizes[-1] + (1 if back is not as_same else len(character.encode())))
        tokens = model.tokenize(given)
        prefix = given.encode()
        places = []
        for token in tokens:
            begin, end = token.offsets
            if back is not as_same:  # offsets in characters of the byte-level alphabet
                begin, end = (len(prefix[:at].decode()) for at in (begin, end))
            places.append([begin, end])
        found.append([back(given), [token.id for token in tokens], places])
    return found


def as_same(stretch):
    return stretch


def by_id(vocab):
    return [piece for piece, _ in sorted(vocab.items(), key=lambda item: item[1])]


def bpe_entry(name, vocab, merges, **options):
    model = models.BPE(vocab=vocab, merges=[tuple(m) for m in merges], **options)
    return {"name": name, "type": "BPE", "texts": by_id(vocab), "merges": merges, **options,
            "cases": cases(model, back=as_same)}


def extended(vocab, pieces):
    vocab = dict(vocab)
    for piece in pieces:
        vocab.setdefault(piece, len(vocab))
    return vocab


def bpe_entries():
    plain = trained(models.BPE(), trainers.BpeTrainer(vocab_size=160, show_progress=False))
    vocab, merges = plain["vocab"], plain["merges"]
    yield bpe_entry("dropped", vocab, merges)
    with_unk = extended(vocab, ["<unk>"])
    yield bpe_entry("unknown", with_unk, merges, unk_token="<unk>")
    yield bpe_entry("fused", with_unk, merges, unk_token="<unk>", fuse_unk=True)
    some = extended(with_unk, [f"<0x{byte:02X}>" for byte in "ΩZ".encode()])
    yield bpe_entry("some_bytes", some, merges, unk_token="<unk>", byte_fallback=True)
    yield bpe_entry("fused_bytes", some, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    whole = extended(vocab, ["kakakakakakakakakaka", "Ω", "中文字中文字"])
    yield bpe_entry("whole", whole, merges, ignore_merges=True)
    suffixed = trained(models.BPE(), trainers.BpeTrainer(vocab_size=170, show_progress=False, end_of_word_suffix="</w>"))
    yield bpe_entry("suffix", suffixed["vocab"], suffixed["merges"], end_of_word_suffix="</w>")
    prefixed = trained(models.BPE(), trainers.BpeTrainer(vocab_size=170, show_progress=False, continuing_subword_prefix="@@"))
    yield bpe_entry("prefix", prefixed["vocab"], prefixed["merges"], continuing_subword_prefix="@@")
    yield byte_entry()


def byte_entry():
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=330, show_progress=False, initial_alphabet=level.alphabet())
    found = trained(models.BPE(), trainer, level)
    model = models.BPE(vocab=found["vocab"], merges=[tuple(m) for m in found["merges"]])
    return {"name": "bytes", "type": "BPE", "bytes": True, "texts": [as_bytes(p) for p in by_id(found["vocab"])],
            "merges": [[as_bytes(a), as_bytes(b)] for a, b in found["merges"]],
            "cases": cases(model, lambda s: "".join(FROM_BYTE[b] for b in s.encode()), as_bytes)}


def other_entries():
    found = trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
        vocab_size=170, show_progress=False, special_tokens=["[UNK]"]))
    model = models.WordPiece(vocab=found["vocab"], unk_token="[UNK]", max_input_chars_per_word=60)
    yield {"name": "wordpiece", "type": "WordPiece", "texts": by_id(found["vocab"]), "unk_token": "[UNK]",
           "max_input_chars_per_word": 60, "cases": cases(model, back=as_same)}
    found = trained(models.Unigram(), trainers.UnigramTrainer(
        vocab_size=140, show_progress=False, special_tokens=["<s>", "<unk>"], unk_token="<unk>"))
    yield unigram_entry("unigram", found["vocab"], False)
    coarse = [[piece, round(score * 2) / 2] for piece, score in found["vocab"]]
    yield unigram_entry("ties", coarse, False)
    some = coarse + [[f"<0x{byte:02X}>", 0.0] for byte in "ΩZ".encode()]
    yield unigram_entry("unigram_bytes", some, True)
    words = ["<unk>"] + sorted({word(2) for _ in range(60)})
    model = models.WordLevel(vocab={w: i for i, w in enumerate(words)}, unk_token="<unk>")
    yield {"name": "words", "type": "WordLevel", "texts": words, "unk_token": "<unk>", "cases": cases(model, back=as_same)}


def unigram_entry(name, vocab, byte_fallback):
    model = models.Unigram([tuple(entry) for entry in vocab], 1, byte_fallback)
    return {"name": name, "type": "Unigram", "vocab": vocab, "unk_id": 1, "byte_fallback": byte_fallback,
            "cases": cases(model, back=as_same)}


def trained_entry(lines, size):
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = level
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=level.alphabet()))
    model = json.loads(tokenizer.to_str())["model"]
    return {"lines": lines, "size": size, "texts": by_id(model["vocab"]), "merges": model["merges"]}


def write(name, entries):
    write_lines(GOLDENS / name, entries, "[", "]\n", ensure_ascii=False, separators=(",", ":"))


def main():
    runs = ["".join(rng.choice("aab") for _ in range(rng.randint(1, 30))) + "\n" for _ in range(60)]
    write("trained_bpe.json", [trained_entry(TRAINING.splitlines(keepends=True), 500), trained_entry(runs, 330),
                               trained_entry(["aaaa aaaaaaa\n", " \n", "\n", "\t the  the\n"], 400)])
    entries = [*bpe_entries(), *other_entries()]
    write("token_models.json", entries)


if __name__ == "__main__":
    main()
