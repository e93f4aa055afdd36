#!/usr/bin/env python3
"""check_abi.py [--library LIBRARY] [--abidiff] [--update]: compares the C interface, include/fovea/c.h, with that of the last release in
tests/abi. Prints incompatible changes and exits with 1 if there are any. New functions, new constants and new fields at the end of
structs that begin with `size` are compatible.

--library: also checks that this libfovea.so exports exactly the functions of the header. --abidiff: also compares with abidiff of
libabigail. --update: at a release, stores the header as the new baseline."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/fovea/c.h"
BASELINE = ROOT / "tests/abi/released_c_header.txt"
COMPILER = os.environ.get("CC", "cc")


def without_comments(text):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n"


def compile_c(source, out, *flags):
    subprocess.run([COMPILER, "-x", "c", "-std=c99", *flags, "-o", out, "-"], input=source.encode(), check=True)


def declared(header):
    """Returns the declarations of a header: functions, callbacks, structs with their fields, and constants."""
    code = " ".join(line for line in header.split("\n") if not line.startswith("#"))
    types = {}
    for result, name, parameters in re.findall(r"FOVEA_API ([\w* ]+?) ?(fovea_\w+)\(([^)]*)\);", code):
        types[f"function {name}"] = f"{result} ({nameless(parameters)})"
    for result, name, parameters in re.findall(r"typedef (\w+) \(\*(fovea_\w+)\)\(([^)]*)\);", code):
        types[f"callback {name}"] = f"{result} ({nameless(parameters)})"
    structs = {}
    for name, body in re.findall(r"typedef struct (\w+) \{([^}]*)\}", code):
        structs[name] = [field for declaration in body.split(";") if declaration.strip() for field in fields(declaration)]
    constants = [word for body in re.findall(r"enum(?: \w+)? \{([^}]*)\}", code) for word in re.findall(r"(\w+) =", body)]
    return types, structs, constants


def nameless(parameters):
    """Returns the types of parameters without their names, which are not a part of the interface."""
    each = [" ".join(parameter.split()) for parameter in parameters.split(",")]
    return ", ".join(parameter if parameter == "void" else re.sub(r" ?\b\w+$", "", parameter) for parameter in each)


def fields(declaration):
    """Yields (name, type) of each field of a declaration such as "float top_p, min_p"."""
    first, *others = " ".join(declaration.split()).split(", ")
    kind, name = re.fullmatch(r"(.*?[ *])(\w+)", first).groups()
    for each in (name, *others):
        yield each, kind.strip()


def described(header):
    """Returns {declaration: its type, or numbers that the compiler computes}."""
    types, structs, constants = declared(header)
    lines = [f'printf("constant {name}\\t%d\\n", (int){name});' for name in constants]
    for struct, members in structs.items():
        lines.append(f'printf("size {struct}\\t%zu\\n", sizeof({struct}));')
        for name, kind in members:
            lines.append(f'printf("field {struct}.{name}\\t%zu %zu {kind}\\n", offsetof({struct}, {name}), sizeof((({struct}*)0)->{name}));')
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layout"
        compile_c(header + "#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n", program)
        printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return types | dict(line.split("\t") for line in printed.splitlines())


def sized_structs(found):
    return [name[6:-5] for name in found if name.startswith("field ") and name.endswith(".size") and found[name].startswith("0 ")]


def incompatible(old, new):
    """Yields the changes that break programs which were compiled with the old header."""
    sized = sized_structs(old)
    for name, value in old.items():
        if name not in new:
            yield f"{name} is missing; it was: {value}"
        elif name.startswith("size ") and name[5:] in sized:
            if int(new[name]) < int(value):
                yield f"{name} is {new[name]}; expected at least {value}"
        elif new[name] != value:
            yield f"{name} is {new[name]}; expected {value}"
    for name, value in new.items():
        struct = name[6:].split(".")[0]
        if name.startswith("field ") and name not in old and f"size {struct}" in old:
            if struct not in sized:
                yield f"{name} is new; expected no change, since the struct has no size"
            elif int(value.split()[0]) < int(old[f"size {struct}"]):
                yield f"{name} is inside of the old struct; expected new fields at its end"


def padded(found):
    """Yields sized structs that end with padding, where a new field would not change the size."""
    for struct in sized_structs(found):
        ends = [sum(map(int, value.split()[:2])) for name, value in found.items() if name.startswith(f"field {struct}.")]
        if max(ends) != int(found[f"size {struct}"]):
            yield f"struct {struct} ends with padding; expected a field `reserved`"


def wrong_exports(library, found):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    exported = {re.sub(r"@.*", "", line.split()[2]) for line in listed.splitlines() if line.split()[1] != "A"}
    functions = {name[9:] for name in found if name.startswith("function ")}
    for name in sorted(exported - functions):
        yield f"{library} exports {name}; expected only the functions of the header"
    for name in sorted(functions - exported):
        yield f"{library} does not export {name}"


def stub(header, library):
    """Compiles a library with the functions of a header and with debug information, from which abidiff reads the types."""
    code = " ".join(line for line in header.split("\n") if not line.startswith("#"))
    functions = re.findall(r"FOVEA_API ([^;]*\));", code)
    compile_c(header + "".join(f"{function} {{ __builtin_trap(); }}\n" for function in functions), library, "-g", "-shared", "-fPIC", "-w")


def abidiff(old, new):
    with tempfile.TemporaryDirectory() as folder:
        libraries = [pathlib.Path(folder) / name for name in ("old.so", "new.so")]
        for header, library in zip((old, new), libraries):
            stub(header, library)
        done = subprocess.run(["abidiff", *libraries], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode & 8:  # the bit of incompatible changes
        yield "abidiff: incompatible changes"
    elif done.returncode & 3:  # errors
        yield f"abidiff: exit {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--abidiff", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    header = without_comments(HEADER.read_text())
    found = described(header)
    if options.update:
        BASELINE.write_text(header)
    old_header = BASELINE.read_text()
    old = described(old_header)
    problems = [*incompatible(old, found), *padded(found)]
    if options.library:
        problems += wrong_exports(options.library, found)
    if options.abidiff:
        if not shutil.which("abidiff"):
            sys.exit("check_abi: no abidiff; expected the package abigail-tools")
        problems += abidiff(old_header, header)
    for problem in problems:
        print(problem)
    added = [name for name in found if name not in old]
    print(f"check_abi: {len(found)} declarations, {len(added)} new, {len(problems)} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
