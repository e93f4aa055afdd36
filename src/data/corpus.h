#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// Somebody who watched a reading did not want the rest of it.
struct ReadingStopped {};

// The text to train on: text files, files of JSON lines ({"text": "..."}), folders of both (*.txt,
// *.jsonl, *.json, all levels, sorted by name). Each text file and each JSON line is a document.
// Files are read in pieces, so that their size does not matter; they must not change while the
// corpus is in use.
class Corpus {
 public:
  enum class Format { text, json_lines };
  struct File {
    std::filesystem::path path;
    int64_t bytes;
    Format format;
  };

  // A part of a document, at most about a megabyte (a JSON line's whole text): valid UTF-8, whole
  // characters.
  struct Piece {
    std::string_view text;
    bool starts_document;
  };

  // Refuses (BadFile) what is missing, unreadable, empty, not a regular file, or a folder without a
  // text file.
  explicit Corpus(const std::vector<std::filesystem::path>& paths);

  // Those used, in order; empty ones in folders are not.
  const std::vector<File>& files() const { return files_; }
  // Of the folders: not followed, as they lead out of them.
  const std::vector<std::filesystem::path>& links_out() const { return links_out_; }
  int64_t bytes() const;             // of the files
  bool separates_documents() const;  // more than one file, or JSON lines

  // Hands out all pieces in order. BadFile, with file:line:byte, where the text is not UTF-8 or
  // looks binary or compressed, where a line is not JSON with a "text", and when a file shrank or
  // changed.
  void read(const std::function<void(const Piece&)>& use);

  // Told now and then which part of a reading is done; false ends it with ReadingStopped.
  using Watch = std::function<bool(double fraction)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

  uint64_t hash();  // of the content: of its bytes and where its files begin, not of their names

 private:
  std::vector<File> files_;
  std::vector<std::filesystem::path> links_out_;
  std::optional<uint64_t> hash_;  // once known
  Watch watch_;
};

}  // namespace fovea
