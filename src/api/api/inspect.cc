#include "fovea/study/inspect.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/infer/generate.h"
#include "inspect/inspection.h"
#include "inspect/token_texts.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

// Maximum number of tokens that an encoder-decoder generates if no target is given.
constexpr int64_t kGreedyTokens = 64;

std::vector<int32_t> ids_of(const std::vector<study::InspectedToken>& tokens) {
  std::vector<int32_t> ids;
  for (const study::InspectedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// Returns the greedy output of an encoder-decoder, without the start token.
std::vector<int32_t> greedy_text(const model::Model& model, const std::vector<int32_t>& source) {
  infer::GenerateOptions options = infer::generation_defaults(model);
  options.sampling = {};
  options.sampling.temperature = 0;
  options.beams = options.generations = 1;
  options.max_tokens = std::min(kGreedyTokens, model.spec().context - 1);
  return infer::generate(model, source, options).front().ids;
}

text::SpecialTokens special_tokens_of(const study::InspectInput& input) {
  return input.parse_special ? text::SpecialTokens::parsed : text::SpecialTokens::as_text;
}

// Returns the decoder's input of an encoder-decoder, with the start token. Unless the model writes
// text, its decoder reads the source too, moved by one position.
std::vector<study::InspectedToken> decoder_tokens(const model::Model& model,
                                                  const study::InspectInput& input,
                                                  const std::vector<int32_t>& source) {
  const int32_t start =
      model::special_id(model::parts_of(model).origin, "decoder_start_token_id").value_or(0);
  std::vector<int32_t> ids = input.target_ids;
  if (ids.empty() && !input.target.empty())
    ids = ids_of(study::tokenized(model, input.target, false, special_tokens_of(input)));
  const bool writes = model.spec().head.kind == model::HeadKind::language_model;
  if (ids.empty())
    ids = writes ? greedy_text(model, source)
                 : std::vector<int32_t>(source.begin(), source.end() - 1);
  ids.insert(ids.begin(), start);
  std::vector<study::InspectedToken> tokens = study::display_tokens(model, ids);
  tokens.front().special = true;
  return tokens;
}

}  // namespace

study::Inspection::Inspection(const model::Model& model, const study::InspectInput& input) {
  const FloatMode mode;
  std::vector<study::InspectedToken> read =
      input.ids.empty()
          ? study::tokenized(model, input.text, input.special_tokens, special_tokens_of(input))
          : study::display_tokens(model, input.ids);
  check(!read.empty(), "text: no tokens; expected at least one");
  const std::vector<int32_t> ids = ids_of(read);
  std::vector<study::InspectedToken> source;
  if (model.spec().encoder && model.spec().decoder) {
    source = std::exchange(read, decoder_tokens(model, input, ids));
  }
  state_ = std::make_unique<State>(model::parts_of(model).transformer, ids, ids_of(read),
                                   input.muted, input.muted_neurons);
  state_->owner = model;
  state_->source_text = std::move(source);
  state_->text = std::move(read);
}

}  // namespace fovea
