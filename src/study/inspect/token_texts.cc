#include "inspect/token_texts.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace fovea::study {
namespace {

// Returns whether the bytes are complete UTF-8 characters, at least one.
bool is_text(std::string_view bytes) {
  if (bytes.empty()) return false;
  size_t expected = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) {
      if (expected == 0) return false;
      --expected;
      continue;
    }
    if (expected != 0) return false;
    expected = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  }
  return expected == 0;
}

// Returns bytes that are no complete characters as hexadecimal numbers, such as <E2 82>.
std::string shown_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{}{:02X}", text.empty() ? "<" : " ", static_cast<unsigned char>(byte));
  return text + ">";
}

// Parses a text for a model without a tokenizer: ids separated by spaces, commas or line breaks.
std::vector<int32_t> ids_in(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == ',' || text[at] == '\n') {
      ++at;
      continue;
    }
    int32_t id = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    check(error == std::errc(),
          "text: this model has no tokenizer; expected token ids such as 1 2 3");
    ids.push_back(id);
    at = static_cast<size_t>(end - text.data());
  }
  return ids;
}

}  // namespace

std::vector<InspectedToken> display_tokens(const text::Tokenizer* tokenizer,
                                           const std::vector<int32_t>& ids) {
  std::vector<InspectedToken> tokens;
  for (const int32_t id : ids) {
    InspectedToken token{id, std::to_string(id), false};
    if (tokenizer != nullptr && id >= 0 && id < tokenizer->size()) {
      token.text = tokenizer->text_of(id);
      token.special = tokenizer->is_special(id);
      const std::string decoded = tokenizer->decode({id});
      const std::string bytes = tokenizer->bytes_of(id);
      if (!token.special && !bytes.empty() && !is_text(bytes))
        token.text = shown_bytes(bytes);
      else if (is_text(decoded) && decoded.find("\uFFFD") == std::string::npos)
        token.text = decoded;
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::vector<InspectedToken> display_tokens(const model::Model& model,
                                           const std::vector<int32_t>& ids) {
  return display_tokens(model.has_tokenizer() ? &model.tokenizer() : nullptr, ids);
}

std::vector<InspectedToken> tokenized(const model::Model& model, const std::string& text,
                                      bool special, text::SpecialTokens written) {
  check(text.size() <= kInspectedBytes, "text: {} bytes; expected at most {}", text.size(),
        kInspectedBytes);
  if (!model.has_tokenizer()) return display_tokens(model, ids_in(text));
  const text::Encoding encoding = model.tokenizer().encoding(text, {special, written, false});
  std::vector<InspectedToken> tokens = display_tokens(model, encoding.ids);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const text::Offsets at = encoding.byte_offsets[i];
    const std::string_view part = std::string_view(text).substr(at.begin, at.end - at.begin);
    // A token may be a part of a character: the text at its position is the whole character.
    const bool whole = is_text(model.tokenizer().bytes_of(tokens[i].id));
    if (whole && is_text(part)) tokens[i].text = part;
    if (encoding.special_mask[i] != 0) tokens[i].special = true;
  }
  return tokens;
}

std::vector<InspectedToken> token_texts(const model::Model& model,
                                        const std::vector<int32_t>& ids) {
  for (const int32_t id : ids)
    check(id >= 0 && id < model.spec().vocabulary, "ids: {}; expected 0 to {}", id,
          model.spec().vocabulary - 1);
  return display_tokens(model, ids);
}

}  // namespace fovea::study
