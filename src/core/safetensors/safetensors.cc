#include "safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
#include "fovea/core/excerpt.h"
#include "safetensors/safetensors_header.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// Formats that run code when they are read, or that need another library.
bool is_pickled(const std::string& path) {
  constexpr std::array<std::string_view, 6> endings = {".bin", ".pt", ".pkl",
                                                       ".pth", ".h5", ".ckpt"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](auto ending) { return path.ends_with(ending); });
}

[[noreturn]] void refuse_folder(const std::string& folder) {
  for (const std::string& name : list_files(folder)) {
    refuse_pickle(folder + "/" + name);
  }
  fail(ErrorKind::BadFile, "{}: contains no model; expected {} or {}", folder, kModelFile,
       kIndexFile);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Hugging Face's cache keeps the bytes in blobs/HASH and links to them from snapshots/COMMIT/NAME.
// Such a link is resolved here; any other is rejected when the shard is opened.
std::string shard_path(const std::string& folder, const std::string& name) {
  constexpr std::string_view blobs = "../../blobs/";
  std::error_code not_a_link;
  const std::string target = fs::read_symlink(folder + "/" + name, not_a_link).string();
  const bool cached = target.starts_with(blobs) && is_plain_name(target.substr(blobs.size()));
  return folder + "/" + (cached ? target : name);
}

// Reads the weight_map of an index: tensor -> shard; shards are plain file names.
std::map<std::string, std::string> read_weight_map(const std::string& index) {
  const nlohmann::json json = read_json(index);
  const auto found = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_object()) {
    fail(ErrorKind::BadFile,
         "{}: weight_map is missing; expected an object of tensors and their files", index);
  }
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, file] : found->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!is_plain_name(name) || !name.ends_with(".safetensors")) {
      fail(ErrorKind::BadFile,
           "{}: weight_map places {} in {}; expected the name of a .safetensors file in the same "
           "folder",
           index, excerpt(tensor), brief(file));
    }
    shards.emplace(tensor, name);
  }
  return shards;
}

void refuse_if_any(const std::string& index, const std::vector<std::string>& names,
                   const char* wrong) {
  if (names.empty()) return;
  fail(ErrorKind::BadFile, "{}: {} tensors are {} ({}); expected weight_map to match the shards",
       index, names.size(), wrong, first_names(names));
}

}  // namespace

SafeTensors::SafeTensors(const std::string& path, Links links) {
  auto file = std::make_shared<const MappedFile>(path, MappedFile::Access::sequential, links);
  SafeTensorsHeader header = read_safetensors_header(*file);
  stored_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  files_ = {std::move(file)};
}

void refuse_pickle(const std::string& path) {
  if (!is_pickled(path)) return;
  fail(ErrorKind::Unsupported,
       "{}: pickle files are not read, since they can run any program; expected {} (convert with "
       "transformers: from_pretrained, then save_pretrained)",
       path, kModelFile);
}

SafeTensors SafeTensors::open_model(const std::string& path) {
  if (is_folder(path)) {
    if (is_file(path + "/" + kModelFile)) return SafeTensors(path + "/" + kModelFile);
    if (is_file(path + "/" + kIndexFile)) return open_shards(path, path + "/" + kIndexFile);
    refuse_folder(path);
  }
  if (path.ends_with(".index.json")) return open_shards(parent_of(path), path);
  refuse_pickle(path);
  return SafeTensors(path);
}

SafeTensors SafeTensors::open_shards(const std::string& folder, const std::string& index) {
  const std::map<std::string, std::string> weight_map = read_weight_map(index);
  std::map<std::string, size_t> shards;  // name -> index in files_
  for (const auto& [tensor, shard] : weight_map) shards.emplace(shard, 0);

  SafeTensors all;
  std::vector<std::string> unlisted, misplaced, absent;
  for (auto& [name, file] : shards) {
    SafeTensors shard(shard_path(folder, name), Links::refuse);
    file = all.files_.size();
    all.files_.push_back(shard.files_[0]);
    all.metadata_.merge(shard.metadata_);
    for (StoredTensor& tensor : shard.stored_) {
      const auto listed = weight_map.find(tensor.name);
      if (listed == weight_map.end())
        unlisted.push_back(tensor.name);
      else if (listed->second != name)
        misplaced.push_back(tensor.name);
      tensor.file = file;
      all.stored_.push_back(std::move(tensor));
    }
  }
  refuse_if_any(index, unlisted, "in a shard but not in weight_map");
  refuse_if_any(index, misplaced, "in a different shard than in weight_map");

  std::sort(all.stored_.begin(), all.stored_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  for (const auto& [tensor, shard] : weight_map) {
    if (all.find(tensor) == nullptr) absent.push_back(tensor);
  }
  refuse_if_any(index, absent, "in weight_map but in no shard");
  return all;
}

Tensor SafeTensors::tensor(std::string_view name) const {
  const StoredTensor* stored = find(name);
  if (stored == nullptr) {
    fail(ErrorKind::BadFile, "{}: tensor {} is missing; expected it among the {} tensors",
         files_[0]->path(), name, stored_.size());
  }
  if (!stored->dtype) {
    fail(ErrorKind::Unsupported,
         "{}: dtype {} is not supported for {}; expected F32, BF16, F16, F64, I32, I64, I8 or U8",
         files_[stored->file]->path(), stored->type, name);
  }
  if (reinterpret_cast<uintptr_t>(stored->data) % size_of(*stored->dtype) == 0) {
    return borrow(const_cast<char*>(stored->data), stored->shape, *stored->dtype,
                  files_[stored->file]);
  }
  Tensor aligned = empty(stored->shape, *stored->dtype);
  if (stored->bytes > 0) std::memcpy(aligned.data(), stored->data, stored->bytes);
  return aligned;
}

SafeTensorsImage::SafeTensorsImage(Named tensors, const Metadata& metadata)
    : tensors_(std::move(tensors)) {
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });

  std::string json = "{\"__metadata__\":" + nlohmann::json(metadata).dump();
  size_t position = 0;
  for (auto& [name, tensor] : tensors_) {
    check(name != "__metadata__", "tensor {}: is a reserved name; expected a different name", name);
    check(static_cast<bool>(tensor), "tensor {}: is unset; expected its elements", name);
    tensor = tensor.to(cpu_device());
    const size_t end = position + tensor.bytes();
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        nlohmann::json(name).dump(), stored_type_name(tensor.dtype()),
                        fmt::join(tensor.shape(), ","), position, end);
    position = end;
  }
  json += "}";
  const uint64_t length = (json.size() + 7) / 8 * 8;  // keeps the elements aligned
  header_.assign(reinterpret_cast<const char*>(&length), sizeof length);
  header_ += json;
  header_.append(length - json.size(), ' ');
}

Pieces SafeTensorsImage::pieces() const {
  Pieces pieces = {header_};
  for (const auto& [name, tensor] : tensors_)
    pieces.emplace_back(tensor.data_as<char>(), tensor.bytes());
  return pieces;
}

std::map<std::string, Tensor> read_safetensors(const std::filesystem::path& path) {
  const SafeTensors file(path);
  std::map<std::string, Tensor> tensors;
  for (const StoredTensor& stored : file.stored()) tensors[stored.name] = file.tensor(stored.name);
  return tensors;
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, Tensor>& tensors) {
  const SafeTensorsImage image(tensors);
  write_file_atomically(path, image.pieces());
}

Tensor widen_halves(const Tensor& halves) {
  check(halves.dtype() == DType::f16, "widen_halves: dtype {}; expected fp16",
        name_of(halves.dtype()));
  Tensor floats = empty(halves.shape(), DType::f32);
  const uint16_t* from = halves.data_as<uint16_t>();
  float* to = floats.data_as<float>();
  parallel_for(halves.size(), 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = widen_half(from[i]);
  });
  return floats;
}

Tensor narrow_to_halves(const Tensor& floats) {
  Tensor halves = empty(floats.shape(), DType::f16);
  for (int64_t i = 0; i < floats.size(); ++i)
    halves.data_as<uint16_t>()[i] = narrow_to_half(floats.data_as<float>()[i]);
  return halves;
}

namespace {

// A number is not finite if all bits of its exponent are set.
template <class Bits>
int64_t count_full_exponents(const Tensor& x, Bits exponent) {
  const Tensor host = x.to(cpu_device());
  const Bits* const values = host.data_as<Bits>();
  std::atomic<int64_t> full = 0;
  constexpr int64_t kGrain = 1 << 18;
  parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
    full += std::count_if(values + begin, values + end,
                          [=](Bits bits) { return (bits & exponent) == exponent; });
  });
  return full;
}

}  // namespace

int64_t count_nonfinite(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f32: return count_full_exponents<uint32_t>(x, 0x7f800000u);
    case DType::bf16: return count_full_exponents<uint16_t>(x, 0x7f80u);
    case DType::f16: return count_full_exponents<uint16_t>(x, 0x7c00u);
    case DType::f64: return count_full_exponents<uint64_t>(x, 0x7ff0000000000000u);
    case DType::i32:
    case DType::i64:
    case DType::i8:
    case DType::u8: return 0;
  }
  return 0;
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t shown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(shown, names.size()); ++i)
    text += (i == 0 ? "" : ", ") + excerpt(names[i]);
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

}  // namespace fovea
