#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::train {

// Writes an event file of TensorBoard: records (length, checksum of the length, data, checksum of
// the data) whose data are messages tensorflow.Event in the encoding of protocol buffers. Errors in
// writing are ignored: they must not end a training run.
class EventFile {
 public:
  using Scalars = std::vector<std::pair<std::string, double>>;

  // Begins a new file in `folder`. TensorBoard ignores the values of other files there after step
  // `step`, which are repeated.
  EventFile(const std::string& folder, int64_t step);

  void scalars(int64_t step, const Scalars& values, const std::string& prefix = "");
  void text(int64_t step, const std::string& tag, const std::string& text);
  // Adds a histogram of values [count].
  void histogram(int64_t step, const std::string& tag, const float* values, int64_t count);

 private:
  void add(int64_t step, std::string_view fields);

  std::string path_;
};

// Returns the CRC-32C of bytes (Castagnoli polynomial, RFC 3720, appendix B.4), rotated and offset
// as in files of records of TensorFlow.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace fovea::train
