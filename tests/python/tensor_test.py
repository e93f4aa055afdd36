"""Tensors: shared memory, gradients, ops and layers of one's own, random numbers."""

import unittest

import numpy as np
from support import TestCase

import fovea
from fovea import nn, ops


def gradient_error(function, *arrays):
    """The largest difference between the gradients of sum(function(...)) and differences."""
    leaves = [fovea.Tensor(np.array(array, np.float64)).want_gradient() for array in arrays]
    ops.sum(function(*leaves)).backward()
    worst = 0.0
    with fovea.no_gradient():
        for leaf in leaves:
            values = leaf.numpy().reshape(-1)
            for i, kept in enumerate(values.copy()):
                at = []
                for step in (1e-5, -1e-5):
                    values[i] = kept + step
                    at.append(ops.sum(function(*leaves)).item())
                values[i] = kept
                worst = max(worst, abs((at[0] - at[1]) / 2e-5 - leaf.gradient.numpy().reshape(-1)[i]))
    return worst


class Tensors(TestCase):
    def test_numpy_shares_memory_both_ways(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = fovea.Tensor(array)
        array[0, 0] = 9
        self.assertEqual(tensor.numpy()[0, 0], 9)
        self.assertTrue(np.shares_memory(tensor.numpy(), array))
        self.assertTrue(np.shares_memory(np.from_dlpack(tensor), array))
        del array
        self.assertEqual(tensor.numpy()[1, 2], 5)
        view = fovea.Tensor([[1.0, 2.0]]).numpy()
        self.assertEqual(view.tolist(), [[1, 2]])

    def test_types(self):
        for name in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8"):
            array = np.array([[1, 2], [3, 4]], name)
            self.assertEqual(fovea.Tensor(array).dtype, name)
            self.assertEqual(fovea.Tensor(array).numpy().dtype, array.dtype)
        self.assertEqual(fovea.Tensor([1.5]).dtype, "float32")
        self.assertEqual(fovea.Tensor([1]).dtype, "int32")
        self.assertEqual(fovea.Tensor([1.0], "bfloat16").dtype, "bfloat16")

    def test_arrays_that_cannot_be_shared_are_refused(self):
        array = np.zeros((2, 3), np.float32)
        with self.assertRaisesRegex(ValueError, "ascontiguousarray"):
            fovea.Tensor(array.T)
        array.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "numpy.array"):
            fovea.Tensor(array)
        with self.assertRaises(ValueError):
            fovea.Tensor(np.array(["a"]))

    def test_gradients_of_ops(self):
        generator = np.random.default_rng(1)
        x, w = generator.normal(size=(3, 4)), generator.normal(size=(2, 4))
        self.assertLess(gradient_error(lambda x, w: ops.linear(x, w), x, w), 1e-6)
        self.assertLess(gradient_error(lambda x: ops.softmax(x) * x, x), 1e-6)
        self.assertLess(gradient_error(lambda x: 2 * x * x - x / 3 + 1, x), 1e-6)
        self.assertLess(gradient_error(lambda x: ops.activation(x, "silu"), x), 1e-6)
        gain = np.ones(4)
        self.assertLess(gradient_error(lambda x, g: ops.rms_norm(x, g, 1e-5), x, gain), 1e-6)

    def test_attention_is_that_of_numpy(self):
        q, k, v = (np.random.default_rng(i).normal(size=(1, 5, 2, 4)).astype(np.float32) for i in range(3))
        options = ops.AttentionOptions(scale=0.5, mask=ops.Mask(causal=True))
        y = ops.attention(fovea.Tensor(q), fovea.Tensor(k), fovea.Tensor(v), options).numpy()
        scores = np.einsum("bthd,bshd->bhts", q, k) * 0.5
        scores[..., np.triu(np.ones((5, 5), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(y, np.einsum("bhts,bshd->bthd", weights, v), atol=1e-5)

    def test_an_op_of_ones_own(self):
        def sine(x):
            return ops.record(fovea.Tensor(np.sin(x.numpy())), [x], lambda dy: fovea.Tensor(np.cos(x.numpy()) * dy.numpy()))

        self.assertLess(gradient_error(sine, np.linspace(-1, 1, 5)), 1e-6)

        def wrong(x):
            return ops.record(fovea.Tensor(x.numpy() * 2), [x], lambda dy: fovea.zeros([7], "float64"))

        with self.assertRaisesRegex(ValueError, "a gradient is"):
            gradient_error(wrong, np.ones(3))
        fovea.clear_tape()

    def test_layers_of_ones_own_learn(self):
        a = nn.Parameter(fovea.full([1, 8], 0.1))
        own = nn.Layer(lambda x, pass_: ops.linear(x, a.value), [("a", a)])
        model = nn.sequence([nn.linear(4, 8, True, 1, 0.5), nn.Layer(lambda x, pass_: ops.activation(x, "tanh")), own])
        self.assertEqual([name for name, _ in model.parameters][-1].split(".")[-1], "a")
        optimizer = nn.Optimizer(model.parameters, weight_decay=0)
        x = np.random.default_rng(1).normal(size=(32, 4)).astype(np.float32)
        y = fovea.Tensor(x[:, :1] * x[:, 1:2])
        losses = []
        for _ in range(200):
            error = model(fovea.Tensor(x)) - y
            loss = ops.mean(error * error)
            loss.backward()
            optimizer.step(1e-2)
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 4)

    def test_a_model_in_a_loop_of_ones_own(self):
        model = nn.Transformer(fovea.Spec("tiny", vocabulary=32, context=16), 1)
        optimizer = nn.Optimizer(model.parameters)
        ids = fovea.Tensor(np.arange(32, dtype=np.int32).reshape(2, 16) % 7)
        losses = []
        for step in range(20):
            loss = model.loss(model.hidden(ids, nn.Pass(training=True, step=step)), ids)
            loss.backward()
            self.assertGreater(optimizer.step(1e-2), 0)
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)
        path = self.folder() / "weights.safetensors"
        fovea.write_safetensors(str(path), nn.values(model.parameters))
        other = nn.Transformer(model.spec, 2)
        nn.assign(other.parameters, fovea.read_safetensors(str(path)))
        with fovea.no_gradient():
            np.testing.assert_array_equal(other.logits(other.hidden(ids)).numpy(), model.logits(model.hidden(ids)).numpy())
        seen = []
        model.hidden(ids, nn.Pass(hook=lambda name, layer, value: seen.append((name, layer)), hooked=["hidden"]))
        self.assertEqual(len(seen), model.spec.layers + 1)

    def test_errors_name_the_op(self):
        with self.assertRaisesRegex(ValueError, r"add: \[2\] and \[3\]"):
            ops.add(fovea.zeros([2]), fovea.zeros([3]))

    def test_random_numbers_depend_on_the_seed_alone(self):
        self.assertEqual(fovea.Random(3).word(), fovea.Random(3).word())
        np.testing.assert_array_equal(fovea.normal([4], 1.0, 7).numpy(), fovea.normal([4], 1.0, 7).numpy())


if __name__ == "__main__":
    unittest.main()
