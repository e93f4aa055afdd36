#include "tokenizer/formats/ranked_tokens.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "tokenizer/pipeline/normalizers.h"
#include "tokenizer/state/file.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

// The languages of speech models in the order of their tokens (Radford et al. 2022); the last one
// belongs to the third large model only.
constexpr const char* kTokenLanguages =
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur "
    "hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa "
    "si "
    "km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln "
    "ha "
    "ba jw su yue";
constexpr size_t kTimes = 1501;  // 0 to 30 s in steps of 20 ms

class Merger {
 public:
  explicit Merger(const std::vector<std::string>& tokens) : tokens_(tokens) {
    for (size_t id = 0; id < tokens.size(); ++id) ids_.emplace(tokens[id], id);
  }

  // Returns the two parts of a token; empty if it is a single character or has no such parts.
  std::vector<std::string> parts_of(size_t id) const {
    std::vector<std::string> parts;
    const std::string& token = tokens_[id];
    for (size_t i = 0; i < token.size();) {
      const uint32_t bytes = std::max(1u, utf8::first(std::string_view(token).substr(i)).bytes);
      parts.push_back(token.substr(i, bytes));
      i += bytes;
    }
    while (parts.size() > 2) {
      size_t best = id, index = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto joined = ids_.find(parts[i] + parts[i + 1]);
        if (joined == ids_.end() || joined->second >= best) continue;
        best = joined->second;
        index = i;
      }
      if (best == id) return {};
      parts[index] += parts[index + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(index) + 1);
    }
    return parts.size() == 2 ? parts : std::vector<std::string>();
  }

 private:
  const std::vector<std::string>& tokens_;
  std::unordered_map<std::string, size_t> ids_;
};

// The names of special tokens of published models, from that of the end on.
std::vector<std::string> special_names(size_t languages) {
  std::vector<std::string> names = {"<|endoftext|>", "<|startoftranscript|>"};
  std::istringstream codes(kTokenLanguages);
  std::string code;
  for (size_t i = 0; i < languages && codes >> code; ++i) names.push_back("<|" + code + "|>");
  for (const char* name :
       {"translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"})
    names.push_back(fmt::format("<|{}|>", name));
  for (size_t i = 0; i < kTimes; ++i)
    names.push_back(fmt::format("<|{:.2f}|>", 0.02 * static_cast<double>(i)));
  return names;
}

}  // namespace

bool is_special_name(std::string_view token) {
  return token.size() > 4 && token.starts_with("<|") && token.ends_with("|>");
}

bool is_time_name(std::string_view token) {
  if (!is_special_name(token)) return false;
  const std::string_view inner = token.substr(2, token.size() - 4);
  return inner.find('.') != inner.npos && inner.find_first_not_of("0123456789.") == inner.npos;
}

TokenizerFiles tokenizer_of_ranks(const std::vector<std::string>& tokens) {
  TokenizerFile file;
  std::vector<std::string> plain = tokens;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!is_special_name(tokens[id])) continue;
    file.added_tokens.push_back(added_token(tokens[id], id, !is_time_name(tokens[id])));
    plain[id].clear();
  }
  ordered_json merges = ordered_json::array();
  const Merger merger(plain);
  for (size_t id = 0; id < plain.size(); ++id)
    if (const auto parts = merger.parts_of(id); !parts.empty())
      merges.push_back(ordered_json::array({parts[0], parts[1]}));
  file.pre_tokenizer = byte_level(false, true, true);
  file.decoder = byte_level(true, true, true);
  file.model = bpe_model({.vocabulary = vocabulary_object(plain, index_of_empty(tokens)),
                          .merges = std::move(merges)});
  TokenizerFiles files;
  files.tokenizer = std::move(file).text();
  return files;
}

size_t plain_ggml_tokens(size_t vocabulary) {
  constexpr size_t kMultilingual = 51865;
  if (vocabulary < kMultilingual - 1 || vocabulary > kMultilingual + 1) return 0;
  return vocabulary < kMultilingual ? 50256 : 50257;
}

std::vector<std::string> ggml_tokens(const GgmlFile& file) {
  const auto vocabulary = static_cast<size_t>(file.sizes().vocabulary);
  const size_t plain = plain_ggml_tokens(vocabulary), given = file.tokens().size();
  if (given != vocabulary && (plain == 0 || given < plain))
    fail(ErrorKind::BadFile,
         "{}: names {} of {} tokens; expected all of them, or a vocabulary of 51864 to 51866 "
         "tokens, "
         "whose special tokens are known",
         file.path(), given, vocabulary);
  std::vector<std::string> tokens;
  for (const std::string_view bytes : file.tokens()) {
    if (is_special_name(bytes)) {
      tokens.emplace_back(bytes);
      continue;
    }
    std::string& token = tokens.emplace_back();
    for (const char byte : bytes) token += printable_byte(static_cast<uint8_t>(byte));
  }
  if (given == vocabulary) return tokens;
  tokens.resize(plain);
  const std::vector<std::string> names = special_names(vocabulary == 51866 ? 100 : 99);
  tokens.insert(tokens.end(), names.begin(), names.end());
  return tokens;
}

std::string token_list_path(const std::string& folder, const std::string& prefix) {
  const std::string stem = folder + "/" + prefix + "vocabulary";
  return !is_file(stem + ".json") && is_file(stem + ".txt") ? stem + ".txt" : stem + ".json";
}

namespace {

std::vector<std::string> token_lines(const std::string& path) {
  const std::string text = read_file(path, kJsonLimit);
  if (const size_t valid = utf8::valid_prefix(text); valid < text.size())
    fail(ErrorKind::BadFile, "{}: is not UTF-8 (byte {}); expected a token in each line", path,
         valid);
  std::vector<std::string> tokens;
  for (size_t begin = 0; begin < text.size();) {  // a token may be empty
    const size_t end = std::min(text.find('\n', begin), text.size());
    tokens.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return tokens;
}

}  // namespace

std::vector<std::string> token_list(const std::string& path) {
  if (path.ends_with(".txt")) return token_lines(path);
  const nlohmann::json json = read_json(path);
  std::vector<std::string> tokens;
  for (const nlohmann::json& token : json.is_array() ? json : nlohmann::json::array({0})) {
    if (!token.is_string())
      fail(ErrorKind::BadFile, "{}: has {}; expected a list of tokens", path, brief(token));
    tokens.push_back(token.get<std::string>());
  }
  return tokens;
}

std::string vocabulary_of_list(const std::string& path) {
  constexpr const char* kPadding = "<pad>";
  std::vector<std::string> tokens = token_list(path);
  if (std::find(tokens.begin(), tokens.end(), kPadding) == tokens.end())
    tokens.emplace_back(kPadding);
  ordered_json ids = ordered_json::object();
  for (size_t id = 0; id < tokens.size(); ++id)
    if (!ids.emplace(tokens[id], id).second)
      fail(ErrorKind::BadFile, "{}: has {} twice; expected distinct tokens", path,
           brief(nlohmann::json(tokens[id])));
  return ids.dump();
}

}  // namespace fovea::text
