// Encodes and decodes with tokenizers of every kind; the first byte selects one.

#include "base/json.h"
#include "fuzz.h"
#include "tokenizer/state/state.h"
#include "unicode/utf8.h"

namespace fovea {
namespace {

const std::vector<text::Tokenizer>& tokenizers() {
  static const std::vector<text::Tokenizer> all = [] {
    std::vector<text::Tokenizer> found;
    constexpr const char* path = "tests/goldens/tokenizers.json";
    const nlohmann::json goldens = read_json(path);
    for (const auto& kind : goldens["kinds"])
      found.emplace_back(text::parse_tokenizer({kind["tokenizer"].dump(), ""}, path, ""));
    return found;
  }();
  return all;
}

void encode(const text::Tokenizer& tokenizer, std::string_view text) {
  const text::Encoding whole = tokenizer.encoding(text, {.add_special_tokens = false});
  require(whole.ids == tokenizer.encode(text), "encoding() and encode() agree");
  require(whole.ids.size() <= 64 * text.size() + (1 << 17),
          "the number of ids is bounded by the text");
  uint32_t begin = 0;
  for (const text::Offsets& at : whole.byte_offsets) {
    require(at.begin <= at.end && at.end <= text.size(), "a token lies within its text");
    if (at.begin == at.end) continue;  // an empty token may have any position
    require(at.begin >= begin, "tokens are in order");
    begin = at.begin;
  }
  std::string streamed;
  text::StreamingDecoder decoder(tokenizer);
  for (const int32_t id : whole.ids) streamed += decoder.add(id);
  streamed += decoder.finish();
  const std::string decoded = tokenizer.decode(whole.ids);
  require(streamed == decoded, "decoding token by token gives the same text");
  require(text::utf8::valid_prefix(decoded) == decoded.size(), "decoded text is UTF-8");
  require(decoded.size() <= 64 * (whole.tokens.bytes() + 1) + (1 << 17),
          "the decoded text is bounded by the tokens");
  tokenizer.encode(text, text::SpecialTokens::parsed);
  tokenizer.unknown(text);
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  if (size == 0) return 0;
  const text::Tokenizer& tokenizer = tokenizers()[data[0] % tokenizers().size()];
  succeeds_soon([&] { encode(tokenizer, text_of(data + 1, size - 1)); });
  return 0;
}
