"""fovea trace --neurons, --answers, --circuit and --steer, compared with the values and patches of other traces."""
import json
import struct

from support import FoveaTest, fovea, tensors

TEXT, OTHER = "the fox sees a light", "the eye sees a light"
CONTEXT = 32  # of the model


class Circuits(FoveaTest):
    def setUp(self):
        super().setUp()
        self.directory = self.model(steps=30)

    def printed(self, *options):
        return json.loads(self.ok(fovea("trace", self.directory, "--text", TEXT, "--json", *options)).stdout)

    def traced(self, text, *options):
        out = self.folder / "out"
        self.ok(fovea("trace", self.directory, "--text", text, "--out", out, *options))
        return tensors(out)

    def last_logits(self, *options, text=TEXT):
        shape, values = self.traced(text, "--what", "logits", *options)["logits"]
        return values[-shape[2]:]

    def test_neurons_are_the_largest_activations_of_the_trace(self):
        shape, values = self.traced(TEXT, "--what", "mlp_hidden.1")["mlp_hidden.1"]
        row = values[-shape[2]:]
        layer = self.printed("--neurons")[1]
        self.assertEqual([abs(each["activation"]) for each in layer], sorted(map(abs, row), reverse=True)[:8])
        for each in layer:
            self.assertEqual(each["activation"], row[each["neuron"]])
        first = self.printed("--neurons", "--token", 0)[1]
        self.assertEqual(first[0]["activation"], values[first[0]["neuron"]])
        text = self.ok(fovea("trace", self.directory, "--text", TEXT, "--neurons")).stdout.decode()
        self.assertEqual(len(text.splitlines()), 1 + 8 * 2)

    def test_votes_add_up_to_the_difference_of_the_logits(self):
        logits = self.last_logits()
        found = self.printed("--answers", "5,9")
        parts = [found["embedding"], found["biases"], *sum(found["heads"], []), *found["feed_forward"]]
        self.assertAlmostEqual(found["difference"], logits[5] - logits[9], delta=1e-5)
        self.assertAlmostEqual(sum(parts), found["difference"], delta=1e-5)

    def test_answers_may_be_words(self):
        ids = json.loads(self.ok(fovea("tokenize", self.directory, "--json", input=b"fe")).stdout)["ids"]
        self.assertEqual(self.printed("--answers", "f,e"), self.printed("--answers", ",".join(map(str, ids))))

    def test_the_map_of_patches_has_the_logits_of_patched_traces(self):
        found = self.printed("--answers", "5,9", "--other", OTHER)
        logits = self.last_logits()
        self.assertEqual(found["into"], logits[5] - logits[9])
        for layer, token in ((0, 5), (1, 4), (1, len(TEXT) - 1)):
            name = f"hidden.{layer}"
            shape, values = self.traced(TEXT, "--what", name)[name]
            other = self.traced(OTHER, "--what", name)[name][1]
            begin, end = token * shape[2], (token + 1) * shape[2]
            patched = struct.pack(f"<{len(values)}f", *values[:begin], *other[begin:end], *values[end:])
            header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, len(patched)]}}).encode()
            patch = self.file("patch.safetensors", struct.pack("<Q", len(header)) + header + patched)
            logits = self.last_logits("--patch", patch)
            self.assertEqual(found["patched"][layer][token], logits[5] - logits[9])

    def test_steering_by_nothing_continues_the_text(self):
        own = self.printed("--steer", 1, "--other", OTHER, "--strength", 0)
        self.assertEqual(len(own["ids"]), CONTEXT - len(TEXT))
        logits = self.last_logits()
        self.assertEqual(own["ids"][0], logits.index(max(logits)))
        far = self.printed("--steer", 1, "--other", "What light falls", "--strength", 30)
        self.assertNotEqual(far["ids"], own["ids"])

    def test_circuits_have_a_list_for_each_token(self):
        found = self.printed("--circuit", "1.1")
        self.assertEqual([len(found[key]) for key in ("scores", "sought", "written")], [len(TEXT)] * 3)
        for key in ("sought", "written"):
            values = [value for _, value in found[key][0]]
            self.assertEqual(values, sorted(values, reverse=True))

    def test_invalid_requests_are_refused(self):
        def refused(codes, *options, mentions=()):
            self.refused(fovea("trace", self.directory, "--text", TEXT, *options), codes, *mentions)

        refused(2, "--answers", "5", mentions=["--answers: '5'; expected two answers, such as Mary,John"])
        refused(2, "--answers", "5,fox", mentions=['--answers: "fox" is the tokens "f", "o", "x"; expected a single token, or its id'])
        refused(2, "--other", OTHER, mentions=["--other", "--answers", "expected one of them"])
        refused(2, "--neurons", "--circuit", "0.0", mentions=["expected only one"])
        refused(2, "--neurons", "--out", self.folder / "x", mentions=["--out: cannot be combined with --neurons"])
        refused(2, "--neurons", "--explain", mentions=["--neurons: cannot be combined with --explain"])
        refused(2, "--circuit", "1", mentions=["--circuit: '1'; expected LAYER.HEAD"])
        refused(2, "--steer", 1, mentions=["--steer", "--other is not given"])
        refused((1, 2), "--circuit", "2.0", mentions=["layer", "2; expected 0 to 1"])
        refused((1, 2), "--answers", "5,9999", mentions=["9999; expected 0 to"])
        refused((1, 2), "--answers", "5,9", "--other", "a", mentions=["1 tokens; expected"])
        refused((1, 2), "--neurons", "--token", 99, mentions=["token", "99; expected 0 to"])
