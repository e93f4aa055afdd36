#include "data/task_tokenizer.h"

#include <set>

#include "base/error.h"
#include "base/json.h"
#include "data/train_tokenizer.h"
#include "tokenizer/state/file.h"
#include "tokenizer/state/state.h"
#include "tokenizer/training/tokenizer_trainer.h"
#include "unicode/utf8.h"

namespace fovea::train {
namespace {

using nlohmann::ordered_json;

constexpr int kGaps = 100;  // as in the vocabulary of Raffel et al. 2020

// The special tokens and their roles.
struct Roles {
  std::vector<std::string> special;                          // ids 0, 1, ...
  std::vector<std::pair<std::string, std::string>> by_role;  // as in tokenizer_config.json
  std::string before, after;                                 // around a text; empty = none
};

Roles roles_of(TokenizerUse use) {
  if (use == TokenizerUse::masking) {
    return {{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
            {{"pad_token", "[PAD]"},
             {"unk_token", "[UNK]"},
             {"cls_token", "[CLS]"},
             {"sep_token", "[SEP]"},
             {"mask_token", "[MASK]"}},
            "[CLS]",
            "[SEP]"};
  }
  Roles roles = {{"<pad>", "</s>", "<unk>"},
                 {{"pad_token", "<pad>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}},
                 "",
                 "</s>"};
  for (int i = 0; use == TokenizerUse::spans && i < kGaps; ++i)
    roles.special.push_back(fmt::format("<extra_id_{}>", i));
  return roles;
}

// Returns the number of tokens of a BPE without merges: it has one token for each distinct
// character.
int64_t characters_in(const EachText& texts) {
  std::set<char32_t> found = {U'\u2581', U'\n'};  // the mark of a space, and the line end
  texts([&](std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const text::utf8::Character character = text::utf8::first(text.substr(i));
      found.insert(character.code_point);
      i += character.bytes;
    }
  });
  return static_cast<int64_t>(found.size());
}

text::TokenizerTraining training_of(const std::string& choice, const Roles& roles,
                                    const EachText& texts, int64_t context) {
  text::TokenizerTraining training{
      .end_of_text = false, .special_tokens = roles.special, .context = context};
  const std::string kind = choice.substr(0, choice.find(':'));
  if (kind == "char") {
    training.bytes = false;
    training.vocabulary = std::ssize(roles.special) + characters_in(texts);
    return training;
  }
  training.kind = kind == "bpe"         ? text::TokenizerKind::bpe
                  : kind == "wordpiece" ? text::TokenizerKind::wordpiece
                                        : text::TokenizerKind::unigram;
  if (choice.size() > kind.size()) training.vocabulary = vocabulary_in(choice);
  return training;
}

// Returns the post-processor: [before] $A [after], and for two texts [before] $A [after] $B
// [after].
ordered_json around(const Roles& roles, const text::Tokenizer& tokenizer) {
  text::Template single, pair;
  std::vector<std::pair<std::string, size_t>> special;
  for (const std::string& text : {roles.before, roles.after})
    if (!text.empty()) special.emplace_back(text, static_cast<size_t>(*tokenizer.id_of(text)));
  const auto put = [](text::Template& parts, const std::string& text, int type) {
    if (!text.empty()) parts.emplace_back(text, type);
  };
  for (text::Template* parts : {&single, &pair}) {
    put(*parts, roles.before, 0);
    put(*parts, "$A", 0);
    put(*parts, roles.after, 0);
  }
  const int second = roles.before.empty() ? 0 : 1;  // type id of a second text (Devlin et al. 2019)
  put(pair, "$B", second);
  put(pair, roles.after, second);
  return text::template_processing(single, pair, special);
}

text::Tokenizer with_roles(const text::Tokenizer& trained, const Roles& roles) {
  text::TokenizerFiles files = trained.state().files;
  ordered_json json = ordered_json::parse(files.tokenizer);
  ordered_json config = ordered_json::parse(files.config);
  const ordered_json added = around(roles, trained), there = json["post_processor"];
  json["post_processor"] =
      there.is_null() ? added : text::sequence("processors", ordered_json::array({there, added}));
  for (const auto& [role, text] : roles.by_role) config[role] = text;
  files = {pretty(json), pretty(config)};
  return text::Tokenizer(text::parse_tokenizer(files, "tokenizer.json", "tokenizer_config.json"));
}

}  // namespace

namespace {

text::Tokenizer with_settings(const text::Tokenizer& tokenizer, const ordered_json& settings) {
  text::TokenizerFiles files = tokenizer.state().files;
  ordered_json config =
      files.config.empty() ? ordered_json::object() : ordered_json::parse(files.config);
  config.update(settings);
  files.config = pretty(config);
  return text::Tokenizer(text::parse_tokenizer(files, "tokenizer.json", "tokenizer_config.json"));
}

}  // namespace

text::Tokenizer with_token_types(const text::Tokenizer& tokenizer) {
  return with_settings(tokenizer,
                       {{"model_input_names", {"input_ids", "token_type_ids", "attention_mask"}}});
}

text::Tokenizer with_languages(const text::Tokenizer& tokenizer, const std::string& source,
                               const std::string& target) {
  return with_settings(tokenizer, {{"source_lang", source}, {"target_lang", target}});
}

text::Tokenizer make_task_tokenizer(TokenizerUse use, const EachText& texts,
                                    const std::string& choice, int64_t context) {
  if (!is_trained_choice(choice)) return text::Tokenizer::open(choice);
  const Roles roles = roles_of(use);
  text::TokenizerTrainer trainer(training_of(choice, roles, texts, context));
  texts([&](std::string_view text) {
    trainer.add(text);
    trainer.end_document();
  });
  return with_roles(*trainer.train(), roles);
}

}  // namespace fovea::train
