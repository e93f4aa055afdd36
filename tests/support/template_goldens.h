#pragma once

// Goldens of rendered chat templates, which tools/goldens/make_chat_templates.py wrote with Jinja2.

#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "fovea/text/chat.h"

namespace fovea {

// Returns the time that templates receive, as in the goldens: Friday, 26 July 2024, 9:05:07.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_wday = 5;
  time.tm_yday = 207;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 7;
  return time;
}

inline nlohmann::ordered_json read_template_golden(const std::string& path) {
  return nlohmann::ordered_json::parse(read_file(path));
}

// Returns the result of render(), a ChatTemplate::Result of the template "t", in the format of the
// goldens: {"text", "spans"} or {"error"}.
template <class Render>
nlohmann::ordered_json as_golden(const Render& render) {
  nlohmann::ordered_json result;
  try {
    const auto [text, spans] = render();
    result["text"] = text;
    for (const text::ChatTemplate::Span& span : spans.value()) {
      result["spans"].push_back({span.begin, span.end});
    }
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("t: line ")) << error.what();
    result["error"] = true;
  }
  return result;
}

// Returns the members of a golden that as_golden() can return.
inline nlohmann::ordered_json expected_result(const nlohmann::ordered_json& golden) {
  nlohmann::ordered_json result;
  for (const char* key : {"text", "spans", "error"}) {
    if (golden.contains(key)) result[key] = golden[key];
  }
  return result;
}

}  // namespace fovea
