#include "search/passage_table.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "records/text_hash.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostLines = int64_t{1} << 53;

TextRows rows_by(const std::vector<IndexedPassage>& passages, bool distinct) {
  TextRows rows;
  std::unordered_map<std::string_view, int32_t> known;
  for (size_t i = 0; i < passages.size(); ++i) {
    const auto next = static_cast<int32_t>(rows.passages.size());
    const int32_t row = distinct ? known.try_emplace(passages[i].text, next).first->second : next;
    if (row == next) rows.passages.push_back(i);
    rows.of_passage.push_back(row);
  }
  return rows;
}

}  // namespace

TextRows distinct_texts(const std::vector<IndexedPassage>& passages) {
  return rows_by(passages, true);
}
TextRows separate_texts(const std::vector<IndexedPassage>& passages) {
  return rows_by(passages, false);
}

uint64_t group_of(std::string_view text) { return text::hash_of_words(text); }

PassageLines lines_of(const std::vector<IndexedPassage>& passages) {
  PassageLines lines;
  lines.starts.push_back(0);
  for (const IndexedPassage& passage : passages) {
    Json json = {{"file", passage.file},
                 {"line", passage.line},
                 {"last_line", passage.last_line},
                 {"text", passage.text}};
    if (!passage.fields.empty()) json["fields"] = Json::parse(passage.fields);
    lines.text += json_line(json) + "\n";
    lines.starts.push_back(std::ssize(lines.text));
  }
  return lines;
}

IndexedPassage parse_passage(std::string_view line, const std::string& path) {
  const nlohmann::json json = parse_json(line, path);
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: a line is not an object; expected a passage", path);
  IndexedPassage passage = {
      get_string(json, "file", path), get_int(json, "line", path, 1, kMostLines),
      get_int(json, "last_line", path, 1, kMostLines), get_string(json, "text", path)};
  if (const auto fields = json.find("fields"); fields != json.end()) {
    if (!fields->is_object())
      fail(ErrorKind::BadFile, "{}: `fields` is not an object; expected one", path);
    passage.fields = fields->dump();
  }
  return passage;
}

PassageTable::PassageTable(const std::vector<IndexedPassage>& passages, const PassageLines& lines,
                           const TextRows& rows, const std::vector<uint64_t>& groups,
                           const std::map<std::string, std::string>& dates)
    : starts_(lines.starts), rows_(rows.of_passage) {
  std::map<std::string_view, int32_t> numbers;
  for (const IndexedPassage& passage : passages) numbers.try_emplace(passage.file, 0);
  std::string names;
  for (auto& [name, number] : numbers) {
    number = static_cast<int32_t>(files_.size());
    const auto date = dates.find(std::string(name));
    files_.push_back({std::string(name), date == dates.end() ? "" : date->second});
    names += json_line({{"file", files_.back().name}, {"date", files_.back().date}}) + "\n";
  }
  std::string objects = "{}\n";
  std::unordered_map<std::string_view, int32_t> known = {{"", 0}};
  std::vector<int32_t> file_of, position, field_of;
  std::vector<int64_t> hashes;
  for (size_t i = 0; i < passages.size(); ++i) {
    file_of.push_back(numbers[passages[i].file]);
    position.push_back(passages[i].position);
    const auto next = static_cast<int32_t>(known.size());
    field_of.push_back(known.try_emplace(passages[i].fields, next).first->second);
    if (field_of.back() == next) objects += passages[i].fields + "\n";
    const auto begin = static_cast<size_t>(lines.starts[i]),
               size = static_cast<size_t>(lines.starts[i + 1]) - begin;
    hashes.push_back(
        static_cast<int64_t>(hash_bytes(std::string_view(lines.text).substr(begin, size))));
  }
  hashes_ = StoredArray(hashes);
  file_of_ = StoredArray(file_of);
  position_ = StoredArray(position);
  field_of_ = StoredArray(field_of);
  groups_ = StoredArray(std::vector<int64_t>(groups.begin(), groups.end()));
  names_ = stored_text(names);
  objects_ = stored_text(objects);
}

PassageTable::PassageTable(const SafeTensors& file, const std::string& path, int64_t bytes) {
  const auto expect = [&](bool holds, const char* wrong) {
    if (!holds)
      fail(ErrorKind::BadFile, "{}: {}; expected the passages of an index (build it again)", path,
           wrong);
  };
  starts_ = StoredArray<int64_t>(file, "starts", DType::i64, path);
  hashes_ = StoredArray<int64_t>(file, "hashes", DType::i64, path);
  file_of_ = StoredArray<int32_t>(file, "files", DType::i32, path);
  position_ = StoredArray<int32_t>(file, "positions", DType::i32, path);
  rows_ = StoredArray<int32_t>(file, "rows", DType::i32, path);
  field_of_ = StoredArray<int32_t>(file, "fields", DType::i32, path);
  groups_ = StoredArray<int64_t>(file, "groups", DType::i64, path);
  names_ = StoredArray<uint8_t>(file, "names", DType::u8, path);
  objects_ = StoredArray<uint8_t>(file, "objects", DType::u8, path);
  expect(starts_.size() == passages() + 1 && hashes_.size() == passages() &&
             file_of_.size() == passages() && position_.size() == passages() &&
             field_of_.size() == passages(),
         "its lists differ in length");
  const auto starts = starts_.all();
  expect(starts.front() == 0 && starts.back() == bytes && std::ranges::is_sorted(starts),
         "its lines are not those of passages.jsonl");
  for (const std::string& line : lines_in(names_)) {
    const nlohmann::json json = parse_json(line, path);
    expect(json.is_object(), "a file is not an object");
    files_.push_back({get_string(json, "file", path), get_string(json, "date", path)});
    expect(files_.size() == 1 || files_[files_.size() - 2].name < files_.back().name,
           "its files are not ascending");
  }
  const auto within = [](const StoredArray<int32_t>& x, int64_t most) {
    return std::ranges::all_of(x.all(), [&](int32_t i) { return i >= 0 && i < most; });
  };
  expect(within(file_of_, std::ssize(files_)) && std::ranges::is_sorted(file_of_.all()),
         "a file does not exist");
  expect(within(rows_, rows()), "a row does not exist");
  expect(within(field_of_, std::ranges::count(objects_.all(), uint8_t{'\n'})),
         "fields do not exist");
}

std::map<std::string, Tensor> PassageTable::tensors() const {
  return {{"starts", starts_.tensor()},  {"hashes", hashes_.tensor()},
          {"files", file_of_.tensor()},  {"positions", position_.tensor()},
          {"rows", rows_.tensor()},      {"fields", field_of_.tensor()},
          {"groups", groups_.tensor()},  {"names", names_.tensor()},
          {"objects", objects_.tensor()}};
}

std::string_view PassageTable::line(std::string_view jsonl, int64_t passage) const {
  const auto begin = static_cast<size_t>(starts_[passage]),
             end = static_cast<size_t>(starts_[passage + 1]);
  return jsonl.substr(begin, end - begin);
}

std::vector<std::string> PassageTable::field_objects() const { return lines_in(objects_); }

}  // namespace fovea::infer
