"""The documents agree with the program."""
import functools
import json
import multiprocessing.pool
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from support import ENVIRONMENT, FOVEA, ROOT, fovea

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# A command in a block of its own, after variables, mpirun or a prompt.
COMMAND = re.compile(r"^(?: {4}|\t)(?:[A-Z_]+=\S+ |mpirun -n \d+ |\$ )*fovea (.+)$|^(?:[A-Z_]+=\S+ )*fovea ([a-z].+)$", re.MULTILINE)
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REST = re.compile(r" (?:#|\||>|<|2>|&&|;|\|\|)(?: |$|\S)")  # comments, and what belongs to the shell
OTHER_WORDS = {"help", "inspector", "computes", "course", "does", "downloads"}  # "fovea help VERB", titles, a sentence, a name in the storage of a browser


def commands_of(page):
    """Returns the complete commands of a page, without those that have placeholders."""
    text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
    indented = FENCED.sub("", text)
    found = [first for first, _ in COMMAND.findall(indented) if first]
    for block in FENCED.findall(text):
        found += [first or second for first, second in COMMAND.findall(block)]
    for command in found:
        try:
            words = shlex.split(REST.split(f" {command} ")[0])
        except ValueError:
            continue  # a quoted text in which a sign of the shell stands
        if words and not any(word == "..." or word.startswith("[") for word in words):
            yield words


@functools.lru_cache(None)
def help_of(verb):
    done = fovea(verb, "--help-all")
    return done.stdout.decode() if done.returncode == 0 else None


@functools.lru_cache(None)
def experiments():
    return {"list", "judge", *(each["name"] for each in json.loads(fovea("lab", "list", "--json").stdout))}


def anchors_of(text):
    """Returns the anchors of a page's headings, as GitHub makes them, and those that it names."""
    text = FENCED.sub("", text)
    found, seen = set(re.findall(r'<a (?:id|name)="([^"]+)"', text)), {}
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return found


class Documents(unittest.TestCase):
    def test_written_pages_have_all_verbs_options_fields_and_headers(self):
        with tempfile.TemporaryDirectory() as holder:
            folder, headers = pathlib.Path(holder), pathlib.Path(holder, "headers")
            headers.mkdir()
            for script, out in (("write_options.py", folder), ("write_fields.py", folder), ("write_headers.py", headers)):
                subprocess.run([sys.executable, ROOT / "tools/docs" / script, out], env={**os.environ, "FOVEA_BIN": FOVEA}, check=True)
            for verb, listed in json.loads(fovea("--list-options").stdout).items():
                page = (folder / f"{verb}.md").read_text(encoding="utf-8")
                for option in listed:
                    self.assertRegex(page, rf"\n```{{option}} .*(?<![\w-]){option['name']}(?![\w-])")
            sections = {section.split("\n")[0]: section for section in (folder / "request-fields.md").read_text(encoding="utf-8").split("\n## ")}
            for field in json.loads(fovea("serve", "--list-fields").stdout):
                for route in field["of"]:
                    self.assertIn(f"\n| `{field['name']}` | ", sections[route])
            for header in (ROOT / "include/fovea").rglob("*.h"):
                page = (headers / header.relative_to(ROOT / "include/fovea").with_suffix(".md")).read_text(encoding="utf-8")
                for declared in re.findall(r"^(?:struct|class|enum class) \w+.*$", header.read_text(encoding="utf-8"), re.MULTILINE):
                    self.assertIn(f"\n{declared}\n", page)

    def test_the_page_of_families_has_a_complete_row_for_each(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "tools/docs/write_families.py", folder], check=True)
            rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", pathlib.Path(folder, "families.md").read_text(encoding="utf-8"), re.MULTILINE)
            pathlib.Path(folder, "config.json").write_text('{"model_type": "unknown"}', encoding="utf-8")
            known = re.search(r"expected one of (\d+) kinds", fovea("plan", folder).stderr.decode())[1]
        self.assertEqual(len(dict(rows)), int(known) - 1)  # without fovea's own
        for name, cells in rows:
            kind, heads, gguf, layers, _ = cells.split(" | ")
            self.assertNotEqual(heads, "-", name)
            self.assertTrue(layers != "-" or kind == "recurrent network", name)

    def test_commands_are_listed_as_the_help_groups_them(self):
        page = (ROOT / "docs/commands/README.md").read_text(encoding="utf-8")
        listed = re.findall(r"^(?:## (.*)|- \[(\w+)\]\(\2\.md\): (.*))$", page.split("\n## Common")[0], re.MULTILINE)
        text = fovea("--help").stdout.decode().split("\n\n", 2)[2]
        self.assertEqual(listed, [(title, verb, about) for title, verb, about in re.findall(r"^(?:(\S.*):|  (\w+) +(\S.*))$", text, re.MULTILINE)])

    def test_performance_agrees_with_the_records(self):
        done = subprocess.run([sys.executable, ROOT / "tools/docs/write_performance.py", "--check"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_figures_agree_with_the_records(self):
        done = subprocess.run([sys.executable, ROOT / "tools/docs/write_figures.py", "--check"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_claims_agree_with_the_results(self):
        done = subprocess.run([sys.executable, ROOT / "tools/docs/write_claims.py", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_verdicts_follow_from_the_numbers_and_rules_did_not_change(self):
        done = subprocess.run([sys.executable, ROOT / "tools/records/judge_results.py", "--check"], env={**os.environ, "FOVEA_BIN": FOVEA},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    # --dump-config reads a whole command line, and ends before anything is opened.
    def test_commands_in_blocks_are_accepted(self):
        cases = [(page, words) for page in PAGES for words in commands_of(page)]
        self.assertGreater(len(cases), 200)
        with tempfile.TemporaryDirectory() as place, multiprocessing.pool.ThreadPool(2) as pool:
            def run(case):
                own = case[1][:case[1].index("--")] if "--" in case[1] else case[1]  # not those of another program
                return subprocess.run([FOVEA, *own, "--dump-config"], cwd=place, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            for (page, words), done in zip(cases, pool.map(run, cases)):
                if done.returncode and "cannot be read (No such file" not in done.stderr:  # a --config file
                    self.fail(f"{page.name}: fovea {' '.join(words)}: {done.stderr.strip()}")
                if words[0] == "lab" and words[1] not in {"list", "judge"}:
                    self.assertIn(words[1], experiments(), f"{page.name}: fovea {' '.join(words)}")

    def test_commands_in_sentences_have_known_verbs_and_options(self):
        sources = [*PAGES, *ROOT.glob("apps/web/*.js"), *ROOT.glob("apps/web/*.html"), *ROOT.glob("apps/web/chat/*"),
                   *ROOT.glob("apps/**/*.cc"), *ROOT.glob("src/**/*.cc")]
        for page in sources:
            quoted = {".md": r"`fovea ([^`\n]+)`", ".cc": r'"(?:[^"\n]*: | *)fovea ([a-z][^"\n]*)'}.get(page.suffix, r"fovea ([a-z][^`\"<\n]*)")
            for command in re.findall(quoted, page.read_text(encoding="utf-8")):
                words = command.split("|")[0].split()
                verb = words[0].strip(".,:;)")
                if verb in OTHER_WORDS or verb.isupper() or verb.startswith("-") or page.name == "where-changes-go.md":
                    continue
                with self.subTest(page=page.name, command=command):
                    self.assertIsNotNone(help_of(verb), "is not a verb")
                    for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", " ".join(words)):
                        self.assertRegex(help_of(verb) + "--version", f"{option}(?![\\w-])")
                    if verb == "lab" and len(words) > 1 and not words[1].isupper():
                        self.assertIn(words[1], experiments())

    def test_the_page_shows_the_results_of_the_laboratory(self):
        done = subprocess.run([sys.executable, ROOT / "tools/docs/write_measured.py", "--check"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_named_files_exist(self):
        """Regression: tables of the guides named files that had moved."""
        name = re.compile(r"`((?:src|include|apps|contrib|tests|tools|bench|lab|examples|cmake|docs)/[\w./-]+\.\w+)`(?! \(\*\*new)")
        missing = {(page.name, path) for page in PAGES for path in name.findall(page.read_text(encoding="utf-8"))
                   if "NAME" not in path and not (ROOT / path).exists()}
        self.assertEqual(missing, set())

    def test_links_have_targets(self):
        for page in PAGES:
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for link in re.findall(r"\]\(([^)\s]+)[^)]*\)|(?:src|href)=\"([^\"]+)\"", text):
                name, _, anchor = (link[0] or link[1]).partition("#")
                if name.startswith("http") or anchor.startswith("view="):  # a view of the inspector, in the course
                    continue
                target = (page.parent / name).resolve() if name else page
                with self.subTest(page=page.name, link=name, anchor=anchor):
                    self.assertTrue(target.exists())
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors_of(target.read_text(encoding="utf-8")))


if __name__ == "__main__":
    unittest.main()
