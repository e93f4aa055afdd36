#include "http/body_reader.h"

#include <algorithm>
#include <charconv>

#include "http/request_head.h"

namespace fovea::http {
namespace {

// Chunk extensions and trailers are ignored; the limits leave room for those that a proxy may add.
constexpr size_t kLineBytes = 256, kTrailerBytes = 4096;

Refusal too_large(size_t most) {
  return {413, "body: longer than " + std::to_string(most) + " bytes"};
}

}  // namespace

BodyReader::BodyReader(size_t length, bool chunked, size_t most)
    : part_(chunked  ? Part::size
            : length ? Part::data
                     : Part::done),
      chunked_(chunked),
      left_(length),
      most_(most) {
  if (length > most) throw too_large(most);
}

size_t BodyReader::take(std::string_view bytes) {
  size_t taken = 0;
  while (part_ != Part::done && taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    taken += part_ == Part::data ? take_data(rest) : take_line(rest);
  }
  return taken;
}

size_t BodyReader::take_data(std::string_view bytes) {
  const size_t count = std::min(left_, bytes.size());
  body_.append(bytes.substr(0, count));
  left_ -= count;
  if (left_ == 0) part_ = chunked_ ? Part::data_end : Part::done;
  return count;
}

size_t BodyReader::take_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t count = end == std::string_view::npos ? bytes.size() : end + 1;
  line_.append(bytes.substr(0, count));
  if (line_.size() > kLineBytes) throw Refusal{400, "body: a line between chunks is too long"};
  if (end != std::string_view::npos) end_of_line();
  return count;
}

void BodyReader::end_of_line() {
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r') {
    throw Refusal{400, "body: a line between chunks ends without CR LF"};
  }
  line_.resize(line_.size() - 2);
  switch (part_) {
    case Part::size: read_size(); break;
    case Part::data_end:
      if (!line_.empty()) throw Refusal{400, "body: a chunk exceeds its size"};
      part_ = Part::size;
      break;
    default:
      trailer_bytes_ += line_.size();
      if (trailer_bytes_ > kTrailerBytes) throw Refusal{431, "trailer: too long"};
      if (line_.empty()) part_ = Part::done;
  }
  line_.clear();
}

void BodyReader::read_size() {
  const std::string digits = line_.substr(0, line_.find(';'));
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, left_, 16);
  if (digits.empty() || digits[0] == '-' || stop != end) {
    throw Refusal{400, "body: expected the size of a chunk"};
  }
  if (error != std::errc() || left_ > most_ - body_.size()) throw too_large(most_);
  part_ = left_ == 0 ? Part::trailer : Part::data;
}

}  // namespace fovea::http
