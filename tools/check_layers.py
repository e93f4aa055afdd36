#!/usr/bin/env python3
"""Checks the rules for C++ files: which folders and libraries a file may include, where families may be named, which functions of the C++
library and comparisons are not portable, and the lengths of files, lines and functions. Prints violations; exits with 1 if there are any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LADDER = ("base image audio unicode tokenizer jinja chat kernels parallel tensor ops cache nn model checkpoint families metrics "
          "data grammar generate transcribe embed classify vision probing search inspect explain plan train lab api c").split()
ONLY = {"audio": {"base"}, "unicode": {"base"}, "tokenizer": {"base", "unicode"}, "jinja": {"base", "unicode"}, "grammar": {"base", "unicode", "tokenizer"},
        "chat": {"base", "unicode", "tokenizer", "jinja"}, "metrics": {"base", "unicode"}, "parallel": {"base", "kernels"},
        "image": {"base"}, "data": {"base", "unicode", "tokenizer"}}  # all other folders may use every folder before them
APPS = "terminal http jobs options tuning serve inspector cli".split()
APART = {"generate", "embed", "inspect", "plan"}  # these folders do not include one another
FAMILIES = re.compile(r"\b(gpt2|llama(?!\.cpp)|bert|roberta|distilbert|mpnet|t5|mistral|mixtral|qwen\d?|gemma\d?|bart|marian|phi\d?|"
                      r"bloom|opt|vit|whisper(?!\.cpp)|modernbert|electra|olmo\d?|gpt_neox)\b", re.IGNORECASE)
FAMILY_PLACES = ("src/families/", "tests/", "docs/", "bench/", "src/model/presets.cc", "src/train/presets.cc", "include/fovea/spec.h", "apps/",
                 "src/chat/builtin_templates.cc",  # the names of its templates
                 "src/image/processor.cc",  # the names of classes in preprocessor_config.json
                 "src/base/gguf.h", "src/tokenizer/formats/gguf_", "include/fovea/gguf.h")  # the last three: keys of GGUF
OWNED = {r"dnnl|oneapi": ("bench/",),
         r"hwy": ("src/kernels/cpu/", "src/kernels/dispatch.cc"),
         r"pcre2\.h": ("src/unicode/pattern",), r"utf8proc\.h": ("src/unicode/", "src/jinja/text.cc"),
         r"sndfile\.h": ("src/audio/sound_file.cc",), r"soxr\.h": ("src/audio/convert_sound.cc",),
         r"mpi\.h": ("src/parallel/mpi/",), r"libav\w+": ("src/audio/libav/",),
         r"histedit\.h": ("apps/terminal/line_editor.cc",),
         r"png\.h|jpeglib\.h|jerror\.h|webp": ("src/image/",),
         r"hnswlib": ("src/search/vector_graph.cc",),
         r"cuda|cublas": ("src/kernels/cuda/",), r"boost": ("apps/http/",)}
# Functions whose last bits differ between C libraries, and classes that differ between C++ libraries. base/math.h and base/random.h
# replace them.
UNPORTABLE = re.compile(r"\bstd::(a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)\(|"
                        r"\bstd::(\w+_distribution|shuffle|sample|default_random_engine)\b")
UNPORTABLE_PLACES = ("src/kernels/reference/", "tests/", "bench/", "examples/")  # compared within tolerances
# A comparison of a value with an element of a JSON value on its right: nlohmann-json 3.11.3 has none for strings.
COMPARED = re.compile(r'\b(?:EXPECT|ASSERT)_(?:EQ|NE)\(((?:[^;"]|"(?:\\.|[^"\\])*")*?),\s*'
                      r'\w+(?:\[\w+\])*(?:\["[^"]*"\]|\.at\("[^"]*"\))(?:\[[^\]]*\])*\)\s*(?:;|<<)')
ELEMENT = re.compile(r'\["|\.at\("|\bJson\(')
FILE_LINES, FUNCTION_LINES, COLUMNS = 600, 60, 100


def cpp_files():
    for top in ("include", "src", "apps", "examples", "tests", "bench"):
        yield from (path for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".h", ".cc"))


def may_include(folder, other):
    if other == folder or other not in LADDER or folder not in LADDER:
        return True
    if folder in ONLY:
        return other in ONLY[folder]
    if folder in APART and other in APART:
        return False
    return LADDER.index(other) < LADDER.index(folder)


def check_include(path, header):
    parts = path.split("/")
    for library, places in OWNED.items():
        if re.match(rf"({library})\b", header) and not path.startswith(places):
            return f"includes <{header}>, which belongs to {', '.join(places)}"
    first = header.split("/")[0]
    inner = first in LADDER and "/" in header
    if parts[0] == "apps" and "/" in header and first in APPS and APPS.index(first) > APPS.index(parts[1]):
        return f"includes \"{header}\"; {parts[1]} is not below {first}"
    if parts[0] == "apps" and inner and first not in ("base", "parallel"):
        return f"includes \"{header}\"; apps include only include/fovea, src/base and src/parallel"
    if parts[0] == "examples" and inner:
        return f"includes \"{header}\"; examples include only include/fovea"
    if parts[0] == "include" and inner:
        return f"includes \"{header}\"; public headers include only one another"
    if parts[0] == "src" and inner and not may_include(parts[1], first):
        return f"includes \"{header}\"; {parts[1]} is not below {first}"
    return None


def functions(lines):
    """Yields the first line and the length of each brace block that follows a ')' and is not inside another such block."""
    depth, start, opened = 0, None, 0
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'|//.*', "", line)
        if start is None and re.search(r"\)[\w\s&:,<>()*\[\]-]*\{\s*$", code) and not re.match(r"\s*(namespace|extern)\b", code):
            start, opened = number, depth
        depth += code.count("{") - code.count("}")
        if start is not None and depth <= opened:
            yield start, number - start + 1
            start = None


def check_file(path):
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for comparison in COMPARED.finditer(text):
        if not ELEMENT.search(comparison[1]):
            yield text.count("\n", 0, comparison.start()) + 1, "compares with a JSON value; expected its .get<T>()"
    if len(lines) > FILE_LINES:
        yield FILE_LINES + 1, f"the file has {len(lines)} lines; at most {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield number, f"{len(line)} columns; at most {COLUMNS}"
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)', line)
        problem = include and check_include(name, include[1])
        if problem:
            yield number, problem
        unportable = UNPORTABLE.search(line)
        if unportable and not name.startswith(UNPORTABLE_PLACES):
            yield number, f"std::{unportable[1] or unportable[2]} depends on the version of the library; use base/math.h or base/random.h"
        family = FAMILIES.search(line)
        if family and not name.startswith(FAMILY_PLACES):
            yield number, f"names the family {family[1]}; only src/families/, the presets, apps/, bench/ and tests/ may name families"
    for start, length in functions(lines):
        if length > FUNCTION_LINES:
            yield start, f"the function has {length} lines; at most {FUNCTION_LINES}"


def repeated_types():
    """Yields types that two headers define in one namespace: with two definitions of a name, the program misbehaves silently."""
    found = {}
    for top in ("include", "src"):
        for path in sorted((ROOT / top).rglob("*.h")):
            namespace = ""
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                opened = re.match(r"(?:inline )?namespace ([\w:]+) \{", line)
                namespace = opened[1] if opened else namespace
                defined = re.match(r"(?:struct|class|enum class|enum) (\w+)\b(?!::)[^;(]*\{", line)
                if not defined:
                    continue
                place = found.setdefault((namespace, defined[1]), path)
                if place != path:
                    yield path, number, f"{namespace}::{defined[1]} is also defined in {place.relative_to(ROOT)}"


def main():
    count = 0
    for path, number, problem in repeated_types():
        count += 1
        print(f"{path.relative_to(ROOT)}:{number}: {problem}")
    for path in cpp_files():
        for number, problem in check_file(path):
            count += 1
            print(f"{path.relative_to(ROOT)}:{number}: {problem}")
    print(f"check_layers: {count} problem{'s' if count != 1 else ''}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
