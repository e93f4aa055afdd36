#!/usr/bin/env python3
"""Writes tests/goldens/vector_metrics.json: metrics of rankings by pytrec_eval, of labelled pairs by sentence-transformers and scikit-learn, and of
clusters, k-means and pairs of translations by scikit-learn, of small random cases.

    python3 tools/goldens/make_vector_metrics.py      (needs: pip install pytrec-eval-terrier scikit-learn sentence-transformers)"""
import numpy as np
import pytrec_eval
from harness import GOLDENS, quiet, write_json
from sklearn.cluster import KMeans
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, v_measure_score

quiet()
from sentence_transformers.evaluation import BinaryClassificationEvaluator  # noqa: E402

CUTOFFS = (1, 2, 3, 5, 10, 100)
MEASURES = ("ndcg_cut", "map_cut", "recall", "P")


def ranking(random):
    """A query's judgements and scores: equal scores, negative and graded relevance, documents that are not judged or not found."""
    documents = [f"{random.choice(['d', 'D', 'doc-', 'é'])}{i}" for i in range(random.integers(1, 40))]
    grades = [[0], [0, 1], [-1, 0, 1, 2, 3], [1], [-2, 0]][random.integers(5)]
    judged = {d: int(random.choice(grades)) for d in documents if random.random() < 0.4}
    judged["missing"] = max(0, int(random.choice(grades)))  # pytrec_eval crashes if all judgements are negative
    scores = {d: float(np.float32(random.integers(8) / 7 if random.random() < 0.7 else random.normal())) for d in documents if random.random() < 0.8}
    return judged, scores


def first(scores, k):
    """The first k documents in the order of trec_eval, whose reciprocal rank has no cutoff."""
    return dict(sorted(scores.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)[:k])


def rankings(random):
    cases = []
    evaluator = {f"{measure}.{','.join(map(str, CUTOFFS))}" for measure in MEASURES} | {"map"}
    for number in range(60):
        judged, scores = ranking(random)
        if number == 0:
            scores = {}
        found = pytrec_eval.RelevanceEvaluator({"q": judged}, evaluator).evaluate({"q": scores})["q"]
        reciprocal = pytrec_eval.RelevanceEvaluator({"q": judged}, {"recip_rank"})
        for k in CUTOFFS:
            found[f"mrr_{k}"] = reciprocal.evaluate({"q": first(scores, k)})["q"]["recip_rank"]
        cases.append({"judged": judged, "scores": scores, "metrics": found})
    return cases


def pairs(random):
    cases = []
    for number in range(30):
        count = int(random.integers(2, 50))
        labels = random.integers(0, 2, count)
        labels[0] = 1
        scores = random.normal(size=count) + labels * random.random()
        if number % 3 == 0:
            scores = np.round(scores * 2) / 2
        ours = scores.tolist()
        accuracy, accuracy_threshold = BinaryClassificationEvaluator.find_best_acc_and_threshold(np.array(ours), labels, True)
        f1, _, _, f1_threshold = BinaryClassificationEvaluator.find_best_f1_and_threshold(np.array(ours), labels, True)
        cases.append({"scores": ours, "labels": labels.tolist(), "average_precision": float(average_precision_score(labels, scores)),
                      "accuracy": float(accuracy), "accuracy_threshold": float(accuracy_threshold), "f1": float(f1), "f1_threshold": float(f1_threshold)})
    return cases


def clusters(random):
    cases = [([0, 0, 1], [0, 0, 0]), ([0, 0, 0], [0, 1, 2]), ([0], [0]), ([0, 1, 2], [2, 0, 1]), ([0, 0, 1, 1], [0, 1, 0, 1])]
    for _ in range(20):
        count = int(random.integers(2, 60))
        labels = random.integers(0, 6, count)
        cases.append((labels.tolist(), np.where(random.random(count) < 0.6, labels, random.integers(0, 4, count)).tolist()))
    return [{"labels": a, "clusters": b, "v_measure": float(v_measure_score(a, b)), "weighted_f1": float(f1_score(a, b, average="weighted", zero_division=0)),
             "accuracy": float(accuracy_score(a, b))} for a, b in cases]


def means(random):
    cases = []
    for _ in range(5):
        centres = random.normal(size=(4, 3)) * 2
        points = np.concatenate([centre + random.normal(size=(12, 3)) for centre in centres]).astype(np.float32)
        start = points[random.choice(len(points), 4, replace=False)].astype(np.float64)
        found = KMeans(4, init=start, n_init=1, algorithm="lloyd", tol=0, max_iter=300).fit(points.astype(np.float64))
        cases.append({"vectors": points.ravel().tolist(), "width": 3, "start": start.ravel().tolist(), "groups": found.labels_.tolist(), "distances": float(found.inertia_)})
    return cases


def main():
    random = np.random.default_rng(7)
    write_json(GOLDENS / "vector_metrics.json", {"cutoffs": CUTOFFS, "rankings": rankings(random), "pairs": pairs(random), "clusters": clusters(random),
                                                 "means": means(random)})


if __name__ == "__main__":
    main()
