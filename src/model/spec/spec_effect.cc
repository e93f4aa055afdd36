#include "fovea/model/spec_effect.h"

#include "fovea/core/error.h"

namespace fovea::model {
namespace {

// Sets a field to its n-th other value.
class OtherValue : public OptionVisitor {
 public:
  OtherValue(std::string name, size_t n) : name_(std::move(name)), n_(n) {}
  std::string path;      // of the field; "" = not found
  bool changed = false;  // whether there is an n-th other value

  void integer(const Field& f, int64_t& value, int64_t least, int64_t most) override {
    set(f, value, {value + 1, value / 2, value * 2, value - 1}, least, most);
  }
  void number(const Field& f, double& value, double least, double most) override {
    set(f, value, {value + 1, value / 2, value + 0.125}, least, most);
  }
  void boolean(const Field& f, bool& value) override { set(f, value, {!value}, false, true); }
  void choice(const Field& f, int& value, const Names& names) override {
    const auto count = static_cast<int>(names.size());
    if (const auto n = static_cast<int>(n_); n + 1 < count)
      set(f, value, {(value + n + 1) % count}, 0, count - 1, 0);
    else
      found(f);
  }
  void list(const Field& f, const List& list) override {
    const auto* const integers = std::get_if<Integers>(&list);
    if (integers == nullptr || !found(f) || n_ > 1) return;
    integers->values = n_ == 0 ? std::vector<int64_t>() : std::vector<int64_t>{1};
    changed = true;
  }

 private:
  bool found(const Field& f) {
    if (f.name == name_) path = f.path;
    return f.name == name_;
  }
  template <class T>
  void set(const Field& f, T& value, const std::vector<T>& others, T least, T most, size_t n) {
    if (!found(f) || n >= others.size()) return;
    changed = true;
    if (others[n] >= least && others[n] <= most) value = others[n];
  }
  template <class T>
  void set(const Field& f, T& value, const std::vector<T>& others, T least, T most) {
    set(f, value, others, least, most, n_);
  }

  std::string name_;
  size_t n_;
};

// A Spec for training has no vocabulary and no labels before the data is read.
std::string complete_text(Spec spec) {
  if (spec.vocabulary == 0) spec.vocabulary = 1;
  const HeadKind head = spec.head.kind;
  const bool labels = head != HeadKind::language_model && head != HeadKind::pooled;
  if (labels && spec.head.labels == 0) spec.head.labels = 1;
  return write_spec(validated(spec));
}

}  // namespace

std::string path_without_effect(const Spec& spec, const std::string& field,
                                const std::function<std::string(const Spec&)>& used_of) try {
  const auto used = [&](const Spec& s) { return used_of ? used_of(s) : complete_text(s); };
  const std::string before = used(spec);
  for (size_t n = 0;; ++n) {
    Spec other = spec;
    OtherValue change(field, n);
    visit(other, change);
    if (!change.changed) return n > 0 ? change.path : "";
    if (used(other) != before) return "";
  }
} catch (const Error&) {
  return "";  // the Spec is invalid, or another value makes it so
}

}  // namespace fovea::model
