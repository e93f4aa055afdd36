#include "jobs/lines.h"

#include <fmt/format.h>

#include <utility>

namespace fovea::jobs {

std::string LineBlock::name_of(size_t line) const {
  return fmt::format("{}: line {}", file, in_file_at + line + 1);
}

BlockReader::BlockReader(std::vector<std::string> files) : files_(std::move(files)) {
  if (files_.empty()) files_.emplace_back("-");
}

std::optional<LineBlock> BlockReader::next(size_t lines) {
  while (reader_ != nullptr || opened_ < files_.size()) {
    if (reader_ == nullptr) reader_ = std::make_unique<text::LineReader>(files_[opened_++]);
    LineBlock block{reader_->name(), lines_read_, reader_->lines_read(), reader_->next(lines)};
    if (!block.lines.empty()) {
      lines_read_ += block.lines.size();
      return block;
    }
    reader_.reset();
  }
  return std::nullopt;
}

}  // namespace fovea::jobs
