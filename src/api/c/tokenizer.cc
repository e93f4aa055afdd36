#include "fovea/text/tokenizer.h"

#include "c/handles.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

std::vector<int32_t> encode(const text::Tokenizer& tokenizer, std::string_view text,
                            uint32_t flags) {
  const text::SpecialTokens special = (flags & FOVEA_PARSE_SPECIAL) != 0
                                          ? text::SpecialTokens::parsed
                                          : text::SpecialTokens::as_text;
  if ((flags & FOVEA_ADD_SPECIAL) == 0) return tokenizer.encode(text, special);
  return tokenizer.encoding(text, {.special = special, .truncate_and_pad = false}).ids;
}

void check_flags(uint32_t flags, uint32_t known) {
  check((flags & ~known) == 0, "flags: {}; expected only bits of {}", flags, known);
}

}  // namespace
}  // namespace fovea::c

fovea_status fovea_tokenizer_open(const char* path, fovea_tokenizer** tokenizer) {
  if (tokenizer != nullptr) *tokenizer = nullptr;
  return guard([&] {
    required(tokenizer, "tokenizer");
    *tokenizer = new fovea_tokenizer(fovea::text::Tokenizer::open(required(path, "path")));
  });
}

fovea_status fovea_tokenizer_share(fovea_tokenizer* tokenizer, fovea_tokenizer** other) {
  return share(tokenizer, "tokenizer", other,
               [&] { return new fovea_tokenizer(tokenizer->tokenizer); });
}

void fovea_tokenizer_free(fovea_tokenizer* tokenizer) { delete tokenizer; }

const char* fovea_tokenizer_error(const fovea_tokenizer* tokenizer) {
  return message_of(tokenizer);
}

int32_t fovea_tokenizer_size(const fovea_tokenizer* tokenizer) {
  return tokenizer == nullptr ? 0 : tokenizer->tokenizer.size();
}

fovea_status fovea_tokenizer_encode(fovea_tokenizer* tokenizer, const char* text, size_t size,
                                    uint32_t flags, const int32_t** ids, size_t* count) {
  return guard(tokenizer, "tokenizer", [&] {
    required(ids, "ids");
    required(count, "count");
    check_flags(flags, FOVEA_ADD_SPECIAL | FOVEA_PARSE_SPECIAL);
    tokenizer->ids = encode(tokenizer->tokenizer, text_of(text, size, "text"), flags);
    *ids = tokenizer->ids.data();
    *count = tokenizer->ids.size();
  });
}

fovea_status fovea_tokenizer_decode(fovea_tokenizer* tokenizer, const int32_t* ids, size_t count,
                                    uint32_t flags, const char** text, size_t* size) {
  return guard(tokenizer, "tokenizer", [&] {
    required(text, "text");
    required(size, "size");
    check_flags(flags, FOVEA_SKIP_SPECIAL);
    tokenizer->text =
        tokenizer->tokenizer.decode(list_of(ids, count, "ids"), (flags & FOVEA_SKIP_SPECIAL) != 0);
    *text = tokenizer->text.c_str();
    *size = tokenizer->text.size();
  });
}
