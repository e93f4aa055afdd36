// The input is a SentencePiece .model: an accepted model gives a tokenizer that encodes and
// decodes.

#include "tokenizer/formats/sentencepiece.h"
#include "use_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  succeeds([&] {
    const std::string path = "spiece.model";
    const std::string json = text::tokenizer_json_from_sentencepiece(
        text::parse_sentencepiece(text_of(data, size), path), path, "{}", "tokenizer_config.json");
    use_tokenizer(text::Tokenizer(text::parse_tokenizer({json, ""}, path, "")));
  });
  return 0;
}
