// A SentencePiece .model: what is accepted is a tokenizer that encodes and decodes.

#include "text/sentencepiece.h"
#include "fuzz.h"
#include "text/tokenizer_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  succeeds([&] {
    const std::string path = "spiece.model";
    const std::string json = tokenizer_json_from_sentencepiece(
        parse_sentencepiece(text_of(data, size), path), path, "{}", "tokenizer_config.json");
    const Tokenizer tokenizer(parse_tokenizer({json, ""}, path, ""));
    for (const char* text : {"", "Hello,  world", " l'été １２ <s>", "\xff\xc3("}) {
      const std::vector<int32_t> ids = tokenizer.encode(text);
      for (const int32_t id : ids)
        require(id >= 0 && id < tokenizer.size(), "an id is in the vocabulary");
      tokenizer.decode(ids);
    }
  });
  return 0;
}
