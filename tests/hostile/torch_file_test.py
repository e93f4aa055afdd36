"""Hostile files of torch.save() beside an embedder: their pickles are not run, and what they name is refused."""
import io
import pathlib
import pickle
import shutil
import unittest
import zipfile

from hostile import HostileTest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "goldens/bge_m3"


class Call:
    """A pickle that calls a function when Python loads it."""

    def __reduce__(self):
        return print, ("called",)


def archive(entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, contents in entries.items():
            file.writestr(name, contents)
    return out.getvalue()


class HostileTorchFile(HostileTest):
    def good(self):
        shutil.copytree(GOLDEN, self.model, dirs_exist_ok=True)
        self.lines = self.folder / "lines.txt"
        self.lines.write_text("the fox sees\n")

    def run_limited(self, *arguments, **limits):
        return super().run_limited(*(arguments or ("embed", self.model, "--kind", "sparse", self.lines)), **limits)

    def bad(self, pattern, content):
        with self.subTest(pattern=pattern):
            self.write("sparse_linear.pt", content)
            self.refused(r"sparse_linear\.pt: " + pattern)

    def test_pickles_are_not_run(self):
        for protocol in (2, 4):
            name = r"the name \S+print" if protocol == 2 else "the instruction"
            self.bad(f"the pickle has {name}", archive({"a/data.pkl": pickle.dumps(Call(), protocol)}))
        self.bad("the pickle has the name datetime.date", archive({"a/data.pkl": b"\x80\x02cdatetime\ndate\n."}))
        self.bad("the pickle has an element that is not a tensor", archive({"a/data.pkl": b"\x80\x02}X\x01\0\0\0aNs."}))

    def test_damaged_archives_are_refused(self):
        good = (GOLDEN / "sparse_linear.pt").read_bytes()
        for cut in (0, 1, 100, len(good) - 23, len(good) - 1):
            self.bad("", good[:cut])
        self.bad(".*compressed", archive({"a/data.pkl": b"\x80\x02}."}, zipfile.ZIP_DEFLATED))
        self.bad("has no entry data.pkl", archive({"other": b""}))
        self.bad("has 0 tensors", archive({"a/data.pkl": b"\x80\x02}."}))
        self.bad("weight is", (GOLDEN / "colbert_linear.pt").read_bytes())

    def test_many_values_take_little_memory(self):
        for filler in (b"(", b"N", b")", b"\x85", b"}q\0" + b"h\0" * 9):
            self.bad("the pickle", archive({"a/data.pkl": b"\x80\x02)" + filler * ((1 << 20) // len(filler) - 9)}))


if __name__ == "__main__":
    unittest.main()
