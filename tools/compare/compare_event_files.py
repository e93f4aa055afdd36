#!/usr/bin/env python3
"""Reads the event files of a run with the package tensorboard, and compares them with log.jsonl.

    fovea train text.txt --out DIR --tensorboard
    tools/compare/compare_event_files.py DIR          # needs: pip install tensorboard"""
import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main():
    folder = pathlib.Path(sys.argv[1])
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0})
    events.Reload()
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for tag, key in (("train/loss", "loss"), ("train/learning_rate", "learning_rate"), ("eval/loss", "eval_loss")):
        logged = {line["step"]: line[key] for line in log if key in line}
        found = {event.step: event.value for event in events.Scalars(tag)}
        assert found.keys() == logged.keys(), (tag, found.keys() ^ logged.keys())
        assert all(math.isclose(found[step], logged[step], rel_tol=1e-6) for step in logged), tag
        print(f"{tag}: {len(found)} equal values")
    samples = {line["step"]: line["sample"] for line in log if "sample" in line}
    texts = {event.step: event.tensor_proto.string_val[0].decode() for event in events.Tensors("sample/text_summary")} if samples else {}
    assert texts == samples, "sample"
    print(f"sample: {len(samples)} equal texts")
    for tag in events.Tags()["histograms"]:
        for event in events.Histograms(tag):
            value = event.histogram_value
            assert sum(value.bucket) == value.num and value.min <= value.sum / value.num <= value.max, tag
    print(f"{len(events.Tags()['histograms'])} weights with histograms")


if __name__ == "__main__":
    main()
