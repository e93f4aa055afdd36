#include "base/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file_cursor.h"
#include "base/files.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr std::string_view kMagic = "GGUF";
// Real files have about fifty keys and a thousand tensors; each takes about 100 bytes of memory.
constexpr uint64_t kKeyLimit = 65'536;
constexpr uint64_t kTensorLimit = 250'000;
constexpr uint64_t kNameLimit = 1024;
constexpr uint32_t kRankLimit = 4;  // the limit of ggml

// All ggml types that were not withdrawn: number, name, elements and bytes of a block.
constexpr std::array kBlocks = {
    GgufBlock{0, "F32", 1, 4},         GgufBlock{1, "F16", 1, 2},
    GgufBlock{2, "Q4_0", 32, 18},      GgufBlock{3, "Q4_1", 32, 20},
    GgufBlock{6, "Q5_0", 32, 22},      GgufBlock{7, "Q5_1", 32, 24},
    GgufBlock{8, "Q8_0", 32, 34},      GgufBlock{9, "Q8_1", 32, 40},
    GgufBlock{10, "Q2_K", 256, 84},    GgufBlock{11, "Q3_K", 256, 110},
    GgufBlock{12, "Q4_K", 256, 144},   GgufBlock{13, "Q5_K", 256, 176},
    GgufBlock{14, "Q6_K", 256, 210},   GgufBlock{15, "Q8_K", 256, 292},
    GgufBlock{16, "IQ2_XXS", 256, 66}, GgufBlock{17, "IQ2_XS", 256, 74},
    GgufBlock{18, "IQ3_XXS", 256, 98}, GgufBlock{19, "IQ1_S", 256, 50},
    GgufBlock{20, "IQ4_NL", 32, 18},   GgufBlock{21, "IQ3_S", 256, 110},
    GgufBlock{22, "IQ2_S", 256, 82},   GgufBlock{23, "IQ4_XS", 256, 136},
    GgufBlock{24, "I8", 1, 1},         GgufBlock{25, "I16", 1, 2},
    GgufBlock{26, "I32", 1, 4},        GgufBlock{27, "I64", 1, 8},
    GgufBlock{28, "F64", 1, 8},        GgufBlock{29, "IQ1_M", 256, 56},
    GgufBlock{30, "BF16", 1, 2},       GgufBlock{34, "TQ1_0", 256, 54},
    GgufBlock{35, "TQ2_0", 256, 66},   GgufBlock{39, "MXFP4", 32, 17}};

// Bytes of one element; 0 for types of varying size.
uint64_t width_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    default: return 0;
  }
}

// Parses an untrusted header.
class HeaderReader : public FileCursor {
 public:
  using FileCursor::FileCursor;

  std::string_view text(const char* what) { return take(number<uint64_t>(what), what); }

  // Reads a name. Names appear in messages and are compared, so they must be printable ASCII.
  std::string name(const char* what) {
    const std::string_view name = text(what);
    const auto invalid = [](char c) { return c <= ' ' || c > '~'; };
    if (name.empty() || name.size() > kNameLimit ||
        std::any_of(name.begin(), name.end(), invalid)) {
      refuse(fmt::format("contains {} of {} bytes that is not a valid name", what, name.size()),
             fmt::format("1 to {} printable ASCII characters without spaces", kNameLimit));
    }
    return std::string(name);
  }

  GgufValue value() {
    GgufValue value;
    value.key = name("a key");
    value.type = type(value.key);
    if (value.type == GgufType::array) {
      value.is_array = true;
      value.type = type(value.key);
      value.count = number<uint64_t>("the length of an array");
      if (value.type == GgufType::array) {
        fail(ErrorKind::Unsupported,
             "{}: {} is an array of arrays (byte {}); expected a flat array", file().path(),
             excerpt(value.key), position());
      }
    }
    const size_t begin = position();
    if (value.type == GgufType::text) {
      for (uint64_t i = 0; i < value.count; ++i) text("a string");
    } else {
      const uint64_t width = width_of(value.type);
      if (value.count > (left()) / width) {
        refuse(value.is_array
                   ? fmt::format("ends within {}, an array of {} elements", value.key, value.count)
                   : "ends within " + value.key,
               "a complete file");
      }
      take(value.count * width, "a value");
    }
    value.bytes = file().bytes().substr(begin, position() - begin);
    return value;
  }

  GgufTensor tensor(uint64_t& offset) {
    GgufTensor tensor;
    tensor.name = name("a tensor's name");
    const auto rank = number<uint32_t>("a tensor's rank");
    if (rank == 0 || rank > kRankLimit)
      refuse(fmt::format("{} has {} dimensions", tensor.name, rank), "1 to 4");
    uint64_t rows = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      const auto size = number<uint64_t>("a tensor's shape");
      if (size == 0 || size > INT64_MAX / rows)
        refuse(fmt::format("{} has a dimension of {}", tensor.name, size),
               "at least 1, and fewer than 2^63 elements");
      rows *= size;
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const auto block = number<uint32_t>("a tensor's type");
    tensor.block = find_gguf_block(block);
    if (tensor.block == nullptr) {
      fail(ErrorKind::Unsupported,
           "{}: {} is of type {}, which is not known (byte {}); expected a "
           "type of ggml",
           file().path(), excerpt(tensor.name), block, position() - 4);
    }
    offset = number<uint64_t>("a tensor's offset");
    if (tensor.shape.back() % tensor.block->elements != 0) {
      refuse(fmt::format("{} has rows of {} elements", tensor.name, tensor.shape.back()),
             fmt::format("a multiple of {} for {}", tensor.block->elements, tensor.block->name));
    }
    tensor.bytes = rows / tensor.block->elements;
    if (tensor.bytes > file().size() / tensor.block->bytes) {
      refuse(fmt::format("is too short for {}: {} elements of {}", tensor.name, rows,
                         tensor.block->name),
             "a complete file");
    }
    tensor.bytes *= tensor.block->bytes;
    return tensor;
  }

 private:
  GgufType type(const std::string& key) {
    const auto number = this->number<uint32_t>("a type");
    if (number > static_cast<uint32_t>(GgufType::f64))
      refuse(fmt::format("{} has the type {}", key, number), "0 to 12");
    return static_cast<GgufType>(number);
  }
};

void check_version(HeaderReader& header, const std::string& path) {
  if (header.take(kMagic.size(), "the magic") != kMagic)
    fail(ErrorKind::BadFile, "{}: does not begin with GGUF (byte 0); expected a GGUF file", path);
  const auto version = header.number<uint32_t>("the version");
  if (version != 2 && version != 3) {
    fail(ErrorKind::Unsupported, "{}: version is {}{} (byte 4); expected 2 or 3", path, version,
         (version & 0xffffu) == 0 && version != 0 ? ", as in a big-endian file" : "");
  }
}

uint64_t checked_count(HeaderReader& header, const char* what, uint64_t most) {
  const auto count = header.number<uint64_t>(what);
  if (count > most)
    header.refuse(fmt::format("claims {} {}", count, what), fmt::format("at most {}", most));
  return count;
}

template <class List, class Key>
void sort_and_refuse_duplicates(List& list, Key key, const std::string& path) {
  std::sort(list.begin(), list.end(),
            [&](const auto& a, const auto& b) { return a.*key < b.*key; });
  const auto duplicate = std::adjacent_find(
      list.begin(), list.end(), [&](const auto& a, const auto& b) { return a.*key == b.*key; });
  if (duplicate != list.end())
    fail(ErrorKind::BadFile, "{}: contains {} twice; expected each name once", path,
         excerpt((*duplicate).*key));
}

}  // namespace

const GgufBlock* find_gguf_block(uint32_t number) {
  const auto found = std::find_if(kBlocks.begin(), kBlocks.end(),
                                  [&](const GgufBlock& block) { return block.number == number; });
  return found == kBlocks.end() ? nullptr : &*found;
}

bool is_gguf(const std::string& path) {
  if (path.ends_with(".gguf")) return true;
  if (!is_file(path)) return false;
  std::array<char, kMagic.size()> first = {};
  std::ifstream(path, std::ios::binary).read(first.data(), first.size());
  return std::string_view(first.data(), first.size()) == kMagic;
}

void Gguf::read(const std::string& path) {
  files_ = {std::make_shared<const MappedFile>(path)};
  const MappedFile& file = *files_[0];
  HeaderReader header(file);
  check_version(header, path);
  const uint64_t tensors = checked_count(header, "tensors", kTensorLimit);
  const uint64_t keys = checked_count(header, "keys", kKeyLimit);
  for (uint64_t i = 0; i < keys; ++i) values_.push_back(header.value());
  sort_and_refuse_duplicates(values_, &GgufValue::key, path);

  struct Extent {
    uint64_t begin, end;
    size_t tensor;
  };
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < tensors; ++i) {
    uint64_t offset = 0;
    tensors_.push_back(header.tensor(offset));
    extents.push_back({offset, 0, i});
  }
  const int64_t alignment = integer("general.alignment").value_or(kGgufAlignment);
  if (alignment < 1 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) {
    fail(ErrorKind::BadFile,
         "{}: general.alignment is {}; expected a power of two of at most 1048576", path,
         alignment);
  }
  const auto unit = static_cast<uint64_t>(alignment);
  const uint64_t data = (header.position() + unit - 1) / unit * unit;
  const uint64_t room = file.size() > data ? file.size() - data : 0;
  for (Extent& extent : extents) {
    GgufTensor& tensor = tensors_[extent.tensor];
    if (extent.begin % unit != 0 || extent.begin > room || tensor.bytes > room - extent.begin) {
      fail(ErrorKind::BadFile,
           "{}: {} is at {} with {} bytes; expected a multiple of {} and an end within the {} "
           "bytes of data",
           path, excerpt(tensor.name), extent.begin, tensor.bytes, unit, room);
    }
    extent.end = extent.begin + tensor.bytes;
    tensor.data = file.data() + data + extent.begin;
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      fail(ErrorKind::BadFile, "{}: {} and {} overlap at {}; expected no shared bytes", path,
           excerpt(tensors_[extents[i - 1].tensor].name), excerpt(tensors_[extents[i].tensor].name),
           extents[i].begin);
    }
  }
  sort_and_refuse_duplicates(tensors_, &GgufTensor::name, path);
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const GgufTensor& a, std::string_view b) { return a.name < b; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace fovea
