#!/usr/bin/env python3
"""Writes tests/goldens/scores.json: BLEU and chrF of small corpora, and the tokens of unusual lines, as computed by sacrebleu; ROUGE as computed by rouge-score.

    python3 tools/goldens/make_scores.py      (needs: pip install sacrebleu rouge-score)"""
import random

from harness import GOLDENS, write_json
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

LINES = [
    "", " ", "A man, a plan; a canal -- Panama!", "It costs $3,000.50 (or 2.5% more).", "e-mail me: a.b@c.de/x?y=1&amp;z=&lt;2&gt;",
    "1-2 3- -4 5--6 a-b", "...", "a..b ,,c 1.,2 .5, 6.", "\"quoted\" 'single' `back`", "naïve café 12,5 €", "日本語のテキスト。", "x\u00a0y\u3000z\u2009w",
    "<skipped>gone", "{braces} [brackets] <tags> ~tilde_|bar", "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Two young, White males are outside near many bushes.", "tab\tand\x1cseparator", "emoji 🙂🙂 and 𝔘nicode", "&quot;&amp;amp;&quot;", "Mr. Smith's 3.5-inch, U.S.A.",
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


def rouge_l(hypotheses, references):
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    scores = [scorer.score(r, h)["rougeL"].fmeasure for h, r in zip(hypotheses, references)]
    return 100 * sum(scores) / len(scores)


def summaries():
    """Returns pairs of texts of several lines with their ROUGE-1, -2, -L and -Lsum."""
    kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    scorer = RougeScorer(kinds, use_stemmer=False)
    pairs = [("", "a b"), ("a b", ""), ("...", "a"), ("the cat\nsat", "the cat sat\non the mat\n\nthe cat"), ("a a a b", "a b b b\na")]
    for seed in range(20):
        hypotheses, references = corpus(100 + seed, 1 + seed % 5, 0.1 + 0.03 * seed)
        pairs.append(("\n".join(hypotheses), "\n".join(references)))
    return [{"summary": h, "reference": r, **{k: scorer.score(r, h)[k].fmeasure for k in kinds}} for h, r in pairs]


corpora = [corpus(seed, size, noise) for seed, size, noise in ((1, 1, 0.1), (2, 30, 0.1), (3, 30, 0.3), (4, 50, 0.8), (5, 3, 0.95))]
corpora += [(LINES, LINES[1:] + LINES[:1]), (LINES, LINES), (["", ""], ["a b", "c"]), (["a b c"], ["d e f"]), (["a"], ["a"])]
corpora += [(["300 K\u212a \u0130X Don't RUN_to", "\u00c4B\u017f c"], ["kk 300 i x dont don run t to", "b c"])]  # lower case of other alphabets
tokenize = Tokenizer13a()
result = {
    "words": [{"text": line, "tokenized": tokenize(line.rstrip())} for line in LINES],
    "corpora": [{"hypotheses": h, "references": r, "bleu": BLEU().corpus_score(h, [r]).score, "chrf": CHRF().corpus_score(h, [r]).score,
                 "rouge_l": rouge_l(h, r)}
                for h, r in corpora],
    "summaries": summaries(),
}
write_json(GOLDENS / "scores.json", result, indent=1)
