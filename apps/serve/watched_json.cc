#include "serve/watched_json.h"

#include <utility>

namespace fovea::serve {

WatchedList::WatchedList(const Watch& watch, std::optional<Tokenizer> tokenizer,
                         std::vector<int32_t> prompt)
    : watch_(watch), tokenizer_(std::move(tokenizer)), ids_(std::move(prompt)) {}

std::string WatchedList::text(int32_t id) const {
  if (id < 0) return {};
  return tokenizer_ ? tokenizer_->bytes_of(id) : std::to_string(id);
}

Json WatchedList::keys_of(const Watched& watched) const {
  Json keys = Json::array();
  for (const auto& [place, weight] : watched.keys) {
    keys.push_back(
        {{"place", place}, {"token", text(ids_[static_cast<size_t>(place)])}, {"weight", weight}});
  }
  return keys;
}

void WatchedList::add(int32_t id, const Watched& watched) {
  if (watch_.attention) {
    attention_.push_back({{"token", text(id)}, {"keys", keys_of(watched)}});
  }
  if (watch_.hidden) hidden_.push_back({{"token", text(id)}, {"values", watched.hidden}});
  ids_.push_back(id);
}

Json WatchedList::take() {
  Json taken;
  if (!attention_.empty()) {
    taken["attention"] = {{"layer", watch_.attention->layer},
                          {"head", watch_.attention->head},
                          {"tokens", std::exchange(attention_, Json::array())}};
  }
  if (!hidden_.empty()) {
    taken["hidden_states"] = {{"layer", *watch_.hidden},
                              {"tokens", std::exchange(hidden_, Json::array())}};
  }
  return taken;
}

}  // namespace fovea::serve
