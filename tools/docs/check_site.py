#!/usr/bin/env python3
"""Checks the pages of the site: every link and every file within it exists, every anchor too, every link to another site is a complete
address, nothing is loaded from another site, and every page can be reached from index.html.

Usage: check_site.py FOLDER"""
import argparse
import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = {"src", "srcset", "data", "poster"}
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}


class Page(html.parser.HTMLParser):
    """The identifiers and the links of a page."""

    def __init__(self, path):
        super().__init__()
        self.names, self.links, self.loaded, self.repeated = set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        name = attributes.get("id")
        if name in self.names:
            self.repeated.append(name)
        self.names.update(value for value in (name, attributes.get("name") if tag == "a" else None) if value)
        for key, value in attrs:
            if key in LOADED or (tag == "link" and key == "href" and LOADING_RELATIONS & set((attributes.get("rel") or "").split())):
                self.loaded.append(value or "")
            elif key == "href":
                self.links.append(value or "")


def problems(folder):
    """Yields the problems; the last value is a summary."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    reached, waiting, counts = set(), [folder / "index.html"], {"internal": 0, "external": 0}
    for path, page in pages.items():
        here = path.relative_to(folder)
        for name in page.repeated:
            yield f"{here}: #{name}: occurs twice; expected one element"
        for link in page.links + page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                counts["external"] += 1
                if link in page.loaded:
                    yield f"{here}: {link}: is loaded from another site; expected a file of this one"
                elif parts.scheme not in ("http", "https") or not re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc) or " " in link:
                    yield f"{here}: {link}: is not a complete address; expected https://HOST/..."
                continue
            counts["internal"] += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                yield f"{here}: {link}: no such file"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                yield f"{here}: {link}: the page has no such anchor"
    for path in folder.rglob("*.css"):
        for link in re.findall(r"url\(['\"]?([^'\")]+)", path.read_text(encoding="utf-8")):
            if not link.startswith("data:") and not (path.parent / link.split("#")[0]).exists():
                yield f"{path.relative_to(folder)}: {link}: no such file"
    while waiting:
        path = waiting.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        waiting += [(path.parent / urllib.parse.unquote(urllib.parse.urlsplit(link).path)).resolve() for link in pages[path].links]
    for path in pages.keys() - reached:
        yield f"{path.relative_to(folder)}: no link leads to it from index.html"
    yield f"{len(pages)} pages, {counts['internal']} links within the site, {counts['external']} to other sites"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    *found, summary = problems(parser.parse_args().folder.resolve())
    for problem in found:
        print(problem)
    print(f"check_site: {summary}; {len(found)} problem{'s' if len(found) != 1 else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
