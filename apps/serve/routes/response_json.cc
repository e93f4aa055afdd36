#include "serve/routes/response_json.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace fovea::serve {
namespace {

// JSON has no infinity: impossible tokens get the log-probability that OpenAI's API uses.
float finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0f; }

// Counts the characters that begin in a text; a token may hold a part of one.
size_t characters_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

// Writes a comma before every element but the first.
std::string& next(std::string& list) {
  if (!list.empty()) list += ',';
  return list;
}

}  // namespace

Json TokenCounts::json() const {
  Json usage = {{"prompt_tokens", prompt},
                {"completion_tokens", generated},
                {"total_tokens", prompt + generated},
                {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  if (reasoning > 0) usage["completion_tokens_details"] = {{"reasoning_tokens", reasoning}};
  return usage;
}

LogprobList::LogprobList(std::optional<text::Tokenizer> tokenizer, LogprobStyle style)
    : tokenizer_(std::move(tokenizer)), style_(style) {}

std::string LogprobList::text(int32_t id) const {
  return tokenizer_ ? tokenizer_->bytes_of(id) : std::to_string(id);
}

std::string LogprobList::entry(int32_t id, float logprob) const {
  const std::string token = text(id);
  std::string bytes;
  for (const char c : token) next(bytes) += std::to_string(static_cast<unsigned char>(c));
  return fmt::format("{{\"token\":{},\"logprob\":{},\"bytes\":[{}]", json_line(Json(token)),
                     finite(logprob), bytes);
}

void LogprobList::add(int32_t id, const infer::TokenLogprob& logprob) {
  std::string top;
  if (style_ != LogprobStyle::completion) {
    for (const auto& [other, value] : logprob.top) next(top) += entry(other, value) + '}';
    next(tokens_) += entry(id, logprob.logprob) + ",\"top_logprobs\":[" + top + "]}";
    return;
  }
  const std::string token = text(id);
  Json likeliest = Json::object();  // different tokens may have the same text
  for (const auto& [other, value] : logprob.top) likeliest[text(other)] = finite(value);
  next(tokens_) += json_line(Json(token));
  next(logprobs_) += fmt::format("{}", finite(logprob.logprob));
  next(top_) += json_line(likeliest);
  next(offsets_) += std::to_string(offset_);
  offset_ += characters_of(token);
}

void LogprobList::add_first(int32_t id) {
  const std::string token = text(id);
  next(tokens_) += json_line(Json(token));
  next(logprobs_) += "null";
  next(top_) += "null";
  next(offsets_) += std::to_string(offset_);
  offset_ += characters_of(token);
}

void LogprobList::settle(bool keeps) {
  if (!keeps) tokens_.resize(settled_);
  settled_ = tokens_.size();
}

std::string LogprobList::take() {
  settled_ = 0;
  if (tokens_.empty()) return "null";
  const std::string tokens = std::exchange(tokens_, {});
  if (style_ == LogprobStyle::list || style_ == LogprobStyle::content) return "[" + tokens + "]";
  if (style_ == LogprobStyle::chat) return "{\"content\":[" + tokens + "],\"refusal\":null}";
  return "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + std::exchange(logprobs_, {}) +
         "],\"top_logprobs\":[" + std::exchange(top_, {}) + "],\"text_offset\":[" +
         std::exchange(offsets_, {}) + "]}";
}

std::string json_number(float number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

std::string json_object(const Json& object, const Members& members) {
  std::string text = json_line(object);
  text.pop_back();
  size_t bytes = text.size() + 1;
  for (const auto& [name, value] : members) bytes += value.size() + 64;
  text.reserve(bytes);
  for (const auto& [name, value] : members) {
    if (text.back() != '{') text += ',';
    text += fmt::format("\"{}\":", name);
    text += value;
  }
  text += '}';
  return text;
}

std::string sse_event(const std::string& data) { return "data: " + data + "\n\n"; }

Json timings_json(const infer::Generation& generation) {
  const auto generated = static_cast<int64_t>(generation.ids.size());
  const int64_t computed = generation.prompt_tokens - generation.cached_tokens;
  Json timings = {{"cache_n", generation.cached_tokens},
                  {"prompt_n", computed},
                  {"prompt_ms", generation.prompt_seconds * 1000},
                  {"prompt_per_second", rate(computed, generation.prompt_seconds)},
                  {"predicted_n", generated},
                  {"predicted_ms", generation.generation_seconds * 1000},
                  {"predicted_per_second", rate(generated, generation.generation_seconds)}};
  if (generation.speculative_tokens > 0) {
    timings["draft_n"] = generation.speculative_tokens;
    timings["draft_n_accepted"] = generation.accepted_tokens;
  }
  return timings;
}

}  // namespace fovea::serve
