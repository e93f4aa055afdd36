#include "tokenizer/training/tokenizer_trainer.h"

#include <algorithm>
#include <set>

#include "base/fields.h"
#include "base/json.h"
#include "tokenizer/pipeline/normalizers.h"
#include "tokenizer/pipeline/pre_tokenizers.h"
#include "tokenizer/state/file.h"
#include "tokenizer/state/parts.h"
#include "tokenizer/training/bpe_trainer.h"
#include "tokenizer/training/unigram_trainer.h"
#include "unicode/utf8.h"

namespace fovea::text {

using nlohmann::ordered_json;

namespace {

constexpr const char* kEndOfText = "<|endoftext|>";
// The file name in error messages about the trained tokenizer.
const std::string kMadeHere = "tokenizer.json";

nlohmann::json plain(const ordered_json& json) { return nlohmann::json::parse(json.dump()); }

ordered_json parts_of(TokenizerKind kind, const TokenizerTraining& options, TokenizerFile& file) {
  ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"clean_up_tokenization_spaces", false}};
  if (kind == TokenizerKind::wordpiece) {
    file.normalizer = {{"type", "BertNormalizer"},
                       {"clean_text", true},
                       {"handle_chinese_chars", true},
                       {"strip_accents", nullptr},
                       {"lowercase", options.lowercase}};
    file.pre_tokenizer = {{"type", "BertPreTokenizer"}};
    file.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    for (const char* name : {"pad", "unk", "cls", "sep", "mask"}) {
      std::string text = "[" + std::string(name) + "]";
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      config[std::string(name) + "_token"] = text;
    }
    config["eos_token"] = "[SEP]";
    return config;
  }
  if (kind == TokenizerKind::bpe && options.bytes) {
    file.pre_tokenizer = byte_level(false, true, true);
    file.post_processor = byte_level(false, false, true);
    file.decoder = byte_level(false, true, true);
  } else {
    // A space belongs to the following word; line ends are separate words. Nothing else changes, so
    // that decoding restores the text.
    const ordered_json lines = {{"type", "Split"},
                                {"pattern", {{"String", "\n"}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
    file.pre_tokenizer = sequence("pretokenizers", {lines, metaspace("never", true)});
    file.decoder = metaspace("never", true);
    config["unk_token"] = "<unk>";
  }
  if (options.end_of_text) config["eos_token"] = kEndOfText;
  return config;
}

// Returns the training memory per byte of the distinct words. bpe, wordpiece: the words and the
// positions of pairs; unigram: the words, a suffix array and the pieces found in it.
uint64_t memory_per_byte(TokenizerKind kind) { return kind == TokenizerKind::unigram ? 64 : 40; }

}  // namespace

void visit(TokenizerTraining& t, OptionVisitor& v) {
  v.choice({"kind", "train a tokenizer of this kind on the files"}, t.kind,
           {"char", "bpe", "wordpiece", "unigram"});
  v.integer(
      {"vocabulary", "maximum vocabulary size, special tokens included; char: 0 = all characters"},
      t.vocabulary, 0, kMostTokens);
  v.boolean({"bytes", "bpe: start from the 256 bytes; false = from the characters of the text"},
            t.bytes);
  v.boolean({"lowercase", "wordpiece: ignore case and accents"}, t.lowercase);
  v.integer({"min_frequency", "bpe, wordpiece: minimum frequency of a merged pair"},
            t.min_frequency, 0, INT64_MAX);
  v.integer({"alphabet", "bpe, wordpiece: keep the N most frequent characters; 0 = all"},
            t.alphabet, 0, kMostTokens);
  v.boolean({"end_of_text", "add an end-of-sequence token"}, t.end_of_text);
  v.texts({"special_tokens", "additional special token"}, t.special_tokens);
  v.integer({"context", "maximum tokens per text, written to the files; 0 = no limit"}, t.context,
            0, INT64_MAX);
  v.bytes({"memory", "memory for the distinct words of the text"}, t.memory);
}

// The parts of a tokenizer other than the model.
struct TokenizerTrainer::Recipe {
  TokenizerFile file;
  ordered_json config;
  std::vector<std::string> special;
  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  bool printed_bytes = false;  // whether the vocabulary has printable characters for bytes

  explicit Recipe(const TokenizerTraining& options) {
    config = parts_of(options.kind, options, file);
    if (options.context > 0) config["model_max_length"] = options.context;
    special = options.special_tokens;
    for (const char* key :
         {"pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "eos_token"}) {
      if (config.contains(key)) special.push_back(config[key]);
    }
    std::set<std::string> seen;
    std::erase_if(special, [&](const std::string& token) { return !seen.insert(token).second; });
    normalizers = parse_normalizers(plain(file.normalizer), kMadeHere);
    pre_tokenizers = parse_pre_tokenizers(plain(file.pre_tokenizer), kMadeHere);
    for (PreTokenizer& part : pre_tokenizers) {
      if (auto* bytes = std::get_if<ByteLevel>(&part)) {
        bytes->print = false;
        printed_bytes = true;
      }
    }
  }

  std::string unk() const { return config.value("unk_token", ""); }

  void split(std::string_view line, const WordCounter::OnWord& on_word) const {
    thread_local AlignedText normalized;
    thread_local CutText cut;
    GrowthLimit limit = GrowthLimit::of_text(line.size());
    normalized.assign(line, 0, false, limit);
    normalize(normalizers, normalized);
    const auto size = static_cast<uint32_t>(normalized.text().size());
    cut.text.assign(normalized, {0, size});
    cut.pieces.assign(1, {0, size});
    pre_tokenize(pre_tokenizers, cut);
    for (const Span piece : cut.pieces) on_word(cut.text.text(piece));
  }

  WordCounts printed(WordCounts words) const {
    if (!printed_bytes) return words;
    for (auto& [word, count] : words) {
      std::string text;
      for (const char byte : word) text += printable_byte(static_cast<uint8_t>(byte));
      word = std::move(text);
    }
    std::sort(words.begin(), words.end());
    return words;
  }

  Tokenizer tokenizer(ordered_json model) {
    for (size_t id = 0; id < special.size(); ++id)
      file.added_tokens.push_back(added_token(special[id], id));
    file.model = std::move(model);
    return Tokenizer(parse_tokenizer({std::move(file).text(), pretty(config)}, kMadeHere,
                                     "tokenizer_config.json"));
  }
};

TokenizerTrainer::TokenizerTrainer(const TokenizerTraining& options)
    : options_(options),
      recipe_(std::make_unique<Recipe>(options)),
      counter_([this](std::string_view line,
                      const WordCounter::OnWord& on_word) { recipe_->split(line, on_word); },
               options.memory / memory_per_byte(options.kind)) {}

TokenizerTrainer::~TokenizerTrainer() = default;

void TokenizerTrainer::add(std::string_view text) { counter_.add(text); }
void TokenizerTrainer::end_document() { counter_.end_line(); }

std::optional<Tokenizer> TokenizerTrainer::train(const std::function<bool(double)>& progress) {
  const WordCounts words = recipe_->printed(counter_.finish());
  words_ = static_cast<int64_t>(words.size());
  check(!words.empty(), "tokenizer training: the text contains no words; expected at least one");
  return options_.kind == TokenizerKind::unigram ? unigram(words, progress)
                                                 : merged(words, progress);
}

namespace {

void require_room(int64_t vocabulary, size_t special, size_t characters) {
  check_field(static_cast<int64_t>(special + characters) <= vocabulary, "vocabulary",
              "is {}; expected at least {}, for {} special tokens and {} characters", vocabulary,
              special + characters, special, characters);
}

}  // namespace

std::optional<Tokenizer> TokenizerTrainer::merged(const WordCounts& words,
                                                  const std::function<bool(double)>& progress) {
  BpeTrainerOptions options{.vocabulary = options_.vocabulary,
                            .special_tokens = recipe_->special,
                            .alphabet_limit = options_.alphabet,
                            .min_frequency = options_.min_frequency,
                            .progress = progress};
  const bool wordpiece = options_.kind == TokenizerKind::wordpiece;
  if (wordpiece) options.continuing_subword_prefix = "##";
  for (int byte = 0; recipe_->printed_bytes && byte < 256; ++byte) {
    options.initial_alphabet.push_back(
        utf8::first(printable_byte(static_cast<uint8_t>(byte))).code_point);
  }
  TrainedBpe found = train_bpe(words, options);
  if (found.texts.empty()) return {};
  require_room(options_.vocabulary, recipe_->special.size(), found.characters);
  ordered_json vocabulary = vocabulary_object(found.texts);
  if (wordpiece) return recipe_->tokenizer(wordpiece_model(std::move(vocabulary), recipe_->unk()));
  BpeParts parts{.vocabulary = std::move(vocabulary)};
  for (const auto& [left, right] : found.merges)
    parts.merges.push_back(ordered_json::array({left, right}));
  if (!recipe_->unk().empty()) parts.unk_token = recipe_->unk();
  return recipe_->tokenizer(bpe_model(std::move(parts)));
}

std::optional<Tokenizer> TokenizerTrainer::unigram(const WordCounts& words,
                                                   const std::function<bool(double)>& progress) {
  const auto special = static_cast<int64_t>(recipe_->special.size());
  const std::vector<ScoredPiece> found = train_unigram(
      words, {.pieces = std::max<int64_t>(1, options_.vocabulary - special), .progress = progress});
  if (found.empty()) return {};
  const auto characters =
      static_cast<size_t>(std::count_if(found.begin(), found.end(), [](const ScoredPiece& piece) {
        return utf8::first(piece.first).bytes == piece.first.size();
      }));
  require_room(options_.vocabulary, recipe_->special.size(), characters);
  std::vector<ScoredPiece> pieces;
  for (const std::string& token : recipe_->special) pieces.emplace_back(token, 0.0);
  for (const ScoredPiece& piece : found) {
    if (std::find(recipe_->special.begin(), recipe_->special.end(), piece.first) ==
        recipe_->special.end()) {
      pieces.push_back(piece);
    }
  }
  const auto unk = std::find(recipe_->special.begin(), recipe_->special.end(), recipe_->unk());
  return recipe_->tokenizer(
      unigram_model(pieces, static_cast<size_t>(unk - recipe_->special.begin()), false));
}

}  // namespace fovea::text
