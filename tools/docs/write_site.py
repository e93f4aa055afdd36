#!/usr/bin/env python3
"""Builds the site in build/site with Sphinx: the pages of docs/, pages written from the program and from the headers, and the texts at the
root. `./run docs` calls this script.

docs/README.md is the start page. The links in its lists, and in those of CONTENTS, are the navigation of the site; a section is one part of
it. A page that no list names is an error, as every warning of Sphinx is.

Usage: write_site.py [--out FOLDER]; default: build/site. The program is $FOVEA_BIN; default: build/release/fovea."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import write_families
import write_fields
import write_headers
import write_options

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXTS = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
CONTENTS = ("README.md", "course.md", "core.md", "commands/README.md", "headers/README.md")
# Pages that are written here, by the section of docs/README.md to which they belong.
WRITTEN = {"Reference": ["families.md", "request-fields.md", "headers/index.md", "examples.md", "Index <genindex>"]}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"^(?:-|\d+\.) .*?\]\(([^)\s#:]+\.md)\)", re.MULTILINE)
# What furo and Sphinx leave out for readers who use a keyboard or a screen reader.
ACCESSIBLE = [
    (re.compile(r'(<p class="caption" role="heading")(?=>)'), r'\1 aria-level="2"'),
    (re.compile(r'(<aside class="sidebar-drawer")(?=>)'), r'\1 aria-label="Pages"'),
    (re.compile(r'(<aside class="toc-drawer[^"]*")(?=>)'), r'\1 aria-label="On this page"'),
    (re.compile(r'(<label class="overlay [^>]*)>'), r'\1 aria-hidden="true">'),
    (re.compile(r'(<div class="content-icon-container")(?=>)'), r'\1 role="region" aria-label="Appearance and contents"'),
    (re.compile(r'(<pre|<div class="table-wrapper[^"]*")(?=>)'), r'\1 tabindex="0"'),
    (re.compile(r'(?=<div id="search-results">)'), '<h1 class="visually-hidden">Search</h1>'),
    (re.compile(r'<th class="head[^>]*>(<p></p>|\s*)</th>'), "<td></td>"),
]
IMPORT = 'import Gumshoe from "./gumshoe-patched.js";'
LANGUAGES = {".cc": "cpp", ".c": "c", ".txt": "cmake"}


def place_of(path):
    """Returns the page of the site for a file of the repository, relative to the site, or None."""
    if path.is_relative_to(ROOT / "examples"):
        return pathlib.PurePosixPath("examples.md")
    if path.is_relative_to(write_headers.HEADERS):
        return pathlib.PurePosixPath("headers", path.relative_to(write_headers.HEADERS).with_suffix(".md"))
    if path.is_relative_to(DOCS):
        local = pathlib.PurePosixPath(path.relative_to(DOCS))
        return local.with_name("index.md") if local.name == "README.md" else local
    return pathlib.PurePosixPath(TEXTS[path.name]) if path.parent == ROOT and path.name in TEXTS else None


def course_block(language, content):
    """Returns a view or a question of the course as the site shows it."""
    if language == "view":
        return f"```{{admonition}} In `fovea learn`\n{content.splitlines()[-1]}.\n```"
    question = content.split("\nanswer:")[0]
    answer = re.search(r"^answer: (?:number|word) (.+)$", content, re.MULTILINE)
    said = answer[1] if answer else "<code>fovea learn</code> checks it on its model."
    return f"```{{admonition}} Question\n{question}\n\n<details><summary>Answer</summary>{said}</details>\n```"


def formula(found):
    """Returns a formula of the course as code."""
    text = found[1]
    while "{" in text:
        text = re.sub(r"([\^_]?)\{([^{}]*)\}", lambda group: f"{group[1]}({group[2]})" if group[1] else group[2], text)
    return f"`{text}`"


def mended(text, origin, page):
    """Returns Markdown of the file `origin` as the page `page` of the site: links lead to pages, or are dropped."""
    def link(found):
        mark, words, target, anchor = found.groups()
        if anchor and anchor.startswith("#view="):  # a view of the inspector
            return words
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = (origin.parent / target).resolve()
        place = place_of(path)
        if place is None:
            return words
        if place.name == "examples.md" and path.is_file():
            anchor = "#" + path.name.replace(".", "")
        way = os.path.relpath(place, page.parent)
        return f"{mark}[{words}]({way}{anchor or ''})"

    if origin.parent.name == "course":
        text = re.sub(r"^\$(.*)\$$", formula, text, flags=re.MULTILINE)
    # Code keeps its text: blocks between fences, and code within lines.
    pieces, end = [], 0
    for block in FENCED.finditer(text):
        pieces += [(text[end:block.start()], True), (course_block(block[2], block[3]) if block[2] in ("view", "question") else block[0], False)]
        end = block.end()
    pieces.append((text[end:], True))
    return "".join(LINK.sub(link, piece) if mend else piece for piece, mend in pieces)


def contents(text, more):
    """Yields the navigation of a page: a table of contents for each section with pages in its lists."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        title = section.split("\n")[0]
        pages = ITEM.findall(section) + more.get(title, [])
        if pages:
            caption = "" if title.startswith("# ") else f":caption: {title}\n"
            yield f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(dict.fromkeys(pages)) + "\n```\n"


def examples():
    yield "# Examples\n\nThe programs in the folder `examples` of the sources, which one CMake project builds against the installed library.\n"
    for path in sorted((ROOT / "examples").iterdir()):
        yield f"\n## {path.name}\n\n```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```\n"


def stage(folder):
    """Writes the sources of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    (folder / "headers").mkdir()
    write_options.write(folder / "commands")
    write_headers.write(folder / "headers")
    (folder / "families.md").write_text(write_families.page(), encoding="utf-8")
    (folder / "request-fields.md").write_text(write_fields.page(), encoding="utf-8")
    (folder / "examples.md").write_text("".join(examples()), encoding="utf-8")
    for page in sorted(folder.rglob("*.md")):
        local = page.relative_to(folder)
        text = page.read_text(encoding="utf-8")
        out = page.with_name("index.md") if local.name == "README.md" else page
        text = mended(text, DOCS / local, pathlib.PurePosixPath(out.relative_to(folder)))
        if str(local) in CONTENTS:
            text += "".join(contents(text, WRITTEN if str(local) == "README.md" else {}))
        page.unlink()
        out.write_text(text, encoding="utf-8")
    for name, page in TEXTS.items():
        (folder / page).write_text(mended((ROOT / name).read_text(encoding="utf-8"), ROOT / name, pathlib.PurePosixPath(page)), encoding="utf-8")


def finish(site):
    """Mends the pages that Sphinx wrote, and the files of Debian's furo, which refer to files outside of the site."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for pattern, better in ACCESSIBLE:
            text = pattern.sub(better, text)
        page.write_text(text, encoding="utf-8")
    script, style = site / "_static/scripts/furo.js", site / "_static/styles/furo.css"
    if (text := script.read_text(encoding="utf-8")).startswith(IMPORT):
        script.write_text(script.with_name("gumshoe-patched.js").read_text(encoding="utf-8") + text.removeprefix(IMPORT), encoding="utf-8")
    text = style.read_text(encoding="utf-8")
    if found := re.match(r"@import url\((/javascript/[^)]*)\);", text):
        shared = pathlib.Path("/usr/share" + found[1])
        text = (shared.read_text(encoding="utf-8") if shared.exists() else "") + text[found.end():]
    if "prefers-color-scheme" not in text:  # its compiler dropped the colours of a dark system
        dark = re.search(r'body\[data-theme="dark"\] (\{[^}]*\})', text)[1]
        text += f'@media (prefers-color-scheme: dark) {{ body:not([data-theme="light"]) {dark} }}\n'
    style.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/site")
    out = parser.parse_args().out
    sources = out.with_name(out.name + "-sources")
    stage(sources)
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run(["sphinx-build", "-q", "-W", "--keep-going", "-j", "auto", "-c", ROOT / "tools/docs/site", "-d", f"{sources}-trees",
                           "-b", "html", sources, out], check=False)
    finish(out)
    if done.returncode == 0:
        print(f"wrote {os.path.relpath(out)}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
