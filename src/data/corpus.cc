#include "data/corpus.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/fields.h"
#include "base/files.h"
#include "base/files_below.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/file_reader.h"
#include "unicode/utf8.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr size_t piece_bytes = 1 << 20;
// This limit is far larger than any document, and far smaller than the memory of a computer.
constexpr size_t json_line_limit = size_t{64} << 20;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF", gzip_mark = "\x1F\x8B";

using Use = std::function<void(const Corpus::Piece&)>;

Corpus::Format format_of(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".jsonl" || ending == ".json" ? Corpus::Format::json_lines
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
    if (path.extension() != ".txt" && format_of(path) != Corpus::Format::json_lines) continue;
    if (const Corpus::File file = inspect(path); file.bytes > 0) files.push_back(file);
  }
  if (files.empty()) {
    fail(ErrorKind::BadFile,
         "{}: contains no text; expected files *.txt, *.jsonl or *.json that are not empty{}",
         folder.string(), found.links_out.empty() ? "" : ", not links that lead out of the folder");
  }
  return files;
}

// Passes a document, or a part of one, to `use` in pieces of complete characters.
void give(const Use& use, std::string_view text, bool starts_document) {
  while (!text.empty()) {
    size_t length = std::min(piece_bytes, text.size());
    if (length < text.size()) length -= utf8::incomplete_suffix(text.substr(0, length));
    use({text.substr(0, length), starts_document});
    text.remove_prefix(length);
    starts_document = false;
  }
}

// Receives the blocks of a file and passes its text to `use`.
class Parser {
 public:
  Parser(const Corpus::File& file, const Use& use)
      : path_(file.path.string()), format_(file.format), use_(use) {}

  void add(std::string_view block, bool last) {
    if (first_) {
      if (block.starts_with(gzip_mark)) {
        fail(ErrorKind::BadFile,
             "{}: is compressed by gzip (byte 1); expected plain text: gunzip it first", path_);
      }
      if (block.starts_with(byte_order_mark)) {
        block.remove_prefix(byte_order_mark.size());
        before_line_ = byte_order_mark.size();
      }
    }
    first_ = false;
    format_ == Corpus::Format::text ? add_text(block, last) : add_lines(block, last);
  }

 private:
  void add_text(std::string_view block, bool last) {
    pending_ += block;
    const std::string_view all = pending_;
    if (const size_t zero = all.find('\0'); zero != all.npos) {
      refuse(all.substr(0, zero), "looks binary", "a NUL byte");
    }
    const size_t valid = utf8::valid_prefix(all);
    const std::string_view text = all.substr(0, valid), rest = all.substr(valid);
    if (last ? !rest.empty() : rest.size() != utf8::incomplete_suffix(all)) {
      refuse(text, "is not UTF-8", fmt::format("byte 0x{:02x}", static_cast<uint8_t>(rest[0])));
    }
    give(use_, text, !started_);
    started_ |= !text.empty();
    pass(text);
    pending_.erase(0, valid);
  }

  void add_lines(std::string_view block, bool last) {
    while (!block.empty()) {
      const size_t end = block.find('\n');
      pending_ += block.substr(0, end);
      if (pending_.size() > json_line_limit) {
        fail(ErrorKind::BadFile, "{}:{}: is too long; expected lines of at most {} bytes", path_,
             line_, json_line_limit);
      }
      if (end == block.npos) break;
      add_line();
      block.remove_prefix(end + 1);
    }
    if (last) add_line();
  }

  void add_line() {
    const std::string name = fmt::format("{}:{}", path_, line_);
    if (pending_.find_first_not_of(" \t\r") != pending_.npos) {
      give(use_, get_string(parse_json(pending_, name), "text", name), true);
    }
    pending_.clear();
    ++line_;
  }

  // Moves line_ and before_line_ past a valid text.
  void pass(std::string_view text) {
    line_ += std::count(text.begin(), text.end(), '\n');
    const size_t newline = text.rfind('\n');
    before_line_ = newline == text.npos ? before_line_ + text.size() : text.size() - newline - 1;
  }

  [[noreturn]] void refuse(std::string_view before, const char* wrong, const std::string& what) {
    pass(before);
    fail(ErrorKind::BadFile, "{}:{}:{}: {} ({}); expected UTF-8 text", path_, line_,
         before_line_ + 1, wrong, what);
  }

  std::string path_;
  Corpus::Format format_;
  const Use& use_;
  std::string pending_;   // an incomplete character or line of JSON
  bool first_ = true;     // no block has been read
  bool started_ = false;  // some text has been passed to use_
  int64_t line_ = 1;
  size_t before_line_ = 0;  // bytes of line `line_` so far
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
  return files_.size() > 1 || files_[0].format == Format::json_lines;
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
    FileReader reader(file.path.string(), file.bytes);
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
    FileReader reader(file.path.string(), file.bytes);
    while (!reader.at_end()) hasher.add(reader.next());
  }
  hash_ = hasher.hash();
  return *hash_;
}

}  // namespace fovea
