#!/usr/bin/env python3
"""Writes src/text/unicode/unicode_classes.inc and unicode_scripts.inc: the characters that are letters, spaces, marks and so on for the parts
of a tokenizer.

Each component of Hugging Face's tokenizers takes its classes from a different library (Oniguruma, Rust's char, the crates regex,
unicode_categories and unicode-normalization-alignments), each with its own Unicode version. The Python package is therefore queried for
each class and every code point. Needs `tokenizers`; run it when a newer version changes the classes."""
import pathlib

from tokenizers import Regex, __version__, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, CODE_POINTS))
APART = "ab" + "ab".join(ALL) + "ab"  # so that every character is between ASCII letters


def pattern(text):
    return set(normalizers.Replace(Regex(f"[^{text}]"), "").normalize_str(ALL))


def alone(pre_tokenizer):
    return {text for text, _ in pre_tokenizer.pre_tokenize_str(APART) if len(text) == 1}


def words():
    joined = set()
    for text, _ in pre_tokenizers.Whitespace().pre_tokenize_str(APART):
        if len(text) > 1:
            joined.update(text)
    return joined


def removed(normalizer):
    return {c for c in ALL if normalizer.normalize_str("a" + c + "b") == "ab"}


def bert(**options):
    defaults = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(defaults | options))


CLASSES = [pattern(r"\p{L}"), pattern(r"\p{Lu}\p{Lt}"), pattern(r"\p{Ll}"), pattern(r"\p{N}"), pattern(r"\p{M}"), pattern(r"\p{P}"),
           pattern(r"\p{S}"), pattern(r"\s"), pattern(r"\w"), words(), alone(pre_tokenizers.Digits(individual_digits=True)),
           alone(pre_tokenizers.Punctuation()), removed(bert(clean_text=True)), removed(bert(strip_accents=True)),
           removed(normalizers.StripAccents())]


def scripts():
    """Returns the number of each code point's script; a character of script 0 is not separated from any other. Determines the scripts by
    testing whether two characters are separated."""
    pre_tokenizer = pre_tokenizers.UnicodeScripts()

    def apart(one, other):
        return len(pre_tokenizer.pre_tokenize_str(one + other)) == 2

    anywhere = {c for c in ALL if not apart("a", c) and not apart("\u044f", c)}
    numbers, examples, last, number = {}, [], None, 0
    for c in ALL:
        if c in anywhere:
            continue
        if last is None or apart(last, c):
            number = next((n for n, example in enumerate(examples, 1) if not apart(example, c)), 0)
            if not number:
                examples.append(c)
                number = len(examples)
        numbers[ord(c)] = number
        last = c
    return numbers


def write(name, meaning, value_of, bits):
    runs, last = [], None
    for c in range(0x110000):
        value = value_of(c)
        if value != last:
            runs.append(f"{c << bits | value:#x},")
            last = value
    lines = [f"// Made by tools/data/make_unicode_classes.py from tokenizers {__version__}: first code point << {bits} | {meaning},",
             "// for each run of code points."]
    line = ""
    for run in runs:
        if len(line) + len(run) + 1 > 99:
            lines.append(line)
            line = ""
        line += (" " if line else "") + run
    path = pathlib.Path(__file__).resolve().parents[2] / "src/text/unicode" / name
    path.write_text("\n".join(lines + [line]) + "\n")


def main():
    write("unicode_classes.inc", "classes", lambda c: sum(1 << bit for bit, members in enumerate(CLASSES) if chr(c) in members), 16)
    numbers = scripts()
    write("unicode_scripts.inc", "script", lambda c: numbers.get(c, 0), 8)


if __name__ == "__main__":
    main()
