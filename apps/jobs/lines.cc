#include "jobs/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fovea/error.h"

namespace fovea::jobs {
namespace {

// Maximum bytes of a line; usually only binary files have longer ones.
constexpr size_t kLongestLine = size_t{64} << 20;
constexpr size_t kBlockBytes = size_t{4} << 20;  // a block ends when its lines have this many bytes

}  // namespace

LineReader::LineReader(const std::string& path)
    : file_(STDIN_FILENO), name_(path == "-" ? "standard input" : path) {
  if (path == "-") return;
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0)
    throw Error(ErrorKind::BadFile, fmt::format("{}: cannot be read ({}); expected a text file",
                                                name_, std::strerror(errno)));
}

LineReader::~LineReader() {
  if (file_ != STDIN_FILENO) close(file_);
}

bool LineReader::fill() {
  constexpr size_t kPiece = size_t{1} << 16;
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t before = buffer_.size();
  if (before > kLongestLine)
    throw Error(ErrorKind::BadFile,
                fmt::format("{}: line {} is too long; expected at most {} bytes", name_,
                            lines_read_ + 1, kLongestLine));
  buffer_.resize(before + kPiece);
  ssize_t count = -1;
  do count = read(file_, buffer_.data() + before, kPiece);
  while (count < 0 && errno == EINTR);
  if (count < 0)
    throw Error(ErrorKind::BadFile, fmt::format("{}: cannot be read ({}); expected a text file",
                                                name_, std::strerror(errno)));
  buffer_.resize(before + static_cast<size_t>(count));
  ended_ = count == 0;
  return !ended_;
}

std::vector<std::string> LineReader::next(size_t lines) {
  std::vector<std::string> block;
  size_t bytes = 0, searched = 0;
  while (block.size() < lines && bytes < kBlockBytes) {
    size_t end = buffer_.find('\n', at_ + searched);
    if (end == std::string::npos) {
      searched = buffer_.size() - at_;
      if (fill()) continue;
      if (at_ == buffer_.size()) break;
      end = buffer_.size();  // the last line has no line break
    }
    size_t length = end - at_;
    if (length > 0 && buffer_[end - 1] == '\r') --length;
    block.push_back(buffer_.substr(at_, length));
    bytes += length;
    at_ = std::min(end + 1, buffer_.size());
    searched = 0;
    ++lines_read_;
  }
  return block;
}

std::string LineBlock::name_of(size_t line) const {
  return fmt::format("{}: line {}", file, in_file_at + line + 1);
}

BlockReader::BlockReader(std::vector<std::string> files) : files_(std::move(files)) {
  if (files_.empty()) files_.emplace_back("-");
}

std::optional<LineBlock> BlockReader::next(size_t lines) {
  while (reader_ != nullptr || opened_ < files_.size()) {
    if (reader_ == nullptr) reader_ = std::make_unique<LineReader>(files_[opened_++]);
    LineBlock block{reader_->name(), lines_read_, reader_->lines_read(), reader_->next(lines)};
    if (!block.lines.empty()) {
      lines_read_ += block.lines.size();
      return block;
    }
    reader_.reset();
  }
  return std::nullopt;
}

std::vector<std::string> all_lines(const std::string& path) {
  constexpr size_t kBlock = 4096;
  LineReader reader(path);
  std::vector<std::string> lines;
  for (auto block = reader.next(kBlock); !block.empty(); block = reader.next(kBlock))
    lines.insert(lines.end(), block.begin(), block.end());
  return lines;
}

}  // namespace fovea::jobs
