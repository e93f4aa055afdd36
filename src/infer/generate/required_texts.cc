#include "generate/required_texts.h"

#include <algorithm>

#include "base/fields.h"
#include "generate/terms.h"

namespace fovea::infer {
namespace {

// Returns how many of the first tokens of `spelling`, but not all, are the last ones of
// `generated`.
size_t begun(const std::vector<int32_t>& generated, const std::vector<int32_t>& spelling) {
  for (size_t n = std::min(generated.size(), spelling.size() - 1); n > 0; --n)
    if (std::equal(spelling.begin(), spelling.begin() + static_cast<std::ptrdiff_t>(n),
                   generated.end() - static_cast<std::ptrdiff_t>(n)))
      return n;
  return 0;
}

bool is_of_word(char c) {
  return c != ' ' && c != '\n' && c != '\t' && c != '"' && c != '(' && c != '-';
}

}  // namespace

RequiredTexts::RequiredTexts(const std::vector<std::string>& texts,
                             const text::Tokenizer& tokenizer, bool whole_words)
    : tokenizer_(tokenizer), whole_words_(whole_words) {
  for (int32_t id = 0; whole_words && id < tokenizer.size(); ++id)
    if (!tokenizer.is_special(id) && begins_in_word(tokenizer.bytes_of(id)))
      continuing_.push_back(id);
  for (const std::string& bytes : texts) {
    check_field(tokenizer.unknown(bytes).empty(), "required",
                "\"{}\" has characters without a token; expected others", bytes);
    Text text{bytes, tokenizer.encode(bytes), {}, 0};
    check_field(!text.begins.empty(), "required", "\"{}\" has no tokens; expected words", bytes);
    // Many tokenizers have other tokens for a word after a space.
    if (tokenizer.unknown(" ").empty() && !bytes.starts_with(' ') &&
        !tokenizer.bytes_of(text.begins.front()).starts_with(' '))
      text.continues = tokenizer.encode(" " + bytes);
    text.tokens = std::max(std::ssize(text.begins), std::ssize(text.continues));
    texts_.push_back(std::move(text));
  }
}

RequiredTexts::Progress RequiredTexts::after(const std::vector<int32_t>& generated) const {
  std::string bytes;
  for (const int32_t id : generated) bytes += tokenizer_.bytes_of(id);
  Progress progress;
  size_t most = 0;  // tokens of the text that is begun
  for (const Text& text : texts_) {
    const size_t at = whole_words_ ? find_words(bytes, text.bytes) : bytes.find(text.bytes);
    if (at != std::string::npos) {
      progress.done += text.tokens;
      progress.ends_word = progress.ends_word || (whole_words_ && ends_in_word(text.bytes) &&
                                                  at + text.bytes.size() == bytes.size());
      continue;
    }
    progress.left += text.tokens;
    const bool in_word = !bytes.empty() && is_of_word(bytes.back());
    for (const std::vector<int32_t>* spelling : {&text.begins, &text.continues}) {
      if (spelling->empty()) continue;
      const size_t n = begun(generated, *spelling);
      const bool fits = text.continues.empty() || in_word == (spelling == &text.continues);
      if (fits) progress.next.push_back(spelling->front());
      if (n > 0) progress.next.push_back((*spelling)[n]);
      if (n > most) progress.onward.clear();
      most = std::max(most, n);
      if (n == most && (n > 0 || fits)) progress.onward.push_back((*spelling)[n]);
    }
  }
  progress.done += static_cast<int64_t>(most);
  std::sort(progress.next.begin(), progress.next.end());
  progress.next.erase(std::unique(progress.next.begin(), progress.next.end()), progress.next.end());
  return progress;
}

int64_t RequiredTexts::done_after(std::vector<int32_t> generated, int32_t id) const {
  generated.push_back(id);
  return after(generated).done;
}

}  // namespace fovea::infer
