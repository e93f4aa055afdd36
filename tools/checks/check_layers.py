#!/usr/bin/env python3
"""Checks the rules for C++ files: which folders and libraries a file may include, where families may be named, which functions of the C++
library and comparisons are not portable, and the lengths of files, lines and functions. Prints violations; exits with 1 if there are any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The storeys and their folders, in their order: a folder may use those before it.
STOREYS = {
    "core": "base kernels parallel tensor safetensors ops", "text": "unicode languages records tokenizer jinja chat grammar calls", "media": "image audio",
    "model": "hub spec cache nn transformer checkpoint families loading formats open",
    "infer": "metrics generate transcribe embed classify vision search",
    "train": "data optim plan losses log loop rewards tasks start", "study": "inspect explain probing", "api": "layers api c", "contrib": "course lab"}
ORDER = " ".join(STOREYS.values()).split()
STOREY_OF = {folder: storey for storey, folders in STOREYS.items() for folder in folders.split()}
# The storeys with a folder of public headers and, above core, a namespace. The headers in include/fovea/ itself and those of nn/
# combine storeys, as src/api/ does.
PUBLIC = [storey for storey in STOREYS if storey not in ("api", "contrib")]
# These folders may use only the named ones.
ONLY = {"course": {"base"}, "lab": {"base"}, "image": {"base"}, "audio": {"base"}, "unicode": {"base"}, "languages": {"base"}, "tokenizer": {"base", "unicode"}, "jinja": {"base", "unicode"},
        "grammar": {"base", "unicode", "tokenizer"}, "calls": {"base", "unicode", "tokenizer", "chat", "grammar"}, "chat": {"base", "unicode", "tokenizer", "jinja"}, "metrics": {"base", "unicode"},
        "parallel": {"base", "kernels"}, "hub": {"base"}, "records": {"base", "unicode"}, "data": {"base", "unicode", "records", "tokenizer"}}
APPS = "terminal http jobs options tuning serve inspector cli".split()
PYTHON_APPS = ("http", "serve", "cli")  # the routes of the server, the server, and the program
APART = {"generate", "embed"}  # these folders do not include one another
FAMILIES = re.compile(r"\b(gpt2|llama(?!\.cpp)|bert|roberta|distilbert|mpnet|t5|mistral|mixtral|qwen\d?|gemma\d?|bart|marian|phi\d?|"
                      r"bloom|opt|vit|whisper(?!\.cpp)|modernbert|electra|albert|camembert|roformer|rembert|nomic_bert|eurobert|olmo\d?|gpt_neox)\b", re.IGNORECASE)
FAMILY_PLACES = ("src/model/families/", "src/model/formats/", "src/model/open/", "src/model/loading/", "tests/", "docs/", "bench/", "src/model/spec/presets.cc", "src/train/loop/presets.cc", "include/fovea/model/spec.h", "apps/",
                 "src/text/chat/builtin_templates.cc",  # the names of its templates
                 "src/text/calls/call_formats.cc",  # the names of its formats
                 "src/media/image/processor.cc",  # the names of classes in preprocessor_config.json
                 "src/core/base/gguf.h", "src/text/tokenizer/formats/gguf_", "include/fovea/model/gguf.h")  # the last three: keys of GGUF
OWNED = {r"dnnl|oneapi": ("bench/",),
         r"hwy": ("src/core/kernels/cpu/",),
         r"pcre2\.h": ("src/text/unicode/pattern",), r"utf8proc\.h": ("src/text/unicode/", "src/text/jinja/text.cc"),
         r"sndfile\.h": ("src/media/audio/audio_file.cc",), r"soxr\.h": ("src/media/audio/convert_audio.cc",),
         r"mpi\.h": ("src/core/parallel/mpi/",), r"libav\w+": ("src/media/audio/libav/",),
         r"cld2/": ("src/text/languages/cld2/",),
         r"curl/|openssl": ("src/model/hub/curl/",), r"histedit\.h": ("apps/terminal/line_editor.cc",),
         r"png\.h|jpeglib\.h|jerror\.h|webp": ("src/media/image/",),
         r"snappy\.h": ("src/text/records/parquet_pages.cc",), r"zstd\.h": ("src/text/records/parquet_pages.cc", "src/text/records/decompressor.cc", "tests/support/compressed.h"), r"hnswlib": ("src/infer/search/vector_graph.cc",),
         r"cuda|cublas": ("src/core/kernels/cuda/",), r"boost": ("apps/http/",)}
# Functions whose last bits differ between C libraries, and classes that differ between C++ libraries. base/math.h and base/random.h
# replace them.
UNPORTABLE = re.compile(r"\bstd::(a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erfc?|[lt]gamma)\(|"
                        r"\bstd::(\w+_distribution|shuffle|sample|default_random_engine)\b")
UNPORTABLE_PLACES = ("src/core/kernels/reference/", "tests/", "bench/", "examples/")  # compared within tolerances
# A comparison of a value with an element of a JSON value on its right: nlohmann-json 3.11.3 has none for strings.
COMPARED = re.compile(r'\b(?:EXPECT|ASSERT)_(?:EQ|NE)\(((?:[^;"]|"(?:\\.|[^"\\])*")*?),\s*'
                      r'\w+(?:\[\w+\])*(?:\["[^"]*"\]|\.at\("[^"]*"\))(?:\[[^\]]*\])*\)\s*(?:;|<<)')
ELEMENT = re.compile(r'\["|\.at\("|\bJson\(')
FILE_LINES, FUNCTION_LINES, COLUMNS = 600, 60, 100


def cpp_files():
    for top in ("include", "src", "contrib", "apps", "python", "examples", "tests", "bench"):
        yield from (path for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".h", ".cc", ".cu", ".cuh"))


def may_include(folder, other):
    if other == folder or other not in STOREY_OF or folder not in STOREY_OF:
        return True
    if folder in ONLY:
        return other in ONLY[folder]
    if folder in APART and other in APART:
        return False
    return ORDER.index(other) < ORDER.index(folder)


def check_kernels(path, header):
    """The folders in kernels/ are devices, which use the interface and the layouts; the interface and the layouts use no device. Others use
    a device only by the interface, except for the features of the CPU. The GPU's kernels share the formulas of the CPU's, *-inl.h."""
    match = re.match(r"kernels/(\w+)/", header)
    if match is None or match[1] == "layout" or header == "kernels/cpu/cpu_features.h":
        return None
    if path.startswith((f"src/core/kernels/{match[1]}/", "tests/", "bench/")):
        return None
    if path.startswith("src/core/kernels/cuda/") and header.endswith("-inl.h"):
        return None
    return f"includes \"{header}\"; only src/core/kernels/{match[1]}/ uses that device by other than kernels.h"


def storey_at(path):
    """Returns the storey of a file in src/ or include/; None for others."""
    if path == "include/fovea/nn/parameter.h":  # core's tensors alone, for layers
        return "model"
    top, _, rest = path.partition("/")
    if top not in ("src", "include"):
        return None
    folder = rest.removeprefix("fovea/").split("/")[0]
    return folder if folder in PUBLIC else "api"


def check_public(path, header):
    """Public headers follow the order of the storeys too."""
    storey, storeys = storey_at(path), list(STOREYS)
    if storey is None or not header.startswith("fovea/"):
        return None
    other = storey_at("include/" + header)
    return f"includes \"{header}\"; {storey} is below {other}" if storeys.index(other) > storeys.index(storey) else None


def check_include(path, header):
    parts = path.split("/")
    for library, places in OWNED.items():
        if re.match(rf"({library})\b", header) and not path.startswith(places):
            return f"includes <{header}>, which belongs to {', '.join(places)}"
    first = header.split("/")[0]
    inner = first in STOREY_OF and "/" in header
    if parts[0] == "apps" and "/" in header and first in APPS and APPS.index(first) > APPS.index(parts[1]):
        return f"includes \"{header}\"; {parts[1]} is not below {first}"
    if parts[0] == "apps" and inner and first not in ("base", "parallel", "course", "lab"):
        return f"includes \"{header}\"; apps include only include/fovea, contrib, src/core/base and src/core/parallel"
    if parts[0] == "python" and "/" in header and (inner and first != "base" or first in APPS and first not in PYTHON_APPS):
        return f"includes \"{header}\"; python includes only include/fovea, src/core/base and apps/{', '.join(PYTHON_APPS)}"
    if parts[0] == "examples" and inner:
        return f"includes \"{header}\"; examples include only include/fovea"
    if parts[0] == "include" and inner:
        return f"includes \"{header}\"; public headers include only one another"
    folder = parts[2] if parts[0] == "src" else parts[1]
    if parts[0] in ("src", "contrib") and inner and not may_include(folder, first):
        return f"includes \"{header}\"; {folder} may not use {first}"
    return None


def check_namespace(path, lines):
    """The names of a storey are in its namespace, fovea::text for src/text; those of core and api are in fovea. Declarations of names of
    other storeys stand before the file's own namespace."""
    storey = storey_at(path)
    opened = [(number, line) for number, line in enumerate(lines, 1) if line.startswith("namespace fovea")]
    if storey is None or not opened or path.startswith("include/fovea/nn/"):
        return None
    expected = "fovea" if storey in ("core", "api") else f"fovea::{storey}"
    number, line = opened[-1]
    names = line.split()[1].split("::")
    if "::".join(names[: expected.count("::") + 1]) != expected or (expected == "fovea" and len(names) > 1 and names[1] in PUBLIC):
        return number, f"{line}: expected the namespace {expected}"
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
        problem = include and (check_include(name, include[1]) or check_public(name, include[1]) or check_kernels(name, include[1]))
        if problem:
            yield number, problem
        unportable = UNPORTABLE.search(line)
        if unportable and not name.startswith(UNPORTABLE_PLACES):
            yield number, f"std::{unportable[1] or unportable[2]} depends on the version of the library; use base/math.h or base/random.h"
        family = FAMILIES.search(line)
        if family and not name.startswith(FAMILY_PLACES):
            yield number, f"names the family {family[1]}; only src/model/families/, formats/, loading/ and open/, the presets, apps/, bench/ and tests/ may name families"
    if problem := check_namespace(name, lines):
        yield problem
    for start, length in functions(lines):
        if length > FUNCTION_LINES:
            yield start, f"the function has {length} lines; at most {FUNCTION_LINES}"


def repeated_types():
    """Yields types that two headers define in one namespace: with two definitions of a name, the program misbehaves silently."""
    found = {}
    for top in ("include", "src"):
        for path in sorted((ROOT / top).rglob("*.h")):
            if path.stem.removesuffix("-inl").endswith("_arm"):  # instead of the header of x86
                continue
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


def folder_graph():
    """Returns the folders that each folder includes, with one example each. Public headers and tests are left out."""
    roots = {f"{folder}/": (ROOT / "src" / storey if storey != "contrib" else ROOT / "contrib") for folder, storey in STOREY_OF.items()}
    roots |= {f"{app}/": ROOT / "apps" for app in APPS}
    graph = {}
    for path in cpp_files():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("src/", "contrib/", "apps/")):
            continue
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            root = roots.get(header.split("/")[0] + "/")
            other = root and (root / header).parent.relative_to(ROOT).as_posix()
            if other and other != path.parent.relative_to(ROOT).as_posix():
                graph.setdefault(path.parent.relative_to(ROOT).as_posix(), {}).setdefault(other, (path, header))
    return graph


def cycles(graph):
    """Yields an include for each folder that uses a folder which, directly or not, uses the first one."""
    def reached(start):
        found, todo = set(), [start]
        while todo:
            for other in graph.get(todo.pop(), {}):
                if other not in found:
                    found.add(other)
                    todo.append(other)
        return found

    for folder, others in sorted(graph.items()):
        for other, (path, header) in sorted(others.items()):
            if folder < other and folder in reached(other):
                yield path, f"includes \"{header}\"; {other} uses {folder} too"


def main():
    count = 0
    for path, problem in cycles(folder_graph()):
        count += 1
        print(f"{path.relative_to(ROOT)}: {problem}")
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
