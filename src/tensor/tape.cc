#include "tensor/tape.h"

#include <algorithm>

#include "base/error.h"

namespace fovea {
namespace {

struct Entry {
  std::shared_ptr<Gradient> output;
  Shape shape;
  Backward backward;
};

struct Made {
  std::shared_ptr<const Tensor::Recipe> recipe;
  Tensor elements;
};

thread_local std::vector<Entry> tape;
thread_local Made last_made;
thread_local bool is_recording = true;

}  // namespace

class Tape {
 public:
  static Tensor record(Tensor y, Backward backward) {
    y.gradient_ = std::make_shared<Gradient>();
    tape.push_back({y.gradient_, y.shape(), std::move(backward)});
    return y;
  }

  static void play(const Tensor& loss, float factor) {
    check(loss.wants_gradient(),
          "backward: the loss does not depend on anything that wants a gradient");
    check(loss.size() == 1, "backward: the loss has shape {}; expected one element",
          describe(loss.shape()));
    check(loss.gradient_->leaf || !tape.empty(),
          "backward: nothing is recorded; expected a loss made since the last backward");
    NoGradient off;
    Gradients d;
    d.pass(loss, full(loss.shape(), factor, loss.dtype()));
    while (!tape.empty()) {
      Entry entry = std::move(tape.back());
      tape.pop_back();
      if (!entry.output->value) continue;  // nothing downstream used it
      const Tensor dy = std::move(entry.output->value);
      entry.output->value = Tensor();
      entry.backward(dy.view(entry.shape), d);
      d.finish();
    }
    last_made = {};
  }
};

Out Gradients::operator[](const Tensor& x) {
  if (!x.wants_gradient()) return {};
  const Gradient* slot = x.gradient_.get();
  if (std::find(given_.begin(), given_.end(), slot) != given_.end()) {
    apart_.emplace_back(x, empty_like(x));
    return apart_.back().second;
  }
  given_.push_back(slot);
  return place(x);
}

Out Gradients::place(const Tensor& x) {
  Gradient& slot = *x.gradient_;
  const bool add = static_cast<bool>(slot.value);
  if (!add)
    slot.value = empty(x.shape(), x.dtype());
  else if (slot.value.storage_.use_count() > 1)  // shared through pass()
    slot.value = copy(slot.value);
  Out out = slot.value;
  out.add = add;
  return out;
}

void Gradients::finish() {
  for (const auto& [x, dx] : apart_) pass(x, dx);
  apart_.clear();
  given_.clear();
}

void Gradients::pass(const Tensor& x, const Tensor& dx) {
  if (!x.wants_gradient()) return;
  Gradient& slot = *x.gradient_;
  if (!slot.value && !slot.leaf && dx.dtype() == x.dtype()) {
    slot.value = dx.view(x.shape()).detach();
  } else {
    const Kernels& k = kernels(dx.dtype() == DType::f64 ? dx : x);
    k.convert(place(x), dx, x.size());
  }
}

Tensor record(Tensor y, const std::vector<Tensor>& inputs, Backward backward) {
  if (!is_recording) return y;
  for (const Tensor& x : inputs)
    if (x.wants_gradient()) return Tape::record(std::move(y), std::move(backward));
  return y;
}

bool recording() { return is_recording; }

NoGradient::NoGradient() : before_(is_recording) { is_recording = false; }
NoGradient::~NoGradient() { is_recording = before_; }

void backward(const Tensor& loss, float factor) { Tape::play(loss, factor); }
void clear_tape() {
  tape.clear();
  last_made = {};
}

Saved::Saved(const Tensor& x) : x_(x) {
  if (x_.recipe_) x_.storage_ = nullptr;
}

Saved Saved::slot(const Tensor& x) {
  Saved saved(x);
  saved.x_.storage_ = nullptr;
  saved.x_.recipe_ = nullptr;
  return saved;
}

Tensor Saved::elements() const {
  if (!x_.recipe_) return x_.detach();
  // Query, key and value ask for the same norm one after the other: the last result is kept.
  if (last_made.recipe != x_.recipe_) last_made = {x_.recipe_, (*x_.recipe_)().detach()};
  return last_made.elements;
}

}  // namespace fovea
