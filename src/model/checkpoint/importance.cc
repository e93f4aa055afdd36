#include "checkpoint/importance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/gguf.h"

namespace fovea::model {
namespace {

constexpr const char *kSums = ".in_sum2", *kCounts = ".counts";

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  fail(ErrorKind::BadFile, "{}: {}; expected an importance matrix of llama.cpp", path, what);
}

std::vector<float> floats_of(const GgufTensor& tensor, const std::string& path) {
  if (tensor.block->name != std::string_view("F32"))
    refuse(path, fmt::format("{} is {}, not F32", tensor.name, tensor.block->name));
  std::vector<float> values(tensor.bytes / sizeof(float));
  std::copy_n(tensor.data, tensor.bytes, reinterpret_cast<char*>(values.data()));
  return values;
}

ImportanceMatrix read_gguf_importance(const std::string& path) {
  const Gguf file(path);
  ImportanceMatrix matrix;
  if (file.text("general.type") != "imatrix") refuse(path, "general.type is not imatrix");
  if (const auto texts = file.texts("imatrix.datasets"))
    matrix.texts.assign(texts->begin(), texts->end());
  matrix.chunks = file.integer("imatrix.chunk_count").value_or(0);
  matrix.chunk_length = file.integer("imatrix.chunk_size").value_or(0);
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - std::strlen(kSums));
    const GgufTensor* counts = file.find_tensor(name + kCounts);
    if (counts == nullptr) refuse(path, name + " has no counts");
    matrix.tensors[name] = {floats_of(tensor, path), floats_of(*counts, path)};
  }
  return matrix;
}

// The numbers of the older format, one after the other.
class OldFile {
 public:
  OldFile(const std::string& path, std::string_view rest) : path_(path), rest_(rest) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view take(size_t bytes) {
    if (bytes > rest_.size()) refuse(path_, "the file ends too early");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  size_t integer() {
    int32_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    if (value < 0) refuse(path_, fmt::format("{} is a negative size", value));
    return static_cast<size_t>(value);
  }

 private:
  const std::string& path_;
  std::string_view rest_;
};

// The older format, in integers of 32 bits: the number of tensors; for each the length of its name,
// the name, the number of calls, the number of sums and the sums as floats; then the number of
// calls, and the length and the name of the text, which may be missing.
ImportanceMatrix read_old_importance(const std::string& path, std::string_view bytes) {
  OldFile file(path, bytes);
  ImportanceMatrix matrix;
  for (size_t left = file.integer(); left > 0; --left) {
    const std::string name(file.take(file.integer()));
    ImportanceMatrix::Columns& columns = matrix.tensors[name];
    columns.counts = {static_cast<float>(file.integer())};
    const std::string_view sums = file.take(file.integer() * sizeof(float));
    columns.sums.resize(sums.size() / sizeof(float));
    std::copy_n(sums.data(), sums.size(), reinterpret_cast<char*>(columns.sums.data()));
  }
  if (file.at_end()) return matrix;
  matrix.chunks = static_cast<int64_t>(file.integer());
  if (!file.at_end()) matrix.texts = {std::string(file.take(file.integer()))};
  return matrix;
}

void check_numbers(const std::string& path, const ImportanceMatrix& matrix) {
  if (matrix.tensors.empty()) refuse(path, "has no tensors");
  for (const auto& [name, columns] : matrix.tensors) {
    const auto bad = [](float x) { return !std::isfinite(x) || x < 0; };
    if (std::any_of(columns.sums.begin(), columns.sums.end(), bad) ||
        std::any_of(columns.counts.begin(), columns.counts.end(), bad))
      refuse(path, name + " has numbers that are negative or not finite");
    if (columns.counts.empty() || columns.sums.size() % columns.counts.size() != 0)
      refuse(path, fmt::format("{} has {} sums and {} counts", name, columns.sums.size(),
                               columns.counts.size()));
  }
}

}  // namespace

std::vector<float> ImportanceMatrix::weights_of(const std::string& tensor, int64_t matrices,
                                                int64_t width) const {
  const auto found = tensors.find(tensor);
  if (found == tensors.end()) return {};
  std::vector<float> weights = found->second.sums;
  check(std::ssize(weights) == matrices * width,
        "importance matrix: {} has {} sums; expected {} x {}", tensor, weights.size(), matrices,
        width);
  for (auto row = weights.begin(); row != weights.end(); row += width) {
    const double mean = std::accumulate(row, row + width, 0.0) / static_cast<double>(width);
    // Inputs that the text never activates keep a little weight.
    constexpr float kLeast = 1e-3f;
    std::transform(row, row + width, row, [&](float x) {
      return mean > 0 ? std::max(static_cast<float>(x / mean), kLeast) : 1.0f;
    });
  }
  return weights;
}

ImportanceMatrix read_importance(const std::string& path) {
  const MappedFile file(path);
  const bool gguf = file.bytes().starts_with("GGUF");
  ImportanceMatrix matrix =
      gguf ? read_gguf_importance(path) : read_old_importance(path, file.bytes());
  check_numbers(path, matrix);
  return matrix;
}

void write_importance(const std::string& path, const ImportanceMatrix& matrix) {
  GgufMetadata metadata;
  metadata.text("general.type", "imatrix");
  metadata.texts("imatrix.datasets", matrix.texts);
  metadata.integer("imatrix.chunk_count", static_cast<uint32_t>(matrix.chunks));
  metadata.integer("imatrix.chunk_size", static_cast<uint32_t>(matrix.chunk_length));
  std::vector<GgufTensor> tensors;
  const auto add = [&](const std::string& name, const std::vector<float>& values, size_t rows) {
    GgufTensor& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.block = find_gguf_block(0);  // F32
    tensor.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(values.size() / rows)};
    tensor.data = reinterpret_cast<const char*>(values.data());
    tensor.bytes = values.size() * sizeof(float);
  };
  for (const auto& [name, columns] : matrix.tensors) {
    add(name + kSums, columns.sums, columns.counts.size());
    add(name + kCounts, columns.counts, columns.counts.size());
  }
  write_file_atomically(path, GgufImage(metadata, tensors).pieces());
}

}  // namespace fovea::model
