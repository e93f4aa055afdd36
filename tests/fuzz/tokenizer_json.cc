// The input is tokenizer.json, a NUL, and tokenizer_config.json: an accepted tokenizer encodes and
// decodes, and gives the same results after writing and reading.

#include "base/files.h"
#include "fuzz.h"
#include "support/temporary_folder.h"
#include "tokenizer/state/state.h"

namespace fovea {
namespace {

constexpr std::string_view kTexts[] = {"", "Hello, world", " a  b\n\n123 l'été 日本 <s>[CLS]",
                                       "\xff\xc3(\xed\xa0\x80 \xe2\x80\x8d\xf0\x9f\x91\xa9"};

void use(const text::Tokenizer& tokenizer, const text::Tokenizer& again) {
  require(tokenizer.size() == again.size() && tokenizer.hash() == again.hash(),
          "a tokenizer is the same after writing and reading");
  for (const std::string_view text : kTexts) {
    succeeds_soon([&] {
      const std::vector<int32_t> ids = tokenizer.encode(text);
      require(ids.size() <= 64 * text.size() + (1 << 17),
              "the number of ids is bounded by the text");
      require(again.encode(text) == ids, "a saved tokenizer gives the same ids");
      for (const int32_t id : ids)
        require(id >= 0 && id < tokenizer.size(), "an id is in the vocabulary");
      size_t bytes = 0;
      for (const int32_t id : ids) bytes += tokenizer.text_of(id).size();
      require(tokenizer.decode(ids).size() <= 64 * (bytes + ids.size()) + (1 << 17),
              "the decoded text is bounded by the tokens");
    });
    succeeds_soon([&] {
      const text::Encoding both = tokenizer.encoding(text, text);
      require(both.tokens.bytes() + both.ids.size() <= 1024 * text.size() + (size_t{8} << 20),
              "the size of the tokens is bounded by the text");
    });
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  static const TemporaryFolder folder;
  const auto [file, config] = two_texts(data, size);
  std::shared_ptr<const text::TokenizerState> state;
  if (!succeeds_soon([&] {
        state = text::parse_tokenizer({std::string(file), std::string(config)}, "tokenizer.json",
                                      "tokenizer_config.json");
      }))
    return 0;
  const text::Tokenizer tokenizer(state);
  tokenizer.save(folder.path());
  use(tokenizer, text::Tokenizer::open(folder.path()));
  return 0;
}
