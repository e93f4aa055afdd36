#!/usr/bin/env python3
"""Renders random templates with Jinja2, in the environment of transformers, and with fovea, and prints the differences.

Usage: fuzz_templates.py UNIT_JINJA [COUNT [SEED]], where UNIT_JINJA is the test program of src/text/jinja (build/release/tests/unit_jinja).
Features that fovea refuses as unsupported do not count. Without transformers and jinja2, it prints a message and exits."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import ROOT  # noqa: E402

try:
    from make_chat_templates import case
except SystemExit:
    print("fuzz_templates: skipped, transformers is not installed")
    sys.exit(0)

from template_cases import VARIABLES  # noqa: E402

NAMES = [*VARIABLES, "undefinedvar"]
LITERALS = ["0", "1", "-2", "7", "2.5", "-0.5", "true", "false", "none", "''", "'a'", "'Ab c'", "' x\\n'", "'é日'", "[]", "[1, 2, 3]",
            "['b', 'a']", "{}", "{'a': 1, 'b': [2]}", "(1, 'x')", "range(4)"]
METHODS = ["upper()", "lower()", "strip()", "split()", "split(',')", "title()", "capitalize()", "items()|list", "keys()|list", "values()|list",
           "get('a')", "get('q', 0)", "startswith('a')", "endswith('c')", "replace('a', 'bb')", "join(['x', 'y'])", "rsplit(' ', 1)", "lstrip()",
           "rstrip('c')", "partition('b')", "index(1)"]
FILTERS = ["upper", "lower", "trim", "length", "first", "last", "list", "string", "int", "float", "abs", "sort", "min",
           "max", "unique|list", "reverse|list", "join", "join(', ')", "tojson", "tojson(indent=2)", "default('d')", "default('d', true)",
           "replace('a', 'b')", "capitalize", "title", "indent", "indent(2, true)", "map('string')|list",
           "map('upper')|list", "select|list", "reject('none')|list", "items|list", "dictsort", "e",
           "map(attribute='role')|list", "selectattr('n')|list|length", "format('x')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "odd", "even",
         "true", "false", "in [1, 'a']", "eq 1", "gt 1", "callable", "divisibleby 2"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "and", "or", "==", "!=", "<", "<=", ">", ">=", "in", "not in"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = list(NAMES)

    def pick(self, options):
        return self.random.choice(options)

    def expression(self, depth):
        if depth == 0 or self.random.random() < 0.15:
            return self.pick(self.names) if self.random.random() < 0.6 else self.pick(LITERALS)
        inner = lambda: self.expression(depth - 1)
        kind = self.random.randrange(12)
        if kind < 3:
            return f"({inner()} {self.pick(BINARY)} {inner()})"
        if kind < 6:
            return f"({inner()})|{self.pick(FILTERS)}"
        # Only slices of names: Jinja2's optimiser makes an invalid slice of a constant undefined, which is an error otherwise.
        part = f"({self.pick(self.names)})[{self.pick(['1:', ':-1', '::-1', '::2', '1:2'])}]"
        return [f"({inner()}).{self.pick(METHODS)}", self.pick([part, f"({inner()})[{self.pick(['0', '-1', repr('a'), 'n'])}]"]),
                f"({inner()} is {self.pick(['', 'not '])}{self.pick(TESTS)})", f"({inner()} if {inner()} else {inner()})", f"(not {inner()})",
                f"[{inner()}, {inner()}]"][kind - 6]

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))

    def statement(self, depth):
        space = lambda: self.pick(["", "", "", "-"])
        text = self.pick(["", "x", " y ", "\n", "\n  ", "é"])
        kind = self.random.randrange(8) if depth > 0 else self.random.randrange(3)
        expression = self.expression(2)
        if kind < 3:
            return text + "{{" + space() + f" {expression} " + space() + "}}"
        tag = lambda inside: "{%" + space() + f" {inside} " + space() + "%}"
        body = self.body(depth - 1)
        name = self.pick(["v", "w"])
        if kind == 3:
            return text + tag(f"if {expression}") + body + tag("else") + self.body(depth - 1) + tag("endif")
        if kind == 4:
            condition = self.pick(["", f" if {self.expression(1)}"])
            return text + tag(f"for {name} in {expression}{condition}") + body + "{{ loop.index }}" + tag("endfor")
        if kind == 5:
            return text + tag(f"set {name} = {expression}") + "{{ " + name + " }}" + body
        if kind == 6:
            return text + tag(f"set {name}") + body + tag("endset") + "{{ " + name + "|length }}"
        return text + tag(f"macro {name}(q, r={self.pick(LITERALS)})") + body + "{{ q }}" + tag("endmacro") + "{{ " + f"{name}({expression})" + " }}"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    maker = Maker(seed)
    variables = {name: VARIABLES[name] for name in VARIABLES}
    cases = []
    for i in range(count):
        source = "{{ " + maker.expression(3) + " }}" if i % 2 else maker.body(2)
        cases.append(case(source, variables))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cases.json"
        path.write_text(json.dumps({"variables": variables, "cases": cases}), encoding="utf-8")
        environment = dict(os.environ, FOVEA_TEMPLATE_CASES=str(path))
        done = subprocess.run([program, "--gtest_filter=JinjaGoldens.FileOfCasesMatchesJinja2", "--gtest_brief=1"], cwd=ROOT, env=environment,
                              stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if "1 test from 1 test suite ran" not in done.stdout:
        sys.exit(f"fuzz_templates: {program} compared nothing; expected the tests of src/text/jinja")
    print(f"{count} templates, seed {seed}, {sum('error' in each for each in cases)} of them refused by Jinja2")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
