#include "fovea/spec.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/nearest.h"

namespace fovea {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // no axis of a model that fits any machine is longer

template <class Enum>
void choose(SpecVisitor& v, const char* path, const char* flag, const char* help, Enum& value,
            const std::vector<std::string>& names) {
  int index = static_cast<int>(value);
  v.choice(path, flag, help, index, names);
  value = static_cast<Enum>(index);
}

class Reader : public SpecVisitor {
 public:
  Reader(const nlohmann::json& json, std::string name) : json_(json), name_(std::move(name)) {}

  void integer(const char* path, const char*, const char*, int64_t& value, int64_t least,
               int64_t most) override {
    const auto* found = find(path);
    if (found == nullptr) return;
    if (!found->is_number_integer() || *found < least || *found > most) {
      refuse(path, *found, fmt::format("a whole number from {} to {}", least, most));
    }
    value = found->get<int64_t>();
  }
  void number(const char* path, const char*, const char*, float& value, float least,
              float most) override {
    const auto* found = find(path);
    if (found == nullptr) return;
    // As a float, for 0.95 is more than the float nearest to it.
    if (!found->is_number() || !(found->get<float>() >= least && found->get<float>() <= most)) {
      refuse(path, *found, fmt::format("a number from {} to {}", least, most));
    }
    value = found->get<float>();
  }
  void boolean(const char* path, const char*, const char*, bool& value) override {
    const auto* found = find(path);
    if (found == nullptr) return;
    if (!found->is_boolean()) refuse(path, *found, "true or false");
    value = found->get<bool>();
  }
  void choice(const char* path, const char*, const char*, int& value,
              const std::vector<std::string>& names) override {
    const auto* found = find(path);
    if (found == nullptr) return;
    const auto at = found->is_string()
                        ? std::find(names.begin(), names.end(), found->get<std::string>())
                        : names.end();
    if (at == names.end()) refuse(path, *found, fmt::format("one of {}", fmt::join(names, ", ")));
    value = static_cast<int>(at - names.begin());
  }

  // Every key must have been asked for: a misspelt one would otherwise be silently without effect.
  void refuse_unknown() const { refuse_unknown(json_, ""); }

 private:
  const nlohmann::json* find(const std::string& path) {
    known_.push_back(path);
    const nlohmann::json* at = &json_;
    size_t begin = 0;
    while (begin <= path.size()) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const std::string key = path.substr(begin, end - begin);
      if (!at->is_object() || !at->contains(key)) return nullptr;
      at = &(*at)[key];
      begin = end + 1;
    }
    return at;
  }
  [[noreturn]] void refuse(const char* path, const nlohmann::json& value,
                           const std::string& expected) const {
    fail(ErrorKind::InvalidArgument, "{}: {} is {}; expected {}", name_, path, value.dump(),
         expected);
  }
  void refuse_unknown(const nlohmann::json& part, const std::string& prefix) const {
    check(part.is_object(), "{}: {} is not an object; expected fields in braces", name_,
          prefix.empty() ? "the file" : prefix);
    for (const auto& [key, value] : part.items()) {
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      if (std::find(known_.begin(), known_.end(), path) != known_.end()) continue;
      const bool group = std::any_of(known_.begin(), known_.end(),
                                     [&](auto& k) { return k.starts_with(path + "."); });
      check(group, "{}: {} is not a field of a Spec; did you mean {}?", name_, path,
            nearest(path, fields_and_groups()));
      refuse_unknown(value, path);
    }
  }

  std::vector<std::string> fields_and_groups() const {
    std::vector<std::string> paths = known_;
    for (const std::string& path : known_)
      for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
        paths.push_back(path.substr(0, dot));
    return paths;
  }

  const nlohmann::json& json_;
  std::string name_;
  std::vector<std::string> known_;
};

class Writer : public SpecVisitor {
 public:
  void integer(const char* path, const char*, const char*, int64_t& value, int64_t,
               int64_t) override {
    put(path, value);
  }
  void number(const char* path, const char*, const char*, float& value, float, float) override {
    put(path, std::stod(fmt::format("{}", value)));  // 0.1, not 0.10000000149
  }
  void boolean(const char* path, const char*, const char*, bool& value) override {
    put(path, value);
  }
  void choice(const char* path, const char*, const char*, int& value,
              const std::vector<std::string>& names) override {
    put(path, names[static_cast<size_t>(value)]);
  }
  std::string text() const { return json_.dump(2) + "\n"; }

 private:
  template <class T>
  void put(std::string path, const T& value) {
    std::replace(path.begin(), path.end(), '.', '/');
    json_[nlohmann::ordered_json::json_pointer("/" + path)] = value;
  }
  nlohmann::ordered_json json_;
};

// Holds a Spec that a program made to the limits of one that was read.
class Limits : public SpecVisitor {
 public:
  void integer(const char* path, const char*, const char*, int64_t& value, int64_t least,
               int64_t most) override {
    check_range(path, value, least, most);
  }
  void number(const char* path, const char*, const char*, float& value, float least,
              float most) override {
    check_range(path, value, least, most);
  }
  void boolean(const char*, const char*, const char*, bool&) override {}
  void choice(const char* path, const char*, const char*, int& value,
              const std::vector<std::string>& names) override {
    check_range(path, value, 0, static_cast<int>(names.size()) - 1);
  }

 private:
  template <class T>
  static void check_range(const char* path, T value, T least, T most) {
    check(value >= least && value <= most, "spec: {} is {}; expected {} to {}", path, value, least,
          most);
  }
};

}  // namespace

void visit(Spec& s, SpecVisitor& v) {
  StackSpec& d = s.decoder;
  v.integer("vocabulary", "--vocabulary", "tokens that the model knows; 0 = the tokenizer's",
            s.vocabulary, 0, kMost);
  v.integer("context", "--context", "most tokens in one sequence", s.context, 1, kMost);
  v.integer("width", "--width", "of the residual stream", s.width, 1, kMost);
  choose(v, "position", "--position", "how a token knows its place", s.position,
         {"none", "learned"});
  v.integer("decoder.layers", "--layers", "blocks of the decoder", d.layers, 1, 4096);
  choose(v, "decoder.norm.kind", "--norm", "kind of normalisation", d.norm.kind, {"layer", "rms"});
  v.number("decoder.norm.epsilon", "--norm-epsilon", "added to the variance", d.norm.epsilon, 0.0f,
           1.0f);
  v.boolean("decoder.norm.bias", "--norm-bias", "LayerNorm adds a bias", d.norm.bias);
  v.boolean("decoder.placement.input", "--pre-norm", "norm on a sublayer's input",
            d.placement.input);
  v.boolean("decoder.placement.output", "--output-norm", "norm on a sublayer's output",
            d.placement.output);
  v.boolean("decoder.placement.sum", "--post-norm", "norm on the sum behind a sublayer",
            d.placement.sum);
  v.boolean("decoder.parallel", "--parallel", "attention and feed-forward side by side",
            d.parallel);
  v.boolean("decoder.final_norm", "--final-norm", "norm behind the last block", d.final_norm);
  v.integer("decoder.attention.heads", "--heads", "attention heads", d.attention.heads, 1, 4096);
  v.integer("decoder.attention.kv_heads", "--kv-heads", "key-value heads; 0 = heads",
            d.attention.kv_heads, 0, 4096);
  v.integer("decoder.attention.head_width", "--head-width", "of one head; 0 = width / heads",
            d.attention.head_width, 0, 256);
  v.integer("decoder.attention.window", "--window", "keys that a query sees; 0 = all",
            d.attention.window, 0, kMost);
  v.boolean("decoder.attention.bias", "--attention-bias", "biases of query, key and value",
            d.attention.bias);
  v.boolean("decoder.attention.output_bias", "--attention-output-bias",
            "bias of attention's output", d.attention.output_bias);
  choose(v, "decoder.ffn.activation", "--activation", "of the feed-forward layers",
         d.ffn.activation,
         {"relu", "gelu", "gelu_tanh", "silu", "tanh", "quick_gelu", "relu_squared", "sigmoid"});
  v.boolean("decoder.ffn.gated", "--gated", "gated feed-forward layers (GEGLU, SwiGLU)",
            d.ffn.gated);
  v.integer("decoder.ffn.width", "--ffn-width", "of the feed-forward layers; 0 = 4 x width",
            d.ffn.width, 0, kMost);
  v.boolean("decoder.ffn.bias", "--ffn-bias", "biases of the feed-forward layers", d.ffn.bias);
  v.boolean("tied_head", "--tied-head", "the embedding is also the output matrix", s.tied_head);
  v.number("dropout.embedding", "--embedding-dropout", "probability, on the embeddings",
           s.dropout.embedding, 0.0f, 0.95f);
  v.number("dropout.attention", "--attention-dropout", "probability, on attention weights",
           s.dropout.attention, 0.0f, 0.95f);
  v.number("dropout.residual", "--residual-dropout", "probability, on sublayers' outputs",
           s.dropout.residual, 0.0f, 0.95f);
  v.number("init_deviation", "--init-deviation", "of the random weights", s.init_deviation, 0.0f,
           10.0f);
}

Spec read_spec(const std::string& text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  Spec spec;
  Reader reader(json, name);
  visit(spec, reader);
  reader.refuse_unknown();
  return spec;
}

std::string write_spec(const Spec& spec) {
  Spec copy = spec;
  Writer writer;
  visit(copy, writer);
  return writer.text();
}

Spec validated(Spec s) {
  AttentionSpec& a = s.decoder.attention;
  Limits limits;
  visit(s, limits);
  if (a.kv_heads == 0) a.kv_heads = a.heads;
  if (a.head_width == 0) {
    check(s.width % a.heads == 0,
          "spec: heads {} does not divide width {}; expected a divisor, or --head-width", a.heads,
          s.width);
    a.head_width = s.width / a.heads;
  }
  check(a.head_width <= 256, "spec: heads are {} wide; expected at most 256", a.head_width);
  check(a.heads % a.kv_heads == 0, "spec: kv_heads {} does not divide heads {}; expected a divisor",
        a.kv_heads, a.heads);
  if (s.decoder.ffn.width == 0) s.decoder.ffn.width = 4 * s.width;
  check(!s.decoder.parallel ||
            (s.decoder.placement.input && !s.decoder.placement.output && !s.decoder.placement.sum),
        "spec: parallel sublayers take a norm on their input only; expected placement input");
  check(s.vocabulary > 0, "spec: vocabulary is 0; expected at least 1");
  return s;
}

}  // namespace fovea
