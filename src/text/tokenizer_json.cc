// The layout of tokenizer.json is that of the `tokenizers` library, version "1.0".

#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer_state.h"
#include "text/utf8.h"

namespace fovea {
namespace {

using nlohmann::json;

class Reader {
 public:
  Reader(const json& file, std::string path) : file_(file), path_(std::move(path)) {}

  std::shared_ptr<TokenizerState> read() {
    if (!file_.is_object()) bad("is " + brief(file_), "the whole file", "an object");
    const json& model = object_at("model");
    refuse_unknown_parts(model);
    const json vocabulary = model.value("vocab", json()),
               added = file_.value("added_tokens", json());
    if (!vocabulary.is_object()) bad("is " + brief(vocabulary), "model.vocab", "an object");
    if (!added.is_null() && !added.is_array()) bad("is " + brief(added), "added_tokens", "a list");
    count_ = vocabulary.size() + added.size();
    state_->texts.reserve(count_);
    read_vocabulary(vocabulary);
    read_added(added);
    for (size_t id = 0; id < state_->texts.size(); ++id) {
      if (state_->texts[id].empty())
        bad(fmt::format("no token has id {}", id), "model.vocab", "ids without holes");
    }
    if (ids_.empty()) bad("holds no tokens", "model.vocab", "at least one");
    if (const auto unknown = find_string(model, "unk_token", path_)) {
      state_->unknown = id_of(*unknown, path_, "model.unk_token");
    }
    return std::move(state_);
  }

  // What tokenizer_config.json says of a token: its text, or an object with "content".
  std::optional<int32_t> named(const json& config, const std::string& config_path,
                               const char* key) const {
    json value = config.value(key, json());
    if (value.is_object()) value = value.value("content", json());
    if (value.is_null()) return {};
    if (!value.is_string()) {
      fail(ErrorKind::BadFile, "{}: {} is {}; expected the text of a token", config_path, key,
           brief(value));
    }
    return id_of(value.get<std::string>(), config_path, key);
  }

 private:
  [[noreturn]] void bad(const std::string& wrong, const std::string& where,
                        const std::string& expected) const {
    fail(ErrorKind::BadFile, "{}: {} ({}); expected {}", path_, wrong, where, expected);
  }

  const json& object_at(const char* key) const {
    const auto found = file_.find(key);
    if (found == file_.end() || !found->is_object()) {
      fail(ErrorKind::Unsupported, "{}: {} is not supported ({}); expected an object", path_,
           found == file_.end() ? "null" : brief(*found), key);
    }
    return *found;
  }

  // The one value that fovea can read so far; an absent key counts as null.
  void only(const json& object, const std::string& where, const char* key,
            const json& expected) const {
    const json found = object.value(key, json());
    if (found == expected) return;
    const json shown = found.is_object() ? found.value("type", found) : found;
    fail(ErrorKind::Unsupported, "{}: {} is not supported ({}{}); expected {}", path_, brief(shown),
         where, key, expected.dump());
  }

  // As `only`, where an absent key or null means the same as that value.
  void only_or_null(const json& object, const std::string& where, const char* key,
                    const json& expected) const {
    if (!object.value(key, json()).is_null()) only(object, where, key, expected);
  }

  void refuse_unknown_parts(const json& model) const {
    only(model, "model.", "type", "BPE");
    only(model, "model.", "merges", json::array());
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      only_or_null(model, "model.", key, "");
    for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"})
      only_or_null(model, "model.", key, false);
    for (const char* key :
         {"truncation", "padding", "normalizer", "pre_tokenizer", "post_processor"}) {
      only(file_, "", key, nullptr);
    }
    only(object_at("decoder"), "decoder.", "type",
         "Fuse");  // without a decoder spaces come between tokens
  }

  void put(int64_t id, const std::string& text, const std::string& where) {
    if (text.empty()) bad(fmt::format("token {} is empty", id), where, "a text");
    if (id < 0 || id >= static_cast<int64_t>(count_)) {
      bad(fmt::format("{} has id {}", brief(text), id), where,
          fmt::format("an id below {}, the number of tokens", count_));
    }
    const auto at = static_cast<size_t>(id);
    if (at >= state_->texts.size()) state_->texts.resize(at + 1);
    std::string& place = state_->texts[at];
    if (!place.empty() && place != text) {
      bad(fmt::format("{} and {} both have id {}", brief(place), brief(text), id), where,
          "an id for each");
    }
    place = text;
    ids_[text] = static_cast<int32_t>(id);
  }

  void read_vocabulary(const json& vocabulary) {
    for (const auto& [text, id] : vocabulary.items()) {
      if (!id.is_number_integer())
        bad(fmt::format("{} has id {}", brief(text), brief(id)), "model.vocab", "an integer");
      put(id.get<int64_t>(), text, "model.vocab");
      // Without merges only single characters come about; a longer token is there for
      // `added_tokens`.
      const utf8::Character character = utf8::first(text);
      if (character.bytes == text.size()) state_->model.add(character.code_point, ids_[text]);
    }
  }

  void read_added(const json& added) {
    for (size_t i = 0; i < added.size(); ++i) {
      const std::string where = fmt::format("added_tokens[{}].", i);
      const std::string text = get_string(added[i], "content", path_);
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        only_or_null(added[i], where, key, false);
      put(get_int(added[i], "id", path_), text, where + "id");
      state_->added.push_back(
          {text, ids_[text], find_bool(added[i], "special", path_).value_or(false)});
    }
  }

  int32_t id_of(const std::string& text, const std::string& path, const std::string& where) const {
    const auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    fail(ErrorKind::BadFile, "{}: {} is not in the vocabulary ({}); expected one of its tokens",
         path, brief(text), where);
  }

  const json& file_;
  std::string path_;
  std::shared_ptr<TokenizerState> state_ = std::make_shared<TokenizerState>();
  std::unordered_map<std::string, int32_t> ids_;
  size_t count_ =
      0;  // of tokens at most. A larger id leaves a hole, and must not make us allocate it
};

}  // namespace

std::shared_ptr<const TokenizerState> parse_tokenizer(TokenizerFiles files, const std::string& path,
                                                      const std::string& config_path) {
  const json file = parse_json(files.tokenizer, path);
  Reader reader(file, path);
  const std::shared_ptr<TokenizerState> state = reader.read();
  if (!files.config.empty()) {
    const json config = parse_json(files.config, config_path);
    if (!config.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object", config_path, brief(config));
    state->bos = reader.named(config, config_path, "bos_token");
    state->eos = reader.named(config, config_path, "eos_token");
  }
  state->files = std::move(files);
  return state;
}

}  // namespace fovea
