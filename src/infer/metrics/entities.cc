#include "metrics/entities.h"

#include <algorithm>
#include <string_view>

namespace fovea::infer {
namespace {

// The prefix of a label of a word and its type.
struct Tag {
  char prefix = 'O';
  std::string type = "_";
};

Tag tag_of(const std::string& label) {
  if (label.empty()) return {};
  const std::string rest = label.substr(1);
  const size_t dash = rest.find('-');
  const std::string type = dash == rest.npos ? rest : rest.substr(dash + 1);
  // The scheme BILOU calls the last word of an entity L, and a single one U.
  const char prefix = label[0] == 'L' ? 'E' : label[0] == 'U' ? 'S' : label[0];
  return {prefix, type.empty() ? "_" : type};
}

bool is_one_of(char prefix, const char* all) {
  return std::string_view(all).find(prefix) != std::string_view::npos;
}

bool ends_between(const Tag& before, const Tag& now) {
  if (is_one_of(before.prefix, "ES")) return true;
  if (is_one_of(before.prefix, "BI") && is_one_of(now.prefix, "BSO")) return true;
  return before.prefix != 'O' && before.type != now.type;
}

bool begins_between(const Tag& before, const Tag& now) {
  if (is_one_of(now.prefix, "BS")) return true;
  if (is_one_of(before.prefix, "ESO") && is_one_of(now.prefix, "EI")) return true;
  return now.prefix != 'O' && before.type != now.type;
}

}  // namespace

bool mark_entities(const std::vector<std::string>& labels) {
  bool any = false;
  for (const std::string& label : labels) {
    const bool marked = label.size() > 1 && label[1] == '-' && is_one_of(label[0], "BIESLU");
    if (!marked && label != "O") return false;
    any = any || marked;
  }
  return any;
}

std::vector<LabelledEntity> entities_of(const std::vector<std::string>& tags) {
  std::vector<LabelledEntity> entities;
  Tag before;
  int64_t begin = 0;
  for (int64_t i = 0; i <= std::ssize(tags); ++i) {
    const Tag now = i < std::ssize(tags) ? tag_of(tags[static_cast<size_t>(i)]) : Tag();
    if (ends_between(before, now)) entities.push_back({before.type, begin, i});
    if (begins_between(before, now)) begin = i;
    before = now;
  }
  return entities;
}

std::map<std::string, ClassCounts> entity_counts(const Choices& choices,
                                                 const std::vector<int64_t>& ends,
                                                 const std::vector<std::string>& names) {
  std::map<std::string, ClassCounts> counts;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    std::vector<std::string> labels, chosen;
    for (int64_t i = begin; i < end; ++i) {
      labels.push_back(names.at(static_cast<size_t>(choices[static_cast<size_t>(i)].first)));
      chosen.push_back(names.at(static_cast<size_t>(choices[static_cast<size_t>(i)].second)));
    }
    begin = end;
    const std::vector<LabelledEntity> there = entities_of(labels), found = entities_of(chosen);
    for (const LabelledEntity& entity : there) ++counts[entity.type].labelled;
    for (const LabelledEntity& entity : found) {
      ++counts[entity.type].chosen;
      counts[entity.type].right += std::find(there.begin(), there.end(), entity) != there.end();
    }
  }
  return counts;
}

}  // namespace fovea::infer
