#!/usr/bin/env python3
"""Writes tests/goldens/scores.json: BLEU, chrF, chrF++ and TER of small corpora, and the tokens of unusual lines, as computed by sacrebleu; ROUGE as computed by rouge-score.

    python3 tools/goldens/make_scores.py      (needs: pip install sacrebleu rouge-score)"""
import random

from harness import GOLDENS, write_json
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF, TER

LINES = [
    "", " ", "A man, a plan; a canal -- Panama!", "It costs $3,000.50 (or 2.5% more).", "e-mail me: a.b@c.de/x?y=1&amp;z=&lt;2&gt;",
    "1-2 3- -4 5--6 a-b", "...", "a..b ,,c 1.,2 .5, 6.", "\"quoted\" 'single' `back`", "naïve café 12,5 €", "日本語のテキスト。", "x\u00a0y\u3000z\u2009w",
    "<skipped>gone", "{braces} [brackets] <tags> ~tilde_|bar", "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Two young, White males are outside near many bushes.", "tab\tand\x1cseparator", "emoji 🙂🙂 and 𝔘nicode", "&quot;&amp;amp;&quot;", "Mr. Smith's 3.5-inch, U.S.A.",
]
LINES += [
    ".5 and 5.", "中文，测试。Hello世界 3.14 “引号” ——破折号…", "㐀䶵龥鿕 ﹏ ！？ 12．5％", "𠀀𪛖 rare 丽", "日本 語の 1,000円。", "☃ ➡ ㈱ ㎏ ½", "(hi) word! 'tis \"x\" - a. .b é! !é",
]
WORDS = "the a man woman dog runs in park , . red blue car's 3.5 - ( ) Hello weiß 日本".split()


def corpus(seed, size, noise):
    random_ = random.Random(seed)
    references, hypotheses = [], []
    for _ in range(size):
        words = [random_.choice(WORDS) for _ in range(random_.randint(1, 25))]
        references.append(" ".join(words))
        kept = [w for w in words if random_.random() > noise]
        hypotheses.append(" ".join(random_.choice(WORDS) if random_.random() < noise else w for w in kept))
    return hypotheses, references


def moved(seed, size):
    """A corpus whose hypotheses are the references with long parts in other places, and some words replaced."""
    random_ = random.Random(seed)
    references, hypotheses = [], []
    for _ in range(size):
        words = [random_.choice(WORDS) for _ in range(random_.randint(2, 70))]
        references.append(" ".join(words))
        for _ in range(random_.randint(1, 4)):
            begin, end = sorted(random_.choices(range(len(words) + 1), k=2))
            part, words = words[begin:end], words[:begin] + words[end:]
            to = random_.randint(0, len(words))
            words = words[:to] + part + words[to:]
        hypotheses.append(" ".join(random_.choice(WORDS) if random_.random() < 0.1 else w for w in words))
    return hypotheses, references


def mean_rouge(kind, hypotheses, references):
    scorer = RougeScorer([kind], use_stemmer=False)
    scores = [scorer.score(r, h)[kind].fmeasure for h, r in zip(hypotheses, references)]
    return 100 * sum(scores) / len(scores)


def scores(hypotheses, references):
    metrics = {f"bleu_{name}": BLEU(tokenize=name) for name in TOKENIZERS}
    metrics |= {"chrf": CHRF(), "chrf_plus_plus": CHRF(word_order=2), "ter": TER()}
    found = {name: metric.corpus_score(hypotheses, [references]).score for name, metric in metrics.items()}
    return found | {f"rouge_{kind.lower()}": mean_rouge(f"rouge{kind}", hypotheses, references) for kind in "12L"}


def summaries():
    """Returns pairs of texts of several lines with their ROUGE-1, -2, -L and -Lsum."""
    kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    scorer = RougeScorer(kinds, use_stemmer=False)
    pairs = [("", "a b"), ("a b", ""), ("...", "a"), ("the cat\nsat", "the cat sat\non the mat\n\nthe cat"), ("a a a b", "a b b b\na")]
    for seed in range(20):
        hypotheses, references = corpus(100 + seed, 1 + seed % 5, 0.1 + 0.03 * seed)
        pairs.append(("\n".join(hypotheses), "\n".join(references)))
    return [{"summary": h, "reference": r, **{k: scorer.score(r, h)[k].fmeasure for k in kinds}} for h, r in pairs]


TOKENIZERS = ("13a", "zh", "char", "none")
corpora = [corpus(seed, size, noise) for seed, size, noise in ((1, 1, 0.1), (2, 30, 0.1), (3, 30, 0.3), (4, 50, 0.8), (5, 3, 0.95))]
corpora += [(LINES, LINES[1:] + LINES[:1]), (LINES, LINES), (["", ""], ["a b", "c"]), (["a b c"], ["d e f"]), (["a"], ["a"])]
corpora += [(["300 K\u212a \u0130X Don't RUN_to", "\u00c4B\u017f c"], ["kk 300 i x dont don run t to", "b c"])]  # lower case of other alphabets
corpora += [moved(6, 40), corpus(7, 20, 0.5), (["a b"] * 2, ["", "a"]), (["word " * 120], ["word " * 4]), (["x y " * 30], ["y x " * 40])]
result = {
    "words": [{"text": line, **{name: BLEU(tokenize=name).tokenizer(line.rstrip()) for name in TOKENIZERS}} for line in LINES],
    "corpora": [{"hypotheses": h, "references": r, **scores(h, r)} for h, r in corpora],
    "summaries": summaries(),
}
write_json(GOLDENS / "scores.json", result, indent=1)
