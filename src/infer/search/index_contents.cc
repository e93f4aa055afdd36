#include "search/index_contents.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"

namespace fovea::infer {

IndexContents::IndexContents(const std::string& path, IndexDescription description)
    : description_(std::move(description)) {
  std::vector<std::string_view> names;
  for (const PartEntry& entry : description_.parts) {
    parts_.push_back(std::make_unique<IndexPart>(path, entry, settings()));
    for (const PassageTable::File& file : parts_.back()->table().files())
      names.emplace_back(file.name);
  }
  // A file's location in the order of all names, and the location of a passage in it.
  std::ranges::sort(names);
  struct Ordered {
    int32_t file, position, part, passage;
  };
  std::vector<Ordered> ordered;
  for (int64_t p = 0; p < parts(); ++p) {
    const PassageTable& table = part(p).table();
    std::vector<int32_t> order;
    for (const PassageTable::File& file : table.files())
      order.push_back(static_cast<int32_t>(
          std::ranges::lower_bound(names, std::string_view(file.name)) - names.begin()));
    for (int64_t i = 0; i < table.passages(); ++i)
      if (!part(p).is_deleted(table.file(i)))
        ordered.push_back({order[static_cast<size_t>(table.file(i))], table.position(i),
                           static_cast<int32_t>(p), static_cast<int32_t>(i)});
  }
  if (ordered.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    fail(ErrorKind::Unsupported, "{}: {} passages; expected at most {}", path, ordered.size(),
         std::numeric_limits<int32_t>::max());
  const auto by_position = [](const Ordered& a, const Ordered& b) {
    return std::tie(a.file, a.position, a.part, a.passage) <
           std::tie(b.file, b.position, b.part, b.passage);
  };
  if (!std::ranges::is_sorted(ordered, by_position)) std::ranges::sort(ordered, by_position);
  for (const Ordered& one : ordered) locations_.push_back({one.part, one.passage});
  number_groups();
  all_ = select([](Location) { return true; });
}

// Numbers the different texts of all parts.
void IndexContents::number_groups() {
  struct Row {
    uint64_t group;
    int32_t part, row;
  };
  std::vector<Row> rows;
  for (int64_t p = 0; p < parts(); ++p) {
    const PassageTable& table = part(p).table();
    groups_.emplace_back(static_cast<size_t>(table.rows()));
    for (int64_t row = 0; row < table.rows(); ++row)
      rows.push_back({table.group(row), static_cast<int32_t>(p), static_cast<int32_t>(row)});
  }
  std::ranges::sort(rows, {}, &Row::group);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].group != rows[i - 1].group) ++group_count_;
    groups_[static_cast<size_t>(rows[i].part)][static_cast<size_t>(rows[i].row)] = group_count_;
  }
  ++group_count_;
}

template <class Passes>
IndexContents::Selection IndexContents::select(const Passes& passes) const {
  Selection selection;
  for (const auto& rows : groups_) selection.numbers.emplace_back(rows.size(), -1);
  std::vector<char> found(static_cast<size_t>(group_count_));
  for (size_t number = 0; number < locations_.size(); ++number) {
    const Location location = locations_[number];
    if (!passes(location)) continue;
    const auto p = static_cast<size_t>(location.part);
    const auto row = static_cast<size_t>(parts_[p]->table().row(location.passage));
    char& known = found[static_cast<size_t>(groups_[p][row])];
    if (known != 0) continue;
    known = 1;
    selection.numbers[p][row] = static_cast<int32_t>(number);
    ++selection.count;
  }
  return selection;
}

IndexContents::Selection IndexContents::where(const Conditions& conditions) const {
  std::vector<std::vector<char>> fulfilled;
  for (const auto& part : parts_) fulfilled.push_back(conditions.fulfilled(*part));
  return select([&](Location location) {
    return fulfilled[static_cast<size_t>(location.part)][static_cast<size_t>(location.passage)] !=
           0;
  });
}

IndexedPassage IndexContents::passage(int64_t number) const {
  return part(location(number).part).passage(location(number).passage);
}

}  // namespace fovea::infer
