#include "data/special_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace fovea::train {
namespace {

constexpr size_t kLongest = 64;     // maximum length of a name, in bytes
constexpr size_t kMostNames = 256;  // maximum number of distinct names
constexpr std::string_view kOpening = "<[";

constexpr std::array<std::string_view, 22> kUsual = {
    "<s>",         "</s>",  "<pad>",  "<unk>",   "<mask>", "<bos>",           "<eos>",
    "<cls>",       "<sep>", "[CLS]",  "[SEP]",   "[PAD]",  "[UNK]",           "[MASK]",
    "[BOS]",       "[EOS]", "[INST]", "[/INST]", "<eod>",  "<start_of_turn>", "<end_of_turn>",
    "<extra_id_0>"};

// Returns whether the text has the form <|name|>, with ASCII bars or the full-width bars of
// DeepSeek.
bool has_bars(std::string_view text) {
  for (const std::string_view bar : {std::string_view("|"), std::string_view("\uFF5C")}) {
    if (text.size() > 2 + 2 * bar.size() && text.substr(1).starts_with(bar) &&
        text.substr(0, text.size() - 1).ends_with(bar))
      return true;
  }
  return false;
}

}  // namespace

SpecialNames::SpecialNames(const text::Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_special(id)) own_.emplace(tokenizer.text_of(id));
  }
}

bool SpecialNames::is_name(std::string_view text) const {
  if (text[0] == '<' && has_bars(text)) return true;
  return std::find(kUsual.begin(), kUsual.end(), text) != kUsual.end() ||
         own_.contains(std::string(text));
}

// Counts the names that begin before `end`.
void SpecialNames::scan(std::string_view text, size_t end) {
  for (size_t at = text.find_first_of(kOpening); at < end;
       at = text.find_first_of(kOpening, at + 1)) {
    const std::string_view rest = text.substr(at, kLongest);
    const size_t close = rest.find(rest[0] == '<' ? '>' : ']');
    if (close == rest.npos) continue;
    const std::string_view name = rest.substr(0, close + 1);
    if (name.find_first_of(" \t\r\n") != name.npos || !is_name(name)) continue;
    const auto known = counts_.find(name);
    if (known != counts_.end()) {
      ++known->second;
    } else if (counts_.size() < kMostNames) {
      counts_.emplace(name, 1);
    }
  }
}

void SpecialNames::add(std::string_view part, bool starts_text) {
  if (starts_text) {
    scan(tail_, tail_.size());
    tail_.clear();
  }
  // A name may begin in the previous part and end in this one.
  const size_t before = tail_.size();
  tail_ += part.substr(0, kLongest);
  scan(tail_, before);
  const size_t kept = std::min(part.size(), kLongest);
  scan(part, part.size() - kept);
  tail_.assign(part.substr(part.size() - kept));
}

std::string SpecialNames::found() const {
  constexpr size_t kShown = 5;
  SpecialNames all = *this;
  all.scan(tail_, tail_.size());
  std::vector<std::pair<std::string, int64_t>> names(all.counts_.begin(), all.counts_.end());
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    const auto& [name, count] = names[i];
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", name,
                        count == 1 ? "once" : fmt::format("{} times", count));
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace fovea::train
