// The bytes of a single token: the result of the decoders without the neighbouring tokens.

#include <charconv>

#include "fovea/text/tokenizer.h"
#include "tokenizer/pipeline/normalizers.h"
#include "tokenizer/state/state.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

void print_back(std::string& token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const utf8::Character c = utf8::first(std::string_view(token).substr(i));
    const int byte = byte_of_printable(c.code_point);
    if (byte < 0) return;  // outside the alphabet: the token is plain text
    bytes.push_back(static_cast<char>(byte));
    i += c.bytes;
  }
  token = bytes;
}

// Converts a token such as "<0x0A>" to its byte.
void fall_back(std::string& token) {
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>') return;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error == std::errc() && end == token.data() + 5)
    token = std::string(1, static_cast<char>(byte));
}

struct OneToken {
  std::string& token;

  void operator()(const JoinWithSpaces&) const { token.insert(0, 1, ' '); }
  void operator()(const ByteLevelDecoder&) const { print_back(token); }
  void operator()(const WordPieceDecoder& decoder) const {
    if (!decoder.prefix.empty() && token.compare(0, decoder.prefix.size(), decoder.prefix) == 0) {
      token.erase(0, decoder.prefix.size());
    } else {
      token.insert(0, 1, ' ');
    }
  }
  void operator()(const MetaspaceDecoder& decoder) const {
    replace_all(token, decoder.replacement, " ");
  }
  void operator()(const BpeDecoder& decoder) const { replace_all(token, decoder.suffix, " "); }
  void operator()(const ByteFallback&) const { fall_back(token); }
  void operator()(const ReplaceDecoder& decoder) const {
    replace_all(token, decoder.text, decoder.content);
  }
  void operator()(const CtcDecoder& decoder) const {
    replace_all(token, decoder.pad, "");
    if (decoder.cleanup) replace_all(token, decoder.delimiter, " ");
  }
  // Fuse joins tokens, and Strip affects the ends of a text.
  void operator()(const Fuse&) const {}
  void operator()(const StripDecoder&) const {}
};

}  // namespace

std::string Tokenizer::bytes_of(int32_t id) const {
  std::string token(text_of(id));
  const auto found = state_->normalized_texts.find(id);
  if (found != state_->normalized_texts.end()) token = found->second;
  for (const Decoder& decoder : state_->decoders) std::visit(OneToken{token}, decoder);
  return token;
}

}  // namespace fovea::text
