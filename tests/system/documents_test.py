"""The documents agree with the program."""
import os
import re
import subprocess
import sys
import unittest

from support import FOVEA, ROOT


class Documents(unittest.TestCase):
    def test_commands_agree_with_the_help(self):
        done = subprocess.run([sys.executable, ROOT / "tools/write_commands.py", "--check"], env={**os.environ, "FOVEA_BIN": FOVEA},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_performance_agrees_with_the_records(self):
        done = subprocess.run([sys.executable, ROOT / "tools/write_performance.py", "--check"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_claims_agree_with_the_results(self):
        done = subprocess.run([sys.executable, ROOT / "tools/write_claims.py", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_page_shows_the_results_of_the_laboratory(self):
        done = subprocess.run([sys.executable, ROOT / "tools/write_measured.py", "--check"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_readme_shows_the_example(self):
        example = (ROOT / "examples/train_and_generate.cc").read_text(encoding="utf-8")
        self.assertIn(f"```cpp\n{example}```", (ROOT / "README.md").read_text(encoding="utf-8"))

    def test_links_have_targets(self):
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)|(?:src|href)=\"([^\"#]+)\"", text):
                target = link[0] or link[1]
                if not target.startswith("http"):
                    self.assertTrue((page.parent / target).exists(), f"{page.name} links to {target}")


if __name__ == "__main__":
    unittest.main()
