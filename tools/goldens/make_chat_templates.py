#!/usr/bin/env python3
"""Writes the output of Jinja2, in the environment of transformers, to tests/goldens/chat_templates.

Needs transformers and jinja2; the tests do not, since they read these files. The templates *.jinja are fovea's own, in the style of those
in checkpoints. Without the packages, it prints a message and leaves the goldens unchanged."""
import datetime
import json
import sys

from harness import GOLDENS, write_lines

try:
    from transformers.utils import chat_template_utils
except ImportError:
    sys.exit("make_chat_templates: skipped, transformers is not installed")

from template_cases import REFUSED, STATEMENTS, VARIABLES, WHITESPACE, expressions

FOLDER = GOLDENS / "chat_templates"


class FixedDate(datetime.datetime):
    """The date that the templates of the goldens and of the tests receive."""

    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 9, 5, 7)


chat_template_utils.datetime = FixedDate


def render(source, variables):
    """Returns the text and the spans of generation blocks in bytes, or None if Jinja2 refuses."""
    blocks, spans = [], []
    try:
        template = chat_template_utils._cached_compile_jinja_template(source)
        with template.environment.activate_tracker(blocks, spans):
            for block in template.generate(**json.loads(json.dumps(variables))):
                blocks.append(block)
        text = "".join(blocks)
        return {"text": text, "spans": [[len(text[:at].encode()) for at in span] for span in spans]}
    except Exception:  # any exception of Python or Jinja2: the test expects an error
        return {"error": True}


def case(source, variables):
    if source in REFUSED:
        return {"source": source, "error": True}
    result = {"source": source, **render(source, variables)}
    if not result.get("spans"):
        result.pop("spans", None)
    return result


def requests():
    """Returns conversations, each with the variables of a caller."""
    conversations = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))
    for name, conversation in conversations.items():
        for prompt in (False, True):
            yield f"{name}{'+' if prompt else ''}", {"tools": None, "documents": None, "add_generation_prompt": prompt,
                                                    "bos_token": "<s>", "eos_token": "</s>", **conversation}


def write(name, value):
    begin = f'{{"variables": {json.dumps(value["variables"], ensure_ascii=False)},\n"cases": [\n'
    write_lines(FOLDER / name, value["cases"], begin, "\n]}\n", ensure_ascii=False)
    print(f"{name}: {len(value['cases'])} cases, {sum('error' in each for each in value['cases'])} errors, {(FOLDER / name).stat().st_size} bytes")


def main():
    for name, sources in (("expressions", expressions()), ("whitespace", WHITESPACE), ("statements", STATEMENTS)):
        write(f"{name}.json", {"variables": VARIABLES, "cases": [case(source, VARIABLES) for source in dict.fromkeys(sources)]})
    rendered = []
    for path in sorted(FOLDER.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for name, variables in requests():
            result = {"template": path.name, "conversation": name, **case(source, variables)}
            del result["source"]
            rendered.append(result)
    write("rendered.json", {"variables": {}, "cases": rendered})


if __name__ == "__main__":
    main()
