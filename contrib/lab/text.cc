#include "lab/text.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/fields.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/random.h"
#include "fovea/text/text_lines.h"
#include "fovea/train/train_tokenizer.h"

namespace fovea::lab {
namespace {

namespace fs = std::filesystem;

bool is_json_lines(const fs::path& path) {
  const std::string name = path.string();
  const std::string_view plain = text::without_compression(name);
  return plain.ends_with(".jsonl") || plain.ends_with(".json");
}

// Returns the files of text that train_tokenizer() reads, in its order.
std::vector<fs::path> files_of(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!is_folder(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const fs::path& file : files_below(path).files)
      if ((text::without_compression(file.string()).ends_with(".txt") || is_json_lines(file)) &&
          fs::file_size(file) > 0)
        files.push_back(file);
  }
  return files;
}

// Passes the text of a file to `use`, or that of each of its JSON lines.
void each_document(const fs::path& path, const std::function<void(const std::string&)>& use) {
  if (!is_json_lines(path)) return use(text::read_text(path.string()));
  text::LineReader reader(path.string());
  for (std::vector<std::string> lines; !(lines = reader.next(1)).empty();) {
    const std::string location = fmt::format("{}:{}", path.string(), reader.lines_read());
    if (!text::is_blank(lines[0]))
      use(get_string(parse_json(lines[0], location), "text", location));
  }
}

// Returns the number of windows of `length` tokens that are followed by another token.
int64_t starts_in(std::span<const int32_t> tokens, int64_t length) {
  const int64_t count = std::ssize(tokens) - length;
  check_field(count > 0, "data", "a part of {} tokens; expected at least {}", tokens.size(),
              length + 1);
  return count;
}

Batch windows_at(std::span<const int32_t> tokens, const std::vector<int64_t>& starts,
                 int64_t length) {
  std::vector<int32_t> ids, labels;
  for (const int64_t start : starts) {
    const auto first = tokens.begin() + start;
    ids.insert(ids.end(), first, first + length);
    labels.insert(labels.end(), first + 1, first + length + 1);
  }
  return batch_of(ids, labels, std::ssize(starts));
}

}  // namespace

Batch batch_of(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels, int64_t rows) {
  const Shape by_token = {rows, std::ssize(ids) / rows};
  return {tensor_of(ids, by_token),
          tensor_of(labels, std::ssize(labels) == rows ? Shape{rows} : by_token),
          std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; })};
}

Text::Text(const std::vector<std::string>& paths, int64_t bpe) : paths_(paths) {
  const std::vector<fs::path> files = files_of(paths);
  const bool several = files.size() != 1 || is_json_lines(files[0]);  // documents
  const text::Tokenizer tokenizer =
      train::train_tokenizer(
          {paths.begin(), paths.end()},
          {.kind = bpe > 0 ? text::TokenizerKind::bpe : text::TokenizerKind::character,
           .vocabulary = bpe,
           .end_of_text = several})
          ->tokenizer;
  vocabulary_ = tokenizer.size();
  Hasher hasher;
  for (const fs::path& file : files)
    each_document(file, [&](const std::string& text) {
      if (!ids_.empty()) ids_.push_back(*tokenizer.eos_id());
      tokenizer.encode(text, ids_);
      hasher.add({text.c_str(), text.size() + 1});  // the NUL ends the document
    });
  hash_ = hasher.hash();
}

Batch Text::training_batch(int64_t step, int64_t rows, int64_t length, uint64_t seed) const {
  const auto count = static_cast<uint32_t>(starts_in(training(), length));
  Random random(seed, Stream::shuffle, static_cast<uint32_t>(step));
  std::vector<int64_t> starts(static_cast<size_t>(rows));
  for (int64_t& start : starts) start = random.word() % count;
  return windows_at(training(), starts, length);
}

std::vector<Batch> Text::held_out_batches(int64_t windows, int64_t rows, int64_t length) const {
  const int64_t all = (starts_in(held_out(), length) - 1) / length + 1;  // side by side
  windows = std::min(windows, all);
  std::vector<Batch> batches;
  for (int64_t first = 0; first < windows; first += rows) {
    std::vector<int64_t> starts;
    for (int64_t i = first; i < std::min(first + rows, windows); ++i)
      starts.push_back(i * all / windows * length);
    batches.push_back(windows_at(held_out(), starts, length));
  }
  return batches;
}

}  // namespace fovea::lab
