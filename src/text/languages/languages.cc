#include "fovea/text/languages.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "languages/table.h"

namespace fovea::text {
namespace {

std::string cased(std::string_view text, int (*first)(int), int (*rest)(int)) {
  std::string out(text);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<char>((i == 0 ? first : rest)(static_cast<unsigned char>(out[i])));
  return out;
}

std::string lower_case(std::string_view text) { return cased(text, std::tolower, std::tolower); }

// The subtags of a tag or a code that matter.
struct Subtags {
  const Language* language = nullptr;
  std::string script, region;  // "Hans", "CN"; may be empty
};

std::vector<std::string_view> parts_of(std::string_view tag) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = tag.find_first_of("-_");
    parts.push_back(tag.substr(0, end));
    if (end == std::string_view::npos) return parts;
    tag.remove_prefix(end + 1);
  }
}

Subtags subtags_of(std::string_view tag) {
  const std::vector<std::string_view> parts = parts_of(tag);
  Subtags found{find_language(parts[0]), "", ""};
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.size() == 4 && found.script.empty())
      found.script = cased(part, std::toupper, std::tolower);
    else if (part.size() == 2 && found.region.empty())
      found.region = cased(part, std::toupper, std::toupper);
    else if (part.size() == 3 && i == 1 && find_language(part) != nullptr)
      found.language = find_language(part);  // an extended language: zh-yue
  }
  if (found.region == "XX") found.region.clear();  // "en_XX": in any region
  return found;
}

// Sets the script of Chinese that a tag implies.
Subtags with_script(Subtags tag) {
  if (tag.language == nullptr || tag.language->brief != std::string_view("zh")) return tag;
  const bool traditional = tag.region == "TW" || tag.region == "HK" || tag.region == "MO";
  if (tag.script.empty()) tag.script = traditional ? "Hant" : "Hans";
  return tag;
}

}  // namespace

const Language* find_language(std::string_view code) {
  if (code.size() < 2 || code.size() > 3) return nullptr;
  std::string wanted = lower_case(code);
  for (const auto& [other, known] : other_codes())
    if (wanted == other) wanted = known;
  for (const Language& language : languages())
    if (wanted == language.code || wanted == language.brief) return &language;
  return nullptr;
}

std::vector<std::string> matching_codes(const std::string& tag,
                                        const std::vector<std::string>& codes) {
  if (std::find(codes.begin(), codes.end(), tag) != codes.end()) return {tag};
  const Subtags wanted = with_script(subtags_of(tag));
  if (wanted.language == nullptr) return {};
  std::vector<std::string> best;
  int most = -1;
  for (const std::string& code : codes) {
    const Subtags has = subtags_of(code);
    if (has.language != wanted.language) continue;
    const bool same = !has.script.empty() && has.script == wanted.script;
    if (!same && !has.script.empty() && !wanted.script.empty()) continue;
    const int region = has.region == wanted.region ? 2 : has.region.empty() ? 1 : 0;
    const int rank = (same ? 3 : 0) + region;
    if (rank > most) best.clear();
    if (rank >= most) best.push_back(code);
    most = std::max(most, rank);
  }
  return best;
}

std::string language_tag(const std::string& code, const std::vector<std::string>& codes) {
  const Subtags own = subtags_of(code);
  if (own.language == nullptr) return code;
  std::string tag = *own.language->brief != '\0' ? own.language->brief : own.language->code;
  for (const std::string& other : codes) {
    const Subtags its = subtags_of(other);
    if (other == code || its.language != own.language) continue;
    if (!own.script.empty() && its.script != own.script) return tag + "-" + own.script;
    if (!own.region.empty() && its.region != own.region) return tag + "-" + own.region;
  }
  return tag;
}

std::string language_name(const std::string& tag) {
  const Subtags own = subtags_of(tag);
  if (own.language == nullptr) return tag;
  const std::string part = own.script.empty() ? own.region : own.script;
  return part.empty() ? own.language->name : fmt::format("{} ({})", own.language->name, part);
}

std::string shortened(const std::vector<std::string>& codes) {
  constexpr size_t kShown = 12;
  if (codes.size() <= kShown + 1) return fmt::format("{}", fmt::join(codes, ", "));
  const std::vector<std::string> first(codes.begin(), codes.begin() + kShown);
  return fmt::format("{} and {} others", fmt::join(first, ", "), codes.size() - kShown);
}

}  // namespace fovea::text
