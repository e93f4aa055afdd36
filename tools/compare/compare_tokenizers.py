#!/usr/bin/env python3
"""Compares fovea's tokenizers with Hugging Face's on many lines in many scripts: ids, tokens, offsets and decoded texts.

Needs a Python with `tokenizers`. Builds small tokenizers of many kinds, saves each, encodes the same lines with both, and prints the first
differences. --lines N sets the total number of lines; --only NAME selects the kinds whose name contains NAME."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import ROOT, add_program  # noqa: E402
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,  # noqa: E402
                        trainers)

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r'[!"#$%&' r"'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")

# The first and last letter of each script.
SCRIPTS = ["az", "AZ", "09", "\u00c0\u024f", "\u0370\u03ff", "\u0400\u04ff", "\u0530\u058f", "\u0590\u05ff", "\u0600\u06ff", "\u0900\u097f",
           "\u0980\u09ff", "\u0b80\u0bff", "\u0e00\u0e7f", "\u0f00\u0fff", "\u1000\u109f", "\u10a0\u10ff", "\u1100\u11ff", "\u1200\u137f",
           "\u13a0\u13ff", "\u1780\u17ff", "\u1e00\u1fff", "\u2000\u206f", "\u2070\u218f", "\u2190\u23ff", "\u2460\u27bf", "\u3000\u30ff",
           "\u3130\u33ff", "\u4e00\u9fff", "\ua640\ua7ff", "\uac00\ud7a3", "\uf900\uffef", "\U00010000\U000107ff", "\U0001d400\U0001d7ff",
           "\U0001f300\U0001faff", "\u0300\u036f", "!/", "\x00\x20", "\x7f\xbf"]
SNIPPETS = ["I'll", "we've", "don't", "HE'S", "it'\u017f", "  ", "   \t", "\n", "\r\n", "\n\n  \n", "def f(x):\n    return x[1:-1] ** 2 // 3",
            "https://www.example.org/a?b=c&d=%20", "3.14159", "1234567890", "e\u0301", "\u1112\u1161\u11ab", "\ufb01", "\u00bd", "\u2167",
            "\u0130stanbul", "\u00dcBER", "stra\u00dfe", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea",
            "\u2581", "\u0120x", "<s>", "</s>", "[MASK]", "<|endoftext|>", "[UNK]", "##ing", "<0x41>", "\ufeff", "\u200b", "\ufffd", "\u00a0",
            "\u3000", "\u2028", "\u0085", "naïve café", "Ångström", "\u212b", "\u1e9b\u0323", "do not", " n't", " .", "a" * 30, "tok\tab"]


def lines_of(count, seed):
    generator = random.Random(seed)
    shared = ROOT.parent / "shared/data/tinyshakespeare.txt"
    prose = shared.read_text().splitlines() if shared.is_file() else ["To be, or not to be: that is the question."]

    def word():
        kind = generator.random()
        if kind < 0.2:
            return generator.choice(SNIPPETS)
        first, last = generator.choice(SCRIPTS)
        return "".join(chr(generator.randint(ord(first), ord(last))) for _ in range(generator.randint(1, 7)))

    for _ in range(count):
        kind = generator.random()
        if kind < 0.25:
            yield generator.choice(prose)
        elif kind < 0.3:  # any characters
            yield "".join(chr(c) for c in (generator.randrange(0x110000) for _ in range(12)) if not 0xD800 <= c < 0xE000)
        elif kind < 0.35:  # invalid UTF-8: each byte becomes one U+FFFD
            yield "".join(chr(b) if b < 128 else "\ufffd" for b in generator.randbytes(20))
        else:
            yield "".join(word() + generator.choice(["", " ", " ", " ", "  ", "\n"]) for _ in range(generator.randint(1, 8)))


def byte_level(pre_tokenizer, normalizer=None, add_special=()):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
                                  special_tokens=["<|endoftext|>", *add_special])
    return tokenizer, trainer


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def bytes_after(*splits):
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def word_piece(normalizer, pre_tokenizer=None):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False,
                                        limit_alphabet=700)
    return tokenizer, trainer


def unigram(scheme, normalizer=None, split_words=True):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer or normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split_words)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=split_words)
    trainer = trainers.UnigramTrainer(vocab_size=3000, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    return tokenizer, trainer


def words(pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    return tokenizer, trainers.WordLevelTrainer(vocab_size=3000, special_tokens=["[UNK]", "<s>"], show_progress=False)


def char_bpe(normalizer, pre_tokenizer=None, **model):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **model))
    tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    pieces = [f"<0x{byte:02X}>" for byte in range(256)] if model.get("byte_fallback") else []
    trainer = trainers.BpeTrainer(vocab_size=1500 + len(pieces), special_tokens=["<unk>", "<s>", "</s>", *pieces], show_progress=False,
                                  limit_alphabet=500, end_of_word_suffix=model.get("end_of_word_suffix") or "")
    return tokenizer, trainer


KINDS = {
    "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "gpt2 with a prefix space": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "cl100k": lambda: byte_level(bytes_after(split(GPT4 % "{1,3}"))),
    "cl100k with matches kept": lambda: byte_level(bytes_after(split(GPT4 % "{1,3}", "removed", True))),
    "qwen with NFC": lambda: byte_level(bytes_after(split(GPT4 % "")), normalizers.NFC()),
    "o200k": lambda: byte_level(bytes_after(split(O200K))),
    "deepseek": lambda: byte_level(bytes_after(split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK))),
    "possessive pattern": lambda: byte_level(bytes_after(split(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"))),
    "sets within sets": lambda: byte_level(bytes_after(split(
        r"\p{Han}+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}\p{Cyrillic}]]+|\p{N}{1,3}|[^\s&&[^a]&&[^0-9[x-z]]]{2,}+|[\s[:cntrl:]]+|[^[a-k][^\w]]"))),
    "starcoder": lambda: byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                             pre_tokenizers.ByteLevel(add_prefix_space=False)])),
    "byte-level normalizer": lambda: byte_level(split(r"Ġ?[^Ġ]+"), normalizers.Sequence([normalizers.NFKC(), normalizers.ByteLevel()])),
    "bert cased": lambda: word_piece(normalizers.BertNormalizer(lowercase=False)),
    "bert uncased": lambda: word_piece(normalizers.BertNormalizer(lowercase=True)),
    "bert with accents": lambda: word_piece(normalizers.BertNormalizer(lowercase=True, strip_accents=False)),
    "bert untidied": lambda: word_piece(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True)),
    "stripped word pieces": lambda: word_piece(normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(),
                                                                     normalizers.Strip()]), pre_tokenizers.Whitespace()),
    "metaspace always": lambda: unigram("always"),
    "metaspace first": lambda: unigram("first"),
    "metaspace never": lambda: unigram("never"),
    "metaspace whole": lambda: unigram("always", split_words=False),
    "nmt": lambda: unigram("always", normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])),
    "llama2": lambda: char_bpe(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), fuse_unk=True,
                               byte_fallback=True),
    "gpt1": lambda: char_bpe(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), end_of_word_suffix="</w>"),
    "whitespace": lambda: words(pre_tokenizers.Whitespace(), normalizers.NFKD()),
    "whitespace split": lambda: words(pre_tokenizers.WhitespaceSplit(), normalizers.NFD()),
    "punctuation": lambda: words(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"),
                                                          pre_tokenizers.Digits()])),
    "delimiter": lambda: words(pre_tokenizers.CharDelimiterSplit("e"), normalizers.Strip(left=True, right=False)),
    "scripts": lambda: words(pre_tokenizers.UnicodeScripts()),
    "fixed length": lambda: words(pre_tokenizers.FixedLength(3), normalizers.NFC()),
    "merged with next": lambda: words(split("[,. ]+", "merged_with_next"), normalizers.Lowercase()),
    "contiguous": lambda: words(split(r"\w", "contiguous"), normalizers.Sequence([normalizers.Strip(), normalizers.Prepend("x ")])),
}


def surround(tokenizer, name):
    """Adds added tokens with all flags, and one of the post-processors in turn."""
    tokenizer.add_tokens([AddedToken("[both]", lstrip=True, rstrip=True), AddedToken("Thou", single_word=True, normalized=True),
                          AddedToken("ÅB", normalized=True), AddedToken("</s>", rstrip=True, normalized=False)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True), "<s>"])
    start, end = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    kinds = [processors.TemplateProcessing("<s> $A", "<s> $A </s>:1 $B:1 </s>:1", [("<s>", start), ("</s>", end)]),
             processors.BertProcessing(("</s>", end), ("<s>", start)), processors.RobertaProcessing(("</s>", end), ("<s>", start)),
             processors.ByteLevel(trim_offsets=True),
             processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
                                  processors.TemplateProcessing("$A </s>", "$A $B </s>", [("</s>", end)])])]
    tokenizer.post_processor = kinds[sum(map(ord, name)) % len(kinds)]


def expected(tokenizer, text, pair=None):
    encoding = tokenizer.encode(text, pair)
    plain = tokenizer.encode(text, pair, add_special_tokens=False).ids
    return {"text": text, **({"pair": pair} if pair is not None else {}), "ids": encoding.ids, "tokens": encoding.tokens,
            "offsets": encoding.offsets, "type_ids": encoding.type_ids, "ids_plain": plain, "decoded": tokenizer.decode(encoding.ids),
            "decoded_plain": tokenizer.decode(plain, skip_special_tokens=False)}


def compare(program, name, make, lines, folder):
    tokenizer, trainer = make()
    # A Unigram vocabulary must contain every character of its training text.
    plain = [line for line in lines if max(line, default="a") < "\u0500"] if "metaspace" in name or name == "nmt" else lines
    # A word that is also a special token would leave a gap in the ids.
    plain = [line for line in plain if not any(token in line for token in ("<s>", "[UNK]"))]
    tokenizer.train_from_iterator(plain[: len(plain) // 2], trainer)
    surround(tokenizer, name)
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    tokenizer = Tokenizer.from_file(str(path))
    cases = folder / "cases.jsonl"
    with cases.open("w") as out:
        for i, line in enumerate(lines):
            out.write(json.dumps(expected(tokenizer, line, lines[i - 1] if i % 10 == 9 else None)) + "\n")
    done = subprocess.run([program, "tokenize", str(path), "--check", str(cases)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        print(f"{name}: {done.stdout.strip()}")
        return True
    print(f"{name}: {done.stderr.strip()}")
    keep = os.environ.get("KEEP")
    if keep:
        pathlib.Path(keep).mkdir(exist_ok=True)
        path.rename(pathlib.Path(keep) / f"{name.replace(' ', '_')}.json")
        cases.rename(pathlib.Path(keep) / f"{name.replace(' ', '_')}.jsonl")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_program(parser)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kinds = {name: make for name, make in KINDS.items() if options.only in name}
    good = True
    for number, (name, make) in enumerate(kinds.items()):
        lines = list(lines_of(options.lines // len(kinds) + 1, options.seed + number))
        with tempfile.TemporaryDirectory() as folder:
            good &= compare(options.fovea, name, make, lines, pathlib.Path(folder))
    print("ok" if good else "differences")
    return not good


if __name__ == "__main__":
    sys.exit(main())
