"""torch and transformers, where they are installed: shared tensors, and models of fovea's own type."""

import unittest

import numpy as np
from support import TestCase, documents

import fovea

try:
    import torch
    import transformers
except ImportError:
    torch = transformers = None

SPECS = {
    "rotary": {
        **{"norm": "rms", "norm_unit_offset": True, "position": "rotary", "gated": True, "kv_heads": 2, "query_key_norm": "head"},
        **{"window": [0, 8, 0], "layers": 3, "post_norm": True},
    },
    "experts": {
        **{"norm": "dyt", "position": "none", "distance_bias": "alibi", "experts": 4, "shared_experts": 1, "layers": 2},
        **{"experts_score": "sigmoid", "experts_selection_bias": True, "shared_experts_gate": True, "dense_layers": [0]},
    },
    "parallel": {"parallel": True, "position": "rotary", "rotary_neighbours": True, "rotary_share": 0.5, "tied_head": False, "activation": "relu_squared", "norm": "rms"},
    "waves": {
        **{"position": "sinusoidal", "embedding_norm": True, "scaled_embedding": True, "query_key_norm": "all", "residual_scale": 1.5},
        **{"pre_norm": False, "post_norm": True, "head_softcap": 20.0, "attention_softcap": 10.0, "norm": "dyt"},
    },
    "learned": {"position": "learned", "norm": "dyt", "output_norm": True, "gated": True, "activation": "silu"},
}


class Modeling(TestCase):
    def trained(self, **spec):
        out = str(self.folder() / "run")
        return fovea.train(documents(), out, preset="tiny", steps=10, learning_rate=3e-3, heads=4, tokenizer="char", **spec).model

    def test_other_types_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "model_type is gpt2"):
            fovea.write_modeling(self.trained().path)
        with self.assertRaisesRegex(NotImplementedError, "decoder.mixers: gru"):
            fovea.write_modeling(self.trained(mixer=["attention", "gru"], norm="dyt").path)

    def test_logits_of_transformers_are_the_same(self):
        if transformers is None:
            self.skipTest("torch and transformers are not installed")
        for name, spec in SPECS.items():
            with self.subTest(name):
                model = self.trained(**spec)
                fovea.write_modeling(model.path)
                other = transformers.AutoModelForCausalLM.from_pretrained(model.path, trust_remote_code=True).eval()
                ids = model.tokenizer.encode("The cat sees the dog and runs")
                with torch.no_grad():
                    logits = other(torch.tensor([ids])).logits.numpy()
                np.testing.assert_allclose(logits, fovea.load(model.path).trace(ids, what="logits")["logits"], atol=1e-5)
                more = other.generate(torch.tensor([ids]), max_new_tokens=5, do_sample=False)[0, len(ids) :].tolist()
                self.assertEqual(more, model.samples(ids, max_tokens=5, temperature=0, ignore_end=True)[0].ids)


class Exchange(TestCase):
    def test_tensors_share_memory(self):
        if torch is None:
            self.skipTest("torch is not installed")
        tensor = fovea.Tensor([[1.0, 2.0]])
        torch.from_dlpack(tensor)[0, 0] = 7
        self.assertEqual(tensor.numpy().tolist(), [[7, 2]])
        given = torch.ones(3)
        shared = fovea.Tensor(given)
        given[1] = 5
        self.assertEqual(shared.numpy().tolist(), [1, 5, 1])
        self.assertEqual(torch.from_dlpack(fovea.Tensor([1.5], "bfloat16")).dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
