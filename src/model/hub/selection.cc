#include "hub/selection.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <regex>

#include "base/error.h"

namespace fovea::model {
namespace {

constexpr double kSlowest = 10;    // generated tokens per second that a model should reach
constexpr double kOverhead = 1.1;  // of memory, for keys, values and activations

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string folder_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The top folder, and those of the modules of sentence-transformers, such as 1_Pooling.
bool is_read_folder(const std::string& folder) {
  static const std::regex modules("[0-9]_[A-Za-z0-9]+");
  return folder.empty() || std::regex_match(folder, modules);
}

// Configurations, tokenizers and templates.
bool is_read_with_weights(const std::string& path) {
  static const std::regex wanted(
      R"(.*\.(jinja|spm|model)|vocab\.txt|merges\.txt|.*vocabulary\.txt|.*\.json)");
  static const std::regex unwanted(
      R"(.*\.index\.json|(pytorch_model|tf_model|flax_model|trainer_state|\w+_results).*\.json)");
  const std::string name = base_name(path);
  return is_read_folder(folder_name(path)) && std::regex_match(name, wanted) &&
         !std::regex_match(name, unwanted);
}

// The weights of one model: a file, or parts that are numbered from 1 to `parts`.
struct WeightFiles {
  std::vector<HubFile> files;
  size_t parts = 1;
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const HubFile& file : files) sum += file.bytes;
    return sum;
  }
};

// Groups the files with this ending by their names without the numbers of parts.
std::map<std::string, WeightFiles> weights_with(const std::vector<HubFile>& files,
                                                const std::string& ending) {
  static const std::regex part(R"((.*)-([0-9]{5})-of-([0-9]{5})\.[a-z]+)");
  std::map<std::string, WeightFiles> all;
  for (const HubFile& file : files) {
    if (!file.path.ends_with(ending)) continue;
    std::smatch match;
    const bool split = std::regex_match(file.path, match, part);
    WeightFiles& weights = all[split ? match[1].str() + ending : file.path];
    weights.files.push_back(file);
    if (split) weights.parts = std::stoul(match[3].str());
  }
  for (auto& [name, weights] : all) {
    const auto whole = std::find_if(weights.files.begin(), weights.files.end(),
                                    [&](const HubFile& file) { return file.path == name; });
    if (whole != weights.files.end()) weights = {{*whole}};  // beside the same in parts
    std::sort(weights.files.begin(), weights.files.end(),
              [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  }
  return all;
}

void check_complete(const std::string& name, const WeightFiles& weights) {
  if (weights.files.size() < weights.parts)
    fail(ErrorKind::BadFile, "{}: has {} of {} parts; expected all", name, weights.files.size(),
         weights.parts);
}

std::string names_of(const std::vector<HubFile>& files) {
  std::string names;
  for (const HubFile& file : files) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "" : ", ") + file.path;
  }
  return names.empty() ? "no files" : names;
}

// Returns the .gguf files that are models: no encoders of images, importance matrices and
// vocabularies.
std::map<std::string, WeightFiles> gguf_models(const std::vector<HubFile>& files) {
  std::map<std::string, WeightFiles> models = weights_with(files, ".gguf");
  std::erase_if(models, [](const auto& each) {
    const std::string name = upper(base_name(each.first));
    return name.starts_with("MMPROJ") || name.find("IMATRIX") != name.npos ||
           name.find("VOCAB") != name.npos;
  });
  return models;
}

bool is_16_bits_or_more(const std::string& name) {
  const std::string kind = quantisation_in(name);
  return kind == "F32" || kind == "F16" || kind == "BF16";
}

using Named = std::pair<const std::string, WeightFiles>;

// Returns the best of several quantisations for this machine: the largest of at most 8 bits that
// fits the memory and generates kSlowest tokens per second, as each token reads all weights once;
// if all that fit are slower, Q4_K_M, or the largest if there is no Q4_K_M; if none fits, the
// smallest.
const Named& best(const std::map<std::string, WeightFiles>& models, const HubSettings& settings,
                  std::string& choice) {
  std::vector<const Named*> all;
  for (const Named& each : models)
    if (!is_16_bits_or_more(each.first)) all.push_back(&each);
  if (all.empty())
    for (const Named& each : models) all.push_back(&each);
  std::sort(all.begin(), all.end(), [](const Named* a, const Named* b) {
    return std::pair(a->second.bytes(), a->first) < std::pair(b->second.bytes(), b->first);
  });
  const auto memory_of = [](const Named* each) {
    return kOverhead * static_cast<double>(each->second.bytes());
  };
  const auto name_of = [](const Named* each) {
    const std::string kind = quantisation_in(each->first);
    return kind.empty() ? base_name(each->first) : kind;
  };
  const double bandwidth =
      settings.bandwidth ? settings.bandwidth() : std::numeric_limits<double>::infinity();
  const Named *fits = nullptr, *fast = nullptr, *four_bits = nullptr;
  for (const Named* each : all) {
    if (settings.memory > 0 && memory_of(each) > static_cast<double>(settings.memory)) continue;
    fits = each;
    if (quantisation_in(each->first) == "Q4_K_M") four_bits = each;
    if (bandwidth / static_cast<double>(each->second.bytes()) >= kSlowest) fast = each;
  }
  const Named* const chosen = fast != nullptr        ? fast
                              : four_bits != nullptr ? four_bits
                              : fits != nullptr      ? fits
                                                     : all.front();
  choice = fmt::format("{} of {} quantisations: {}", name_of(chosen), models.size(),
                       fast != nullptr        ? "the largest of at most 8 bits that is fast here"
                       : four_bits != nullptr ? "4 bits, as larger ones are slow here"
                       : fits != nullptr      ? "the largest that fits the memory"
                                              : "the smallest, though none fits the memory");
  return *chosen;
}

// Returns the model with the quantisation that `name` asks for.
const Named& wanted_model(const std::map<std::string, WeightFiles>& models, const HubName& name,
                          const HubSettings& settings, std::string& choice) {
  if (!name.file.empty()) {
    for (const Named& each : models)
      for (const HubFile& file : each.second.files)
        if (file.path == name.file) return each;
    fail(ErrorKind::BadFile, "{}: has no file {}", name.repository, name.file);
  }
  if (name.quantisation.empty())
    return models.size() == 1 ? *models.begin() : best(models, settings, choice);
  const std::string wanted = upper(name.quantisation);
  std::string kinds;
  for (const Named& each : models) {
    const std::string kind = quantisation_in(each.first);
    if (kind == wanted) return each;
    kinds += (kinds.empty() ? "" : ", ") + (kind.empty() ? base_name(each.first) : kind);
  }
  fail(ErrorKind::BadFile, "{}: has no quantisation {}; expected one of {}", name.repository,
       name.quantisation, kinds.empty() ? "its .gguf files, but it has none" : kinds);
}

const HubFile* file_named(const std::vector<HubFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const HubFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

// Returns the weights of a Hugging Face directory, of an adapter, or of CTranslate2; empty if the
// repository has none.
std::vector<HubFile> folder_weights(const std::vector<HubFile>& files) {
  std::vector<HubFile> weights;
  const auto whole = weights_with(files, ".safetensors");
  const auto add = [&](const std::string& name) {
    const auto found = whole.find(name);
    if (found == whole.end()) return false;
    check_complete(name, found->second);
    weights.insert(weights.end(), found->second.files.begin(), found->second.files.end());
    return true;
  };
  if (add("model.safetensors")) {
    if (weights.size() > 1) {
      const HubFile* const index = file_named(files, "model.safetensors.index.json");
      if (index == nullptr)
        fail(ErrorKind::BadFile, "model.safetensors.index.json: is missing; expected it beside {}",
             weights.front().path);
      weights.insert(weights.begin(), *index);
    }
  } else if (!add("adapter_model.safetensors")) {
    const HubFile* const ctranslate2 = file_named(files, "model.bin");
    const bool vocabulary = std::any_of(files.begin(), files.end(), [](const HubFile& file) {
      return file.path.find('/') == std::string::npos &&
             file.path.find("vocabulary.") != std::string::npos;
    });
    if (ctranslate2 != nullptr && vocabulary) weights.push_back(*ctranslate2);
  }
  for (const auto& [name, module] : whole)  // such as 2_Dense/model.safetensors
    if (const std::string folder = folder_name(name); !folder.empty() && is_read_folder(folder))
      weights.insert(weights.end(), module.files.begin(), module.files.end());
  return weights;
}

Selection select_dataset(const std::vector<HubFile>& files, const HubName& name) {
  static const std::regex tables(R"(.*\.(txt|csv|tsv|jsonl|json|parquet))");
  Selection selection;
  for (const HubFile& file : files)
    if (name.file.empty() ? std::regex_match(file.path, tables) : file.path == name.file)
      selection.files.push_back(file);
  if (selection.files.empty())
    fail(ErrorKind::Unsupported,
         "{}: has no text files and tables that fovea reads; expected .txt, .csv, .tsv, .jsonl, "
         ".json or .parquet; it has {}",
         text_of(name), names_of(files));
  return selection;
}

}  // namespace

std::string quantisation_in(const std::string& file) {
  static const std::regex kind(
      R"((?:|.*?[-._])((?:UD-)?(?:I?Q[0-9](?:_[A-Z0-9]+)*|TQ[0-9]_0|MXFP4(?:_MOE)?|BF16|F16|F32)))"
      R"((?:-[0-9]{5}-OF-[0-9]{5})?\.GGUF)");
  std::smatch match;
  const std::string name = upper(base_name(file));
  return std::regex_match(name, match, kind) ? match[1].str() : "";
}

Selection select_files(const std::vector<HubFile>& files, const HubName& name,
                       const HubSettings& settings) {
  if (name.dataset) return select_dataset(files, name);
  Selection selection;
  const bool gguf = !name.quantisation.empty() || name.file.ends_with(".gguf");
  std::vector<HubFile> weights;
  if (!gguf) weights = folder_weights(files);
  if (!name.file.empty() && !gguf) {  // an address of one file, such as ggml-base.bin
    const HubFile* const file = file_named(files, name.file);
    if (file == nullptr) fail(ErrorKind::BadFile, "{}: has no file {}", name.repository, name.file);
    return {{*file}, name.file, ""};
  }
  if (!weights.empty()) {
    for (const HubFile& file : files)
      if (is_read_with_weights(file.path)) selection.files.push_back(file);
    selection.files.insert(selection.files.end(), weights.begin(), weights.end());
    return selection;
  }
  const auto models = gguf_models(files);
  if (models.empty() && !gguf)
    fail(ErrorKind::Unsupported,
         "{}: has no weights that fovea reads; expected model.safetensors or .gguf files (pickles, "
         "such as pytorch_model.bin, can run code); it has {}",
         text_of(name), names_of(files));
  const auto& [path, model] = wanted_model(models, name, settings, selection.choice);
  check_complete(path, model);
  selection.files = model.files;
  selection.model = selection.files.front().path;
  return selection;
}

}  // namespace fovea::model
