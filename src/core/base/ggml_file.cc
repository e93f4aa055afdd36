#include "base/ggml_file.h"

#include <algorithm>

#include "base/file_cursor.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr std::string_view kGgmlMagic = "lmgg";  // 0x67676d6c
constexpr int32_t kMostSize = 1 << 20;           // of each number of the header
constexpr int32_t kMostGgmlTensors = 100'000;
constexpr int32_t kLongestGgmlName = 256;

GgmlSizes read_sizes(FileCursor& cursor) {
  GgmlSizes sizes;
  for (int32_t* size : {&sizes.vocabulary, &sizes.audio_context, &sizes.audio_width,
                        &sizes.audio_heads, &sizes.audio_layers, &sizes.text_context,
                        &sizes.text_width, &sizes.text_heads, &sizes.text_layers, &sizes.bins}) {
    *size = cursor.number<int32_t>("a size");
    if (*size < 1 || *size > kMostSize)
      cursor.refuse(fmt::format("has the size {}", *size), fmt::format("1 to {}", kMostSize));
  }
  sizes.type = cursor.number<int32_t>("a type");
  return sizes;
}

void skip_filters(FileCursor& cursor) {
  const auto bins = cursor.number<int32_t>("the mel filters");
  const auto frequencies = cursor.number<int32_t>("the mel filters");
  if (bins < 1 || frequencies < 1 || bins > kMostSize || frequencies > kMostSize)
    cursor.refuse(fmt::format("has {} x {} mel filters", bins, frequencies), "at least 1 x 1");
  cursor.take(
      uint64_t{sizeof(float)} * static_cast<uint64_t>(bins) * static_cast<uint64_t>(frequencies),
      "the mel filters");
}

GgufTensor read_tensor(FileCursor& cursor) {
  GgufTensor tensor;
  const auto axes = cursor.number<int32_t>("a number of axes");
  const auto length = cursor.number<int32_t>("the length of a name");
  const auto type = cursor.number<int32_t>("a type");
  if (axes < 1 || axes > 4) cursor.refuse(fmt::format("has {} axes", axes), "1 to 4");
  if (length < 1 || length > kLongestGgmlName)
    cursor.refuse(fmt::format("has a name of {} bytes", length),
                  fmt::format("1 to {}", kLongestGgmlName));
  uint64_t count = 1;
  for (int32_t i = 0; i < axes; ++i) {
    const auto extent = cursor.number<int32_t>("a shape");
    if (extent < 1 || static_cast<uint64_t>(extent) > (uint64_t{1} << 48) / count)
      cursor.refuse(fmt::format("has a tensor with an axis of {}", extent), "at least 1");
    count *= static_cast<uint64_t>(extent);
    tensor.shape.insert(tensor.shape.begin(), extent);
  }
  tensor.name = cursor.take(static_cast<uint64_t>(length), "a name");
  const auto invalid = [](char c) { return c <= ' ' || c > '~'; };
  if (std::any_of(tensor.name.begin(), tensor.name.end(), invalid))
    cursor.refuse("has a name that is not printable", "printable ASCII characters");
  tensor.block = find_gguf_block(static_cast<uint32_t>(type));
  if (tensor.block == nullptr)
    cursor.refuse(fmt::format("{} is of type {}", excerpt(tensor.name), type), "a type of ggml");
  const auto row = static_cast<uint64_t>(tensor.shape.back());
  if (row % tensor.block->elements != 0)
    cursor.refuse(fmt::format("{} has rows of {} elements", excerpt(tensor.name), row),
                  fmt::format("a multiple of {}", tensor.block->elements));
  tensor.bytes = count / tensor.block->elements * tensor.block->bytes;
  tensor.data = cursor.take(tensor.bytes, "a tensor").data();
  return tensor;
}

}  // namespace

bool is_ggml(const std::string& path) {
  if (!path.ends_with(".bin") || !is_file(path)) return false;
  const MappedFile file(path);
  return file.bytes().starts_with(kGgmlMagic);
}

GgmlFile::GgmlFile(const std::string& path) : file_(std::make_shared<const MappedFile>(path)) {
  FileCursor cursor(*file_);
  if (cursor.take(kGgmlMagic.size(), "the magic number") != kGgmlMagic)
    cursor.refuse("does not begin with ggml's magic number", "0x67676d6c");
  sizes_ = read_sizes(cursor);
  skip_filters(cursor);
  const auto count = cursor.number<int32_t>("the vocabulary");
  if (count < 1 || count > sizes_.vocabulary)
    cursor.refuse(fmt::format("has {} tokens", count), fmt::format("1 to {}", sizes_.vocabulary));
  for (int32_t i = 0; i < count; ++i)
    tokens_.push_back(cursor.take(cursor.number<uint32_t>("a token"), "a token"));
  while (!cursor.at_end()) {
    tensors_.push_back(read_tensor(cursor));
    if (std::ssize(tensors_) > kMostGgmlTensors)
      cursor.refuse("has too many tensors", fmt::format("at most {}", kMostGgmlTensors));
  }
  const auto name = [](const GgufTensor& tensor) -> const std::string& { return tensor.name; };
  std::ranges::sort(tensors_, {}, name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, name);
  if (twice != tensors_.end())
    cursor.refuse(fmt::format("has {} twice", excerpt(twice->name)), "distinct names");
}

void write_ggml(const std::string& path, const GgmlSizes& sizes, const std::vector<float>& filters,
                const std::vector<std::string>& tokens, const std::vector<GgufTensor>& tensors,
                const std::function<std::string_view(size_t index)>& elements) {
  std::string header(kGgmlMagic);
  const auto put = [](std::string& to, int64_t value) {
    const auto number = static_cast<int32_t>(value);
    to.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const int32_t size :
       {sizes.vocabulary, sizes.audio_context, sizes.audio_width, sizes.audio_heads,
        sizes.audio_layers, sizes.text_context, sizes.text_width, sizes.text_heads,
        sizes.text_layers, sizes.bins, sizes.type})
    put(header, size);
  put(header, sizes.bins);
  put(header, std::ssize(filters) / sizes.bins);
  header.append(reinterpret_cast<const char*>(filters.data()), filters.size() * sizeof(float));
  put(header, std::ssize(tokens));
  for (const std::string& token : tokens) {
    put(header, std::ssize(token));
    header += token;
  }
  uint64_t bytes = header.size();
  std::vector<std::string> heads;
  for (const GgufTensor& tensor : tensors) {
    std::string head;
    put(head, std::ssize(tensor.shape));
    put(head, std::ssize(tensor.name));
    put(head, tensor.block->number);
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
      put(head, *extent);
    head += tensor.name;
    bytes += head.size() + tensor.bytes;
    heads.push_back(std::move(head));
  }
  write_file_atomically(path, bytes, [&](const WritePiece& write) {
    write(header);
    for (size_t i = 0; i < tensors.size(); ++i) {
      write(heads[i]);
      write(elements(i));
    }
  });
}

}  // namespace fovea
