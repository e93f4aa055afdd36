#!/usr/bin/env python3
"""Writes tests/goldens/tasks: records and what lm-evaluation-harness finds for the model of tests/goldens/fine_tuning/model: the
log-probabilities of choices, accuracies with 0 and 2 shots, and generated texts.

    python3 tools/goldens/make_tasks.py      (needs: pip install lm-eval transformers torch)"""
import random

from harness import GOLDENS, write_json, write_records
import lm_eval
from lm_eval.models.huggingface import HFLM

MODEL, OUT = GOLDENS / "fine_tuning/model", GOLDENS / "tasks"
WORDS = "cat dog sat on the mat a red hat and it ran he she saw".split()


def records():
    random_ = random.Random(5)
    text = lambda least, most: " ".join(random_.choice(WORDS) for _ in range(random_.randint(least, most)))
    choices = [{"context": text(2, 6) + (" " if i % 5 == 0 else ""), "choices": [text(1, 4), text(1, 2), text(2, 6)], "gold": i % 3}
               for i in range(16)]
    choices.append({"context": "the café", "choices": ["naïve 日本", "a"], "gold": 1})
    generated = [{"context": text(2, 5), "target": text(1, 2)} for _ in range(12)]
    return choices, generated


def task(name, path, kind, shots):
    config = {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}}, "test_split": "test",
              "doc_to_text": "{{context}}", "num_fewshot": shots, "fewshot_split": "test", "fewshot_config": {"sampler": "first_n"}}
    if kind == "choices":
        return {**config, "output_type": "multiple_choice", "doc_to_choice": "{{choices}}", "doc_to_target": "gold",
                "metric_list": [{"metric": m} for m in ("acc", "acc_norm", "acc_bytes")]}
    return {**config, "output_type": "generate_until", "doc_to_target": "{{target}}", "metric_list": [{"metric": "exact_match"}],
            "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 12, "do_sample": False},
            "filter_list": [{"name": "stripped", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}]}


def evaluate(model, name, path, kind, shots):
    found = lm_eval.simple_evaluate(model=model, tasks=[task(name, path, kind, shots)], log_samples=True, bootstrap_iters=0)
    samples = sorted(found["samples"][name], key=lambda s: s["doc_id"])
    metrics = {key.split(",")[0]: value for key, value in found["results"][name].items() if isinstance(value, float)}
    if kind == "choices":
        return {"shots": shots, "metrics": metrics, "logprobs": [[r[0] for r in s["filtered_resps"]] for s in samples]}
    return {"shots": shots, "metrics": metrics, "texts": [s["filtered_resps"][0] for s in samples]}


def main():
    OUT.mkdir(exist_ok=True)
    choices, generated = records()
    for r in generated:
        r["max_tokens"] = 12
    for name, rows in (("choices", choices), ("generated", generated)):
        write_records(OUT / f"{name}.jsonl", rows)
    model = HFLM(pretrained=str(MODEL), device="cpu", dtype="float32", batch_size=1)
    expected = {"choices": [evaluate(model, f"choices{n}", OUT / "choices.jsonl", "choices", n) for n in (0, 2)],
                "generated": [evaluate(model, f"generated{n}", OUT / "generated.jsonl", "generated", n) for n in (0, 1)]}
    write_json(OUT / "expected.json", expected, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
