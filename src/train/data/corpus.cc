#include "data/corpus.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/fields.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/text/text_lines.h"
#include "records/decompressor.h"
#include "records/file_reader.h"
#include "records/json_records.h"
#include "records/parquet.h"
#include "unicode/utf8.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

constexpr size_t piece_bytes = 1 << 20;

// Receives a piece of a document.
using Use = std::function<void(std::string_view text, bool starts_document)>;

Corpus::Format format_of(const fs::path& path) {
  const std::string ending =
      fs::path(text::without_compression(path.string())).extension().string();
  return ending == ".jsonl" || ending == ".json" ? Corpus::Format::json_lines
         : ending == ".parquet"                  ? Corpus::Format::parquet
                                                 : Corpus::Format::text;
}

Corpus::File inspect(const fs::path& path) {
  return {path, static_cast<int64_t>(MappedFile(path.string()).size()), format_of(path)};
}

std::vector<Corpus::File> files_of(const fs::path& folder, std::vector<fs::path>& links_out) {
  const FilesBelow found = files_below(folder.string());
  links_out.insert(links_out.end(), found.links_out.begin(), found.links_out.end());
  std::vector<Corpus::File> files;
  for (const fs::path& path : found.files) {
    const bool is_text = text::without_compression(path.string()).ends_with(".txt");
    if (!is_text && format_of(path) == Corpus::Format::text) continue;
    if (const Corpus::File file = inspect(path); file.bytes > 0) files.push_back(file);
  }
  if (files.empty()) {
    fail(ErrorKind::BadFile,
         "{}: contains no text; expected files *.txt, *.jsonl, *.json or *.parquet, or the first "
         "three as .gz or .zst, that are not empty{}",
         folder.string(), found.links_out.empty() ? "" : ", not links that lead out of the folder");
  }
  return files;
}

// Passes a document, or a part of one, to `use` in pieces of complete characters.
void give(const Use& use, std::string_view text, bool starts_document) {
  while (!text.empty()) {
    size_t length = std::min(piece_bytes, text.size());
    if (length < text.size()) length -= text::utf8::incomplete_suffix(text.substr(0, length));
    use(text.substr(0, length), starts_document);
    text.remove_prefix(length);
    starts_document = false;
  }
}

// Receives the blocks of a file and passes its text to `use`.
class Parser {
 public:
  Parser(const Corpus::File& file, const Use& use)
      : path_(file.path.string()),
        format_(file.format),
        use_(use),
        decompressor_(file.path.string()),
        check_(file.path.string()),
        records_(file.path.string(), give_record()) {}

  void add(std::string_view block, bool last) {
    if (format_ == Corpus::Format::parquet) {
      if (last) text::each_parquet_record(path_, give_record());
      return;
    }
    decompressor_.pass(block, last, [this](std::string_view bytes, bool all) {
      add_text(check_.add(bytes, all), all);
    });
  }

 private:
  void add_text(std::string_view text, bool last) {
    if (format_ == Corpus::Format::json_lines) {
      records_.add(text);
      if (last) records_.end();
      return;
    }
    give(use_, text, !started_);
    started_ |= !text.empty();
  }

  text::JsonUse give_record() const {
    return [this](const std::string& record, const std::string& location) {
      give(use_, get_string(parse_json(record, location), "text", location), true);
    };
  }

  std::string path_;
  Corpus::Format format_;
  const Use& use_;
  text::Decompressor decompressor_;
  text::TextCheck check_;
  text::JsonRecords records_;
  bool started_ = false;  // some text has been passed to use_
};

// Adds a file's size and format: the boundaries between files and their formats affect the tokens
// too.
void add_header(Hasher& hasher, const Corpus::File& file) {
  const int64_t header[] = {file.bytes, static_cast<int64_t>(file.format)};
  hasher.add({reinterpret_cast<const char*>(header), sizeof header});
}

}  // namespace

Corpus::Corpus(const std::vector<fs::path>& paths, const std::vector<double>& weights) {
  check_field(!paths.empty(), "data", "is missing; expected text files, JSON lines or folders");
  const bool mixed =
      std::any_of(weights.begin(), weights.end(), [](double weight) { return weight != 1; });
  weights_ = mixed ? weights : std::vector<double>{1};
  for (size_t i = 0; i < paths.size(); ++i) {
    const size_t before = files_.size();
    add(paths[i]);
    for (size_t file = before; file < files_.size(); ++file) files_[file].part = mixed ? i : 0;
  }
}

void Corpus::add(const fs::path& path) {
  if (is_folder(path.string())) {
    const std::vector<File> found = files_of(path, links_out_);
    files_.insert(files_.end(), found.begin(), found.end());
    return;
  }
  files_.push_back(inspect(path));
  if (files_.back().bytes == 0)
    fail(ErrorKind::BadFile, "{}: is empty; expected text", path.string());
}

Hasher Corpus::hasher() const {
  Hasher hasher;
  if (weights_.size() > 1)
    for (const File& file : files_) hasher.add(fmt::format("{} ", weights_[file.part]));
  return hasher;
}

int64_t Corpus::bytes() const {
  int64_t bytes = 0;
  for (const File& file : files_) bytes += file.bytes;
  return bytes;
}

int64_t Corpus::text_bytes() const {
  constexpr int64_t kRatio = 4;  // a usual one, of text
  int64_t bytes = 0;
  for (const File& file : files_) {
    const std::string path = file.path.string();
    const bool compressed = text::without_compression(path) != path;
    bytes += file.bytes * (compressed ? kRatio : 1);
  }
  return bytes;
}

bool Corpus::separates_documents() const {
  return files_.size() > 1 || files_[0].format != Format::text;
}

void Corpus::read(const std::function<void(const Piece&)>& use) {
  int64_t text_bytes = 0;
  size_t file = 0;
  const Use count_and_use = [&](std::string_view text, bool starts_document) {
    text_bytes += std::ssize(text);
    use({text, starts_document, file});
  };
  Hasher hash = hasher();
  const auto all = static_cast<double>(std::max<int64_t>(1, bytes()));
  int64_t done = 0;
  for (; file < files_.size(); ++file) {
    add_header(hash, files_[file]);
    text::FileReader reader(files_[file].path.string(), files_[file].bytes);
    Parser parser(files_[file], count_and_use);
    do {
      const std::string_view block = reader.next();
      hash.add(block);
      parser.add(block, reader.at_end());
      done += std::ssize(block);
      if (watch_ && !watch_(static_cast<double>(done) / all)) throw ReadingStopped();
    } while (!reader.at_end());
  }
  const std::string first = files_[0].path.string();
  if (text_bytes == 0)
    fail(ErrorKind::BadFile, "{}: contains no text; expected at least one character", first);
  if (hash_.value_or(hash.hash()) != hash.hash()) {
    fail(ErrorKind::BadFile,
         "{}: changed between two readings{}; expected files that do not change", first,
         files_.size() > 1 ? " (or another file of the data did)" : "");
  }
  hash_ = hash.hash();
}

uint64_t Corpus::hash() {
  if (hash_) return *hash_;
  Hasher hash = hasher();
  for (const File& file : files_) {
    add_header(hash, file);
    text::FileReader reader(file.path.string(), file.bytes);
    while (!reader.at_end()) hash.add(reader.next());
  }
  hash_ = hash.hash();
  return *hash_;
}

}  // namespace fovea::train
