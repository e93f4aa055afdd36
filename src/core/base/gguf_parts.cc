// Models that were divided into several files when they were written: NAME-00001-of-0000N.gguf. The
// first one has the metadata; each has split.no, split.count and split.tensors.count.

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/folder_links.h"
#include "base/gguf.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr const char *kPartNumber = "split.no", *kPartCount = "split.count",
                     *kTensorCount = "split.tensors.count";

std::string ending_of(int64_t part, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
}

std::string shown(std::optional<int64_t> value) {
  return value ? fmt::format("{}", *value) : "missing";
}

// Returns the common beginning of the parts' names.
std::string beginning_of(const Gguf& file, int64_t count) {
  const int64_t part = file.integer(kPartNumber).value_or(-1);
  if (part < 0 || part >= count) {
    fail(ErrorKind::BadFile, "{}: {} is {} and {} is {}; expected a number from 0 to {}",
         file.path(), kPartNumber, shown(file.integer(kPartNumber)), kPartCount, count, count - 1);
  }
  const std::string ending = ending_of(part, count);
  if (!file.path().ends_with(ending)) {
    fail(ErrorKind::BadFile, "{}: is part {} of {}; expected a name that ends in {}", file.path(),
         part + 1, count, ending);
  }
  return file.path().substr(0, file.path().size() - ending.size());
}

void check_part(const Gguf& file, int64_t part, int64_t count) {
  const auto own_part = file.integer(kPartNumber), own_count = file.integer(kPartCount);
  if (own_part == part && own_count == count) return;
  fail(ErrorKind::BadFile, "{}: {} is {} and {} is {}; expected {} and {}, as its name says",
       file.path(), kPartNumber, shown(own_part), kPartCount, shown(own_count), part, count);
}

}  // namespace

Gguf::Gguf(const std::string& path) {
  read(path);
  const int64_t count = integer(kPartCount).value_or(1);
  if (count > 1) read_parts(beginning_of(*this, count), count);
}

void Gguf::read_parts(const std::string& beginning, int64_t count) {
  const std::string given = path();
  *this = Gguf();
  for (int64_t i = 0; i < count; ++i) {
    const std::string path = beginning + ending_of(i, count);
    if (i > 0 && !is_file(path)) {
      fail(ErrorKind::BadFile, "{}: is missing; expected part {} of the {} parts of a model", path,
           i + 1, count);
    }
    if (path != given) refuse_link_out(path);
    Gguf part;
    part.read(path);
    check_part(part, i, count);
    if (i == 0) values_ = std::move(part.values_);
    files_.push_back(part.file());
    for (GgufTensor& tensor : part.tensors_) {
      tensor.part = static_cast<size_t>(i);
      tensors_.push_back(std::move(tensor));
    }
  }
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const GgufTensor& a, const GgufTensor& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors_.begin(), tensors_.end(),
                         [](const GgufTensor& a, const GgufTensor& b) { return a.name == b.name; });
  if (twice != tensors_.end()) {
    fail(ErrorKind::BadFile, "{}: contains {}, as does {}; expected each tensor in one part",
         files_[std::next(twice)->part]->path(), excerpt(twice->name), files_[twice->part]->path());
  }
  const int64_t tensors = integer(kTensorCount).value_or(std::ssize(tensors_));
  if (tensors != std::ssize(tensors_)) {
    fail(ErrorKind::BadFile, "{}: {} is {}; expected {}, the number of tensors of all {} parts",
         this->path(), kTensorCount, tensors, tensors_.size(), count);
  }
}

}  // namespace fovea
