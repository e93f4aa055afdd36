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
#include "records/file_reader.h"
#include "records/json_records.h"
#include "records/parquet.h"
#include "unicode/utf8.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

constexpr size_t piece_bytes = 1 << 20;

using Use = std::function<void(const Corpus::Piece&)>;

Corpus::Format format_of(const fs::path& path) {
  const std::string ending = path.extension().string();
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
    if (path.extension() != ".txt" && format_of(path) == Corpus::Format::text) continue;
    if (const Corpus::File file = inspect(path); file.bytes > 0) files.push_back(file);
  }
  if (files.empty()) {
    fail(ErrorKind::BadFile,
         "{}: contains no text; expected files *.txt, *.jsonl, *.json or *.parquet that are not "
         "empty{}",
         folder.string(), found.links_out.empty() ? "" : ", not links that lead out of the folder");
  }
  return files;
}

// Passes a document, or a part of one, to `use` in pieces of complete characters.
void give(const Use& use, std::string_view text, bool starts_document) {
  while (!text.empty()) {
    size_t length = std::min(piece_bytes, text.size());
    if (length < text.size()) length -= text::utf8::incomplete_suffix(text.substr(0, length));
    use({text.substr(0, length), starts_document});
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
        check_(file.path.string()),
        records_(file.path.string(), give_record()) {}

  void add(std::string_view block, bool last) {
    if (format_ == Corpus::Format::parquet) {
      if (last) text::each_parquet_record(path_, give_record());
      return;
    }
    const std::string_view text = check_.add(block, last);
    if (format_ == Corpus::Format::json_lines) {
      records_.add(text);
      if (last) records_.end();
      return;
    }
    give(use_, text, !started_);
    started_ |= !text.empty();
  }

 private:
  text::JsonUse give_record() const {
    return [this](const std::string& record, const std::string& location) {
      give(use_, get_string(parse_json(record, location), "text", location), true);
    };
  }

  std::string path_;
  Corpus::Format format_;
  const Use& use_;
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

Corpus::Corpus(const std::vector<fs::path>& paths) {
  check_field(!paths.empty(), "data", "is missing; expected text files, JSON lines or folders");
  for (const fs::path& path : paths) {
    if (is_folder(path.string())) {
      const std::vector<File> found = files_of(path, links_out_);
      files_.insert(files_.end(), found.begin(), found.end());
      continue;
    }
    files_.push_back(inspect(path));
    if (files_.back().bytes == 0)
      fail(ErrorKind::BadFile, "{}: is empty; expected text", path.string());
  }
}

int64_t Corpus::bytes() const {
  int64_t bytes = 0;
  for (const File& file : files_) bytes += file.bytes;
  return bytes;
}

bool Corpus::separates_documents() const {
  return files_.size() > 1 || files_[0].format != Format::text;
}

void Corpus::read(const Use& use) {
  int64_t text_bytes = 0;
  const Use count_and_use = [&](const Piece& piece) {
    text_bytes += static_cast<int64_t>(piece.text.size());
    use(piece);
  };
  Hasher hasher;
  const auto all = static_cast<double>(std::max<int64_t>(1, bytes()));
  int64_t done = 0;
  for (const File& file : files_) {
    add_header(hasher, file);
    text::FileReader reader(file.path.string(), file.bytes);
    Parser parser(file, count_and_use);
    do {
      const std::string_view block = reader.next();
      hasher.add(block);
      parser.add(block, reader.at_end());
      done += std::ssize(block);
      if (watch_ && !watch_(static_cast<double>(done) / all)) throw ReadingStopped();
    } while (!reader.at_end());
  }
  const std::string first = files_[0].path.string();
  if (text_bytes == 0)
    fail(ErrorKind::BadFile, "{}: contains no text; expected at least one character", first);
  if (hash_.value_or(hasher.hash()) != hasher.hash()) {
    fail(ErrorKind::BadFile,
         "{}: changed between two readings{}; expected files that do not change", first,
         files_.size() > 1 ? " (or another file of the data did)" : "");
  }
  hash_ = hasher.hash();
}

uint64_t Corpus::hash() {
  if (hash_) return *hash_;
  Hasher hasher;
  for (const File& file : files_) {
    add_header(hasher, file);
    text::FileReader reader(file.path.string(), file.bytes);
    while (!reader.at_end()) hasher.add(reader.next());
  }
  hash_ = hasher.hash();
  return *hash_;
}

}  // namespace fovea::train
