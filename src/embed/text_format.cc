#include "embed/text_format.h"

#include <algorithm>

#include "base/error.h"
#include "embed/modules.h"
#include "tokenizer/config.h"
#include "tokenizer/pipeline/post_processors.h"
#include "tokenizer/state.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea {
namespace {

struct LowerCase {
  std::string text;
  std::vector<Offsets> sources;  // for each byte of `text`, the original character's byte range
};

LowerCase lower_case_of(std::string_view original) {
  LowerCase lower;
  for (uint32_t begin = 0; begin < original.size();) {
    const utf8::Character c = utf8::first(original.substr(begin));
    const uint32_t end = begin + static_cast<uint32_t>(c.bytes);
    for (const char32_t character : unicode::lowercase(c.code_point))
      if (character != 0) utf8::append(lower.text, character);
    lower.sources.resize(lower.text.size(), {begin, end});
    begin = end;
  }
  return lower;
}

// Returns a text that this tokenizer encodes to at least one token.
std::string probe_text(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (!tokenizer.encode(tokenizer.text_of(id)).empty()) return std::string(tokenizer.text_of(id));
  fail(ErrorKind::BadFile, "tokenizer: no text has tokens; expected a vocabulary");
}

}  // namespace

int64_t TextFormat::Frame::size() const {
  size_t count = 0;
  for (const auto& part : added) count += part.size();
  return static_cast<int64_t>(count);
}

bool TextFormat::Frame::typed() const {
  bool any = types[0] != 0 || types[1] != 0;
  for (const auto& part : added)
    for (const Special& special : part) any = any || special.type != 0;
  return any;
}

TextFormat::TextFormat(Tokenizer tokenizer, int64_t most, bool lower_case, bool types, bool special)
    : tokenizer_(std::move(tokenizer)),
      most_(most),
      lower_case_(lower_case),
      types_(types),
      single_(special ? frame_of(1) : Frame()),
      pair_(special ? frame_of(2) : Frame()) {
  const int64_t added = single_.size();
  check(most_ > added, "maximum length: {} tokens, {} of them special; expected room for a text",
        most_, added);
}

TextFormat TextFormat::open(const std::string& folder, const Spec& spec) {
  const TextSettings settings = read_text_settings(folder);
  const int64_t most = std::min(settings.max_tokens.value_or(spec.context), spec.context);
  TextFormat format(Tokenizer::open(folder), most, settings.lower_case,
                    settings.types && spec.token_types > 1);
  format.messages_ = MessageFormat::open(folder, format.tokenizer_);
  return format;
}

TextFormat::Frame TextFormat::frame_of(int texts) const {
  const std::string probe = probe_text(tokenizer_);
  const size_t length = tokenizer_.encode(probe).size();
  const EncodingOptions options{.truncate_and_pad = false};
  const Encoding encoding =
      texts == 1 ? tokenizer_.encoding(probe, options) : tokenizer_.encoding(probe, probe, options);
  Frame frame;
  size_t seen = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const size_t part = seen / length;  // texts completed so far
    if (encoding.special_mask[i] != 0) {
      frame.added[part].push_back({encoding.ids[i], encoding.type_ids[i]});
    } else {
      frame.types[part] = encoding.type_ids[i];
      ++seen;
    }
  }
  return frame;
}

void TextFormat::refuse_messages(const char* what) const {
  if (messages_)
    fail(ErrorKind::Unsupported,
         "model: it reads messages (modality_config of its settings), so there are no {}; expected "
         "a model that reads texts",
         what);
}

std::vector<int32_t> TextFormat::own_ids(std::string_view text) const {
  return lower_case_ ? tokenizer_.encode(lower_case_of(text).text) : tokenizer_.encode(text);
}

TokenizedText TextFormat::framed(const Frame& frame,
                                 std::initializer_list<std::span<const int32_t>> texts) const {
  TokenizedText result;
  const bool typed = types_ && frame.typed();
  const auto add = [&](int32_t id, int32_t type) {
    result.ids.push_back(id);
    if (typed) result.types.push_back(type);
  };
  for (size_t part = 0; part < 3; ++part) {
    for (const Special& special : frame.added[part]) add(special.id, special.type);
    if (part >= texts.size()) continue;
    for (const int32_t id : texts.begin()[part]) add(id, frame.types[part]);
  }
  return result;
}

TokenizedText TextFormat::text(const std::string& prompt, std::string_view text) const {
  if (messages_) {
    TokenizedText result;
    result.ids = messages_->ids(tokenizer_, prompt, text, most_, result.cut);
    return result;
  }
  std::vector<int32_t> ids = prompt.empty() ? own_ids(text) : own_ids(prompt + std::string(text));
  const size_t most = static_cast<size_t>(most_ - single_.size()), whole = ids.size();
  ids.resize(std::min(whole, most));
  TokenizedText result = framed(single_, {ids});
  result.cut = static_cast<int64_t>(whole - ids.size());
  return result;
}

std::optional<int32_t> special_token(const Tokenizer& tokenizer, const char* key,
                                     std::initializer_list<const char*> names) {
  const TokenizerConfig config(tokenizer.state().files.config, "tokenizer_config.json");
  if (const std::string text = config.token(key, ""); !text.empty()) return tokenizer.id_of(text);
  for (const char* name : names)
    if (const auto id = tokenizer.id_of(name); id && tokenizer.is_special(*id)) return id;
  return std::nullopt;
}

std::vector<Offsets> TextFormat::places(std::string_view text) const {
  refuse_messages("places of tokens");
  LowerCase lower;
  if (lower_case_) lower = lower_case_of(text);
  const std::string_view read = lower_case_ ? lower.text : text;
  std::vector<Token> tokens = tokenizer_.tokens(read);
  const auto kept = std::min(tokens.size(), static_cast<size_t>(most_ - single_.size()));
  std::vector<Offsets> places(single_.added[0].size());
  for (size_t i = 0; i < kept; ++i) {
    const auto begin = static_cast<uint32_t>(tokens[i].text.data() - read.data());
    const auto end = begin + static_cast<uint32_t>(tokens[i].text.size());
    if (lower_case_ && end > begin)
      places.push_back({lower.sources[begin].begin, lower.sources[end - 1].end});
    else
      places.push_back({begin, end});
  }
  places.resize(kept + static_cast<size_t>(single_.size()));
  return places;
}

TokenizedText TextFormat::pair(std::span<const int32_t> first, std::string_view second) const {
  refuse_messages("pairs of texts");
  const std::vector<int32_t> ids = own_ids(second);
  check(most_ > pair_.size(),
        "maximum length: {} tokens, {} of them special; expected room for two texts", most_,
        pair_.size());
  const size_t most = static_cast<size_t>(most_ - pair_.size());
  const size_t whole = first.size() + ids.size();
  std::pair<size_t, size_t> kept = {first.size(), ids.size()};
  if (whole > most) kept = shares(first.size(), ids.size(), most);
  TokenizedText result =
      framed(pair_, {first.first(kept.first), std::span(ids).first(kept.second)});
  result.cut = static_cast<int64_t>(whole - kept.first - kept.second);
  return result;
}

}  // namespace fovea
