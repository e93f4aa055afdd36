#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fovea::http {

// Reads the body of a request, which has a known length or is sent in chunks (RFC 9112, 7.1).
class BodyReader {
 public:
  BodyReader(size_t length, bool chunked, size_t most);

  // Consumes the first bytes of `bytes` and returns their number; the other bytes belong to the
  // next request. Throws Refusal: 400 for an invalid chunk, 413 for a body that is too large.
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
