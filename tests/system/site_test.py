"""The site of the documents builds without a warning, and its links have targets; the script that checks them finds broken ones."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import FOVEA, ROOT

CHECK = ROOT / "tools/docs/check_site.py"


class Site(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name) / "site"

    def check(self):
        done = subprocess.run([sys.executable, CHECK, self.folder], stdout=subprocess.PIPE, text=True, check=False)
        *problems, summary = done.stdout.splitlines()
        self.assertEqual(done.returncode, 1 if problems else 0)
        self.assertRegex(summary, r"^check_site: \d+ pages, \d+ links within the site, \d+ to other sites; ")
        return problems

    def test_broken_links_are_found(self):
        self.folder.mkdir()
        (self.folder / "index.html").write_text('<p id="a"><a href="b.html#c">b</a><a href="#a">a</a><a href="d.html">d</a><img src="http://e.org/f.png">')
        (self.folder / "b.html").write_text('<p id="d"><p id="d"><a href="http:///x">x</a>')
        (self.folder / "alone.html").write_text("<p>")
        found = self.check()
        self.assertEqual(sorted(found), ["alone.html: no link leads to it from index.html", "b.html: #d: occurs twice; expected one element",
                                         "b.html: http:///x: is not a complete address; expected https://HOST/...",
                                         "index.html: b.html#c: the page has no such anchor", "index.html: d.html: no such file",
                                         "index.html: http://e.org/f.png: is loaded from another site; expected a file of this one"])

    @unittest.skipUnless(shutil.which("sphinx-build"), "needs Sphinx, MyST-Parser and furo, which ./run docs installs")
    def test_the_site_builds_without_warnings_and_its_links_have_targets(self):
        done = subprocess.run([sys.executable, ROOT / "tools/docs/write_site.py", "--out", self.folder], env={**os.environ, "FOVEA_BIN": FOVEA},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.check(), [])
        self.assertGreater(len(list(self.folder.rglob("*.html"))), 150)


if __name__ == "__main__":
    unittest.main()
