#include "tokenizer/pipeline/decoders.h"
#include "tokenizer/pipeline/json_part.h"

namespace fovea::text {
namespace {

Decoder read_metaspace_decoder(const JsonPart& json) {
  const bool prepended =
      json.flag("add_prefix_space", true) && json.text("prepend_scheme", "always") != "never";
  return MetaspaceDecoder{json.character("replacement"), prepended};
}

Decoder read_strip_decoder(const JsonPart& json) {
  constexpr int64_t most = int64_t{1} << 32;
  return StripDecoder{json.character("content"), json.count("start", 0, most),
                      json.count("stop", 0, most)};
}

Decoder read_replace_decoder(const JsonPart& json) {
  std::string text;
  Pattern pattern = json.pattern("pattern", &text);
  constexpr size_t kMost = 1024;  // the end of each token is compared with each prefix of the text
  if (text.size() > kMost) {
    json.unsupported(fmt::format("a pattern of {} bytes", text.size()),
                     fmt::format("at most {}", kMost));
  }
  return ReplaceDecoder{std::move(pattern), std::move(text), json.text("content")};
}

Decoder read_ctc(const JsonPart& json) {
  return CtcDecoder{json.text("pad_token"), json.text("word_delimiter_token"),
                    json.flag("cleanup")};
}

Decoder read_word_piece(const JsonPart& json) {
  return WordPieceDecoder{json.text("prefix"), json.flag("cleanup")};
}

constexpr std::array<PartReader<Decoder>, 9> decoder_readers = {{
    {"ByteLevel", [](const JsonPart&) -> Decoder { return ByteLevelDecoder{}; }},
    {"WordPiece", read_word_piece},
    {"Metaspace", read_metaspace_decoder},
    {"BPEDecoder", [](const JsonPart& json) -> Decoder { return BpeDecoder{json.text("suffix")}; }},
    {"ByteFallback", [](const JsonPart&) -> Decoder { return ByteFallback{}; }},
    {"Fuse", [](const JsonPart&) -> Decoder { return Fuse{}; }},
    {"Strip", read_strip_decoder},
    {"Replace", read_replace_decoder},
    {"CTC", read_ctc},
}};

}  // namespace

Decoders parse_decoders(const nlohmann::json& json, const std::string& path) {
  Decoders parts;
  if (json.is_null()) {
    parts.emplace_back(JoinWithSpaces{});
  } else {
    read_parts(JsonPart(json, path, "decoder"), decoder_readers, "decoders", parts);
  }
  return parts;
}

}  // namespace fovea::text
