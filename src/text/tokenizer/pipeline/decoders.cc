#include "tokenizer/pipeline/decoders.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tokenizer/pipeline/normalizers.h"
#include "unicode/utf8.h"

namespace fovea::text {

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  if (old.empty()) return;
  size_t at = text.find(old), done = 0;
  if (at == text.npos) return;
  std::string replaced;
  for (; at != text.npos; at = text.find(old, done)) {
    replaced.append(text, done, at - done).append(by);
    done = at + old.size();
  }
  text = std::move(replaced.append(text, done));
}

// The state of one decoder.
class DecodingStream::Step {
 public:
  using Tokens = std::vector<std::string>;
  virtual ~Step() = default;
  virtual void add(std::string&& token, Tokens& out) = 0;
  virtual void finish(Tokens&) {}
};

namespace {

using Tokens = DecodingStream::Step::Tokens;
using Step = DecodingStream::Step;

// Cleans up English text whose tokens were joined with spaces.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [old, by] : rules) replace_all(text, old, by);
}

// Returns whether `next` continues a UTF-8 sequence that begins with `start` (Unicode 15, table
// 3-7).
bool continues(std::string_view start, uint8_t next) {
  if ((next & 0xC0) != 0x80) return false;
  if (start.size() > 1) return true;
  switch (static_cast<uint8_t>(start[0])) {
    case 0xE0: return next >= 0xA0;
    case 0xED: return next < 0xA0;
    case 0xF0: return next >= 0x90;
    case 0xF4: return next < 0x90;
    default: return true;
  }
}

// Replaces invalid bytes by U+FFFD: one for each truncated sequence, and one for each other invalid
// byte. A truncated sequence is taken as long as possible.
std::string with_replacements(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t valid = utf8::valid_prefix(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const auto lead = static_cast<uint8_t>(bytes[0]);
    const size_t length = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    size_t bad = 1;
    while (bad < std::min(length, bytes.size()) &&
           continues(bytes.substr(0, bad), static_cast<uint8_t>(bytes[bad]))) {
      ++bad;
    }
    utf8::append(text, utf8::replacement);
    bytes.remove_prefix(bad);
  }
  return text;
}

class JoinWithSpacesStep : public Step {
 public:
  void add(std::string&& token, Tokens& out) override {
    if (!first_) token.insert(0, 1, ' ');
    first_ = false;
    out.push_back(std::move(token));
  }

 private:
  bool first_ = true;
};

class ByteLevelStep : public Step {
 public:
  void add(std::string&& token, Tokens& out) override {
    const size_t before = pending_.size();
    for (size_t i = 0; i < token.size();) {
      const utf8::Character c = utf8::first(std::string_view(token).substr(i));
      const int byte = byte_of_printable(c.code_point);
      if (byte < 0) {  // outside the alphabet: the token is plain text
        pending_.resize(before);
        pending_ += token;
        break;
      }
      pending_.push_back(static_cast<char>(byte));
      i += c.bytes;
    }
    const size_t complete = pending_.size() - utf8::incomplete_suffix(pending_);
    if (complete > 0)
      out.push_back(with_replacements(std::string_view(pending_).substr(0, complete)));
    pending_.erase(0, complete);
  }
  void finish(Tokens& out) override { out.push_back(with_replacements(pending_)); }

 private:
  std::string pending_;
};

class WordPieceStep : public Step {
 public:
  explicit WordPieceStep(const WordPieceDecoder& decoder) : decoder_(decoder) {}
  void add(std::string&& token, Tokens& out) override {
    if (!first_) {
      if (token.compare(0, decoder_.prefix.size(), decoder_.prefix) == 0) {
        token.erase(0, decoder_.prefix.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    first_ = false;
    if (decoder_.cleanup) clean_up(token);
    out.push_back(std::move(token));
  }

 private:
  const WordPieceDecoder& decoder_;
  bool first_ = true;
};

class MetaspaceStep : public Step {
 public:
  explicit MetaspaceStep(const MetaspaceDecoder& decoder) : decoder_(decoder) {}
  void add(std::string&& token, Tokens& out) override {
    replace_all(token, decoder_.replacement, first_ && decoder_.prepended ? "" : " ");
    first_ = false;
    out.push_back(std::move(token));
  }

 private:
  const MetaspaceDecoder& decoder_;
  bool first_ = true;
};

// Replaces the suffix by a space, but removes it from the last token. Therefore one token is always
// held back.
class BpeStep : public Step {
 public:
  explicit BpeStep(const BpeDecoder& decoder) : decoder_(decoder) {}
  void add(std::string&& token, Tokens& out) override {
    give(" ", out);
    held_ = std::move(token);
    holds_ = true;
  }
  void finish(Tokens& out) override { give("", out); }

 private:
  void give(std::string_view by, Tokens& out) {
    if (!holds_) return;
    replace_all(held_, decoder_.suffix, by);
    out.push_back(std::move(held_));
    holds_ = false;
  }
  const BpeDecoder& decoder_;
  std::string held_;
  bool holds_ = false;
};

// Returns the byte that a token such as "<0x0A>" represents, or -1. As in Hugging Face, "<0x+5>"
// represents the byte 5.
int byte_of(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Decodes adjacent bytes together. If they are not valid UTF-8, each becomes U+FFFD.
class ByteFallbackStep : public Step {
 public:
  void add(std::string&& token, Tokens& out) override {
    const int byte = byte_of(token);
    if (byte >= 0) {
      bytes_.push_back(static_cast<char>(byte));
    } else {
      finish(out);
      out.push_back(std::move(token));
    }
  }
  void finish(Tokens& out) override {
    if (bytes_.empty()) return;
    if (utf8::valid_prefix(bytes_) == bytes_.size()) {
      out.push_back(bytes_);
    } else {
      std::string replacement;
      utf8::append(replacement, utf8::replacement);
      for (size_t i = 0; i < bytes_.size(); ++i) out.push_back(replacement);
    }
    bytes_.clear();
  }

 private:
  std::string bytes_;
};

class FuseStep : public Step {
 public:
  void add(std::string&& token, Tokens& out) override { out.push_back(std::move(token)); }
};

// Removes the character decoder.content from the start and the end of a token, at most
// decoder.start and decoder.stop times. The token may arrive in parts.
class Stripper {
 public:
  explicit Stripper(const StripDecoder& decoder) : decoder_(decoder), start_(decoder.start) {}

  std::string add(std::string_view part) {
    const std::string& content = decoder_.content;
    const auto starts = [&] { return part.substr(0, content.size()) == content; };
    for (; start_ > 0 && starts(); --start_) part.remove_prefix(content.size());
    if (part.empty()) return "";
    start_ = 0;
    size_t end = part.size(), trailing = 0;
    for (; end > 0 && part.substr(0, end).ends_with(content); ++trailing) end -= content.size();
    std::string text;
    if (end > 0) {
      give(std::exchange(held_, 0), text);
      text += part.substr(0, end);
    }
    held_ += trailing;
    const size_t kept = std::min(held_, decoder_.stop);
    give(held_ - kept, text);
    held_ = kept;
    return text;
  }

 private:
  void give(size_t count, std::string& text) const {
    for (; count > 0; --count) text += decoder_.content;
  }

  const StripDecoder& decoder_;
  size_t start_;     // characters still to strip at the start
  size_t held_ = 0;  // characters to strip if no others follow
};

class StripStep : public Step {
 public:
  explicit StripStep(const StripDecoder& decoder) : decoder_(decoder) {}
  void add(std::string&& token, Tokens& out) override {
    out.push_back(Stripper(decoder_).add(token));
  }

 private:
  const StripDecoder& decoder_;
};

class FusedStripStep : public Step {
 public:
  explicit FusedStripStep(const StripDecoder& decoder) : stripper_(decoder) {}
  void add(std::string&& token, Tokens& out) override { out.push_back(stripper_.add(token)); }

 private:
  Stripper stripper_;
};

class ReplaceStep : public Step {
 public:
  ReplaceStep(const ReplaceDecoder& decoder, GrowthLimit& limit)
      : decoder_(decoder), limit_(limit) {}
  void add(std::string&& token, Tokens& out) override {
    std::vector<Stretch> stretches;
    decoder_.pattern.find(token, stretches);
    std::string text;
    for (const Stretch& stretch : stretches) {
      if (stretch.matches) {
        limit_.spend(decoder_.content.size());
        text += decoder_.content;
      } else {
        text.append(token, stretch.begin, stretch.end - stretch.begin);
      }
    }
    out.push_back(std::move(text));
  }

 private:
  const ReplaceDecoder& decoder_;
  GrowthLimit& limit_;
};

// Replaces a string that may be split over several parts: the end of a part that may begin the
// string is held back.
class FusedReplaceStep : public Step {
 public:
  FusedReplaceStep(const ReplaceDecoder& decoder, GrowthLimit& limit)
      : decoder_(decoder), limit_(limit) {}
  void add(std::string&& token, Tokens& out) override {
    held_ += token;
    std::string text;
    size_t done = 0;
    for (size_t at = held_.find(decoder_.text); at != held_.npos;
         at = held_.find(decoder_.text, done)) {
      text.append(held_, done, at - done);
      limit_.spend(decoder_.content.size());
      text += decoder_.content;
      done = at + decoder_.text.size();
    }
    size_t hold = std::min(decoder_.text.size() - 1, held_.size() - done);
    while (hold > 0 && held_.compare(held_.size() - hold, hold, decoder_.text, 0, hold) != 0)
      --hold;
    text.append(held_, done, held_.size() - hold - done);
    held_.erase(0, held_.size() - hold);
    out.push_back(std::move(text));
  }
  void finish(Tokens& out) override { out.push_back(std::move(held_)); }

 private:
  const ReplaceDecoder& decoder_;
  GrowthLimit& limit_;
  std::string held_;
};

class CtcStep : public Step {
 public:
  explicit CtcStep(const CtcDecoder& decoder) : decoder_(decoder) {}
  void add(std::string&& token, Tokens& out) override {
    if (std::exchange(any_, true) && token == last_) return;
    last_ = token;
    replace_all(token, decoder_.pad, "");
    if (decoder_.cleanup) {
      clean_up(token);
      replace_all(token, decoder_.delimiter, " ");
    }
    if (!token.empty()) out.push_back(std::move(token));
  }

 private:
  const CtcDecoder& decoder_;
  std::string last_;
  bool any_ = false;
};

// Collects a token that arrives in parts, and applies any other decoder to the complete token.
class WholeStep : public Step {
 public:
  explicit WholeStep(std::unique_ptr<Step> step) : step_(std::move(step)) {}
  void add(std::string&& token, Tokens&) override { whole_ += token; }
  void finish(Tokens& out) override {
    step_->add(std::move(whole_), out);
    step_->finish(out);
  }

 private:
  std::unique_ptr<Step> step_;
  std::string whole_;
};

struct MakeStep {
  GrowthLimit& limit;

  std::unique_ptr<Step> operator()(const JoinWithSpaces&) const {
    return std::make_unique<JoinWithSpacesStep>();
  }
  std::unique_ptr<Step> operator()(const ByteLevelDecoder&) const {
    return std::make_unique<ByteLevelStep>();
  }
  std::unique_ptr<Step> operator()(const WordPieceDecoder& decoder) const {
    return std::make_unique<WordPieceStep>(decoder);
  }
  std::unique_ptr<Step> operator()(const MetaspaceDecoder& decoder) const {
    return std::make_unique<MetaspaceStep>(decoder);
  }
  std::unique_ptr<Step> operator()(const BpeDecoder& decoder) const {
    return std::make_unique<BpeStep>(decoder);
  }
  std::unique_ptr<Step> operator()(const ByteFallback&) const {
    return std::make_unique<ByteFallbackStep>();
  }
  std::unique_ptr<Step> operator()(const Fuse&) const { return std::make_unique<FuseStep>(); }
  std::unique_ptr<Step> operator()(const StripDecoder& decoder) const {
    return std::make_unique<StripStep>(decoder);
  }
  std::unique_ptr<Step> operator()(const ReplaceDecoder& decoder) const {
    return std::make_unique<ReplaceStep>(decoder, limit);
  }
  std::unique_ptr<Step> operator()(const CtcDecoder& decoder) const {
    return std::make_unique<CtcStep>(decoder);
  }
};

std::unique_ptr<Step> make_fused_step(const Decoder& decoder, GrowthLimit& limit) {
  if (std::holds_alternative<Fuse>(decoder)) return std::make_unique<FuseStep>();
  if (const auto* strip = std::get_if<StripDecoder>(&decoder))
    return std::make_unique<FusedStripStep>(*strip);
  const auto* replace = std::get_if<ReplaceDecoder>(&decoder);
  if (replace && !replace->text.empty()) return std::make_unique<FusedReplaceStep>(*replace, limit);
  return std::make_unique<WholeStep>(std::visit(MakeStep{limit}, decoder));
}

}  // namespace

DecodingStream::DecodingStream(const Decoders& decoders)
    : limit_(std::make_unique<GrowthLimit>(GrowthLimit::of_decoding())) {
  bool fused = false;
  for (const Decoder& decoder : decoders) {
    steps_.push_back(fused ? make_fused_step(decoder, *limit_)
                           : std::visit(MakeStep{*limit_}, decoder));
    fused = fused || std::holds_alternative<Fuse>(decoder) ||
            std::holds_alternative<ByteLevelDecoder>(decoder);
  }
}

DecodingStream::DecodingStream(DecodingStream&&) noexcept = default;
DecodingStream& DecodingStream::operator=(DecodingStream&&) noexcept = default;
DecodingStream::~DecodingStream() = default;

void DecodingStream::push(size_t step, std::string&& token, std::string& text) {
  if (step == steps_.size()) {
    text += token;
    return;
  }
  Tokens out;
  steps_[step]->add(std::move(token), out);
  for (std::string& next : out) push(step + 1, std::move(next), text);
}

void DecodingStream::add(std::string_view token, std::string& text) {
  limit_->give(token.size());
  push(0, std::string(token), text);
}

void DecodingStream::finish(std::string& text) {
  for (size_t step = 0; step < steps_.size(); ++step) {
    Tokens out;
    steps_[step]->finish(out);
    for (std::string& next : out) push(step + 1, std::move(next), text);
  }
}

}  // namespace fovea::text
