#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace fovea::train {

// Thrown when a callback stops reading.
struct ReadingStopped {};

// The text to train on: text files, files of JSON records ({"text": "..."}; see JsonRecords), and
// folders of both (*.txt, *.jsonl, *.json, also compressed as .gz or .zst, at all levels, sorted by
// name). Each text file and each record is a document. Files of any size are read in pieces; they
// must not change while the corpus is in use.
class Corpus {
 public:
  enum class Format { text, json_lines, parquet };
  struct File {
    std::filesystem::path path;
    int64_t bytes;
    Format format;
    size_t part = 0;  // of the corpus
  };

  // A part of a document: at most about a megabyte of valid UTF-8 in complete characters.
  struct Piece {
    std::string_view text;
    bool starts_document;
    size_t file;  // index in files()
  };

  // Throws InvalidArgument if there are no paths, and BadFile if a path does not exist or is an
  // unreadable file, an empty file, a folder without text, or neither a file nor a folder.
  // `weights` of the paths, for training; empty = all are 1. If any is not 1, each path is a part
  // of the corpus, else there is one part.
  explicit Corpus(const std::vector<std::filesystem::path>& paths,
                  const std::vector<double>& weights = {});

  // The files in order, without empty files of folders.
  const std::vector<File>& files() const { return files_; }
  // Links that lead out of their folder; they are not followed.
  const std::vector<std::filesystem::path>& links_out() const { return links_out_; }
  const std::vector<double>& weights() const { return weights_; }  // of the parts
  int64_t bytes() const;                                           // total size of the files
  int64_t text_bytes() const;  // an estimate of the size of their text, which they may compress
  bool separates_documents() const;  // more than one file, or JSON lines

  // Passes all pieces to `use` in order. Throws BadFile if a text is not UTF-8 or looks binary
  // (with file:line:byte), if a record of a JSON file has no "text" (with file:line), if compressed
  // data is damaged, if a file shrank or changed, or if there is no text at all.
  void read(const std::function<void(const Piece&)>& use);

  // Sets a callback that read() calls regularly with the fraction read so far. read() throws
  // ReadingStopped if it returns false.
  using Watch = std::function<bool(double fraction)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

  // Hash of the bytes, sizes and formats of the files, not of their names, and of the weights.
  uint64_t hash();

 private:
  void add(const std::filesystem::path& path);
  Hasher hasher() const;  // of the weights

  std::vector<File> files_;
  std::vector<std::filesystem::path> links_out_;
  std::vector<double> weights_;
  std::optional<uint64_t> hash_;  // unset until computed
  Watch watch_;
};

}  // namespace fovea::train
