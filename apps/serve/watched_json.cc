#include "serve/watched_json.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <utility>

#include "serve/answer_json.h"

namespace fovea::serve {

WatchedList::WatchedList(const Watch& watch, std::optional<Tokenizer> tokenizer,
                         const std::vector<int32_t>& prompt)
    : watch_(watch), tokenizer_(std::move(tokenizer)) {
  if (watch_.attention) ids_ = prompt;
}

// Returns the text of a token as JSON.
std::string WatchedList::text(int32_t id) const {
  if (id < 0) return "\"\"";
  return json_line(Json(tokenizer_ ? tokenizer_->bytes_of(id) : std::to_string(id)));
}

void WatchedList::add(int32_t id, const Watched& watched) {
  if (watch_.attention) {
    std::string keys;
    for (const auto& [place, weight] : watched.keys) {
      if (!keys.empty()) keys += ',';
      keys += fmt::format("{{\"place\":{},\"token\":{},\"weight\":{}}}", place,
                          text(ids_[static_cast<size_t>(place)]), json_number(weight));
    }
    if (!attention_.empty()) attention_ += ',';
    attention_ += fmt::format("{{\"token\":{},\"keys\":[{}]}}", text(id), keys);
    ids_.push_back(id);
  }
  if (!watch_.hidden) return;
  std::string values;
  for (const float value : watched.hidden) {
    if (!values.empty()) values += ',';
    values += json_number(value);
  }
  if (!hidden_.empty()) hidden_ += ',';
  hidden_ += fmt::format("{{\"token\":{},\"values\":[{}]}}", text(id), values);
}

std::string WatchedList::take() {
  Members members;
  if (!attention_.empty()) {
    members.emplace_back(
        "attention",
        json_object({{"layer", watch_.attention->layer}, {"head", watch_.attention->head}},
                    {{"tokens", "[" + std::exchange(attention_, {}) + "]"}}));
  }
  if (!hidden_.empty()) {
    members.emplace_back("hidden_states",
                         json_object(Json{{"layer", *watch_.hidden}},
                                     {{"tokens", "[" + std::exchange(hidden_, {}) + "]"}}));
  }
  return members.empty() ? "" : json_object(Json::object(), members);
}

}  // namespace fovea::serve
