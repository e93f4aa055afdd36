#!/usr/bin/env python3
"""Writes tests/goldens/sentencepiece.json: small SentencePiece models, one for each setting that changes how a text is read, and the ids and
decoded texts that the package computes.

Needs sentencepiece (made with 0.2.3)."""
import base64
import io
import pathlib
import tempfile

from harness import GOLDENS, write_lines
import sentencepiece

WORDS = "the wind and the rain . a small dog sat on a log near the old mill , and the cat saw 12 dogs 34 cats ( @home ) ! naïve größe".split()
CORPUS = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
TEXTS = ["the wind and the rain", "  two  dogs  ", "a@b@c <sep> x", "<sep><sep>the", "the<sep>dog", "tab\tx", "old▁mill", "▁x", "x▁", "<0x41>", "",
         " ", "   ", "dog  ", "größe ２４ ﬁne", "日本 the\u3000cat", "</s> <s>", "12 3456"]
SYMBOLS = ["<sep>", "@", "<sep>>"]
MODELS = {
    "plain": {},
    "keeps spaces": {"remove_extra_whitespaces": False},
    "no prefix": {"add_dummy_prefix": False},
    "suffix": {"treat_whitespace_as_suffix": True},
    "suffix, keeps spaces": {"treat_whitespace_as_suffix": True, "remove_extra_whitespaces": False},
    "symbols": {"user_defined_symbols": SYMBOLS},
    "bytes": {"byte_fallback": True, "vocab_size": 330},
    "no start": {"bos_id": -1, "pad_id": 0, "eos_id": 1, "unk_id": 2},
    "across words": {"split_by_whitespace": False},
    "normalised": {"normalization_rule_tsv": "RULES"},
}
RULES = [("２", "2"), ("４", "4"), ("ﬁ", "fi"), ("\u3000", " "), ("\t", " ")]


def trained(kind, options, folder):
    model = io.BytesIO()
    if "normalization_rule_tsv" in options:
        rules = pathlib.Path(folder) / "rules.tsv"
        codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
        rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES))
        options = {"normalization_rule_tsv": str(rules), "normalization_rule_name": ""}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type=kind, num_threads=1, minloglevel=2, hard_vocab_limit=False,
        **({"vocab_size": 74, "normalization_rule_name": "identity"} | options))
    return model.getvalue()


def main():
    found = []
    for kind in ("unigram", "bpe"):
        for name, options in MODELS.items():
            with tempfile.TemporaryDirectory() as folder:
                model = trained(kind, options, folder)
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            cases = [{"text": text, "ids": processor.encode(text), "decoded": processor.decode(processor.encode(text))} for text in TEXTS]
            found.append({"name": f"{kind}, {name}", "model": base64.b64encode(model).decode(), "cases": cases})
    write_lines(GOLDENS / "sentencepiece.json", found, "[", "]\n", ensure_ascii=False)


if __name__ == "__main__":
    main()
