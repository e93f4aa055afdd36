#include "data/text_pairs.h"

#include <algorithm>
#include <filesystem>

#include "base/fields.h"
#include "base/hash.h"
#include "fovea/text/languages.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::train {
namespace {

constexpr std::initializer_list<const char*> kSourceNames = {"source", "src", "source_text"},
                                             kTargetNames = {"target", "tgt", "target_text",
                                                             "translation"};

bool are_names_of_pairs(const std::vector<std::string>& columns) {
  return text::has_name(columns, kSourceNames) && text::has_name(columns, kTargetNames);
}

void refuse_json(const std::string& path) {
  if (text::has_records(path))
    fail(ErrorKind::BadFile,
         "{}: has records; expected a text file with one text per line, or source<TAB>target",
         path);
}

void read_pair_table(const std::string& path, TextPairs& pairs) {
  const text::Table table = text::read_table(path, are_names_of_pairs);
  const auto source = table.column(kSourceNames), target = table.column(kTargetNames);
  for (const text::Table::Row& row : table.rows) {
    const size_t count = row.columns.size();
    if (table.names.empty() && count != 2)
      fail(ErrorKind::BadFile,
           "{}: has {} column{}; expected 2: source and target, separated by a tab", row.location,
           count, count == 1 ? "" : "s");
    pairs.sources.push_back(row.columns[source.value_or(0)]);
    pairs.targets.push_back(row.columns[target.value_or(1)]);
  }
  pairs.empty += table.blank;
}

void drop_empty(TextPairs& pairs) {
  size_t kept = 0;
  for (size_t i = 0; i < pairs.sources.size(); ++i) {
    if (text::is_blank(pairs.sources[i]) || text::is_blank(pairs.targets[i])) continue;
    if (kept != i) {
      pairs.sources[kept] = std::move(pairs.sources[i]);
      pairs.targets[kept] = std::move(pairs.targets[i]);
    }
    ++kept;
  }
  pairs.empty += static_cast<int64_t>(pairs.sources.size() - kept);
  pairs.sources.resize(kept);
  pairs.targets.resize(kept);
}

uint64_t hash_of(const TextPairs& pairs) {
  Hasher hasher;
  for (const auto* side : {&pairs.sources, &pairs.targets}) {
    for (const std::string& text : *side) {
      hasher.add(text);
      hasher.add("\n");
    }
  }
  return hasher.hash();
}

}  // namespace

void finish(TextPairs& pairs) {
  drop_empty(pairs);
  pairs.hash = hash_of(pairs);
}

void shorten(TextPairs& pairs, int64_t most) {
  const size_t size = std::min(pairs.sources.size(), static_cast<size_t>(most));
  pairs.sources.resize(size);
  pairs.targets.resize(size);
}

TextPairs read_pairs(const std::vector<std::string>& files, const char* field) {
  check_field(files.size() == 1 || files.size() == 2, field,
              "{} files; expected two whose lines correspond, or one with a tab in each line",
              files.size());
  TextPairs pairs;
  for (const std::string& path : files) refuse_json(path);
  if (files.size() == 1) {
    read_pair_table(files[0], pairs);
  } else {
    pairs.sources = text::all_lines(files[0]);
    pairs.targets = text::all_lines(files[1]);
    if (pairs.sources.size() != pairs.targets.size()) {
      fail(ErrorKind::BadFile, "{}: has {} lines, {} has {}; expected equal numbers of lines",
           files[1], pairs.targets.size(), files[0], pairs.sources.size());
    }
  }
  finish(pairs);
  if (pairs.sources.empty())
    fail(ErrorKind::BadFile, "{}: contains no pair of texts; expected at least one", files[0]);
  return pairs;
}

PairLanguages languages_in_names(const std::vector<std::string>& files) {
  const auto both = [](const std::string& source, const std::string& target) -> PairLanguages {
    const bool known = text::find_language(source) != nullptr &&
                       text::find_language(target) != nullptr && source != target;
    return known ? PairLanguages{source, target} : PairLanguages();
  };
  const auto extension = [](const std::string& file) {
    const std::string dotted = std::filesystem::path(file).extension().string();
    return dotted.empty() ? dotted : dotted.substr(1);
  };
  if (files.size() == 2) return both(extension(files[0]), extension(files[1]));
  if (files.size() != 1) return {};
  std::string name = std::filesystem::path(files[0]).filename().string();
  while (!name.empty()) {
    const std::string part = name.substr(0, name.find('.'));
    const size_t dash = part.find('-');
    if (dash != part.npos)
      if (PairLanguages found = both(part.substr(0, dash), part.substr(dash + 1));
          !found.source.empty())
        return found;
    name.erase(0, part.size() + 1);
  }
  return {};
}

}  // namespace fovea::train
