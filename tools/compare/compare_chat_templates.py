#!/usr/bin/env python3
"""Renders conversations for training with transformers and with fovea, and prints the texts whose ids or masks differ.

Usage: compare_chat_templates.py UNIT_TASKS [COUNT [SEED]], where UNIT_TASKS is the test program of src/train/tasks (build/release/tests/unit_tasks).
The templates are the built-in ones, those of tests/goldens/chat_templates, and *.jinja in the folders of FOVEA_TEMPLATES, separated by
colons. Each renders COUNT conversations (default 50) for two tokenizers.

With {% generation %} blocks, ids and masks are those of apply_chat_template(return_assistant_tokens_mask=True). Without them, the ids are
those of the rendered text, and an answer is what the text has in addition to the prompt before it. Without transformers, prints a message
and exits."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import ROOT  # noqa: E402

try:
    from make_chat_masks import byte_level, fast_tokenizer, with_marks
    from transformers.utils import chat_template_utils
except ImportError:
    print("compare_chat_templates: skipped, transformers is not installed")
    sys.exit(0)

from make_chat_templates import FixedDate  # noqa: E402

chat_template_utils.datetime = FixedDate  # 26 July 2024, as in training

WORDS = ["the cat", "sat on", "a mat", " Größe ", "日本", "😀", "What is 2+2?", "4.", "\n", "\n\n", "  ", "<b>&\"'</b>", "{{ x }}", "{% if %}", "\\n", "`a = 1`",
         "\t", "é", "e\u0301", "user", "assistant", "system", "\r\n", "- one\n- two", "\u3000", "[INST]", "<think>", "</think>", "x" * 30, "\u200d", "0.5", "%s", "​"]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather \"today\" <b>", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "é"}, "days": {"type": "integer"}}, "required": ["city"]}}},
         {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object", "properties": {}}}}]


class Conversations:
    """Random conversations: plain ones, with a system message, with thoughts, with calls of tools."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, most=5):
        return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(0 if self.random.random() < 0.1 else 1, most)))

    def answer(self, thoughts):
        message = {"role": "assistant", "content": self.text()}
        if thoughts and self.random.random() < 0.7:
            message["reasoning_content"] = self.text()
        return message

    def call(self, number):
        arguments = {"city": self.text(2)} if self.random.random() < 0.7 else {}
        if arguments and self.random.random() < 0.5:
            arguments["days"] = self.random.randint(-3, 3)
        return {"id": f"call{number:05d}", "type": "function", "function": {"name": "weather" if arguments else "clock", "arguments": arguments}}

    def turn(self, kind):
        messages = [{"role": "user", "content": self.text()}]
        if kind == "tools" and self.random.random() < 0.7:
            calls = [self.call(i) for i in range(self.random.randint(1, 2))]
            messages.append({"role": "assistant", "content": self.random.choice(["", self.text()]), "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": each["id"], "name": each["function"]["name"], "content": self.text()} for each in calls]
        return [*messages, self.answer(kind == "thoughts")]

    def __call__(self):
        kind = self.random.choice(["plain", "plain", "plain", "thoughts", "tools"])
        messages = [{"role": "system", "content": self.text()}] if self.random.random() < 0.4 else []
        for _ in range(self.random.randint(1, 4)):
            messages += self.turn(kind)
        if self.random.random() < 0.1:
            messages.append({"role": "user", "content": self.text()})
        return {"messages": messages, **({"tools": TOOLS} if kind == "tools" else {})}


def builtin_templates():
    """Returns the built-in templates by name, as src/text/chat/builtin_templates.cc joins them."""
    source = (ROOT / "src/text/chat/builtin_templates.cc").read_text(encoding="utf-8")
    texts = dict(re.findall(r'constexpr const char\* (k\w+) = R"\((.*?)\)";', source, re.DOTALL))
    return {f"builtin {name}": texts["kTextsOnly"] + texts[body] for name, body in re.findall(r'\{"(\w+)",\s*kTextsOnly \+ std::string\((k\w+)\)', source)}


def templates():
    found = builtin_templates()
    for folder in (ROOT / "tests/goldens/chat_templates", *filter(None, os.environ.get("FOVEA_TEMPLATES", "").split(":"))):
        for path in sorted(pathlib.Path(folder).glob("*.jinja")):
            found[path.name] = path.read_text(encoding="utf-8")
    return found


def marked(tokenizer, text, begin):
    """Returns the ids of a text, where the tokens from character `begin` on are trained, without white space after a special end token."""
    made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = made["input_ids"], made["offset_mapping"]
    covered = [i for i, (first, last) in enumerate(places) if last > begin and last > first]
    end = len(ids)
    while end > 0 and not text[slice(*places[end - 1])].strip(" \t\r\n\v\f"):
        end -= 1
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    if not (covered and end > covered[0] and ids[end - 1] in special):
        end = len(ids)
    return ids, [int(bool(covered) and covered[0] <= i < end) for i in range(len(ids))]


def by_turns(tokenizer, source, record):
    """Returns the texts of a conversation without blocks."""
    def render(count, prompt):
        return tokenizer.apply_chat_template(record["messages"][:count], tools=record.get("tools"), chat_template=source, tokenize=False,
                                             add_generation_prompt=prompt)
    turns = []
    for i, message in enumerate(record["messages"]):
        if message["role"] == "assistant":
            before, text = render(i, True), render(i + 1, False)
            if not text.startswith(before):
                raise ValueError("the prompt is no beginning of the text")
            turns.append((text, len(before)))
    last = turns[-1][0]
    if not all(last.startswith(text) for text, _ in turns):
        return [dict(zip(("ids", "mask"), marked(tokenizer, text, begin))) for text, begin in turns]
    ids, mask = marked(tokenizer, last, turns[-1][1])
    for text, begin in turns[:-1]:
        own = marked(tokenizer, text, begin)
        if own[0] != ids[:len(own[0])]:
            return None  # the tokens of the turn depend on the next turn, so its mask is not comparable
        mask = [max(pair) for pair in zip(mask, own[1] + [0] * (len(mask) - len(own[1])))]
    return [{"ids": ids, "mask": mask}]


def expected(tokenizer, source, record):
    """Returns the texts of transformers, an error, or None if there is nothing to compare."""
    if record.get("tools") and "tools" not in source:
        return {"error": True}  # fovea refuses tools that the template omits
    try:
        if "endgeneration" in source:
            made = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), chat_template=source, return_dict=True,
                                                 return_assistant_tokens_mask=True)
            return {"texts": [{"ids": made["input_ids"], "mask": made["assistant_masks"]}]}
        texts = by_turns(tokenizer, source, record)
        return texts and {"texts": texts}
    except Exception:  # any exception of Python or Jinja2: fovea refuses the conversation
        return {"error": True}


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    make = Conversations(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    records = [make() for _ in range(count)]
    found, skipped = [], 0
    for bare in (byte_level(), with_marks()):
        cases = []
        for name, source in templates().items():
            for record in records:
                result = expected(fast_tokenizer(bare), source, record)
                skipped += result is None
                if result:
                    cases.append({"template": name, "source": source, "record": record, **result})
        found.append({"tokenizer": json.loads(bare.to_str()), "cases": cases})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.json"
        path.write_text(json.dumps(found), encoding="utf-8")
        done = subprocess.run([program, "--gtest_filter=ConversationTexts.OfAFileEqualThoseOfTransformers", "--gtest_brief=1"], cwd=ROOT,
                              env=dict(os.environ, FOVEA_CHAT_CASES=str(path)), stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if "1 test from 1 test suite ran" not in done.stdout:
        sys.exit(f"compare_chat_templates: {program} compared nothing; expected the tests of src/train/tasks")
    cases = [case for each in found for case in each["cases"]]
    print(f"{len(templates())} templates, {count} conversations, 2 tokenizers: {len(cases)} compared, {skipped} not comparable, "
          f"{sum('error' in case for case in cases)} of them refused by both")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
