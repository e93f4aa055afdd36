#!/usr/bin/env python3
"""Writes tests/goldens/labels.json: scores of labels as computed by scikit-learn, of entities as computed by seqeval, and of answers as
the official script of SQuAD 2.0 defines them.

    python3 tools/goldens/make_labels.py      (needs: pip install scikit-learn seqeval)"""
import collections
import random
import re
import string
import warnings

from harness import GOLDENS, write_json
from seqeval.metrics import classification_report as entity_report
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef, precision_recall_fscore_support

warnings.filterwarnings("ignore")  # of classes without predictions
TAGS = ["O", "B-PER", "I-PER", "E-PER", "S-LOC", "B-LOC", "I-LOC", "B-X-Y", "I-X-Y"]


def scores(labels, choices, names):
    precision, recall, f1, support = precision_recall_fscore_support(labels, choices, labels=names, zero_division=0)
    return [{"precision": p, "recall": r, "f1": f, "support": int(s)} for p, r, f, s in zip(precision, recall, f1, support)]


def classes(seed, size, count, noise):
    r = random.Random(seed)
    labels = [r.choice([*range(count), 0]) for _ in range(size)]
    choices = [r.randrange(count) if r.random() < noise else label for label in labels]
    return labels, choices


def classes_case(labels, choices, count):
    return {"labels": labels, "choices": choices, "count": count, "accuracy": accuracy_score(labels, choices),
            "f1": f1_score(labels, choices, average="macro", zero_division=0),
            "f1_micro": f1_score(labels, choices, average="micro", zero_division=0), "mcc": matthews_corrcoef(labels, choices),
            "scores": scores(labels, choices, list(range(count))),
            "confusion": confusion_matrix(labels, choices, labels=list(range(count))).tolist()}


def sets_case(seed, size, width, noise):
    r = random.Random(seed)
    labels = [[int(r.random() < 0.3) for _ in range(width)] for _ in range(size)]
    choices = [[1 - x if r.random() < noise else x for x in row] for row in labels]
    return {"labels": labels, "choices": choices, "accuracy": accuracy_score(labels, choices),
            "f1": f1_score(labels, choices, average="macro", zero_division=0),
            "f1_micro": f1_score(labels, choices, average="micro", zero_division=0),
            "scores": scores(labels, choices, list(range(width)))}


def entities_case(seed, texts, noise):
    r = random.Random(seed)
    labels = [[r.choice(TAGS) for _ in range(r.randint(1, 12))] for _ in range(texts)]
    choices = [[r.choice(TAGS) if r.random() < noise else tag for tag in row] for row in labels]
    report = entity_report(labels, choices, output_dict=True, zero_division=0)
    micro = report.pop("micro avg")
    types = {name: {"precision": float(v["precision"]), "recall": float(v["recall"]), "f1": float(v["f1-score"]), "support": int(v["support"])}
             for name, v in report.items() if not name.endswith(" avg")}
    return {"labels": labels, "choices": choices, "found": [[list(e) for e in get_entities(row)] for row in labels], "types": types,
            "precision": float(micro["precision"]), "recall": float(micro["recall"]), "f1": float(micro["f1-score"])}


def normal(answer):
    text = "".join(c for c in answer.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def answer_scores(found, truths):
    truths = [truth for truth in truths if normal(truth)] or [""]
    exact, f1 = 0, 0
    for truth in truths:
        ours, theirs = normal(found).split(), normal(truth).split()
        exact = max(exact, int(normal(found) == normal(truth)))
        common = sum((collections.Counter(ours) & collections.Counter(theirs)).values())
        both = len(ours) + len(theirs)
        f1 = max(f1, (int(ours == theirs) if not ours or not theirs else 2 * common / both))
    return exact, f1


def answers_case(pairs):
    scores_ = [answer_scores(found, truths) for found, truths in pairs]
    return {"pairs": pairs, "normal": [normal(found) for found, _ in pairs], "exact": 100 * sum(e for e, _ in scores_) / len(scores_),
            "f1": 100 * sum(f for _, f in scores_) / len(scores_)}


ANSWERS = [("The Norman", ["Norman", "Normans"]), ("", []), ("an answer", []), ("", ["one"]), ("10th-century", ["10th century", "the 10th"]),
           ("a the an", ["the"]), ("in France, in the 9th", ["France and the 9th century", "9th"]), ("É–A–the end", ["é– – end"]),
           ("King's   \u00a0Landing", ["kings landing"]), ("theory A's", ["theory as", "theory"]), ("x x y", ["x y y"]),
           ("\u0130stanbul", ["i\u0307stanbul"])]

result = {
    "classes": [classes_case(*classes(1, 40, 2, 0.3), 2), classes_case(*classes(2, 60, 5, 0.5), 5), classes_case([0, 0, 1], [2, 0, 1], 4),
                classes_case([1, 1, 1], [1, 1, 1], 2), classes_case([0, 1, 2], [1, 1, 1], 3), classes_case(*classes(3, 30, 3, 1), 3)],
    "sets": [sets_case(4, 30, 4, 0.2), sets_case(5, 3, 6, 0.5), sets_case(6, 20, 3, 0)],
    "answers": [answers_case(ANSWERS), *(answers_case([pair]) for pair in ANSWERS)],
    "entities": [entities_case(7, 12, 0.2), entities_case(8, 20, 0.6), entities_case(9, 5, 0)],
}
write_json(GOLDENS / "labels.json", result)
