#include "embed/text_format.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "embed/modules.h"
#include "fovea/core/excerpt.h"
#include "tokenizer/pipeline/post_processors.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/state.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::json;

struct LowerCase {
  std::string text;
  std::vector<text::Offsets>
      sources;  // for each byte of `text`, the original character's byte range
};

LowerCase lower_case_of(std::string_view original) {
  LowerCase lower;
  for (uint32_t begin = 0; begin < original.size();) {
    const text::utf8::Character c = text::utf8::first(original.substr(begin));
    const uint32_t end = begin + static_cast<uint32_t>(c.bytes);
    for (const char32_t character : text::unicode::lowercase(c.code_point))
      if (character != 0) text::utf8::append(lower.text, character);
    lower.sources.resize(lower.text.size(), {begin, end});
    begin = end;
  }
  return lower;
}

// Returns whether a tokenizer class of transformers 5 returns token types by default. The generic
// class, which takes the place of those that are not known, does not.
bool returns_types(std::string name) {
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  constexpr std::array kTyped = {"BertTokenizer",       "BertJapaneseTokenizer",
                                 "ConvBertTokenizer",   "ElectraTokenizer",
                                 "MobileBertTokenizer", "SqueezeBertTokenizer"};
  if (name.empty()) return true;  // the model's own class
  return std::find(kTyped.begin(), kTyped.end(), name) != kTyped.end();
}

// Returns a text that this tokenizer encodes to at least one token.
std::string probe_text(const text::Tokenizer& tokenizer) {
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

TextSettings text_settings_of(const text::Tokenizer& tokenizer, const std::string& file) {
  TextSettings settings;
  const text::TokenizerState& state = tokenizer.state();
  settings.keeps_end = state.truncation && state.truncation->left;
  if (state.files.config.empty()) return settings;
  const Json config = parse_json(state.files.config, file);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", file);
  constexpr double kNoLimit = 1e9;  // files without a limit usually have 1e30
  const auto most = find_float(config, "model_max_length", file, 1);
  if (most && *most < kNoLimit) settings.max_tokens = static_cast<int64_t>(*most);
  settings.types = returns_types(find_string(config, "tokenizer_class", file).value_or(""));
  if (const auto names = config.find("model_input_names"); names != config.end())
    settings.types = std::find(names->begin(), names->end(), "token_type_ids") != names->end();
  if (const auto side = find_string(config, "truncation_side", file)) {
    if (*side != "left" && *side != "right")
      fail(ErrorKind::BadFile, "{}: truncation_side is {}; expected left or right", file,
           excerpt(*side));
    settings.keeps_end = *side == "left";
  }
  return settings;
}

TextFormat::TextFormat(text::Tokenizer tokenizer, int64_t most, const TextSettings& settings,
                       bool special)
    : tokenizer_(std::move(tokenizer)),
      settings_(settings),
      most_(std::min(settings.max_tokens.value_or(most), most)),
      single_(special ? frame_of(1) : Frame()),
      pair_(special ? frame_of(2) : Frame()) {
  const int64_t added = single_.size();
  check(most_ > added, "maximum length: {} tokens, {} of them special; expected room for a text",
        most_, added);
}

TextFormat TextFormat::of(text::Tokenizer tokenizer, const model::Spec& spec, int64_t longest) {
  TextSettings settings = text_settings_of(tokenizer);
  settings.types = settings.types && spec.token_types > 1;
  const int64_t most = longest > 0 ? std::min(longest, spec.context) : spec.context;
  return TextFormat(std::move(tokenizer), most, settings);
}

TextFormat TextFormat::open(const std::string& folder, const model::Spec& spec) {
  text::Tokenizer tokenizer = text::Tokenizer::open(folder);
  TextSettings settings = read_text_settings(folder, tokenizer);
  settings.types = settings.types && spec.token_types > 1;
  TextFormat format(std::move(tokenizer), spec.context, settings);
  format.messages_ = MessageFormat::open(folder, format.tokenizer_);
  return format;
}

TextFormat::Frame TextFormat::frame_of(int texts) const {
  const std::string probe = probe_text(tokenizer_);
  const size_t length = tokenizer_.encode(probe).size();
  const text::EncodingOptions options{.truncate_and_pad = false};
  const text::Encoding encoding =
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
  return settings_.lower_case ? tokenizer_.encode(lower_case_of(text).text)
                              : tokenizer_.encode(text);
}

TokenizedText TextFormat::framed(const Frame& frame,
                                 std::initializer_list<std::span<const int32_t>> texts) const {
  TokenizedText result;
  const bool typed = settings_.types && frame.typed();
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
  if (!messages_)
    return truncated(prompt.empty() ? own_ids(text) : own_ids(prompt + std::string(text)));
  TokenizedText result;
  const MessageText message = {"user", text};
  result.ids = messages_->ids(tokenizer_, prompt, {&message, 1}, most_, result.cut);
  return result;
}

TokenizedText TextFormat::pair(const std::string& prompt, std::string_view query,
                               std::string_view document) const {
  TokenizedText result;
  const std::array<MessageText, 2> messages = {{{"query", query}, {"document", document}}};
  result.ids = messages_->ids(tokenizer_, prompt, messages, most_, result.cut);
  return result;
}

std::pair<size_t, size_t> TextFormat::kept(size_t count) const {
  const size_t size = std::min(count, static_cast<size_t>(most_ - single_.size()));
  return settings_.keeps_end ? std::pair(count - size, count) : std::pair(size_t{0}, size);
}

TokenizedText TextFormat::truncated(std::span<const int32_t> text) const {
  const auto [begin, end] = kept(text.size());
  TokenizedText result = framed(single_, {text.subspan(begin, end - begin)});
  result.cut = static_cast<int64_t>(text.size() - (end - begin));
  return result;
}

std::optional<int32_t> special_token(const text::Tokenizer& tokenizer, const char* key,
                                     std::initializer_list<const char*> names) {
  const text::TokenizerConfig config(tokenizer.state().files.config, "tokenizer_config.json");
  if (const std::string text = config.token(key, ""); !text.empty()) return tokenizer.id_of(text);
  for (const char* name : names)
    if (const auto id = tokenizer.id_of(name); id && tokenizer.is_special(*id)) return id;
  return std::nullopt;
}

std::vector<text::Offsets> TextFormat::offsets(std::string_view text) const {
  refuse_messages("offsets of tokens");
  LowerCase lower;
  const bool lower_case = settings_.lower_case;
  if (lower_case) lower = lower_case_of(text);
  const std::string_view read = lower_case ? lower.text : text;
  const std::vector<text::Token> tokens = tokenizer_.tokens(read);
  const auto [first, last] = kept(tokens.size());
  std::vector<text::Offsets> offsets(single_.added[0].size());
  for (size_t i = first; i < last; ++i) {
    const auto begin = static_cast<uint32_t>(tokens[i].text.data() - read.data());
    const auto end = begin + static_cast<uint32_t>(tokens[i].text.size());
    if (lower_case && end > begin)
      offsets.push_back({lower.sources[begin].begin, lower.sources[end - 1].end});
    else
      offsets.push_back({begin, end});
  }
  offsets.resize(last - first + static_cast<size_t>(single_.size()));
  return offsets;
}

TokenizedText TextFormat::pair(std::span<const int32_t> first, std::string_view second) const {
  refuse_messages("pairs of texts");
  const std::vector<int32_t> ids = own_ids(second);
  check(most_ > pair_.size(),
        "maximum length: {} tokens, {} of them special; expected room for two texts", most_,
        pair_.size());
  const size_t most = static_cast<size_t>(most_ - pair_.size());
  const size_t whole = first.size() + ids.size();
  std::pair<size_t, size_t> sizes = {first.size(), ids.size()};
  if (whole > most) sizes = text::shares(first.size(), ids.size(), most);
  const auto part = [&](std::span<const int32_t> own, size_t size) {
    return settings_.keeps_end ? own.last(size) : own.first(size);
  };
  TokenizedText result = framed(pair_, {part(first, sizes.first), part(ids, sizes.second)});
  result.cut = static_cast<int64_t>(whole - sizes.first - sizes.second);
  return result;
}

}  // namespace fovea::infer
