#include "log/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "base/crc32.h"

namespace fovea::train {
namespace {

// The encoding of protocol buffers: a field is its key, number * 8 + wire type, and its value.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  const char* const bytes = reinterpret_cast<const char*>(&value);
  return {bytes, sizeof value};
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field_key(unsigned number, Wire wire) {
  return varint(uint64_t{number} * 8 + static_cast<uint64_t>(wire));
}
std::string integer_field(unsigned number, int64_t value) {
  return field_key(number, Wire::varint) + varint(static_cast<uint64_t>(value));
}
std::string double_field(unsigned number, double value) {
  return field_key(number, Wire::fixed64) + little_endian(value);
}
std::string float_field(unsigned number, float value) {
  return field_key(number, Wire::fixed32) + little_endian(value);
}
std::string bytes_field(unsigned number, std::string_view bytes) {
  return field_key(number, Wire::bytes) + varint(bytes.size()) + std::string(bytes);
}
std::string doubles_field(unsigned number, const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) packed += little_endian(value);
  return bytes_field(number, packed);
}

// The numbers of the fields in TensorFlow's event.proto, summary.proto, tensor.proto and
// tensor_shape.proto.
namespace event_field {
constexpr unsigned kTime = 1, kStep = 2, kVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace value_field {
constexpr unsigned kTag = 1, kNumber = 2, kHistogram = 5, kTensor = 8, kMetadata = 9;
}
constexpr unsigned kValueOfSummary = 1;

std::string summary(const std::string& tag, const std::string& content) {
  const std::string all = bytes_field(value_field::kTag, tag) + content;
  return bytes_field(event_field::kSummary, bytes_field(kValueOfSummary, all));
}

// The upper limits of the buckets of a histogram, as in TensorFlow: powers of 1.1 from 1e-12, their
// negatives, and 0 between them.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    std::vector<double> all;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(std::numeric_limits<double>::max());
    return all;
  }();
  return limits;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t kOffset = 0xa282ead8;
  return std::rotr(crc32<kCastagnoliPolynomial>(bytes), 15) + kOffset;
}

EventFile::EventFile(const std::string& folder, int64_t step) {
  using Clock = std::chrono::system_clock;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const auto now = Clock::now().time_since_epoch();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  // TensorBoard reads the files of a folder in the order of their names.
  path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{:06}.{}", folder, time / 1'000'000,
                      host_name(), time % 1'000'000, getpid());
  add(0, bytes_field(event_field::kVersion, "brain.Event:2"));
  constexpr unsigned kStatus = 1, kStart = 1;  // of SessionLog
  add(step + 1, bytes_field(event_field::kSessionLog, integer_field(kStatus, kStart)));
}

void EventFile::scalars(int64_t step, const Scalars& values, const std::string& prefix) {
  for (const auto& [name, number] : values) {
    add(step,
        summary(prefix + name, float_field(value_field::kNumber, static_cast<float>(number))));
  }
}

void EventFile::text(int64_t step, const std::string& tag, const std::string& text) {
  constexpr unsigned kType = 1, kShape = 2, kStrings = 8;  // of TensorProto
  constexpr int64_t kString = 7;                           // DT_STRING
  constexpr unsigned kDimension = 2, kSize = 1;            // of TensorShapeProto
  constexpr unsigned kPlugin = 1, kPluginName = 1;         // of SummaryMetadata
  const std::string shape = bytes_field(kDimension, integer_field(kSize, 1));
  const std::string tensor =
      integer_field(kType, kString) + bytes_field(kShape, shape) + bytes_field(kStrings, text);
  const std::string plugin = bytes_field(kPlugin, bytes_field(kPluginName, "text"));
  add(step, summary(tag + "/text_summary", bytes_field(value_field::kMetadata, plugin) +
                                               bytes_field(value_field::kTensor, tensor)));
}

void EventFile::histogram(int64_t step, const std::string& tag, const float* values,
                          int64_t count) {
  constexpr unsigned kMin = 1, kMax = 2, kCount = 3, kSum = 4, kSquares = 5, kLimits = 6,
                     kBuckets = 7;  // of HistogramProto
  if (count == 0) return;
  const std::vector<double>& limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = values[i];
    sum += x, squares += x * x;
    const auto bucket = std::upper_bound(limits.begin(), limits.end() - 1, x);
    ++counts[static_cast<size_t>(bucket - limits.begin())];
  }
  const auto used = [](double n) { return n > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), used) - counts.begin();
  const auto last = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), used);
  const auto [least, most] = std::minmax_element(values, values + count);
  const std::string histogram =
      double_field(kMin, *least) + double_field(kMax, *most) +
      double_field(kCount, static_cast<double>(count)) + double_field(kSum, sum) +
      double_field(kSquares, squares) +
      doubles_field(kLimits, {limits.begin() + first, limits.begin() + last}) +
      doubles_field(kBuckets, {counts.begin() + first, counts.begin() + last});
  add(step, summary(tag, bytes_field(value_field::kHistogram, histogram)));
}

void EventFile::add(int64_t step, std::string_view fields) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string data =
      double_field(event_field::kTime, std::chrono::duration<double>(now).count()) +
      integer_field(event_field::kStep, step) + std::string(fields);
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  std::ofstream file(path_, std::ios::app | std::ios::binary);
  file << length << little_endian(masked_crc32c(length)) << data
       << little_endian(masked_crc32c(data));
}

}  // namespace fovea::train
