#include "fovea/text/tokenizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/folder_links.h"
#include "base/hash.h"
#include "base/json.h"
#include "tokenizer/formats/gguf_tokenizer.h"
#include "tokenizer/formats/ranked_tokens.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/state/encode.h"
#include "tokenizer/state/state.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Counts the characters of a text. An invalid byte counts as one character.
class CharacterCount {
 public:
  explicit CharacterCount(std::string_view text) : text_(text) {
    uint32_t characters = 0;
    for (size_t i = 0; i < text.size(); ++characters) {
      if (i >= kBlock * blocks_.size())
        blocks_.push_back(characters << 2 | static_cast<uint32_t>(i % kBlock));
      i += utf8::first(text.substr(i)).bytes;
    }
  }
  // Returns the number of characters before the one that contains the byte at this index; at the
  // end of the text, the number of all characters.
  uint32_t before(size_t byte) const {
    if (blocks_.empty()) return 0;
    size_t block = std::min(byte / kBlock, blocks_.size() - 1);
    if (block > 0 && byte < start_of(block)) --block;
    size_t at = start_of(block);
    uint32_t characters = blocks_[block] >> 2;
    for (; at < text_.size(); ++characters) {
      const size_t next = at + utf8::first(text_.substr(at)).bytes;
      if (next > byte) break;
      at = next;
    }
    return characters;
  }

 private:
  static constexpr size_t kBlock = 16;
  size_t start_of(size_t block) const { return block * kBlock + (blocks_[block] & 3); }

  std::string_view text_;
  // For the first character that starts in each block: the number of characters before it, and, in
  // the lowest two bits, its position in the block.
  std::vector<uint32_t> blocks_;
};

void reserve(Encoding& encoding, size_t tokens) {
  encoding.ids.reserve(tokens);
  encoding.tokens.reserve(tokens);
  encoding.offsets.reserve(tokens);
  encoding.byte_offsets.reserve(tokens);
}

Encoding own_tokens(const TokenizerState& state, std::string_view text, SpecialTokens special,
                    GrowthLimit& limit) {
  constexpr size_t kLong = size_t{1} << 20, kTokenBytes = 4;  // a typical token has about 4 bytes
  const CharacterCount characters(text);
  Encoding encoding;
  if (text.size() > kLong) reserve(encoding, text.size() / kTokenBytes);
  encode_with_spans(state, text, special, [&](const TokenWithSpan& token) {
    const std::string_view written =
        token.text.empty() ? state.texts[static_cast<size_t>(token.id)] : token.text;
    limit.spend(kTokenCost + written.size());
    encoding.ids.push_back(token.id);
    encoding.tokens.push_back(written);
    encoding.offsets.push_back(
        {characters.before(token.span.begin), characters.before(token.span.end)});
    encoding.byte_offsets.push_back({token.span.begin, token.span.end});
  });
  encoding.type_ids.assign(encoding.ids.size(), 0);
  encoding.special_mask.assign(encoding.ids.size(), 0);
  encoding.attention_mask.assign(encoding.ids.size(), 1);
  return encoding;
}

Encoding encode_texts(const TokenizerState& state, const std::vector<std::string_view>& texts,
                      const EncodingOptions& options, GrowthLimit& limit) {
  std::vector<Encoding> encodings;
  for (const std::string_view text : texts) limit.give(text.size());
  for (const std::string_view text : texts) {
    limit.enter("model");
    encodings.push_back(own_tokens(state, text, options.special, limit));
  }
  if (options.truncate_and_pad && state.truncation) {
    const bool adds = options.add_special_tokens;
    const size_t added = adds ? added_tokens(state.post_processors, texts.size() == 2) : 0;
    const size_t most = state.truncation->max_length;
    check(most >= added,
          "truncation: {} special tokens exceed the limit of {} tokens; expected room "
          "for them",
          added, most);
    limit.enter("truncation");
    truncate(encodings, *state.truncation, most - added, limit);
  }
  limit.enter("post_processor");
  return post_process(state.post_processors, std::move(encodings), options.add_special_tokens,
                      limit);
}

Encoding encode_padded(const TokenizerState& state, const std::vector<std::string_view>& texts,
                       const EncodingOptions& options) {
  GrowthLimit limit = GrowthLimit::of_tokens();
  std::vector<Encoding> one;
  one.push_back(encode_texts(state, texts, options, limit));
  if (options.truncate_and_pad && state.padding) pad(one, *state.padding, limit);
  return std::move(one.front());
}

constexpr const char *kConfigFile = "tokenizer_config.json", *kSourceModel = "source.spm",
                     *kTargetModel = "target.spm", *kVocabulary = "vocab.json",
                     *kBothModel = "sentencepiece.bpe.model",
                     *kTargetVocabulary = "target_vocab.json";
// The vocabularies of CTranslate2.
constexpr const char *kTokenList = "vocabulary.json", *kTokenLines = "vocabulary.txt";

std::string inside(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

std::string read_config(const std::string& folder) {
  const std::string path = inside(folder, kConfigFile);
  if (!is_file(path)) return "";
  std::string text = read_file(path, kJsonLimit);
  if (text.empty()) fail(ErrorKind::BadFile, "{}: is empty; expected an object", path);
  return text;
}

// Returns the chat templates in files by their names: chat_template.jinja is "default".
std::map<std::string, std::string> chat_template_files(const std::string& folder) {
  std::map<std::string, std::string> found;
  const std::string usual = inside(folder, "chat_template.jinja"),
                    more = inside(folder, "additional_chat_templates");
  if (is_file(usual)) found["default"] = read_file(usual, kJsonLimit);
  const std::string ending = ".jinja";
  for (const std::string& name : is_folder(more) ? list_files(more) : std::vector<std::string>())
    if (name.ends_with(ending))
      found[name.substr(0, name.size() - ending.size())] =
          read_file(inside(more, name), kJsonLimit);
  return found;
}

// Returns the config with the chat templates in files, so that they stay with the tokenizer when a
// model is converted or trained. As in transformers, files take precedence over the config, and
// several templates are a list of {"name", "template"}.
std::string with_chat_templates(const std::string& config, const std::string& folder) {
  std::map<std::string, std::string> templates = chat_template_files(folder);
  if (templates.empty()) return config;
  nlohmann::json json =
      config.empty() ? nlohmann::json::object() : parse_json(config, inside(folder, kConfigFile));
  if (!json.is_object()) return config;  // TokenizerConfig reports the error
  const nlohmann::json given = json.value("chat_template", nlohmann::json());
  if (given.is_string()) templates.emplace("default", given.get<std::string>());
  for (const nlohmann::json& each : given.is_array() ? given : nlohmann::json::array()) {
    const std::string path = inside(folder, kConfigFile);
    templates.emplace(get_string(each, "name", path), get_string(each, "template", path));
  }
  if (templates.size() == 1 && templates.contains("default")) {
    json["chat_template"] = templates["default"];
  } else {
    json["chat_template"] = nlohmann::json::array();
    for (const auto& [name, text] : templates)
      json["chat_template"].push_back({{"name", name}, {"template", text}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Returns the config of a SentencePiece model. If it does not name the tokenizer's class, the file
// name or the kind of the model determines the class, as in transformers.
std::string config_by_name(const std::string& name, const std::string& config,
                           const std::string& path) {
  const bool says = config.find("\"tokenizer_class\"") != std::string::npos;
  std::string known = name == "spiece.model" ? "T5Tokenizer"
                      : name == kBothModel   ? "XLMRobertaTokenizer"
                                             : "";
  if (const std::string model = parent_of(path) + "/config.json"; is_file(model)) {
    const nlohmann::json type = read_json(model).value("model_type", nlohmann::json());
    if (type == "pegasus") known = "PegasusTokenizer";
    if (type == "mbart") known = "MBartTokenizer";
  }
  if (says || known.empty()) return config;
  nlohmann::json json = config.empty() ? nlohmann::json::object() : parse_json(config, path);
  if (!json.is_object()) return config;  // TokenizerConfig reports the error
  json["tokenizer_class"] = known;
  return json.dump();
}

// Returns the only file with this ending in a folder with weights in an .npz file, as translators
// are trained; empty if there is no such file or folder.
std::string file_of_trainer(const std::string& folder, std::string_view ending) {
  bool weights = false;
  std::vector<std::string> found;
  for (const std::string& name :
       is_folder(folder) ? list_files(folder) : std::vector<std::string>()) {
    weights = weights || name.ends_with(".npz");
    if (name.ends_with(ending)) found.push_back(name);
  }
  return weights && found.size() == 1 ? inside(folder, found[0]) : "";
}

// Returns the path of the file in a folder that contains the vocabulary: tokenizer.json, or a file
// of an older format. If there is none, returns the path of tokenizer.json.
std::string vocabulary_file(const std::string& folder) {
  for (const char* name :
       {"tokenizer.json", kSourceModel, "vocab.txt", kVocabulary, "tokenizer.model", "spiece.model",
        kBothModel, kTokenList, kTokenLines}) {
    if (is_file(inside(folder, name))) return inside(folder, name);
  }
  if (const std::string pieces = file_of_trainer(folder, ".spm"); !pieces.empty()) return pieces;
  return inside(folder, "tokenizer.json");
}

}  // namespace

std::vector<std::string> TokenTexts::list() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < size(); ++i) texts.emplace_back((*this)[i]);
  return texts;
}

void TokenTexts::append(const TokenTexts& other, size_t begin, size_t end) {
  if (begin == end) return;
  const size_t from = begin == 0 ? 0 : other.ends_[begin - 1];
  // May be negative: modulo 2^32, the sums below are still right.
  const auto shift = static_cast<uint32_t>(bytes_.size() - from);
  bytes_.append(other.bytes_, from, other.ends_[end - 1] - from);
  this->end();
  const size_t before = ends_.size();
  ends_.insert(ends_.end(), other.ends_.begin() + static_cast<std::ptrdiff_t>(begin),
               other.ends_.begin() + static_cast<std::ptrdiff_t>(end));
  for (size_t i = before; i < ends_.size(); ++i) ends_[i] += shift;
}

uint32_t TokenTexts::end() const {
  check(bytes_.size() <= UINT32_MAX, "text: its tokens have {} bytes; expected at most {}",
        bytes_.size(), UINT32_MAX);
  return static_cast<uint32_t>(bytes_.size());
}

bool has_vocabulary(const std::string& folder) { return is_file(vocabulary_file(folder)); }

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  const FloatMode mode;
  if (is_gguf(path.string()))
    return Tokenizer(parse_tokenizer(tokenizer_files(Gguf(path.string())), path, path));
  if (is_ggml(path.string()))
    return Tokenizer(
        parse_tokenizer(tokenizer_of_ranks(ggml_tokens(GgmlFile(path.string()))), path, path));
  const std::string file =
      is_folder(path.string()) ? vocabulary_file(path.string()) : path.string();
  const std::string folder = parent_of(file);
  if (is_folder(path.string())) refuse_links_out(path.string());
  const std::string name = std::filesystem::path(file).filename().string();
  if (name.ends_with(".spm")) return TranslationTokenizers::open(folder).source;
  TokenizerFiles files;
  files.config = with_chat_templates(read_config(folder), folder);
  files.tokenizer = read_file(file, kJsonLimit);
  const std::string config_path = inside(folder, kConfigFile);
  if (name == "vocab.txt") {
    files.tokenizer =
        tokenizer_json_from_vocab_txt(files.tokenizer, file, files.config, config_path);
  } else if (name == kVocabulary && !is_file(inside(folder, "merges.txt")) &&
             is_file(inside(folder, kBothModel))) {
    const std::string pieces = inside(folder, kBothModel);
    files.originals = {{kVocabulary, files.tokenizer}, {kBothModel, read_file(pieces, kJsonLimit)}};
    files.tokenizer = tokenizer_json_of_languages(files.originals[1].second, pieces,
                                                  files.tokenizer, file, files.config, config_path);
  } else if (name == kVocabulary) {
    const std::string merges = inside(folder, "merges.txt");
    files.tokenizer = tokenizer_json_from_merges(
        files.tokenizer, file, read_file(merges, kJsonLimit), merges, files.config, config_path);
  } else if (name == kTokenList || name == kTokenLines) {
    files.tokenizer = tokenizer_of_ranks(token_list(file)).tokenizer;
  } else if (name.ends_with(".model")) {
    files.config = config_by_name(name, files.config, config_path);
    files.tokenizer =
        tokenizer_json_from_sentencepiece(files.tokenizer, file, files.config, config_path);
  }
  return Tokenizer(parse_tokenizer(std::move(files), file, config_path));
}

namespace {

// Returns the contents of one of the files of a translation model, or what takes its place in the
// directories of CTranslate2 and of trainers. Nothing for target_vocab.json, which is optional.
std::optional<std::string> original_of(const std::string& folder, const std::string& name) {
  const std::string file = inside(folder, name), pieces = file_of_trainer(folder, ".spm");
  if (is_file(file)) return read_file(file, kJsonLimit);
  if (name == kTargetVocabulary) return std::nullopt;
  if (name == kVocabulary) {
    if (const std::string list = token_list_path(folder, "shared_"); is_file(list))
      return vocabulary_of_list(list);
    if (const std::string tokens = file_of_trainer(folder, "vocab.yml"); !tokens.empty())
      return vocabulary_of_yaml(read_file(tokens, kJsonLimit), tokens);
    if (!pieces.empty()) return vocabulary_of_pieces(read_file(pieces, kJsonLimit), pieces);
  }
  return read_file(name != kVocabulary && !pieces.empty() ? pieces : file, kJsonLimit);
}

}  // namespace

TranslationTokenizers TranslationTokenizers::open(const std::filesystem::path& path) {
  const FloatMode mode;
  const std::string folder = path.string();
  if (!is_folder(folder) || !vocabulary_file(folder).ends_with(".spm")) {
    const Tokenizer both = Tokenizer::open(path);
    return {both, both};
  }
  TokenizerFiles files;
  files.config = read_config(folder);
  for (const char* name : {kSourceModel, kTargetModel, kVocabulary, kTargetVocabulary}) {
    if (const auto bytes = original_of(folder, name)) files.originals.emplace_back(name, *bytes);
  }
  const auto one = [&](size_t model, size_t vocabulary) {
    const auto& [model_name, bytes] = files.originals[model];
    const auto& [vocabulary_name, texts] = files.originals[vocabulary];
    const std::string file = inside(folder, model_name), config = inside(folder, kConfigFile);
    TokenizerFiles made = files;
    made.tokenizer = tokenizer_json_from_translation(
        bytes, file, texts, inside(folder, vocabulary_name), files.config, config);
    return Tokenizer(parse_tokenizer(std::move(made), file, config));
  };
  return {one(0, 2), one(1, files.originals.size() - 1)};
}

void Tokenizer::save(const std::filesystem::path& folder) const {
  const TokenizerFiles& files = state_->files;
  for (const auto& [name, bytes] : files.originals)
    write_file_atomically((folder / name).string(), bytes);
  if (files.originals.empty())
    write_file_atomically((folder / "tokenizer.json").string(), files.tokenizer);
  // A missing config is written as an empty object, so that no other tokenizer's config remains.
  write_file_atomically((folder / kConfigFile).string(),
                        files.config.empty() ? "{}\n" : files.config);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  encode(text, ids, special);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& ids,
                       SpecialTokens special) const {
  const FloatMode mode;
  encode_ids(*state_, text, special, ids);
}

std::string Tokenizer::guarded(std::string_view text) const { return guarded_text(*state_, text); }

std::vector<Token> Tokenizer::tokens(std::string_view text, SpecialTokens special) const {
  const FloatMode mode;
  std::vector<Token> tokens;
  encode_with_spans(*state_, text, special, [&](const TokenWithSpan& token) {
    tokens.push_back({token.id, text.substr(token.span.begin, token.span.end - token.span.begin)});
  });
  return tokens;
}

Encoding Tokenizer::encoding(std::string_view text, const EncodingOptions& options) const {
  const FloatMode mode;
  return encode_padded(*state_, {text}, options);
}

Encoding Tokenizer::encoding(std::string_view text, std::string_view pair,
                             const EncodingOptions& options) const {
  const FloatMode mode;
  return encode_padded(*state_, {text, pair}, options);
}

std::vector<Encoding> Tokenizer::encodings(const std::vector<std::string>& texts,
                                           const EncodingOptions& options) const {
  const FloatMode mode;
  GrowthLimit limit = GrowthLimit::of_tokens(texts.size());
  std::vector<Encoding> all;
  for (const std::string& text : texts)
    all.push_back(encode_texts(*state_, {text}, options, limit));
  if (options.truncate_and_pad && state_->padding) pad(all, *state_->padding, limit);
  return all;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  StreamingDecoder decoder(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += decoder.add(id);
  return text + decoder.finish();
}

std::vector<std::string> Tokenizer::unknown(std::string_view text) const {
  const FloatMode mode;
  std::vector<std::string> missing;
  std::set<std::string> seen;
  const auto add = [&](std::string stretch) {
    if (seen.insert(stretch).second) missing.push_back(std::move(stretch));
  };
  if (const auto* characters = std::get_if<CharacterModel>(&state_->model)) {
    // Finds unknown characters even if there is no unknown token.
    for (std::string_view rest = text; !rest.empty();) {
      const utf8::Character c = utf8::first(rest);
      rest.remove_prefix(c.bytes);
      if (characters->id_of(c.code_point) != CharacterModel::absent) continue;
      std::string character;
      utf8::append(character, c.code_point);
      add(std::move(character));
    }
    return missing;
  }
  encode_with_spans(*state_, text, SpecialTokens::as_text, [&](const TokenWithSpan& token) {
    if (token.id == state_->unknown)
      add(utf8::repaired(text.substr(token.span.begin, token.span.end - token.span.begin)));
  });
  return missing;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(state_->texts.size()); }

std::string_view Tokenizer::text_of(int32_t id) const {
  check(id >= 0 && id < size(), "token id: {} is not in the vocabulary; expected 0 to {}", id,
        size() - 1);
  return state_->texts[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::id_of(std::string_view text) const {
  const int32_t id = state_->ids.find(text);
  return id == PieceTable::absent ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && state_->special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::unknown_id() const { return state_->unknown; }
std::optional<int32_t> Tokenizer::bos_id() const { return state_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return state_->eos; }
uint64_t Tokenizer::hash() const { return hash_bytes(state_->files.tokenizer); }

struct StreamingDecoder::Stream {
  Tokenizer tokenizer;
  bool skip_special;
  DecodingStream decoding;
};

StreamingDecoder::StreamingDecoder(Tokenizer tokenizer, bool skip_special) {
  DecodingStream decoding(tokenizer.state_->decoders);
  stream_ =
      std::make_unique<Stream>(Stream{std::move(tokenizer), skip_special, std::move(decoding)});
}

StreamingDecoder::StreamingDecoder(StreamingDecoder&&) noexcept = default;
StreamingDecoder& StreamingDecoder::operator=(StreamingDecoder&&) noexcept = default;
StreamingDecoder::~StreamingDecoder() = default;

std::string StreamingDecoder::add(int32_t id) {
  std::string text;
  std::string_view token = stream_->tokenizer.text_of(id);
  const auto& normalized = stream_->tokenizer.state_->normalized_texts;
  if (const auto found = normalized.find(id); found != normalized.end()) token = found->second;
  if (!stream_->skip_special || !stream_->tokenizer.is_special(id))
    stream_->decoding.add(token, text);
  return text;
}

std::string StreamingDecoder::finish() {
  std::string text;
  stream_->decoding.finish(text);
  return text;
}

}  // namespace fovea::text
