"""Finds the prose of the tree: comments and strings of C++ files, and paragraphs of documents."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    return [name for name in listed if name.endswith((".h", ".cc", ".md"))]


def comments(lines):
    """Yields (line, text) of each block of comments, and of each comment after code."""
    block, start = [], 0
    for number, line in enumerate([*lines, ""], 1):
        code = STRING.sub('""', line)
        found = re.match(r"(.*?)//+ ?(.*)$", code)
        if found and not found[1].strip():
            start = start if block else number
            block.append(line.split("//", 1)[1].strip())
            continue
        if block:
            yield start, " ".join(block)
            block = []
        if found and not found[2].startswith("namespace"):
            yield number, found[2]


def strings(lines):
    """Yields (line, text) of each string with several words; adjacent literals are joined."""
    parts, start = [], 0
    for number, line in enumerate([*lines, ";"], 1):
        code = line.split("//", 1)[0] if not STRING.search(line) else line
        if code.lstrip().startswith("#include"):
            continue
        found = STRING.findall(code)
        only = re.fullmatch(r'\s*(?:"(?:[^"\\]|\\.)*"\s*)+[,;)}\]]*\s*', code)
        if parts and only:
            parts[-1] += found[0]
            found = found[1:]
            if code.rstrip().endswith('"') and not found:
                continue
        elif parts:
            yield from ((start, text) for text in parts if len(text.split()) > 1)
            parts = []
        if found:
            start = start if parts else number
            parts += found
            if not code.rstrip().endswith('"'):
                yield from ((start, text) for text in parts if len(text.split()) > 1)
                parts = []


def paragraphs(text):
    """Yields (line, text) of each paragraph, list item and table cell outside code blocks."""
    fenced, block, start = False, [], 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        row = line.startswith("|")
        ends = fenced or row or not line.strip() or line.startswith(("#", "    ", "<", "!")) or re.match(r"\s*([-*]|\d+\.) ", line)
        if ends and block:
            yield start, " ".join(block)
            block = []
        if fenced or line.startswith(("    ", "<", "!", "#")) or not line.strip():
            continue
        if row:
            yield from ((number, cell.strip()) for cell in line.strip("| ").split(" | ") if len(cell.split()) > 2)
            continue
        start = start if block else number
        block.append(re.sub(r"^\s*([-*]|\d+\.) ", "", line).strip())


def passages():
    """Yields (path, line, text) of all prose in the tree."""
    for name in files():
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        if name.endswith(".md"):
            yield from ((name, line, found) for line, found in paragraphs(text))
        else:
            lines = text.split("\n")
            yield from ((name, line, found) for line, found in comments(lines))
            yield from ((name, line, found) for line, found in strings(lines))


def sentences(text):
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`*])", text) if len(part.split()) > 2]
