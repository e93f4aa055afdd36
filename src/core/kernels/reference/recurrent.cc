#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Indices of element i of sequence `row`: state() in an array [rows, W], output() in an array of
// the layer [W].
struct Element {
  const CellShape& shape;
  int64_t row, i;

  int64_t state() const { return row * shape.width + i; }
  int64_t output() const { return row * shape.stride * shape.width + i; }
  // Gate n in an array of the layer [G W], and in an array [rows, G W].
  int64_t gate(int64_t n) const {
    return (row * shape.stride * gates_of(shape.cell) + n) * shape.width + i;
  }
  int64_t gate_of_row(int64_t n) const {
    return (row * gates_of(shape.cell) + n) * shape.width + i;
  }
  int64_t kept(int64_t n) const {
    return (row * shape.stride * kept_of(shape.cell) + n) * shape.width + i;
  }
};

template <class Body>
void for_each_element(const CellShape& shape, Body body) {
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t i = 0; i < shape.width; ++i) body(Element{shape, row, i});
}

}  // namespace

void recurrent_cell(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0,
                    const CellShape& shape) {
  for_each_element(shape, [&](const Element& p) {
    const auto input = [&](int64_t n) { return get(x, p.gate(n)); };
    const auto recurrent = [&](int64_t n) { return get(u, p.gate_of_row(n)); };
    const auto sum = [&](int64_t n) { return input(n) + recurrent(n); };
    double next = 0;
    switch (shape.cell) {
      case Cell::rnn:
        next = std::tanh(sum(0));
        put(kept, p.kept(0), next);
        break;
      case Cell::gru: {
        const double r = sigmoid(sum(0)), z = sigmoid(sum(1));
        const double n = std::tanh(input(2) + r * recurrent(2));
        next = (1 - z) * n + z * get(h0, p.state());
        put(kept, p.kept(0), r);
        put(kept, p.kept(1), z);
        put(kept, p.kept(2), n);
        put(kept, p.kept(3), recurrent(2));
        break;
      }
      case Cell::lstm: {
        const double i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = std::tanh(sum(2)),
                     o = sigmoid(sum(3));
        const double cell = f * get(c0, p.state()) + i * g;
        next = o * std::tanh(cell);
        put(c, p.state(), cell);
        put(kept, p.kept(0), i);
        put(kept, p.kept(1), f);
        put(kept, p.kept(2), g);
        put(kept, p.kept(3), o);
        break;
      }
    }
    put(h, p.state(), next);
    put(y, p.output(), next);
  });
}

void recurrent_cell_backward(const CellGradients& d, In dy, In dh, In dc, In kept, In h0, In c0,
                             In c, const CellShape& shape) {
  for_each_element(shape, [&](const Element& p) {
    const auto k = [&](int64_t n) { return get(kept, p.kept(n)); };
    const auto put_gate = [&](int64_t n, double input, double recurrent) {
      put(d.dx, p.gate(n), input);
      put(d.du_rows, p.gate(n), recurrent);
      put(d.du, p.gate_of_row(n), recurrent);
    };
    const double gradient = get(dy, p.output()) + get(dh, p.state());
    switch (shape.cell) {
      case Cell::rnn: {
        const double sum = gradient * (1 - k(0) * k(0));
        put_gate(0, sum, sum);
        put(d.dh0, p.state(), 0);
        break;
      }
      case Cell::gru: {
        const double r = k(0), z = k(1), n = k(2);
        const double dn = gradient * (1 - z) * (1 - n * n);
        const double dr = dn * k(3) * r * (1 - r);
        const double dz = gradient * (get(h0, p.state()) - n) * z * (1 - z);
        put_gate(0, dr, dr);
        put_gate(1, dz, dz);
        put_gate(2, dn, dn * r);
        put(d.dh0, p.state(), gradient * z);
        break;
      }
      case Cell::lstm: {
        const double i = k(0), f = k(1), g = k(2), o = k(3), bent = std::tanh(get(c, p.state()));
        const double dcell = get(dc, p.state()) + gradient * o * (1 - bent * bent);
        const double gates[] = {dcell * g * i * (1 - i), dcell * get(c0, p.state()) * f * (1 - f),
                                dcell * i * (1 - g * g), gradient * bent * o * (1 - o)};
        for (int64_t n = 0; n < 4; ++n) put_gate(n, gates[n], gates[n]);
        put(d.dh0, p.state(), 0);
        put(d.dc0, p.state(), dcell * f);
        break;
      }
    }
  });
}

}  // namespace fovea::reference
