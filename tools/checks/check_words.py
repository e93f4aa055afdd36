#!/usr/bin/env python3
"""Reports words in comments, strings and documents for which the glossary in docs/notation.md has other terms. Exits with 1 if it finds any."""
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
EVERYWHERE = re.compile("|".join(f"(?P<w{i}>{pattern})" for i, pattern in enumerate(WORDS)))
EXCEPT = ("docs/notation.md", "tools/checks/check_words.py")


def main():
    count = 0
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
