"""A layer of one's own, y = x + sin(a x)^2 / a with a learned a for each column (Ziyin et al. 2020, "Neural Networks
Fail to Learn Periodic Functions", eq. 3), whose gradient it gives itself. It learns a sine with it.
"""

import numpy as np

import fovea
from fovea import nn, ops


def snake(x: fovea.Tensor, a: fovea.Tensor) -> fovea.Tensor:
    """x [..., C], a [C] -> [..., C]"""
    at, rate = x.numpy(), a.numpy()
    sine = np.sin(rate * at)

    def backward(dy: fovea.Tensor) -> tuple[fovea.Tensor, fovea.Tensor]:
        g, slope = dy.numpy(), np.sin(2 * rate * at)
        dx = g * (1 + slope)  # dy/dx = 1 + sin(2 a x)
        da = g * (at * slope - sine**2 / rate) / rate
        return fovea.Tensor(dx), fovea.Tensor(da.reshape(-1, len(rate)).sum(0))

    return ops.record(fovea.Tensor(at + sine**2 / rate), [x, a], backward)


def snake_layer(width: int) -> nn.Layer:
    a = nn.Parameter(fovea.full([width], 1.0), decays=False)
    return nn.Layer(lambda x, _: snake(x, a.value), [("a", a)])


def main() -> None:
    model = nn.sequence(
        [nn.linear(1, 32, True, 1, 1.0), snake_layer(32), nn.linear(32, 1, True, 2, 0.1)]
    )
    optimizer = nn.Optimizer(model.parameters, weight_decay=0)
    xs = np.linspace(-3.2, 3.2, 128, dtype=np.float32).reshape(-1, 1)
    x, y = fovea.Tensor(xs), fovea.Tensor(np.sin(4 * xs))
    for _ in range(1000):
        error = model(x) - y
        mean = ops.mean(error * error)
        mean.backward()
        optimizer.step(1e-2)
    print(f"mean squared error of a sine: {mean.item():.6f}")


if __name__ == "__main__":
    main()
