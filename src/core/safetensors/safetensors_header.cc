#include "safetensors/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr uint64_t kHeaderLimit = 100'000'000;           // the limit of the reference reader
constexpr uint64_t kLargestInteger = uint64_t{1} << 53;  // JSON readers may round larger ones
// Each tensor takes about 200 bytes here. The largest models have 100,000 tensors, spread over many
// files.
constexpr size_t kTensorLimit = 250'000;

constexpr std::array kTypes = {
    StoredType{"F32", 32, DType::f32},
    StoredType{"BF16", 16, DType::bf16},
    StoredType{"F16", 16, DType::f16},
    StoredType{"F64", 64, DType::f64},
    StoredType{"I64", 64, DType::i64},
    StoredType{"I32", 32, DType::i32},
    StoredType{"BOOL", 8, std::nullopt},
    StoredType{"U8", 8, DType::u8},
    StoredType{"I8", 8, DType::i8},
    StoredType{"I16", 16, std::nullopt},
    StoredType{"U16", 16, std::nullopt},
    StoredType{"U32", 32, std::nullopt},
    StoredType{"U64", 64, std::nullopt},
    StoredType{"C64", 64, std::nullopt},
    StoredType{"F8_E4M3", 8, std::nullopt},
    StoredType{"F8_E5M2", 8, std::nullopt},
    StoredType{"F8_E8M0", 8, std::nullopt},
    StoredType{"F8_E4M3FNUZ", 8, std::nullopt},
    StoredType{"F8_E5M2FNUZ", 8, std::nullopt},
    StoredType{"F6_E2M3", 6, std::nullopt},
    StoredType{"F6_E3M2", 6, std::nullopt},
    StoredType{"F4", 4, std::nullopt},
};

struct Entry {
  StoredTensor tensor;
  const StoredType* type = nullptr;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Processes the header's JSON as a stream, without a tree: a header may have kTensorLimit tensors.
class HeaderReader : public JsonReader {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

 protected:
  void begin_object() override {
    switch (state_) {
      case State::start: state_ = State::names; break;
      case State::name: begin_entry(); break;
      default: refuse_here("an object");
    }
  }

  void key(std::string&& key) override {
    switch (state_) {
      case State::names:
        name_ = std::move(key);
        state_ = State::name;
        break;
      case State::metadata:
        name_ = std::move(key);
        if (metadata.contains(name_))
          refuse(fmt::format("__metadata__: duplicate key {}", excerpt(name_)), "each key once");
        break;
      default: field(key);
    }
  }

  void scalar(nlohmann::json&& value) override {
    if (state_ == State::metadata && value.is_string()) {
      metadata.emplace(name_, value.get<std::string>());
    } else if (state_ == State::dtype && value.is_string()) {
      set_type(value.get_ref<const std::string&>());
    } else if ((state_ == State::shape || state_ == State::offsets) && in_array_) {
      add_integer(value);
    } else {
      refuse_here(brief(value));
    }
  }

  void begin_array() override {
    if ((state_ != State::shape && state_ != State::offsets) || in_array_) refuse_here("an array");
    in_array_ = true;
    integers_.clear();
  }

  void end_array() override {
    in_array_ = false;
    Entry& entry = entries.back();
    if (state_ == State::shape) {
      entry.tensor.shape = Shape(integers_.begin(), integers_.end());
    } else {
      if (integers_.size() != 2) {
        refuse_here(fmt::format("an array of {} elements", integers_.size()));
      }
      entry.begin = integers_[0];
      entry.end = integers_[1];
      if (entry.begin > entry.end) {
        refuse(fmt::format("tensor {}: begins at {} and ends at {}", excerpt(entry.tensor.name),
                           entry.begin, entry.end),
               "data_offsets in order");
      }
    }
    state_ = State::entry;
  }

  void end_object() override {
    if (state_ == State::entry && seen_ != 7) {
      refuse(fmt::format("tensor {}: is incomplete", excerpt(entries.back().tensor.name)),
             "dtype, shape and data_offsets");
    }
    state_ = state_ == State::names ? State::start : State::names;
  }

 private:
  enum class State { start, names, name, metadata, entry, dtype, shape, offsets };

  void begin_entry() {
    if (name_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) refuse("duplicate key __metadata__", "each key once");
      state_ = State::metadata;
      return;
    }
    if (entries.size() == kTensorLimit) {
      fail(ErrorKind::OutOfMemory, "{}: more than {} tensors; expected fewer in one file", path_,
           kTensorLimit);
    }
    entries.emplace_back().tensor.name = std::move(name_);
    seen_ = 0;
    state_ = State::entry;
  }

  void field(const std::string& key) {
    constexpr std::array<std::pair<std::string_view, State>, 3> fields = {
        {{"dtype", State::dtype}, {"shape", State::shape}, {"data_offsets", State::offsets}}};
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].first != key) continue;
      if (seen_ >> i & 1) {
        refuse(fmt::format("tensor {}: duplicate key {}", excerpt(entries.back().tensor.name), key),
               "each key once");
      }
      seen_ |= 1u << i;
      state_ = fields[i].second;
      return;
    }
    refuse(
        fmt::format("tensor {}: unknown key {}", excerpt(entries.back().tensor.name), brief(key)),
        "dtype, shape and data_offsets");
  }

  void set_type(const std::string& name) {
    Entry& entry = entries.back();
    entry.type = find_stored_type(name);
    if (entry.type == nullptr) {
      refuse(fmt::format("tensor {}: unknown dtype {}", excerpt(entry.tensor.name), brief(name)),
             "a dtype of the format such as F32 or BF16");
    }
    state_ = State::entry;
  }

  void add_integer(const nlohmann::json& value) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kLargestInteger)
      refuse_here(brief(value));
    if (integers_.size() == Shape::kMostAxes)
      refuse_here(fmt::format("an array of more than {}", Shape::kMostAxes));
    integers_.push_back(value.get<uint64_t>());
  }

  [[noreturn]] void refuse_here(const std::string& found) const {
    const std::string tensor =
        entries.empty() ? "" : "tensor " + excerpt(entries.back().tensor.name) + ": ";
    switch (state_) {
      case State::start: refuse("is " + found, "an object of tensors");
      case State::names:
      case State::name: refuse(fmt::format("{} is {}", excerpt(name_), found), "an object");
      case State::metadata:
        refuse(fmt::format("__metadata__: {} is {}", excerpt(name_), found), "a string");
      case State::entry:
      case State::dtype: refuse(fmt::format("{}dtype is {}", tensor, found), "a string");
      case State::shape:
        refuse(fmt::format("{}shape holds {}", tensor, found),
               fmt::format("an array of at most {} integers from 0 to 2^53", Shape::kMostAxes));
      case State::offsets:
        refuse(fmt::format("{}data_offsets holds {}", tensor, found),
               "an array of two integers from 0 to 2^53");
    }
    __builtin_unreachable();
  }

  const std::string& path_;
  State state_ = State::start;
  std::string name_;   // name of the current entry or metadata item
  unsigned seen_ = 0;  // a bit for each field of the entry
  bool has_metadata_ = false;
  bool in_array_ = false;
  std::vector<uint64_t> integers_;
};

// Returns the JSON text between the header length and the elements.
std::string_view header_text(const MappedFile& file) {
  const std::string& path = file.path();
  if (file.size() < 8) {
    fail(
        ErrorKind::BadFile,
        "{}: has {} bytes; expected a safetensors file, which begins with 8 bytes of header length",
        path, file.size());
  }
  uint64_t length;
  std::memcpy(&length, file.data(), 8);  // little-endian, like every machine that fovea runs on
  if (length > file.size() - 8) {
    fail(ErrorKind::BadFile,
         "{}: header length {} exceeds the file (file size {}); expected a complete safetensors "
         "file",
         path, length, file.size());
  }
  if (length > kHeaderLimit) {
    fail(ErrorKind::OutOfMemory, "{}: header length {} is over the limit; expected at most {}",
         path, length, kHeaderLimit);
  }
  const std::string_view text = file.bytes().substr(8, length);
  if (text.empty() || text[0] != '{') {
    fail(ErrorKind::BadFile,
         "{}: the header does not begin with {{ (byte 8); expected a safetensors file", path);
  }
  return text;
}

// Checks that a tensor has the number of bytes of its shape and dtype.
void check_size(const std::string& path, const Entry& entry) {
  const uint64_t bytes = entry.end - entry.begin;
  int64_t bits = entry.type->bits;
  bool overflows = false;
  for (const int64_t extent : entry.tensor.shape) {
    overflows = overflows || __builtin_mul_overflow(bits, extent, &bits);
  }
  if (!overflows && bits % 8 == 0 && bytes == static_cast<uint64_t>(bits) / 8) return;
  const std::string what =
      fmt::format("{}: tensor {} of shape {} and dtype {}", path, entry.tensor.name,
                  describe(entry.tensor.shape), entry.type->name);
  if (overflows)
    fail(ErrorKind::BadFile, "{} overflows; expected a size that fits into memory", what);
  if (bits % 8 != 0) fail(ErrorKind::BadFile, "{} ends within a byte; expected whole bytes", what);
  fail(ErrorKind::BadFile, "{} has {} bytes; expected {}", what, bytes, bits / 8);
}

// Sorted by offset, the tensors must follow each other from the first byte to the last.
void check_cover(const std::string& path, const std::vector<Entry>& entries, uint64_t data_bytes) {
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t position = 0;
  const Entry* before = nullptr;
  for (const Entry* entry : order) {
    const auto name = [&] { return excerpt(entry->tensor.name); };
    const auto last = [&] { return excerpt(before->tensor.name); };
    if (entry->begin < position) {
      fail(ErrorKind::BadFile,
           "{}: tensor {} overlaps tensor {} (data byte {}); expected each byte in one tensor",
           path, name(), last(), entry->begin);
    }
    if (entry->begin > position && before == nullptr) {
      fail(ErrorKind::BadFile,
           "{}: {} bytes before the first tensor {}; expected it at the start of the data", path,
           entry->begin, name());
    }
    if (entry->begin > position) {
      fail(ErrorKind::BadFile,
           "{}: a gap of {} bytes between the tensors {} and {} (data byte {}); expected none",
           path, entry->begin - position, last(), name(), position);
    }
    if (entry->end > data_bytes) {
      fail(ErrorKind::BadFile,
           "{}: tensor {} ends after the file (data byte {} of {}); expected a complete file", path,
           name(), entry->end, data_bytes);
    }
    position = entry->end;
    before = entry;
  }
  if (position < data_bytes) {
    fail(ErrorKind::BadFile,
         "{}: {} bytes after the last tensor (data byte {}); expected the end of the file", path,
         data_bytes - position, position);
  }
}

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const auto& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : &*found;
}

std::string_view stored_type_name(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(),
                      [&](const auto& type) { return type.dtype == dtype; })
      ->name;
}

SafeTensorsHeader read_safetensors_header(const MappedFile& file) {
  const std::string& path = file.path();
  const std::string_view text = header_text(file);
  HeaderReader reader(path);
  reader.read(text, path + ": header");
  if (const size_t last = text.find_last_not_of(' '); text[last] != '}') {
    fail(ErrorKind::BadFile, "{}: header: invalid padding (byte {}); expected spaces", path, last);
  }

  std::vector<Entry>& entries = reader.entries;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.tensor.name < b.tensor.name; });
  const auto twice = std::adjacent_find(
      entries.begin(), entries.end(),
      [](const Entry& a, const Entry& b) { return a.tensor.name == b.tensor.name; });
  if (twice != entries.end()) {
    fail(ErrorKind::BadFile, "{}: header: duplicate tensor {}; expected each name once", path,
         excerpt(twice->tensor.name));
  }
  for (const Entry& entry : entries) check_size(path, entry);
  check_cover(path, entries, file.size() - 8 - text.size());

  SafeTensorsHeader header;
  header.metadata = std::move(reader.metadata);
  header.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.tensor.type = entry.type->name;
    entry.tensor.dtype = entry.type->dtype;
    entry.tensor.data = file.data() + 8 + text.size() + entry.begin;
    entry.tensor.bytes = entry.end - entry.begin;
    header.tensors.push_back(std::move(entry.tensor));
  }
  return header;
}

}  // namespace fovea
