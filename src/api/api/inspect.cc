#include "fovea/inspect.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/generate.h"
#include "inspect/inspection.h"
#include "inspect/token_texts.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

// Maximum number of tokens that an encoder-decoder generates if no target is given.
constexpr int64_t kSaid = 64;

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

SpecialTokens written(const InspectInput& input) {
  return input.parse_special ? SpecialTokens::parsed : SpecialTokens::as_text;
}

// Returns the decoder's input of an encoder-decoder, with the start token. Unless the model writes
// text, its decoder reads the source too, moved by one place.
std::vector<InspectedToken> decoder_tokens(const Model& model, const InspectInput& input,
                                           const std::vector<int32_t>& source) {
  const int32_t start = special_id(parts_of(model).origin, "decoder_start_token_id").value_or(0);
  std::vector<int32_t> ids = input.target_ids;
  if (ids.empty() && !input.target.empty())
    ids = ids_of(tokenized(model, input.target, false, written(input)));
  const bool writes = model.spec().head.kind == HeadKind::language_model;
  if (ids.empty())
    ids = writes ? said(model, source) : std::vector<int32_t>(source.begin(), source.end() - 1);
  ids.insert(ids.begin(), start);
  std::vector<InspectedToken> tokens = display_tokens(model, ids);
  tokens.front().special = true;
  return tokens;
}

}  // namespace

Inspection::Inspection(const Model& model, const InspectInput& input) {
  const FloatMode mode;
  std::vector<InspectedToken> read =
      input.ids.empty() ? tokenized(model, input.text, input.special_tokens, written(input))
                        : display_tokens(model, input.ids);
  check(!read.empty(), "text: no tokens; expected at least one");
  const std::vector<int32_t> ids = ids_of(read);
  std::vector<InspectedToken> source;
  if (model.spec().encoder && model.spec().decoder) {
    source = std::exchange(read, decoder_tokens(model, input, ids));
  }
  state_ = std::make_unique<State>(parts_of(model).transformer, ids, ids_of(read), input.muted,
                                   input.muted_neurons);
  state_->owner = model;
  state_->source_text = std::move(source);
  state_->text = std::move(read);
}

}  // namespace fovea
