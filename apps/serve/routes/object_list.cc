#include "serve/routes/object_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace fovea::serve {

void wrong_query(const char* name, const std::string& expected) {
  throw ApiError{400, fmt::format("{}: expected {}", name, expected), name, "invalid_value"};
}

std::string query_of(const http::Request& request, const char* name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

int64_t limit_of(const http::Request& request, int64_t initial, int64_t most) {
  const std::string text = query_of(request, "limit");
  if (text.empty()) return initial;
  int64_t limit = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, limit);
  if (error != std::errc() || end != last || limit < 1 || limit > most)
    wrong_query("limit", fmt::format("an integer from 1 to {}", most));
  return limit;
}

// Returns the objects that follow the one whose id is the query's `after`.
Json page_of(const std::vector<Json>& all, const http::Request& request, int64_t limit) {
  auto begin = all.begin();
  if (const std::string after = query_of(request, "after"); !after.empty()) {
    begin = std::find_if(all.begin(), all.end(), [&](const Json& o) { return o["id"] == after; });
    if (begin == all.end()) wrong_query("after", "the id of an object of the list");
    ++begin;
  }
  const auto end = begin + std::min<std::ptrdiff_t>(limit, all.end() - begin);
  const Json data(std::vector<Json>(begin, end));
  return {{"object", "list"},
          {"data", data},
          {"first_id", data.empty() ? Json() : data.front()["id"]},
          {"last_id", data.empty() ? Json() : data.back()["id"]},
          {"has_more", end != all.end()}};
}

}  // namespace fovea::serve
