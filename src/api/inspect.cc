#include "fovea/inspect.h"

#include <algorithm>
#include <charconv>

#include "api/model_parts.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/random.h"
#include "fovea/generate.h"
#include "inspect/inspection.h"

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

// Returns the decoder's input of an encoder-decoder, with the start token.
std::vector<InspectedToken> decoder_tokens(const Model& model, const InspectInput& input,
                                           const std::vector<int32_t>& source) {
  const int32_t start = special_id(model.parts().origin, "decoder_start_token_id").value_or(0);
  std::vector<int32_t> ids = input.target_ids;
  if (ids.empty() && !input.target.empty()) ids = ids_of(tokenized(model, input.target, false));
  if (ids.empty()) ids = said(model, source);
  ids.insert(ids.begin(), start);
  std::vector<InspectedToken> tokens = named(model, ids);
  tokens.front().special = true;
  return tokens;
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
           p.kind, {"self", "encoder", "cross"});
  v.integer({"layer", "layer, counted from 0"}, p.layer, 0, kMost);
  v.integer({"head", "head, counted from 0"}, p.head, 0, kMost);
}

Inspection::Inspection(const Model& model, const InspectInput& input) {
  const FloatMode mode;
  std::vector<InspectedToken> read = input.ids.empty()
                                         ? tokenized(model, input.text, input.special_tokens)
                                         : named(model, input.ids);
  check(!read.empty(), "text: no tokens; expected at least one");
  const std::vector<int32_t> ids = ids_of(read);
  std::vector<InspectedToken> source;
  if (model.spec().encoder && model.spec().decoder) {
    source = std::exchange(read, decoder_tokens(model, input, ids));
  }
  state_ = std::make_unique<State>(model.parts().transformer, ids, ids_of(read), input.muted);
  state_->owner = model;
  state_->source_text = std::move(source);
  state_->text = std::move(read);
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
  const Inspection::State state(transformer, ids, ids);
  std::vector<std::vector<double>> scores;
  for (int64_t layer = 0; layer < state.stack_spec(AttentionKind::self).layers; ++layer)
    scores.push_back(induction(state, layer, period));
  return scores;
}

}  // namespace fovea
