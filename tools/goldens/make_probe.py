#!/usr/bin/env python3
"""Writes tests/goldens/probe.json: logistic regression, several labels, ridge regression, their cross-validation and TF-IDF of small data,
as computed by scikit-learn.

    python3 tools/goldens/make_probe.py                          (needs: pip install scikit-learn)
    python3 tools/goldens/make_probe.py --compare MODEL FILE     compares `fovea eval MODEL --probe FILE` (lines text<TAB>label or
                                                                 text<TAB>second text<TAB>label) with scikit-learn: the same vectors,
                                                                 folds and values of C. The program is $FOVEA_BIN.
    python3 tools/goldens/make_probe.py --sts STSB.csv OUT.tsv   writes sentence pairs with a label: related if the score is above 3"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

from harness import GOLDENS, PROGRAM, write_json
import numpy
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

UNUSUAL = ["It's 3.5 km\u00b2, a_b x \u2460\u2461!", "\u0130stanbul Stra\u00dfe \u00c9COLE e\u0301cole", "", "a b c", "\u65e5\u672c\u8a9e \u65e5 na\u00efve NAIVE_2", "don't-stop DON'T"]


def classifier(c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=100_000)


def pair_features(u, v):
    if scipy.sparse.issparse(u):
        return scipy.sparse.hstack([abs(u - v), u.multiply(v)]).tocsr()
    return numpy.hstack([numpy.abs(u - v), u * v])


def words_of_topics(random, count, classes):
    """Texts whose words come from the topic of their label or, half of the time, from any topic."""
    words = [f"w{i}" for i in range(12 * classes)]
    labels = [int(random.integers(classes)) if i >= classes else i for i in range(count)]
    texts = []
    for label in labels:
        chosen = []
        for _ in range(int(random.integers(4, 9))):
            topic = label if random.random() < 0.5 else int(random.integers(classes))
            chosen.append(words[12 * topic + int(random.integers(12))])
        texts.append(" ".join(chosen))
    return texts, labels


def case(seed, count, classes, width):
    random = numpy.random.default_rng(seed)
    texts, labels = words_of_topics(random, count, classes)
    centres = random.normal(size=(classes, width))
    vectors = (centres[labels] + 2 * random.normal(size=(count, width))).astype(numpy.float32)
    fold = [int(x) for x in random.permutation(numpy.arange(count) % 4)]
    split = PredefinedSplit(fold)
    found = {"labels": labels, "classes": classes, "width": width, "vectors": [round(float(x), 6) for x in vectors.ravel()], "fold": fold,
             "folds": 4, "texts": texts, "models": []}
    vectors = numpy.array(found["vectors"], dtype=numpy.float32).reshape(count, width).astype(numpy.float64)
    for c in (0.01, 1.0, 100.0):
        model = classifier(c).fit(vectors, labels)
        predicted = cross_val_predict(classifier(c), vectors, labels, cv=split)
        words = cross_val_predict(make_pipeline(TfidfVectorizer(), classifier(c)), texts, labels, cv=split)
        found["models"].append({"c": c, "weights": model.coef_.tolist(), "intercepts": model.intercept_.tolist(),
                                "predicted": predicted.tolist(), "predicted_words": words.tolist(),
                                "accuracy": accuracy_score(labels, predicted), "f1": f1_score(labels, predicted, average="macro")})
    return found


def numbers_and_sets(data, seed):
    """Numbers, and sets of labels, of the vectors of a case."""
    random = numpy.random.default_rng(seed)
    count, width = len(data["labels"]), data["width"]
    vectors = numpy.array(data["vectors"], dtype=numpy.float32).reshape(count, width).astype(numpy.float64)
    split = PredefinedSplit(data["fold"])
    numbers = numpy.round(vectors @ random.normal(size=width) + 3 + random.normal(size=count), 3)
    sets = (vectors @ random.normal(size=(width, 4)) + 2 * random.normal(size=(count, 4)) > [0, 1, -1, 9]).astype(int)
    found = {"numbers": numbers.tolist(), "sets": sets.ravel().tolist(), "set_labels": 4, "ridge": [], "one_vs_rest": []}
    for c in (0.01, 1.0, 100.0):
        ridge = lambda: Ridge(alpha=1 / c, solver="cholesky")
        model, predicted = ridge().fit(vectors, numbers), cross_val_predict(ridge(), vectors, numbers, cv=split)
        found["ridge"].append({"c": c, "weights": model.coef_.tolist(), "intercept": float(model.intercept_), "predicted": predicted.tolist(),
                               "r2": r2_score(numbers, predicted), "pearson": float(numpy.corrcoef(numbers, predicted)[0, 1])})
        predicted = cross_val_predict(OneVsRestClassifier(classifier(c)), vectors, sets, cv=split)
        found["one_vs_rest"].append({"c": c, "predicted": predicted.ravel().tolist(), "accuracy": accuracy_score(sets, predicted),
                                     "f1": f1_score(sets, predicted, average="macro", zero_division=0)})
    return found


def tfidf_of_unusual_texts():
    vectorizer = TfidfVectorizer()
    rows = vectorizer.fit_transform(UNUSUAL).toarray()
    names = vectorizer.get_feature_names_out()
    analyze = vectorizer.build_analyzer()
    return [{"text": text, "words": analyze(text), "tfidf": {name: value for name, value in zip(names, row) if value != 0}}
            for text, row in zip(UNUSUAL, rows.tolist())]


def write_goldens():
    cases = [case(1, 60, 2, 5), case(2, 90, 3, 11)]
    cases[1].update(numbers_and_sets(cases[1], 3))
    write_json(GOLDENS / "probe.json", {"cases": cases, "unusual": tfidf_of_unusual_texts()})


def fovea(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, check=True, **options).stdout


def predictions(features, labels, fold, cs):
    """`features(training)` returns the features of all texts; what they learn, they learn from the training texts."""
    predicted = numpy.empty(len(labels), dtype=object)
    for held_out, c in enumerate(cs):
        training, test = numpy.flatnonzero(fold != held_out), numpy.flatnonzero(fold == held_out)
        x = features(training)
        predicted[test] = classifier(c).fit(x[training], labels[training]).predict(x[test])
    return predicted


def compare(model, file):
    lines = [line.rstrip("\n").split("\t") for line in open(file, encoding="utf-8")]
    texts = [text for line in lines for text in line[:-1]]
    pairs = len(lines[0]) == 3
    with tempfile.TemporaryDirectory() as folder:
        result = json.loads(fovea("eval", model, "--probe", file, "--predictions", f"{folder}/p.jsonl", "--json"))
        rows = [json.loads(line) for line in open(f"{folder}/p.jsonl", encoding="utf-8")]
        pathlib.Path(folder, "texts").write_text("\n".join(texts) + "\n")
        fovea("embed", model, f"{folder}/texts", "--out", f"{folder}/v.npy")
        vectors = numpy.load(f"{folder}/v.npy").astype(numpy.float64)
    labels, fold = numpy.array([row["label"] for row in rows]), numpy.array([row["fold"] for row in rows])
    dense = pair_features(vectors[0::2], vectors[1::2]) if pairs else vectors

    def words(training):
        chosen = [2 * i + side for i in training for side in (0, 1)] if pairs else training
        vectorizer = TfidfVectorizer().fit([texts[i] for i in chosen])
        x = vectorizer.transform(texts)
        return pair_features(x[0::2], x[1::2]) if pairs else x

    print(f"{'features':<10}{'':<14}{'accuracy':>10}{'macro F1':>10}{'equal predictions':>20}")
    for name, found, features in (("tfidf", result["tfidf"], words), ("vectors", result["vectors"][0], lambda _: dense)):
        theirs = predictions(features, labels, fold, found["c"])
        ours = numpy.array([row[name] for row in rows])
        for who, predicted in (("fovea", ours), ("scikit-learn", theirs)):
            print(f"{name:<10}{who:<14}{accuracy_score(labels, predicted):>10.4f}{f1_score(labels, predicted, average='macro'):>10.4f}"
                  f"{(ours == predicted).mean():>20.4f}")
        assert abs(found["accuracy"]["value"] - accuracy_score(labels, ours)) < 1e-9
        assert abs(found["f1"]["value"] - f1_score(labels, ours, average="macro")) < 1e-9


def write_sts(source, target):
    with open(target, "w", encoding="utf-8") as out:
        for first, second, score in csv.reader(open(source, encoding="utf-8")):
            out.write(f"{first}\t{second}\t{'related' if float(score) > 3 else 'unrelated'}\n")


if len(sys.argv) == 4 and sys.argv[1] == "--compare":
    compare(*sys.argv[2:])
elif len(sys.argv) == 4 and sys.argv[1] == "--sts":
    write_sts(*sys.argv[2:])
else:
    write_goldens()
