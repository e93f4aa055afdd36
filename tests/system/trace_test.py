"""fovea trace: the selected values, and runs in which values are replaced."""
import ast
import json
import struct
import zipfile

from support import ROOT, FoveaTest, fovea, tensors


class Trace(FoveaTest):
    def traced(self, name, *arguments, ids="3,1,4,1,5"):
        out = self.folder / name
        self.ok(fovea("trace", self.model(), "--ids", ids, "--out", out, *arguments))
        return out, tensors(out)

    def header(self, path):
        content = path.read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])

    def test_what_and_layers_select_values(self):
        _, default = self.traced("default")
        self.assertEqual(set(default), {"attention.0", "attention.1", "hidden.0", "hidden.1", "hidden.2", "logits"})
        _, found = self.traced("some", "--what", "*query*,mlp_*", "--what", "logits", "--layers", "1")
        self.assertEqual(set(found), {"logits", "mlp_hidden.1", "mlp_input.1", "mlp_output.1", "mlp_pre.1", "query.1"})
        self.assertEqual(found["logits"], default["logits"])
        self.assertEqual(found["query.1"][0], [1, 5, 2, 16])
        _, hooks = self.traced("hooks", "--what", "blocks.*.attn.hook_pattern")
        self.assertEqual(hooks["blocks.1.attn.hook_pattern"], default["attention.1"])

    def test_list_prints_names_and_shapes(self):
        run = self.ok(fovea("trace", self.model(), "--ids", "1,2,3", "--list"))
        lines = run.stdout.decode().splitlines()
        for line in ("embedding [1, 3, 32]", "hidden.2 [1, 3, 32]", "scores.0 [1, 2, 3, 3]", "value.1 [1, 3, 2, 16]",
                     "blocks.0.hook_resid_mid [1, 3, 32]", "ln_final.hook_normalized [1, 3, 32]"):
            self.assertIn(line, lines)
        some = json.loads(self.ok(fovea("trace", self.model(), "--ids", "1,2", "--list", "--what", "heads.*", "--json")).stdout)
        self.assertEqual(some, {"tensors": ["heads.0", "heads.1", "input_ids"], "shapes": [[1, 2, 2, 16], [1, 2, 2, 16], [1, 2]]})

    def test_names_are_sorted_by_number_and_the_tokens_are_in_the_file(self):
        model = self.folder / "deep"
        self.ok(self.train(model, "--layers", 11, "--width", 8, "--heads", 1, steps=1))
        out = self.folder / "out"
        run = self.ok(fovea("trace", model, "--text", "the fox", "--what", "hidden.*,logits", "--out", out))
        hidden = [f"hidden.{i}" for i in range(12)]
        names = hidden + ["hidden.unnormed", "input_ids", "logits"]
        self.assertEqual(run.stdout.decode().split(), names)
        header = self.header(out)
        self.assertEqual([name for name in header if name != "__metadata__"], names)
        tokens = json.loads(header["__metadata__"]["tokens"])
        self.assertEqual([len(row) for row in tokens], header["input_ids"]["shape"][1:])
        self.assertEqual("".join(tokens[0]), "the fox")

    def test_patch_continues_another_run(self):
        clean, expected = self.traced("clean", "--what", "hidden.1,logits", ids="3,1,4,1,5")
        _, corrupted = self.traced("corrupted", ids="9,2,6,5,3")
        self.assertNotEqual(corrupted["logits"], expected["logits"])
        patch, _ = self.traced("patch", "--what", "hidden.1")
        _, patched = self.traced("patched", "--patch", patch, ids="9,2,6,5,3")
        self.assertEqual(patched["logits"], expected["logits"])
        self.assertEqual(patched["hidden.0"], corrupted["hidden.0"])
        alias, _ = self.traced("alias", "--what", "blocks.0.hook_resid_post")
        _, patched = self.traced("patched", "--patch", alias, ids="9,2,6,5,3")
        self.assertEqual(patched["logits"], expected["logits"])
        heads, _ = self.traced("heads", "--what", "attention.1")
        _, patched = self.traced("patched", "--patch", heads, ids="9,2,6,5,3")
        self.assertEqual(patched["hidden.1"], corrupted["hidden.1"])
        self.assertNotEqual(patched["logits"], corrupted["logits"])

    def test_gradients_need_a_loss(self):
        encoder = ROOT / "tests/goldens/sentence_model"
        self.refused(fovea("trace", encoder, "--text", "a fox", "--gradients", "--list"), 2,
                     "--gradients: the model's head needs labels for a loss")

    def test_a_model_of_audio_reads_no_text(self):
        speech = ROOT / "tests/goldens/speech/model"
        self.refused(fovea("trace", speech, "--text", "a", "--list"), 2, "--input: the model reads audio, not text; expected a file with input_features")

    def test_invalid_requests_are_refused(self):
        model, out = self.model(), self.folder / "out"
        short, _ = self.traced("short", "--what", "hidden.1", ids="1,2")

        def refused(*arguments, mentions=()):
            self.refused(fovea("trace", model, "--ids", "1,2,3", *arguments), 2, *mentions)
        refused("--out", out, "--what", "hiden.*", mentions=("--what", "hiden.*", "matches no name"))
        refused("--out", out, "--layers", "1-x", mentions=("--layers", "1-x", "0-5"))
        refused("--out", out, "--layers", "0-3", mentions=("--layers", "0-3", "at most 2"))
        refused("--out", out, "--list", mentions=("--out, --list",))
        refused("--out", out, "--patch", short, mentions=(short, "hidden.1", "[1, 2, 32]", "[1, 3, 32]"))
        refused("--out", out, "--patch", model / "model.safetensors", mentions=("model.safetensors", "names no value"))
        refused("--out", out, "--patch", self.folder / "none", mentions=("none",))
        self.assertFalse(out.exists())
        # The file had this name and the format of safetensors, which numpy.load refuses.
        refused("--out", self.folder / "out.npy", mentions=("--out", "out.npy", "expected a name that ends in .safetensors or .npz"))
        self.assertFalse((self.folder / "out.npy").exists())

    def test_an_archive_of_numpy_has_the_same_values(self):
        """Regression: out.npz had the format of safetensors; numpy.load refused it. Here its parts are read by the rules of NEP 1."""
        model, archive, out = self.model(), self.folder / "out.npz", self.folder / "out.safetensors"
        for path in (archive, out):
            self.ok(fovea("trace", model, "--ids", "1,2,3", "--gradients", "--out", path))
        found = {}
        with zipfile.ZipFile(archive) as parts:
            self.assertIsNone(parts.testzip())
            for name in parts.namelist():
                data = parts.read(name)
                self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
                end = 10 + int.from_bytes(data[8:10], "little")
                header = ast.literal_eval(data[10:end].decode())
                self.assertEqual((end % 64, data[end - 1:end], header["fortran_order"]), (0, b"\n", False))
                kind = {"<f4": "f", "<i4": "i"}[header["descr"]]
                values = struct.unpack(f"<{(len(data) - end) // 4}{kind}", data[end:])
                found[name.removesuffix(".npy")] = (list(header["shape"]), list(values))
        self.assertEqual(found.pop("input_ids"), ([1, 3], [1, 2, 3]))
        expected = {name: (list(shape), list(values)) for name, (shape, values) in tensors(out).items()}
        self.assertEqual(found, expected)
