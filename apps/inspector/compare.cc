#include "inspector/compare.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "fovea/core/error.h"
#include "fovea/infer/generate.h"
#include "fovea/text/chat.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostTokens = 256;  // of an answer

void require(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorKind::InvalidArgument, message);
}

// Returns log softmax(logits).
std::vector<double> log_softmax(const std::vector<float>& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += math::exp(logit - most);
  const double all = most + math::log(sum);
  std::vector<double> log_p;
  for (const float logit : logits) log_p.push_back(logit - all);
  return log_p;
}

double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += math::exp(p[i]) * (p[i] - q[i]);
  return std::max(0.0, sum);
}

bool same_tokens(const std::vector<study::InspectedToken>& one,
                 const std::vector<study::InspectedToken>& other) {
  return std::equal(
      one.begin(), one.end(), other.begin(), other.end(),
      [](const study::InspectedToken& a, const study::InspectedToken& b) { return a.id == b.id; });
}

// The tokens of a user's message in a chat, up to the beginning of the answer.
std::vector<int32_t> chat_ids(const text::ChatFormat& format, const text::Tokenizer& tokenizer,
                              const std::string& message) {
  text::ChatRequest request;
  request.messages = text::ChatValue::list({text::chat_message("user", message)});
  return tokenizer.encode(format.render(text::guarded(request, tokenizer)),
                          text::SpecialTokens::guarded);
}

}  // namespace

Json generation_json(const model::Model& model, const std::string& folder, const Json& request) {
  require(model.spec().decoder && model.has_tokenizer(),
          "model: writes no text; expected a model that does");
  const auto prompt = request.value("prompt", std::string());
  require(!prompt.empty(), "prompt: is empty; expected a text");
  const auto tokens = request.value("tokens", int64_t{64});
  require(tokens >= 1 && tokens <= kMostTokens,
          "tokens: expected an integer from 1 to " + std::to_string(kMostTokens));
  const text::Tokenizer& tokenizer = model.tokenizer();
  const auto format = text::chat_format(folder, "", tokenizer);
  const bool chat = request.value("chat", true) && format && !model.spec().encoder;
  const std::vector<int32_t> before =
      chat ? chat_ids(*format, tokenizer, prompt) : infer::prompt_ids(model, prompt);
  infer::GenerateOptions options;
  // The answer is inspected together with the prompt, which leaves this room for it.
  const auto room = model.spec().context - (model.spec().encoder ? 1 : std::ssize(before));
  require(room > 0, "prompt: " + std::to_string(before.size()) + " tokens; expected fewer than " +
                        std::to_string(model.spec().context) + ", the model's context");
  options.max_tokens = std::min<int64_t>(tokens, room);
  options.sampling.temperature = 0;
  const infer::Generation generation = infer::generate(model, before, options)[0];
  std::vector<int32_t> ids = model.spec().encoder ? std::vector<int32_t>() : before;
  const size_t begin = ids.size();
  ids.insert(ids.end(), generation.ids.begin(), generation.ids.end());
  if (generation.end_id >= 0) ids.push_back(generation.end_id);
  Json found = {{"text", generation.text}, {"ids", ids}, {"begin", begin}, {"chat", chat}};
  if (model.spec().encoder) found["source"] = before;
  return found;
}

bool has_chat_format(const model::Model& model, const std::string& folder) {
  return model.spec().decoder && !model.spec().encoder && model.has_tokenizer() &&
         text::chat_format(folder, "", model.tokenizer()).has_value();
}

Json prompt_json(const model::Model& model, const std::string& folder, const Json& request) {
  require(has_chat_format(model, folder), "model: has no chat template; expected a chat model");
  const auto prompt = request.value("prompt", std::string());
  require(!prompt.empty(), "prompt: is empty; expected a text");
  const text::Tokenizer& tokenizer = model.tokenizer();
  const std::vector<int32_t> ids =
      chat_ids(*text::chat_format(folder, "", tokenizer), tokenizer, prompt);
  return {{"ids", ids}, {"text", tokenizer.decode(ids)}};
}

Json divergence_json(const study::Inspection& one, const study::Inspection& other) {
  require(same_tokens(one.tokens(), other.tokens()) && same_tokens(one.source(), other.source()),
          "other: has different tokens; expected two runs over the same tokens");
  Json positions = Json::array();
  for (int64_t position = 0; position < static_cast<int64_t>(one.tokens().size()); ++position) {
    const std::vector<float> a = one.logits(position), b = other.logits(position);
    require(a.size() == b.size(), "other: has " + std::to_string(b.size()) + " outputs; expected " +
                                      std::to_string(a.size()));
    const std::vector<double> p = log_softmax(a), q = log_softmax(b);
    positions.push_back({{"kl", divergence(p, q)}, {"reverse", divergence(q, p)}});
  }
  return positions;
}

}  // namespace fovea::inspector
