"""The C interface: its header, its symbols, its stability, and its use from another language."""
import ctypes as c
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from support import ROOT, FoveaTest

BUILD = pathlib.Path(os.environ.get("FOVEA_BUILD", ROOT / "build/release"))
LIBRARY = BUILD / "libfovea.so"
CACHE = BUILD / "CMakeCache.txt"
SANITIZED = CACHE.exists() and "\nFOVEA_SANITIZE:STRING=\n" not in CACHE.read_text()
CHECK_ABI = [sys.executable, ROOT / "tools/checks/check_abi.py"]
OK, INVALID_ARGUMENT, BAD_FILE = 0, 1, 2
CONTINUE = 1


class Option(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class Generation(c.Structure):
    _fields_ = [("size", c.c_size_t), ("text", c.c_char_p), ("text_size", c.c_size_t), ("ids", c.POINTER(c.c_int32)), ("id_count", c.c_size_t)]


class Progress(c.Structure):
    _fields_ = [("size", c.c_size_t), ("step", c.c_int64), ("steps", c.c_int64), ("epoch", c.c_double), ("loss", c.c_double)]


OnStep = c.CFUNCTYPE(c.c_int, c.POINTER(Progress), c.c_void_p)
HANDLE, TEXT, SIZE, INTS = c.c_void_p, c.c_char_p, c.c_size_t, c.POINTER(c.c_int32)
SIGNATURES = {
    "fovea_version": (TEXT, []),
    "fovea_error": (TEXT, []),
    "fovea_train": (c.c_int, [c.POINTER(Option), SIZE, OnStep, c.c_void_p, c.c_void_p]),
    "fovea_model_open": (c.c_int, [TEXT, c.c_void_p, c.POINTER(HANDLE)]),
    "fovea_model_free": (None, [HANDLE]),
    "fovea_model_error": (TEXT, [HANDLE]),
    "fovea_model_generate": (c.c_int, [HANDLE, TEXT, SIZE, c.c_void_p, c.POINTER(Generation)]),
    "fovea_model_tokenizer": (c.c_int, [HANDLE, c.POINTER(HANDLE)]),
    "fovea_tokenizer_free": (None, [HANDLE]),
    "fovea_tokenizer_encode": (c.c_int, [HANDLE, TEXT, SIZE, c.c_uint32, c.POINTER(INTS), c.POINTER(SIZE)]),
    "fovea_tokenizer_decode": (c.c_int, [HANDLE, INTS, SIZE, c.c_uint32, c.POINTER(c.c_void_p), c.POINTER(SIZE)]),
    "fovea_embedder_open": (c.c_int, [TEXT, c.c_void_p, c.POINTER(HANDLE)]),
    "fovea_embedder_free": (None, [HANDLE]),
    "fovea_embedder_width": (c.c_int64, [HANDLE]),
    "fovea_embedder_embed": (c.c_int, [HANDLE, c.POINTER(TEXT), c.POINTER(SIZE), SIZE, c.c_void_p, c.POINTER(c.c_float), SIZE]),
}


def load():
    library = c.CDLL(str(LIBRARY))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def output(*command, **how):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)


@unittest.skipUnless(shutil.which("cc"), "needs a C compiler named cc")
class Header(FoveaTest):
    def test_the_header_is_valid_c99_and_cpp(self):
        source = self.file("header.c", "#include <fovea/c.h>\nint main(void) { return FOVEA_OK; }\n")
        warnings = ["-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror", "-fsyntax-only", f"-I{ROOT}/include"]
        for compiler in (["cc", "-std=c99", "-x", "c"], ["cc", "-std=c17", "-x", "c"], ["c++", "-std=c++20", "-x", "c++"]):
            flags = [flag for flag in warnings if compiler[0] == "cc" or flag != "-Wstrict-prototypes"]
            done = output(*compiler, *flags, source)
            self.assertEqual((done.returncode, done.stdout), (0, ""), compiler)

    def test_the_interface_is_compatible_with_the_last_release(self):
        done = output(*CHECK_ABI)
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipUnless(shutil.which("abidiff"), "needs abidiff of the package abigail-tools")
    def test_abidiff_finds_no_incompatible_change(self):
        done = output(*CHECK_ABI, "--abidiff")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_check_finds_incompatible_changes(self):
        sys.path.insert(0, str(ROOT / "tools/checks"))
        self.addCleanup(sys.path.pop, 0)
        import check_abi  # pylint: disable=import-outside-toplevel
        header = check_abi.without_comments(check_abi.HEADER.read_text())
        old = check_abi.described(header)

        def changes(before, after):
            self.assertIn(before, header)
            return list(check_abi.incompatible(old, check_abi.described(header.replace(before, after))))

        self.assertEqual(changes("  double diversity_penalty;\n} fovea_generate_options;", "  double diversity_penalty;\n  int64_t more;\n} fovea_generate_options;"), [])
        self.assertEqual(changes("FOVEA_INTERNAL = 6", "FOVEA_INTERNAL = 6, FOVEA_MORE = 7"), [])
        for before, after in (("FOVEA_FAILED = 5", "FOVEA_FAILED = 7"), ("int64_t top_k;", "int32_t top_k;"),
                              ("FOVEA_API int fovea_threads(void);", ""), ("fovea_set_threads(int count)", "fovea_set_threads(long count)"),
                              ("const char* value;\n", "const char* value;\n  int64_t more;\n"),
                              ("int64_t step, steps;\n  double epoch;", "double epoch;\n  int64_t step, steps;")):
            self.assertNotEqual(changes(before, after), [], after)


@unittest.skipIf(SANITIZED, "a build with sanitizers is not shipped")
@unittest.skipUnless(LIBRARY.exists(), "needs libfovea.so, of the target fovea_shared")
class Library(FoveaTest):
    @unittest.skipUnless(shutil.which("nm") and shutil.which("readelf"), "needs nm and readelf of binutils")
    def test_only_the_functions_of_the_header_are_exported(self):
        done = output(*CHECK_ABI, "--library", LIBRARY)
        self.assertEqual(done.returncode, 0, done.stdout)
        dynamic = output("readelf", "-dW", LIBRARY, env={**os.environ, "LC_ALL": "C"}).stdout
        self.assertIn("Library soname: [libfovea.so.0]", dynamic)
        symbols = [line.split()[-1] for line in output("nm", "-D", "--defined-only", LIBRARY).stdout.splitlines()]
        self.assertEqual([symbol for symbol in symbols if not symbol.startswith("fovea_") and symbol != "FOVEA_0"], [])
        self.assertEqual([symbol for symbol in symbols if not symbol.endswith("@@FOVEA_0") and symbol != "FOVEA_0"], [])

    def ok(self, status, message=None):
        self.assertEqual(status, OK, (message or self.library.fovea_error()).decode())

    def train_with(self, on_step=None, **options):
        pairs = [(name.encode(), str(value).encode()) for name, value in options.items()]
        return self.library.fovea_train((Option * len(pairs))(*pairs), len(pairs), OnStep(on_step) if on_step else OnStep(), None, None)

    def setUp(self):
        super().setUp()
        self.library = load()

    def test_python_trains_and_generates(self):
        steps = []

        def on_step(progress, _user):
            steps.append(progress.contents.step)
            return CONTINUE

        options = {"data": self.text, "out": self.folder / "model", "preset": "tiny", "layers": 1, "heads": 2, "width": 32, "context": 32,
                   "batch": 4, "steps": 12, "warmup": 5, "sample_every": 0, "evaluate_windows": 8}
        self.ok(self.train_with(on_step, **options))
        self.assertEqual(steps, list(range(1, 13)))
        model = c.c_void_p()
        self.ok(self.library.fovea_model_open(str(self.folder / "model").encode(), None, c.byref(model)))
        self.addCleanup(self.library.fovea_model_free, model)
        result = Generation(c.sizeof(Generation))
        self.ok(self.library.fovea_model_generate(model, b"The ", 4, None, c.byref(result)))
        self.assertEqual(result.id_count, 256)
        self.assertEqual(len(result.text), result.text_size)

        tokenizer, ids, count, text, size = c.c_void_p(), INTS(), SIZE(), c.c_void_p(), SIZE()
        self.ok(self.library.fovea_model_tokenizer(model, c.byref(tokenizer)))
        self.addCleanup(self.library.fovea_tokenizer_free, tokenizer)
        self.ok(self.library.fovea_tokenizer_encode(tokenizer, b"The fox", 7, 0, c.byref(ids), c.byref(count)))
        self.ok(self.library.fovea_tokenizer_decode(tokenizer, ids, count, 0, c.byref(text), c.byref(size)))
        self.assertEqual(c.string_at(text, size.value), b"The fox")

    def test_an_exception_in_python_stops_the_training(self):
        def raises(_progress, _user):
            raise KeyboardInterrupt

        hook = sys.unraisablehook
        sys.unraisablehook = lambda _: None
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        self.ok(self.train_with(raises, data=self.text, out=self.folder / "model", preset="tiny", layers=1, heads=2, width=32, context=32,
                                batch=4, steps=12, warmup=5))
        self.assertTrue(list((self.folder / "model").glob("**/state.safetensors")))

    def test_python_embeds(self):
        embedder = c.c_void_p()
        self.ok(self.library.fovea_embedder_open(str(ROOT / "tests/goldens/sentence_model").encode(), None, c.byref(embedder)))
        self.addCleanup(self.library.fovea_embedder_free, embedder)
        width = self.library.fovea_embedder_width(embedder)
        texts, values = (c.c_char_p * 2)(b"hello", b"hello"), (c.c_float * (2 * width))()
        self.ok(self.library.fovea_embedder_embed(embedder, texts, None, 2, None, values, 2 * width))
        self.assertEqual(values[:width], values[width:])
        self.assertTrue(any(values))

    def test_errors_have_one_line(self):
        model = c.c_void_p(1)
        self.assertEqual(self.library.fovea_model_open(b"no such directory", None, c.byref(model)), BAD_FILE)
        self.assertIsNone(model.value)
        self.assertIn("no such directory", self.library.fovea_error().decode())
        self.assertEqual(self.train_with(learning_rat=1), INVALID_ARGUMENT)
        self.assertEqual(self.library.fovea_model_error(None).decode(), "learning_rat: unknown option; expected learning_rate")


if __name__ == "__main__":
    unittest.main()
