#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fovea::http {

// Reads the body of a request, which has a known length or is sent in chunks (RFC 9112, 7.1).
class BodyReader {
 public:
  // Throws Refusal (413) if `length` exceeds `most`, the maximum bytes of a body.
  BodyReader(size_t length, bool chunked, size_t most);

  // Consumes the part of `bytes` that belongs to the body and returns its length. Throws Refusal:
  // 400 for an invalid chunk, 413 for a body that is too large, 431 for a trailer that is too long.
  size_t take(std::string_view bytes);
  bool done() const { return part_ == Part::done; }
  std::string& body() { return body_; }

 private:
  enum class Part { size, data, data_end, trailer, done };
  size_t take_line(std::string_view bytes);
  size_t take_data(std::string_view bytes);
  void end_of_line();
  void read_size();

  Part part_;
  bool chunked_;
  size_t left_, most_, trailer_bytes_ = 0;
  std::string line_, body_;
};

}  // namespace fovea::http
