#include "serve/generation/attention_trace_json.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <utility>

#include "serve/routes/response_json.h"

namespace fovea::serve {

AttentionTraceList::AttentionTraceList(const infer::AttentionTraceOptions& trace,
                                       std::optional<text::Tokenizer> tokenizer,
                                       const std::vector<int32_t>& prompt)
    : trace_options_(trace), tokenizer_(std::move(tokenizer)) {
  if (trace_options_.attention) ids_ = prompt;
}

// Returns the text of a token as JSON.
std::string AttentionTraceList::text(int32_t id) const {
  if (id < 0) return "\"\"";
  return json_line(Json(tokenizer_ ? tokenizer_->bytes_of(id) : std::to_string(id)));
}

void AttentionTraceList::add(int32_t id, const infer::AttentionTrace& trace) {
  if (trace_options_.attention) {
    std::string keys;
    for (const auto& [position, weight] : trace.keys) {
      if (!keys.empty()) keys += ',';
      keys += fmt::format("{{\"position\":{},\"token\":{},\"weight\":{}}}", position,
                          text(ids_[static_cast<size_t>(position)]), json_number(weight));
    }
    if (!attention_.empty()) attention_ += ',';
    attention_ += fmt::format("{{\"token\":{},\"keys\":[{}]}}", text(id), keys);
    ids_.push_back(id);
  }
  if (!trace_options_.hidden) return;
  std::string values;
  for (const float value : trace.hidden) {
    if (!values.empty()) values += ',';
    values += json_number(value);
  }
  if (!hidden_.empty()) hidden_ += ',';
  hidden_ += fmt::format("{{\"token\":{},\"values\":[{}]}}", text(id), values);
}

std::string AttentionTraceList::take() {
  Members members;
  if (!attention_.empty()) {
    members.emplace_back("attention",
                         json_object({{"layer", trace_options_.attention->layer},
                                      {"head", trace_options_.attention->head}},
                                     {{"tokens", "[" + std::exchange(attention_, {}) + "]"}}));
  }
  if (!hidden_.empty()) {
    members.emplace_back("hidden_states",
                         json_object(Json{{"layer", *trace_options_.hidden}},
                                     {{"tokens", "[" + std::exchange(hidden_, {}) + "]"}}));
  }
  return members.empty() ? "" : json_object(Json::object(), members);
}

}  // namespace fovea::serve
