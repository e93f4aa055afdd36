#include "tensor/tape.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fovea {
namespace {

struct TapeEntry {
  std::shared_ptr<Gradient> output;  // null for a layer that is recorded anew
  Shape shape;
  Backward backward;
};

struct Made {
  std::shared_ptr<const Tensor::Recipe> recipe;
  Tensor elements;
};

thread_local std::vector<TapeEntry> tape;
thread_local Made last_made;
thread_local bool is_recording = true;

// Turns recording on during its lifetime: the backward pass records layers anew.
class Recording {
 public:
  Recording() : before_(std::exchange(is_recording, true)) {}
  ~Recording() { is_recording = before_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  bool before_;
};

}  // namespace

class Tape {
 public:
  static const std::shared_ptr<Gradient>& slot_of(const Tensor& x) { return x.gradient_; }

  static Tensor record(Tensor y, Backward backward) {
    y.gradient_ = std::make_shared<Gradient>();
    tape.push_back({y.gradient_, y.shape(), std::move(backward)});
    return y;
  }

  static std::vector<Tensor> recompute(std::function<std::vector<Tensor>()> layer) {
    const auto before = static_cast<std::ptrdiff_t>(tape.size());
    std::vector<Tensor> results = layer();
    tape.erase(tape.begin() + before, tape.end());
    std::vector<std::shared_ptr<Gradient>> slots;
    for (Tensor& y : results) {
      y.recipe_ = nullptr;  // it would keep tensors of the layer
      slots.push_back(y.gradient_);
    }
    const auto wants = [](const Tensor& y) { return y.wants_gradient(); };
    if (std::none_of(results.begin(), results.end(), wants)) return results;
    // The ops that this records are the next ones that play() reaches.
    tape.push_back({nullptr, {}, [=, layer = std::move(layer)](const Tensor&, Gradients&) {
                      const Recording on;
                      const std::vector<Tensor> again = layer();
                      for (size_t i = 0; i < slots.size(); ++i)
                        if (slots[i]) again[i].gradient_->value = std::move(slots[i]->value);
                    }});
    return results;
  }

  static void play(const Tensor& loss, float factor, PassGradients* passes) {
    check(loss.wants_gradient(),
          "backward: the loss depends on no tensor that wants a gradient; expected at least one");
    check(loss.size() == 1, "backward: the loss has shape {}; expected one element",
          describe(loss.shape()));
    check(loss.gradient_->leaf || !tape.empty(),
          "backward: nothing is recorded; expected a loss made since the last backward");
    NoGradient off;
    Gradients d(passes);
    d.pass(loss, full(loss.shape(), factor, loss.dtype(), loss.device()));
    while (!tape.empty()) {
      TapeEntry entry = std::move(tape.back());
      tape.pop_back();
      if (entry.output == nullptr) {
        entry.backward({}, d);
        continue;
      }
      if (!entry.output->value) continue;  // no recorded op used this output
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
  return destination(x);
}

Out Gradients::destination(const Tensor& x) {
  Gradient& slot = *x.gradient_;
  if (slot.leaf && passes_ != nullptr) return passes_->destination(x.gradient_, x);
  const bool add = static_cast<bool>(slot.value);
  if (!add)
    slot.value = empty_like(x);
  else if (slot.value.storage_.use_count() > 1)  // shared by pass()
    slot.value = copy(slot.value);
  Out out = slot.value;
  out.add = add;
  return out;
}

void Gradients::finish() {
  for (const auto& [x, dx] : apart_) pass(x, dx);
  apart_.clear();
  given_.clear();
  if (passes_ != nullptr) passes_->merge_complete();
}

void Gradients::pass(const Tensor& x, const Tensor& dx) {
  if (!x.wants_gradient()) return;
  Gradient& slot = *x.gradient_;
  if (!slot.value && !slot.leaf && dx.dtype() == x.dtype()) {
    slot.value = dx.view(x.shape()).detach();
  } else {
    const Kernels& k = kernels(dx.dtype() == DType::f64 ? dx : x);
    k.convert(destination(x), dx, x.size());
  }
}

Tensor record(Tensor y, const std::vector<Tensor>& inputs, Backward backward) {
  if (!is_recording) return y;
  for (const Tensor& x : inputs)
    if (x.wants_gradient()) return Tape::record(std::move(y), std::move(backward));
  return y;
}

bool recording() { return is_recording; }

std::vector<Tensor> recompute(std::function<std::vector<Tensor>()> layer) {
  return is_recording ? Tape::recompute(std::move(layer)) : layer();
}

NoGradient::NoGradient() : before_(is_recording) { is_recording = false; }
NoGradient::~NoGradient() { is_recording = before_; }

void backward(const Tensor& loss, float factor) { Tape::play(loss, factor, nullptr); }

void PassGradients::backward(const Tensor& loss, int64_t pass) {
  pass_ = pass;
  Tape::play(loss, 1, this);
}

Out PassGradients::destination(const std::shared_ptr<Gradient>& slot, const Tensor& x) {
  Leaf& leaf = leaves_[slot];
  if (leaf.pass != pass_) leaf.pass = pass_, leaf.met = 0;
  leaf.identity = slot.get();
  if (leaf.met == leaf.uses.size()) leaf.uses.emplace_back();
  written_.emplace_back(&leaf, leaf.met);
  return leaf.uses[leaf.met++].next(pass_, x);
}

// The gradients of one op at most exist besides the sums, not those of a whole pass.
void PassGradients::merge_complete() {
  for (const auto& [leaf, use] : written_) {
    Use& sum = leaf->uses[use];
    sum.merge_complete();
    if (!receiver_) continue;
    sum.given = true;
    receiver_(leaf->identity, use, sum.total());
  }
  written_.clear();
}

const void* PassGradients::identity(const Tensor& leaf) { return Tape::slot_of(leaf).get(); }

Out PassGradients::Use::next(int64_t pass, const Tensor& x) {
  tree.next(pass, [&](int) { merge(); });
  sums.push_back(empty_like(x));
  return sums.back();
}

void PassGradients::Use::merge_complete() {
  tree.merge_complete([&](int) { merge(); });
}

void PassGradients::Use::merge() {
  const Tensor upper = std::move(sums.back());
  sums.pop_back();
  Out lower = sums.back();
  lower.add = true;
  kernels(upper).convert(lower, upper, upper.size());
}

Tensor PassGradients::Use::total() {
  tree.finish([&](int) { merge(); });
  return std::move(sums.front());
}

void PassGradients::add(Gradient& slot, const Tensor& sum) {
  if (!slot.value) {
    slot.value = sum;
    return;
  }
  Out total = slot.value;
  total.add = true;
  kernels(sum).convert(total, sum, sum.size());
}

void PassGradients::finish() {
  for (auto& [slot, leaf] : leaves_)
    for (Use& use : leaf.uses) add(*slot, use.total());
  written_.clear();
  leaves_.clear();
}

std::vector<Tensor> PassGradients::take(const Tensor& leaf) {
  std::vector<Tensor> sums;
  const auto found = leaves_.find(Tape::slot_of(leaf));
  if (found == leaves_.end()) return sums;
  for (Use& use : found->second.uses) sums.push_back(use.given ? Tensor() : use.total());
  leaves_.erase(found);
  return sums;
}

void PassGradients::give(const Tensor& leaf, const std::vector<Tensor>& sums) {
  for (const Tensor& sum : sums) add(*Tape::slot_of(leaf), sum);
}

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
  // The gradients of query, key and value need the same norm in succession: the last result is
  // cached.
  if (last_made.recipe != x_.recipe_) last_made = {x_.recipe_, (*x_.recipe_)().detach()};
  return last_made.elements;
}

}  // namespace fovea
