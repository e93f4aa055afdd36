#include "serve/answer_json.h"

#include <algorithm>
#include <cmath>

#include "fovea/doctor.h"

namespace fovea::serve {
namespace {

// JSON knows no infinity: what cannot be has the log-probability that OpenAI's API gives it.
float finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0f; }

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

}  // namespace

Json AnswerHead::object(bool chunk) const {
  const char* const kind = !chat   ? "text_completion"
                           : chunk ? "chat.completion.chunk"
                                   : "chat.completion";
  return {{"id", id},
          {"object", kind},
          {"created", created},
          {"model", model},
          {"system_fingerprint", "fovea-" + version()},
          {"choices", Json::array()}};
}

Json TokenCounts::json() const {
  return {{"prompt_tokens", prompt},
          {"completion_tokens", written},
          {"total_tokens", prompt + written},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

LogprobList::LogprobList(std::optional<Tokenizer> tokenizer, bool chat)
    : tokenizer_(std::move(tokenizer)), chat_(chat) {
  static_cast<void>(take());
}

std::string LogprobList::text(int32_t id) const {
  return tokenizer_ ? tokenizer_->bytes_of(id) : std::to_string(id);
}

Json LogprobList::entry(int32_t id, float logprob) const {
  const std::string token = text(id);
  return {{"token", token}, {"logprob", finite(logprob)}, {"bytes", bytes_of(token)}};
}

void LogprobList::add(int32_t id, const TokenLogprob& logprob) {
  ++count_;
  if (chat_) {
    Json one = entry(id, logprob.logprob);
    one["top_logprobs"] = Json::array();
    for (const auto& [other, value] : logprob.top) {
      one["top_logprobs"].push_back(entry(other, value));
    }
    list_["content"].push_back(one);
    return;
  }
  const std::string token = text(id);
  list_["tokens"].push_back(token);
  list_["token_logprobs"].push_back(finite(logprob.logprob));
  Json top = Json::object();
  for (const auto& [other, value] : logprob.top) top[text(other)] = finite(value);
  list_["top_logprobs"].push_back(top);
  list_["text_offset"].push_back(offset_);
  offset_ += token.size();
}

Json LogprobList::take() {
  const Json empty = chat_ ? Json{{"content", Json::array()}, {"refusal", nullptr}}
                           : Json{{"tokens", Json::array()},
                                  {"token_logprobs", Json::array()},
                                  {"top_logprobs", Json::array()},
                                  {"text_offset", Json::array()}};
  Json taken = count_ == 0 ? Json() : std::move(list_);
  list_ = empty;
  count_ = 0;
  return taken;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string sse_event(const std::string& data) { return "data: " + data + "\n\n"; }

Json timings_json(const Generation& generation) {
  const auto written = static_cast<int64_t>(generation.ids.size());
  const int64_t computed = generation.prompt_tokens - generation.cached_tokens;
  Json timings = {{"cache_n", generation.cached_tokens},
                  {"prompt_n", computed},
                  {"prompt_ms", generation.prompt_seconds * 1000},
                  {"prompt_per_second", rate(computed, generation.prompt_seconds)},
                  {"predicted_n", written},
                  {"predicted_ms", generation.generation_seconds * 1000},
                  {"predicted_per_second", rate(written, generation.generation_seconds)}};
  if (generation.guessed_tokens > 0) {
    timings["draft_n"] = generation.guessed_tokens;
    timings["draft_n_accepted"] = generation.accepted_tokens;
  }
  return timings;
}

const char* finish_reason(const std::string& finish) {
  return finish == "length" ? "length" : "stop";
}

}  // namespace fovea::serve
