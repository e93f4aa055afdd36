#include "vision/text_tower.h"

#include "base/error.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/state.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// The class of tokenizers that change texts before they divide them.
constexpr const char* kCanonicalTokenizer = "SiglipTokenizer";

// Returns a text in lower case, without ASCII punctuation, and with one space instead of
// blanks.
std::string canonical_text(std::string_view text) {
  std::string result;
  bool blank = false;
  while (!text.empty()) {
    const text::utf8::Character c = text::utf8::first(text);
    text.remove_prefix(c.bytes);
    if (c.code_point == ' ' || (c.code_point >= '\t' && c.code_point <= '\r')) {
      blank = !result.empty();
      continue;
    }
    const bool ascii = c.code_point > ' ' && c.code_point < 127;
    const bool word = (c.code_point >= '0' && c.code_point <= '9') ||
                      (c.code_point >= 'A' && c.code_point <= 'Z') ||
                      (c.code_point >= 'a' && c.code_point <= 'z');
    if (ascii && !word) continue;
    if (blank) result += ' ';
    blank = false;
    for (const char32_t character : text::unicode::lowercase(c.code_point))
      if (character != 0) text::utf8::append(result, character);
  }
  return result;
}

std::optional<int32_t> padding_of(const text::Tokenizer& tokenizer, const std::string& folder) {
  const text::TokenizerConfig config(tokenizer.state().files.config, "tokenizer_config.json");
  const std::string token = config.token("pad_token", "");
  const auto id = tokenizer.id_of(token.empty() ? "</s>" : token);
  if (!id)
    fail(ErrorKind::BadFile, "{}: the tokenizer has no padding token; expected pad_token", folder);
  return id;
}

}  // namespace

TokenizedText TextTower::tokens(const std::string& text) const {
  TokenizedText result = format.text(canonical ? canonical_text(text) : text);
  const auto context = static_cast<size_t>(transformer.spec.context);
  if (padding) result.ids.resize(context, *padding);
  return result;
}

Tensor TextTower::vectors(const TokenBatch& batch) const {
  model::Pass pass;
  pass.mask.valid = batch.valid;
  const Tensor states = transformer.spec.decoder ? transformer.decode(batch.sequence, pass)
                                                 : transformer.encode(batch.sequence, pass);
  return transformer.logits(states, batch.valid);
}

TextTower text_tower(model::Towers towers, TextFormat format, const std::string& folder) {
  const text::TokenizerConfig config(format.tokenizer().state().files.config,
                                     "tokenizer_config.json");
  const bool canonical = config.tokenizer_class() == kCanonicalTokenizer;
  std::optional<int32_t> padding;
  if (towers.reads_padding) padding = padding_of(format.tokenizer(), folder);
  return {std::move(towers.text.model),
          std::move(format),
          towers.scale,
          towers.bias,
          towers.sigmoid,
          canonical,
          padding};
}

}  // namespace fovea::infer
