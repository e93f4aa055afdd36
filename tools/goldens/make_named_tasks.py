#!/usr/bin/env python3
"""Writes tests/goldens/tasks/named: small data sets with the files and columns of those at the Hugging Face Hub, and the contexts and choices
that the templates of lm-evaluation-harness make of their rows.

Usage: make_named_tasks.py LM_EVAL, the folder of the package lm_eval (written with 0.4.13). Needs jinja2, pyyaml and pyarrow."""
import importlib.util
import json
import pathlib
import sys
import types

import jinja2
import pyarrow
import pyarrow.parquet
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/tasks/named"

LETTERS = {"text": ["in the day", "at night", "never", "twice"], "label": ["A", "B", "C", "D"]}
ROWS = {
    "hellaswag": ("Rowan/hellaswag", "data/validation-00000-of-00001", [
        {"activity_label": "Making tea", "ctx_a": "A woman boils water. [header] How to [title] pour it.  She", "ctx_b": "the Woman Ärgert SICH",
         "endings": [" pours it [step] slowly.", "drinks [title] all.", "[substeps] sleeps.", "sings."], "label": "1"},
        {"activity_label": "Running", "ctx_a": "A man runs.", "ctx_b": "", "endings": ["He stops.", "He flies.", "He eats.", "It rains."], "label": "0"}]),
    "arc_easy": ("allenai/ai2_arc", "ARC-Easy/test-00000-of-00001", [
        {"id": "1", "question": "When does the sun shine?", "choices": LETTERS, "answerKey": "A"},
        {"id": "2", "question": "When is it dark?", "choices": {"text": ["at noon", "at night", "always"], "label": ["1", "2", "3"]}, "answerKey": "2"}]),
    "arc_challenge": ("allenai/ai2_arc", "ARC-Challenge/test-00000-of-00001", [
        {"id": "3", "question": "How often does a coin land?", "choices": LETTERS, "answerKey": "D"}]),
    "openbookqa": ("allenai/openbookqa", "main/test-00000-of-00001", [
        {"id": "1", "question_stem": "A fox sleeps", "choices": LETTERS, "answerKey": " B"}]),
    "sciq": ("allenai/sciq", "data/test-00000-of-00001", [
        {"question": "What melts?", "distractor1": "stone", "distractor2": "fire", "distractor3": "air", "correct_answer": "ice", "support": "  Ice melts. "},
        {"question": "What burns?", "distractor1": "stone", "distractor2": "ice", "distractor3": "sand", "correct_answer": "wood", "support": ""}]),
    "piqa": ("baber/piqa", "data/validation-00000-of-00001", [{"goal": "To open a door", "sol1": "push it", "sol2": "sing to it", "label": 0}]),
    "boolq": ("aps/super_glue", "boolq/validation-00000-of-00001", [
        {"question": "is ice cold", "passage": "Ice is frozen water.", "idx": 0, "label": 1}]),
    "mmlu": ("cais/mmlu", "all/test-00000-of-00001", [
        {"question": " What is 1 + 1?\n", "subject": "abstract_algebra", "choices": ["1", "2", "3", "4"], "answer": 1},
        {"question": "What is a cell?", "subject": "college_biology", "choices": ["a room", "a unit of life", "a phone", "a stone"], "answer": 1}]),
}
EXAMPLES = [{"question": f"{subject}, example {i}?", "subject": subject, "choices": ["p", "q", "r", "s"], "answer": i % 4}
            for i in range(3) for subject in ("college_biology", "abstract_algebra")]


def load(path):
    """Reads a YAML file; functions of the task are kept as their names."""
    yaml.SafeLoader.add_constructor("!function", lambda loader, node: node.value)
    return yaml.safe_load(path.read_text())


def config_of(tasks, name, row):
    if name == "mmlu":
        config = load(tasks / "mmlu/default/_default_template_yaml")
        return {**config, **load(tasks / f"mmlu/default/mmlu_{row['subject']}.yaml")}
    if name == "arc_challenge":
        return {**load(tasks / "arc/arc_easy.yaml"), **load(tasks / "arc/arc_challenge.yaml")}
    return load({"arc_easy": tasks / "arc/arc_easy.yaml", "boolq": tasks / "super_glue/boolq/default.yaml"}.get(name, tasks / f"{name}/{name}.yaml"))


def processed(tasks, row):
    """Applies hellaswag's process_docs, without the package datasets."""
    sys.modules["datasets"] = types.SimpleNamespace(Dataset=None)
    spec = importlib.util.spec_from_file_location("utils", tasks / "hellaswag/utils.py")
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)
    return utils.process_docs(types.SimpleNamespace(map=lambda function: {**row, **function(row)}))


def record_of(tasks, name, row):
    config = config_of(tasks, name, row)
    if name == "hellaswag":
        row = processed(tasks, row)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)

    def render(template):
        if isinstance(template, list):
            return template
        if isinstance(template, int) or template in row:
            return row.get(template, template)
        text = environment.from_string(template).render(row)
        return int(text) if text.isdigit() else text

    choices = config["doc_to_choice"]
    if isinstance(choices, str) and choices not in row:
        choices = environment.compile_expression(choices.strip("{} "))(**row)
    return {"description": config.get("description", ""), "context": str(render(config["doc_to_text"])),
            "choices": list(render(choices) if isinstance(choices, str) else choices), "gold": int(render(config["doc_to_target"]))}


def main():
    tasks = pathlib.Path(sys.argv[1]) / "tasks"
    expected = {}
    for name, (repository, file, rows) in ROWS.items():
        path = OUT / repository.replace("/", "--") / (file + ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, store_schema=False)
        expected[name] = [record_of(tasks, name, row) for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(EXAMPLES), OUT / "cais--mmlu/all/dev-00000-of-00001.parquet", store_schema=False)
    expected["mmlu, 2 shots"] = []
    for row, record in zip(ROWS["mmlu"][2], expected["mmlu"]):
        shots = [record_of(tasks, "mmlu", each) for each in EXAMPLES if each["subject"] == row["subject"]][:2]
        text = "".join(shot["context"] + " " + shot["choices"][shot["gold"]] + "\n\n" for shot in shots)
        expected["mmlu, 2 shots"].append({**record, "context": text + record["context"]})
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
