"""A character that several tokens share was shown once for each of them.

A user saw “€€€” on the page for a text with one “€”: each of the three byte tokens had the text of the whole character. A token that is
a part of a character now has its bytes as text.
"""
import json
import pathlib
import tempfile
import unittest

from support import fovea


class TokenBytes(unittest.TestCase):
    def test_parts_of_a_character_are_shown_as_bytes(self):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            (folder / "text.txt").write_text("to be or not to be\n" * 200, encoding="utf-8")
            made = fovea("train", folder / "text.txt", "--out", folder / "model", "--tokenizer", "bpe:270", "--steps", "1", "--layers", "1", "--width", "16", "--heads", "2", "--context", "16", "--batch", "1")
            self.assertEqual(made.returncode, 0, made.stderr)
            shown = fovea("inspect", folder / "model", "to €5", "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            rows = json.loads(shown.stdout)["rows"]
        self.assertEqual(rows[-4:], ["<E2>", "<82>", "<AC>", "5"])


if __name__ == "__main__":
    unittest.main()
