// Reads tokenizer.json in the format of Hugging Face's tokenizers library, version "1.0".

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/pipeline/json_part.h"
#include "tokenizer/state/json_lists.h"
#include "tokenizer/state/parts.h"

namespace fovea::text {
namespace {

using Json = nlohmann::json;

// Maximum number of bytes of a token; the longest known has 400.
constexpr size_t token_limit = size_t{64} << 10;

Json parse_rest(const TokenizerText& text, std::string_view file, const std::string& path) {
  try {
    return parse_json(text.rest, path);
  } catch (const Error&) {
    parse_json(file, path);  // reports the position in the file itself
    throw;
  }
}

// Converts a string in the printable alphabet of byte-level models to its bytes; a string with
// other characters becomes empty.
void make_raw(std::string& text) {
  size_t size = 0;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    char32_t c = lead;
    if (lead >= 0x80) {  // characters of the alphabet have at most two bytes
      if (lead >= 0xE0) return text.clear();
      c = (lead & 0x1Fu) << 6 | (static_cast<uint8_t>(text[i++]) & 0x3Fu);
    }
    const int byte = byte_of_printable(c);
    if (byte < 0) return text.clear();
    text[size++] = static_cast<char>(byte);
  }
  text.resize(size);
}

class TokenizerReader {
 public:
  TokenizerReader(std::string_view file, const std::string& path)
      : path_(path), text_(take_lists_out(file, path)), file_(parse_rest(text_, file, path)) {
    if (!file_.is_object()) bad("is " + brief(file_), "the whole file", "an object");
  }

  std::shared_ptr<TokenizerState> read() {
    const JsonPart model(child("model"), path_, "model");
    const std::string type = model_type(model);
    const Json added = file_.value("added_tokens", Json());
    if (!added.is_null() && !added.is_array()) bad("is " + brief(added), "added_tokens", "a list");
    read_vocabulary(type, added.size());
    std::vector<AddedToken> tokens = read_added(added);
    for (size_t id = 0; id < state_->texts.size(); ++id) {
      if (state_->texts[id].empty() && empty_ != id)
        bad(fmt::format("no token has id {}", id), "model.vocab", "ids without gaps");
    }
    state_->ids = PieceTable(state_->texts);
    if (state_->ids.size() == 0) bad("contains no tokens", "model.vocab", "at least one");
    // A Unigram vocabulary may contain a string twice; then the last one is used.
    const bool twice = type != "Unigram" && state_->ids.size() < state_->texts.size();
    for (size_t id = 0; twice && id < state_->texts.size(); ++id) {
      const std::string& text = state_->texts[id];
      if (!text.empty() && state_->ids.find(text) != static_cast<int32_t>(id))
        bad(fmt::format("{} has two ids", brief(text)), "model.vocab", "one id each");
    }
    read_parts_around();
    for (const AddedToken& token : tokens) {
      if (token.special) special_.push_back(static_cast<size_t>(token.id));
    }
    read_model(model, type);
    GrowthLimit limit = GrowthLimit::of_text(0);
    for (const AddedToken& token : tokens) add_token(token, *state_, limit);
    state_->special.resize(state_->texts.size());
    return std::move(state_);
  }

 private:
  [[noreturn]] void bad(const std::string& wrong, const std::string& where,
                        const std::string& expected) const {
    fail(ErrorKind::BadFile, "{}: {} ({}); expected {}", path_, wrong, where, expected);
  }

  const Json& child(const char* key) const {
    static const Json null;
    const auto found = file_.find(key);
    return found == file_.end() ? null : *found;
  }

  // Returns the type of the model. In old files, which omit it, the keys determine the type.
  std::string model_type(const JsonPart& model) const {
    if (model.json().contains("type")) return model.text("type");
    for (const auto& [key, type] : {std::pair("merges", "BPE"), std::pair("unk_id", "Unigram"),
                                    std::pair("max_input_chars_per_word", "WordPiece")}) {
      if (model.json().contains(key)) return type;
    }
    return "WordLevel";
  }

  void put(int64_t id, std::string&& text, const std::string& where, bool may_be_empty = false) {
    if (text.size() > token_limit) {
      bad(fmt::format("token {} has {} bytes", id, text.size()), where,
          fmt::format("at most {}", token_limit));
    }
    if (id < 0 || id >= static_cast<int64_t>(count_)) {
      bad(fmt::format("{} has id {}", brief(text), id), where,
          fmt::format("an id below {}, the number of tokens", count_));
    }
    const auto at = static_cast<size_t>(id);
    if (text.empty()) {
      if (!may_be_empty) bad(fmt::format("token {} is empty", id), where, "a non-empty string");
      empty_ = at;
    }
    if (at >= state_->texts.size()) state_->texts.resize(at + 1);
    std::string& known = state_->texts[at];
    if (!known.empty() && known != text) {
      bad(fmt::format("{} and {} both have id {}", brief(known), brief(text), id), where,
          "distinct ids");
    }
    known = std::move(text);
  }

  void read_vocabulary(const std::string& type, size_t added) {
    const bool unigram = type == "Unigram";
    if (unigram ? text_.scores.empty() : text_.ids.empty()) {
      const auto found = child("model").find("vocab");
      const Json vocab = found == child("model").end() ? Json() : *found;
      if (vocab.is_null() && (text_.has_vocab || !text_.ids.empty() || !text_.scores.empty()))
        bad(unigram ? "contains no tokens with scores" : "contains no tokens with ids",
            "model.vocab",
            unigram ? "a list of strings and scores" : "an object of strings and ids");
      bad("is " + brief(vocab), "model.vocab", unigram ? "a list" : "an object");
    }
    if (unigram) {
      auto& scores = text_.scores;
      count_ = scores.size() + added;
      state_->texts.reserve(count_);
      scores_.reserve(scores.size());
      for (auto& [text, score] : scores) {
        put(static_cast<int64_t>(scores_.size()), std::move(text), "model.vocab");
        scores_.push_back(score);
      }
    } else {
      auto& ids = text_.ids;
      count_ = ids.size() + added;
      state_->texts.reserve(count_);
      for (auto& [text, id] : ids) put(id, std::move(text), "model.vocab", true);
    }
    model_size_ = state_->texts.size();
    for (size_t id = 0; id < model_size_; ++id) {
      if (state_->texts[id].empty() && empty_ != id) holes_.push_back(id);
    }
    if (count_ - added > model_size_ - holes_.size())
      bad("contains a token twice", "model.vocab", "each once");
  }

  std::vector<AddedToken> read_added(const Json& added) {
    std::vector<AddedToken> tokens;
    for (size_t i = 0; i < added.size(); ++i) {
      const JsonPart part(added[i], path_, fmt::format("added_tokens[{}]", i));
      const int64_t id = get_int(added[i], "id", part.name());
      put(id, part.text("content"), part.where() + ".id");
      tokens.push_back(parse_added_token(part, static_cast<int32_t>(id)));
    }
    return tokens;
  }

  void read_parts_around() {
    TokenizerState& state = *state_;
    const size_t size = state.texts.size();
    state.normalizers = parse_normalizers(child("normalizer"), path_);
    state.pre_tokenizers = parse_pre_tokenizers(child("pre_tokenizer"), path_);
    state.post_processors = parse_post_processors(child("post_processor"), path_, size);
    state.decoders = parse_decoders(child("decoder"), path_);
    state.truncation = parse_truncation(child("truncation"), path_);
    state.padding = parse_padding(child("padding"), path_, size);
    if (state.truncation &&
        state.truncation->max_length < added_tokens(state.post_processors, false)) {
      bad(fmt::format("is {}", state.truncation->max_length), "truncation.max_length",
          "at least the number of tokens that post_processor adds");
    }
    const bool may_move = !state.normalizers.empty();
    for (const PreTokenizer& part : state.pre_tokenizers) {
      const auto* metaspace = std::get_if<Metaspace>(&part);
      if (metaspace && metaspace->prepend_scheme == PrependScheme::first && may_move)
        state.needs_origins = true;
    }
  }

  // Returns the texts of the model's tokens, by id; empty for ids that only added tokens have.
  std::vector<std::string> model_texts() const {
    std::vector<std::string> texts(
        state_->texts.begin(), state_->texts.begin() + static_cast<std::ptrdiff_t>(model_size_));
    for (const size_t id : holes_) texts[id].clear();
    return texts;
  }

  // Returns the ids of special tokens, except the unknown token, whose text always becomes that
  // token. (BPE uses them only with ignore_merges.)
  SpecialIds special_ids(const std::string& unknown = {}) const {
    std::vector<bool> special(model_size_);
    for (const size_t id : special_) {
      if (id < model_size_) special[id] = state_->texts[id] != unknown;
    }
    return SpecialIds(std::move(special));
  }

  void read_model(const JsonPart& model, const std::string& type) {
    const std::string unknown = model.text("unk_token", "");
    if (type == "BPE") {
      read_bpe(model, unknown);
    } else if (type == "WordPiece") {
      const size_t most = model.json().contains("max_input_chars_per_word")
                              ? model.count("max_input_chars_per_word", 0, INT32_MAX)
                              : 100;
      state_->model =
          WordPieceModel({model_texts(), unknown, model.text("continuing_subword_prefix", "##"),
                          most, special_ids(unknown)});
    } else if (type == "WordLevel") {
      state_->model = WordLevelModel({model_texts(), unknown, special_ids(unknown)});
    } else if (type == "Unigram") {
      read_unigram(model);
      return;
    } else {
      model.unsupported(brief(type), "one of BPE, WordPiece, Unigram, WordLevel");
    }
    if (unknown.empty()) return;
    state_->unknown = id_of(unknown, "model.unk_token");
  }

  void read_unigram(const JsonPart& model) {
    const auto size = static_cast<int64_t>(model_size_);
    if (const auto id = find_int(model.json(), "unk_id", model.name(), 0, size - 1))
      state_->unknown = static_cast<int32_t>(*id);
    state_->unknown_as_written = true;
    UnigramOptions options{model_texts(), std::move(scores_), state_->unknown,
                           model.flag("byte_fallback", false)};
    options.special = special_ids();
    read_foreign_pieces(model, options);
    state_->model = UnigramModel(std::move(options));
  }

  // Reads two keys that only fovea uses, for a vocabulary that differs from the pieces
  // (translation_files.cc): "uncut" lists the ids of tokens into which no text is split,
  // "unlisted" lists the pieces without an id.
  void read_foreign_pieces(const JsonPart& model, UnigramOptions& options) const {
    const auto size = static_cast<int64_t>(model_size_);
    const Json none = Json::array();
    for (const Json& id : model.json().contains("uncut") ? model.list("uncut") : none) {
      if (!id.is_number_integer() || id < 0 || id >= size)
        bad("contains " + brief(id), "model.uncut", fmt::format("ids below {}", size));
      options.scores[id.get<size_t>()] = UnigramOptions::uncut;
    }
    for (const Json& piece : model.json().contains("unlisted") ? model.list("unlisted") : none) {
      const bool whole = piece.is_array() && piece.size() == 2 && piece[0].is_string() &&
                         piece[1].is_number() && !piece[0].get_ref<const std::string&>().empty();
      if (!whole || !state_->unknown)
        bad("contains " + brief(piece), "model.unlisted",
            "a string and its score, in a model with unk_id");
      options.unlisted.emplace_back(piece[0], piece[1]);
    }
  }

  void read_bpe(const JsonPart& model, const std::string& unknown) {
    if (const auto dropout = find_float(model.json(), "dropout", model.name()); dropout > 0.0)
      model.unsupported(fmt::format("a dropout of {}", *dropout), "none");
    // A valid list was already extracted; any value except null is invalid.
    if (const auto merges = model.json().find("merges");
        merges != model.json().end() && !merges->is_null())
      bad("merges is " + brief(*merges), "model.merges", "a list");
    BpeOptions options;
    options.name = path_;
    options.unk = unknown;
    options.continuing_subword_prefix = model.text("continuing_subword_prefix", "");
    options.end_of_word_suffix = model.text("end_of_word_suffix", "");
    options.fuse_unk = model.flag("fuse_unk", false);
    options.byte_fallback = model.flag("byte_fallback", false);
    options.ignore_merges = model.flag("ignore_merges", false);
    options.merges = std::move(text_.merges);
    const bool whole = options.continuing_subword_prefix.empty() &&
                       options.end_of_word_suffix.empty() && !options.byte_fallback;
    if (options.merges.empty() && whole && !options.fuse_unk && !options.ignore_merges) {
      read_characters(unknown);
      return;
    }
    options.texts = model_texts();
    options.special = special_ids(unknown);
    ByteLevel* byte_level = state_->pre_tokenizers.empty()
                                ? nullptr
                                : std::get_if<ByteLevel>(&state_->pre_tokenizers.back());
    if (byte_level && whole && unknown.empty()) {
      byte_level->print = false;
      options.bytes = true;
      for (std::string& text : options.texts) make_raw(text);
      for (auto& [first, second] : options.merges) {
        make_raw(first);
        make_raw(second);
      }
    }
    cut_at_words(options);
    state_->model = BpeModel(std::move(options));
  }

  // A BPE model of SentencePiece processes a complete text at once. If its tokens contain the word
  // mark only at their beginning, no merge crosses the start of a word. Then the text is split into
  // words; the tokens of most words are in a cache.
  void cut_at_words(const BpeOptions& options) {
    const std::string mark = "\u2581";
    const PreTokenizers& before = state_->pre_tokenizers;
    const auto* metaspace = before.empty() ? nullptr : std::get_if<Metaspace>(&before.back());
    if (!before.empty() && (!metaspace || metaspace->split)) return;
    if (options.bytes || options.ignore_merges || !options.continuing_subword_prefix.empty() ||
        !options.end_of_word_suffix.empty() || state_->ids.find(mark) == PieceTable::absent) {
      return;
    }
    for (const std::string& text : options.texts) {
      size_t at = 0;
      while (text.compare(at, mark.size(), mark) == 0) at += mark.size();
      if (text.find(mark, at) != text.npos) return;
    }
    state_->pre_tokenizers.emplace_back(WordStarts{mark});
  }

  void read_characters(const std::string& unknown) {
    CharacterModel model(unknown.empty() ? CharacterModel::absent
                                         : id_of(unknown, "model.unk_token"));
    for (size_t id = 0; id < model_size_; ++id) {
      const std::string& text = state_->texts[id];
      if (text.empty()) continue;
      const utf8::Character character = utf8::first(text);
      if (character.bytes == text.size()) model.add(character.code_point, static_cast<int32_t>(id));
    }
    state_->model = std::move(model);
  }

  int32_t id_of(const std::string& text, const std::string& where) const {
    const int32_t id = state_->ids.find(text);
    if (id != PieceTable::absent) return id;
    bad(brief(text) + " is not in the vocabulary", where, "one of its tokens");
  }

  const std::string& path_;
  TokenizerText text_;
  Json file_;
  std::shared_ptr<TokenizerState> state_ = std::make_shared<TokenizerState>();
  std::vector<double> scores_;
  // Ids are below this number. A larger id would leave a gap and must not cause an allocation.
  size_t count_ = 0;
  size_t model_size_ = 0;      // one more than the largest id in model.vocab
  std::vector<size_t> holes_;  // ids below model_size_ that only added tokens have
  // The token "", which speech models have: no text becomes this token.
  std::optional<size_t> empty_;
  std::vector<size_t> special_;
};

}  // namespace

std::shared_ptr<const TokenizerState> parse_tokenizer(TokenizerFiles files, const std::string& path,
                                                      const std::string& config_path) {
  static std::atomic<uint64_t> tokenizers{0};
  const std::shared_ptr<TokenizerState> state = TokenizerReader(files.tokenizer, path).read();
  state->number = ++tokenizers;
  if (!files.config.empty()) apply_config(files.config, config_path, *state);
  state->files = std::move(files);
  return state;
}

}  // namespace fovea::text
