#!/usr/bin/env python3
"""Reports words in comments, strings, documents and identifiers for which the glossary in docs/notation.md has other terms. Exits with 1
if it finds any."""
import re
import sys

import prose

WORDS = {
    r"(stands?|comes?|tokens?|norm|layer|right|written|put) behind|behind (the|it|its|a|an|that|them|which)\b": "after",
    r"let(s|ting)? go of": "free, release",
    r"(is|are) told\b": "receives",
    r"(numbers?|sums?|loss) (that )?(is|are) none\b": "NaN or infinity, not finite",
    r"\bso many at most\b|\bat most so many\b": "at most n",
    r"\b(go|goes|going) on (with|from|past|as|behind|meanwhile)\b": "continue",
    r"\bwrites? on\b": "continue",
    r"\btwins?\b": "duplicate",
    r"\bmade whole\b|\bwhole or not at all\b": "written atomically",
    r"\bdoes not hold together\b": "is inconsistent",
    r"\b(take|taken) along\b|\bTake Along\b": "export",
    r"\bas the (model|file|files|checkpoint) says?\b": "the model's setting",
    r"(?<!`)\blikeliest\b(?!`)": "most likely",
    r"\bdrawn apart\b": "independent",
    r"\bodd but harmless\b": "suspicious but harmless",
    r"\bin front of\b": "before",
    r"\b(nothing|bits?) but (for )?the\b": "only the",
}
# The words of identifiers, by the folders in which they are refused. "in_place" is an idiom.
NAMES = {
    "": {r"guess(es|ed|ing)?": "speculative token", r"pictures?": "image", r"sounds?": "audio", r"asked|said": "request, given, predicted",
         r"places?": "position, index, offset, slot, span or location", r"twins?": "duplicate"},
    "src/infer/generate/": {r"answers?": "generation", r"written": "generated"},
    "apps/http/": {r"answers?": "response"},
}
IDIOMS = re.compile(r"(?:^|_)in_place(?:_|$)|InPlace|MPI_IN_PLACE")
CODE = re.compile(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*|\b[A-Za-z_]\w*\b")
EVERYWHERE = re.compile("|".join(f"(?P<w{i}>{pattern})" for i, pattern in enumerate(WORDS)))
EXCEPT = ("docs/notation.md", "tools/checks/check_words.py")


def parts(name):
    """The words of an identifier, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def wrong_names():
    """Yields (path, line, identifier, better) of each identifier of a C++ file with a refused word."""
    for path in prose.files():
        if path.startswith("tests/") or path.endswith(".md"):
            continue
        refused = [(re.compile(pattern), better) for folder, words in NAMES.items() if path.startswith(folder) for pattern, better in words.items()]
        for number, line in enumerate((prose.ROOT / path).read_text(encoding="utf-8").split("\n"), 1):
            for found in CODE.finditer(line):
                name = IDIOMS.sub("", found[0])
                if not re.match(r"[A-Za-z_]", found[0]):
                    continue
                for pattern, better in refused:
                    if any(pattern.fullmatch(word) for word in parts(name)):
                        yield path, number, found[0], better


def main():
    count = 0
    for path, line, name, better in wrong_names():
        count += 1
        print(f"{path}:{line}: {name}; better: {better} (docs/notation.md, Glossary)")
    for path, line, text in prose.passages():
        if path in EXCEPT:
            continue
        for match in EVERYWHERE.finditer(text):
            count += 1
            better = list(WORDS.values())[int(match.lastgroup[1:])]
            print(f"{path}:{line}: \"{match[0]}\"; better: {better} (docs/notation.md, Glossary)")
    print(f"check_words: {count} problem{'s' if count != 1 else ''}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
