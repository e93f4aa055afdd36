#!/usr/bin/env python3
"""Writes tests/goldens/call_formats.json: calls of tools as the chat templates of models show them.

Usage: make_call_formats.py FOLDER, with files MODEL.jinja, which are not part of this repository; needs jinja2 3.1. For each template that
shows calls, the golden has the text that the model generates: one call, two, two after a text, and one with arguments that are hard to
write; texts that another template has are left out. The name of the format, and the cases that a template writes wrongly ("wrong"), are
added by hand, and kept when the script runs again."""
import datetime
import json
import pathlib
import subprocess
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness import GOLDENS

IDS = ["abcdef123", "abcdef456"]
WEATHER = ("get_weather", {"location": "Zürich", "days": 3})
HARD = ("save_note", {"text": "line 1\n  line \"2\" it's <b> & \\ end", "flag": True, "list": [1, "a", {"b": False}],
                      "object": {"k": 1.5, "s": "x, y"}, "number": -0.0025, "code": "007"})
CASES = {"one": (None, [WEATHER]), "two": (None, [WEATHER, ("now", {})]), "with_text": ("I will look.", [WEATHER, ("now", {})]), "hard": (None, [HARD])}
ENDS = ["<|im_end|>", "<|eot_id|>", "<|eot|>", "</s>", "<EOS>", "<|call|>", "<|end|>", "<|END_OF_TURN_TOKEN|>", "<|endoftext|>", "<|end_of_text|>",
        "<end_of_turn>", "<turn|>", "[e~[", "<|user|>", "<|observation|>", "<｜end▁of▁sentence｜>", "<start_function_response>", "<|tool_response>",
        "<|assistant_end|>", "<seed:eos>", "<|eos|>", "<SPECIAL_12>", "<|message_sep|>"]


class Generation(Extension):
    """The tag {% generation %} of transformers."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def fail(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = lambda value, **options: json.dumps(value, **{"ensure_ascii": False, **options})
    made.filters["from_json"] = json.loads
    made.globals.update(raise_exception=fail, strftime_now=datetime.datetime(2026, 1, 1).strftime)
    return made


def schema(value):
    types = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return {"type": types[type(value)], "description": "A value."}


def tool(name, arguments):
    parameters = {"type": "object", "properties": {key: schema(value) for key, value in arguments.items()}, "required": []}
    return {"type": "function", "function": {"name": name, "description": "A function.", "parameters": parameters}}


def generated(template, content, calls, as_text):
    """Returns what the assistant writes, or None if the template does not show it after a prompt."""
    tools = [tool(*WEATHER), tool("now", {}), tool(*HARD)]
    user = [{"role": "user", "content": "What is the weather?"}]
    written = [{"id": IDS[i], "type": "function", "function": {"name": name, "arguments": json.dumps(given, ensure_ascii=False) if as_text else given}}
               for i, (name, given) in enumerate(calls)]
    message = {"role": "assistant", "tool_calls": written, **({"content": content} if content else {"content": ""})}

    def render(messages, prompt):
        return template.render(messages=messages, tools=tools, add_generation_prompt=prompt, bos_token="", eos_token="<EOS>", documents=None)

    prompt, text = render(user, True), render(user + [message], False)
    same = next((i for i, (a, b) in enumerate(zip(prompt, text)) if a != b), min(len(prompt), len(text)))
    if text.rfind("<", 0, same) > text.rfind(">", 0, same):
        same = text.rfind("<", 0, same)  # two marks begin with the same letters
    if same < len(prompt) - 24 or calls[0][0] not in text[same:]:
        return None
    text = text[same:]
    return text[:min((text.find(end) for end in ENDS if end in text), default=len(text))]


def main():
    golden = GOLDENS / "call_formats.json"
    by_hand = {row["template"]: {key: row[key] for key in ("format", "wrong") if key in row} for row in json.loads(golden.read_text())} if golden.exists() else {}
    rows, seen = [], set()
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jinja")):
        try:
            template = environment().from_string(path.read_text())
        except jinja2.exceptions.TemplateError:
            continue
        row = {"template": path.stem.split("--")[-1]}
        row.update(by_hand.get(row["template"], {}))
        for name, (content, calls) in CASES.items():
            for as_text in (False, True):
                try:
                    text = generated(template, content, calls, as_text)
                except Exception:  # a template may fail in any way
                    continue
                if text and "\\\"" not in text[:60]:
                    row[name] = text
                    break
        texts = tuple(row.get(name) for name in CASES)
        if any(texts) and texts not in seen:
            rows.append(row)
        seen.add(texts)
    golden.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    print(len(rows), "templates")


if __name__ == "__main__":
    main()
