#include "fovea/inspect.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <mutex>

#include "api/model_parts.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "base/random.h"
#include "checkpoint/safetensors.h"
#include "fovea/generate.h"
#include "inspect/inspection.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Maximum number of tokens that an encoder-decoder generates if no target is given.
constexpr int64_t kSaid = 64;

// Returns whether the bytes are complete UTF-8 characters, at least one.
bool is_text(std::string_view bytes) {
  if (bytes.empty()) return false;
  size_t expected = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) {
      if (expected == 0) return false;
      --expected;
      continue;
    }
    if (expected != 0) return false;
    expected = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  }
  return expected == 0;
}

std::vector<InspectedToken> named(const Model& model, const std::vector<int32_t>& ids) {
  std::vector<InspectedToken> tokens;
  for (const int32_t id : ids) {
    InspectedToken token{id, std::to_string(id), false};
    if (model.has_tokenizer() && id >= 0 && id < model.tokenizer().size()) {
      token.text = model.tokenizer().text_of(id);
      token.special = model.tokenizer().is_special(id);
      const std::string decoded = model.tokenizer().decode({id});
      if (is_text(decoded) && decoded.find("\uFFFD") == std::string::npos) token.text = decoded;
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Parses a text for a model without a tokenizer: ids separated by spaces, commas or line breaks.
std::vector<int32_t> ids_in(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == ',' || text[at] == '\n') {
      ++at;
      continue;
    }
    int32_t id = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    check(error == std::errc(),
          "text: this model has no tokenizer; expected token ids such as 1 2 3");
    ids.push_back(id);
    at = static_cast<size_t>(end - text.data());
  }
  return ids;
}

std::vector<InspectedToken> tokenized(const Model& model, const std::string& text, bool special) {
  check(text.size() <= kInspectedBytes, "text: {} bytes; expected at most {}", text.size(),
        kInspectedBytes);
  if (!model.has_tokenizer()) return named(model, ids_in(text));
  const Encoding encoding =
      model.tokenizer().encoding(text, {special, SpecialTokens::as_text, false});
  std::vector<InspectedToken> tokens = named(model, encoding.ids);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Offsets at = encoding.byte_offsets[i];
    const std::string_view part = std::string_view(text).substr(at.begin, at.end - at.begin);
    if (is_text(part)) tokens[i].text = part;
    if (encoding.special_mask[i] != 0) tokens[i].special = true;
  }
  return tokens;
}

std::vector<int32_t> ids_of(const std::vector<InspectedToken>& tokens) {
  std::vector<int32_t> ids;
  for (const InspectedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// Returns the greedy output of an encoder-decoder, without the start token.
std::vector<int32_t> said(const Model& model, const std::vector<int32_t>& source) {
  GenerateOptions options = generation_defaults(model);
  options.sampling = {};
  options.sampling.temperature = 0;
  options.beams = options.answers = 1;
  options.max_tokens = std::min(kSaid, model.spec().context - 1);
  return generate(model, source, options).front().ids;
}

}  // namespace

void visit(InspectInput& i, OptionVisitor& v) {
  v.text({"text", "input text of the model"}, i.text);
  v.text({"target", "decoder text of an encoder-decoder; unset: the model's own output"}, i.target);
}

void visit(HeadPlace& p, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000;  // the model limits both further
  v.choice({"look",
            "self-attention, self-attention of the encoder, or cross-attention from the decoder to "
            "the encoder"},
           p.look, {"self", "encoder", "cross"});
  v.integer({"layer", "layer, counted from 0"}, p.layer, 0, kMost);
  v.integer({"head", "head, counted from 0"}, p.head, 0, kMost);
}

struct Inspector::State {
  std::vector<InspectedToken> source, tokens;
  std::vector<bool> source_punctuation, punctuation;
  Model model;
  std::unique_ptr<Inspection> inspection;
  mutable std::mutex mutex;

  State(const Model& m, const InspectInput& input) : model(m) {
    const Spec& spec = model.spec();
    const bool both = spec.encoder && spec.decoder;
    std::vector<InspectedToken> read = input.ids.empty()
                                           ? tokenized(model, input.text, input.special_tokens)
                                           : named(model, input.ids);
    check(!read.empty(), "text: no tokens; expected at least one");
    if (both) {
      source = std::move(read);
      read_target(input);
    } else {
      tokens = std::move(read);
    }
    const std::vector<int32_t> front = ids_of(both ? source : tokens);
    inspection =
        std::make_unique<Inspection>(model.parts().transformer, front, ids_of(tokens), input.muted);
    for (const auto& [from, to] :
         {std::pair(&source, &source_punctuation), {&tokens, &punctuation}})
      for (const InspectedToken& token : *from) to->push_back(is_punctuation(token));
  }

  void read_target(const InspectInput& input) {
    const int32_t start = special_id(model.parts().origin, "decoder_start_token_id").value_or(0);
    std::vector<int32_t> ids = input.target_ids;
    if (ids.empty() && !input.target.empty()) ids = ids_of(tokenized(model, input.target, false));
    if (ids.empty()) ids = said(model, ids_of(source));
    ids.insert(ids.begin(), start);
    tokens = named(model, ids);
    tokens.front().special = true;
  }

  // Considers only ASCII punctuation; that of other scripts would need tables.
  static bool is_punctuation(const InspectedToken& token) {
    bool mark = false;
    for (const char c : token.text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 || std::isalnum(byte) != 0) return false;
      mark = mark || std::ispunct(byte) != 0;
    }
    return mark && !token.special;
  }
};

Inspector::Inspector(const Model& model, const InspectInput& input) {
  const FloatMode mode;
  state_ = std::make_unique<State>(model, input);
}
Inspector::~Inspector() = default;
Inspector::Inspector(Inspector&&) noexcept = default;

const std::vector<InspectedToken>& Inspector::tokens() const { return state_->tokens; }
const std::vector<InspectedToken>& Inspector::source() const { return state_->source; }

Map Inspector::map(const MapQuery& query) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->map(query);
}

std::vector<std::vector<Looked>> Inspector::strongest(const MapQuery& query, int64_t count) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->strongest(query, count);
}

std::vector<HeadScores> Inspector::head_scores(Look look, int64_t layer) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->head_scores(
      look, layer, look == Look::self ? state_->punctuation : state_->source_punctuation);
}

std::vector<float> Inspector::logits(int64_t position) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->logits(position);
}

std::vector<std::vector<Guess>> Inspector::lens(int64_t first, int64_t end) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->lens(first, end);
}

std::vector<Surprise> Inspector::surprise() const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->surprise();
}

double Inspector::loss() const {
  const FloatMode mode;
  double sum = 0;
  const std::vector<Surprise> all = surprise();
  for (const Surprise& s : all) sum -= math::log(s.probability);
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

std::vector<Step> Inspector::walk(const WalkQuery& query) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->walk(query);
}

std::vector<std::vector<Routed>> Inspector::routing(Look look, int64_t layer) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  return state_->inspection->routing(look, layer);
}

std::vector<LayerSizes> Inspector::sizes(Look look, bool gradients) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  std::vector<LayerSizes> sizes = state_->inspection->sizes(look);
  if (!gradients || look != Look::self) return sizes;
  const std::vector<float> found =
      gradient_sizes(state_->model.parts().transformer, ids_of(state_->tokens));
  for (size_t layer = 0; layer < found.size(); ++layer) sizes[layer].gradient = found[layer];
  return sizes;
}

void Inspector::save(const std::string& path, Look look, int64_t layer) const {
  const FloatMode mode;
  const std::lock_guard lock(state_->mutex);
  const Inspection& inspection = *state_->inspection;
  const StackRun& run = inspection.run(look);
  const Spec& spec = inspection.model().spec;
  const bool both = spec.encoder && spec.decoder;
  const std::string stack = !both ? "" : look == Look::encoder ? "encoder_" : "decoder_";
  std::map<std::string, Tensor> found;
  const Tensor ids = empty({1, run.tokens()}, DType::i32);
  std::copy(run.ids.begin(), run.ids.end(), ids.data_as<int32_t>());
  found["input_ids"] = ids;
  for (size_t i = 0; i + 1 < run.stream.size(); ++i)
    found[fmt::format("{}hidden.{}", stack, i)] = run.stream[i];
  found[fmt::format("{}hidden.{}", stack, run.stream.size() - 1)] = run.output;
  const int64_t H = inspection.stack_spec(look).attention.heads, T = run.tokens(),
                S = inspection.keys(look);
  const Tensor weights = empty({1, H, T, S});
  for (int64_t h = 0; h < H; ++h)
    std::copy_n(inspection.weights(look, layer, h, {0, T}).data_as<float>(), T * S,
                weights.data_as<float>() + h * T * S);
  found[look == Look::cross ? fmt::format("cross_attention.{}", layer)
                            : fmt::format("{}attention.{}", stack, layer)] = weights;
  write_safetensors(path, found);
}

std::vector<InspectedToken> token_texts(const Model& model, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids)
    check(id >= 0 && id < model.spec().vocabulary, "ids: {}; expected 0 to {}", id,
          model.spec().vocabulary - 1);
  return named(model, ids);
}

std::vector<std::vector<double>> induction_scores(const Model& model, uint64_t seed) {
  const FloatMode mode;
  const Transformer& transformer = model.parts().transformer;
  const Spec& spec = transformer.spec;
  // Long enough for a stable mean; short enough to compute 15 heads in 30 layers quickly.
  const int64_t period = std::min<int64_t>(48, spec.context / 2);
  std::vector<int32_t> ids;
  Random random(seed, Stream::sampling);
  for (int64_t i = 0; i < period; ++i)
    ids.push_back(static_cast<int32_t>(random.word() % static_cast<uint32_t>(spec.vocabulary)));
  for (int64_t i = 0; i < period; ++i) ids.push_back(ids[static_cast<size_t>(i)]);
  const Inspection inspection(transformer, ids, ids);
  std::vector<std::vector<double>> scores;
  const StackSpec& stack = inspection.stack_spec(Look::self);
  for (int64_t layer = 0; layer < stack.layers; ++layer)
    scores.push_back(inspection.induction(layer, period));
  return scores;
}

}  // namespace fovea
