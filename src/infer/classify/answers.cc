// Extractive answers: the spans with the greatest p(begin) * p(end), as the question-answering
// pipeline of transformers finds them.

#include <algorithm>
#include <map>

#include "base/fields.h"
#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "tensor/host_values.h"
#include "tokenizer/state/encode.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

constexpr int64_t kUsualWindow = 384;  // as in Devlin et al. 2019

// The tokens of a context, and a question with its context and the windows that the model reads.
struct ContextTokens : TokenSpans {
  std::vector<uint8_t> inner;  // 1: the token continues a word of the pre-tokenizer
};
struct ReadQuestion {
  std::vector<int32_t> question;
  const ContextTokens* context = nullptr;
  std::vector<Interval> windows;
};

// The probabilities of the tokens of a window to begin and to end the answer, and of the empty
// answer.
struct WindowScores {
  std::vector<double> begin, end;
  double null = 0;
};

// Returns the room of a window for the context of a question.
int64_t room_of(const Classifier::Parts& parts, int64_t question, const ClassifyOptions& options,
                size_t index) {
  const TextFormat& format = parts.format;
  const int64_t wanted = options.window > 0 ? options.window : kUsualWindow;
  check_field(wanted > format.added_to_pair() + 1, "window", "{} tokens; expected at least {}",
              wanted, format.added_to_pair() + 2);
  const int64_t most = std::min(wanted, format.most());
  const int64_t room = most - question - format.added_to_pair();
  check(room > 0, "{}: the question has {} tokens; expected at most {}, in a window of {} tokens",
        name_of_text(options, index), question, most - format.added_to_pair() - 1, most);
  return room;
}

ContextTokens read_context(const text::Tokenizer& tokenizer, const std::string& text) {
  ContextTokens context{token_spans(tokenizer, text), {}};
  text::encode_with_spans(
      tokenizer.state(), text, text::SpecialTokens::as_text,
      [&](const text::TokenWithSpan& token) { context.inner.push_back(token.inner ? 1 : 0); });
  return context;
}

ReadQuestion read_question(const Classifier::Parts& parts, const Question& question,
                           const ContextTokens& context, const ClassifyOptions& options,
                           size_t index) {
  ReadQuestion read{parts.format.own_ids(question.question), &context, {}};
  check(!read.question.empty(), "{}: the question has no tokens; expected a text",
        name_of_text(options, index));
  check(!context.ids.empty(), "{}: the context has no tokens; expected a text",
        name_of_text(options, index));
  const int64_t room = room_of(parts, std::ssize(read.question), options, index);
  read.windows = windows_over(std::ssize(context.ids), room, std::min(options.overlap, room / 2));
  return read;
}

std::span<const int32_t> ids_in(const ReadQuestion& read, const Interval& window) {
  return std::span(read.context->ids)
      .subspan(static_cast<size_t>(window.begin), static_cast<size_t>(window.end - window.begin));
}

// Returns the scores of a window from the logits [T, 2] of its text. Only tokens of the context and
// the classification token, which stands for the empty answer, take part.
WindowScores scores_of_window(const float* logits, const TokenizedText& text, int64_t first,
                              int64_t count, std::optional<int32_t> cls) {
  std::vector<int64_t> spans;
  for (int64_t t = 0; t < std::ssize(text.ids); ++t)
    if ((t >= first && t < first + count) || text.ids[static_cast<size_t>(t)] == cls)
      spans.push_back(t);
  const auto probabilities = [&](int64_t which) {
    std::vector<float> x;
    for (const int64_t t : spans) x.push_back(logits[2 * t + which]);
    const std::vector<double> y = softmax_of(x.data(), std::ssize(x));
    std::vector<double> own(static_cast<size_t>(count));
    double null = 0;
    for (size_t i = 0; i < spans.size(); ++i) {
      if (spans[i] == 0) null = y[i];
      const int64_t token = spans[i] - first;
      if (token >= 0 && token < count) own[static_cast<size_t>(token)] = y[i];
    }
    return std::pair(own, null);
  };
  const auto [begin, null_begin] = probabilities(0);
  const auto [end, null_end] = probabilities(1);
  return {begin, end, null_begin * null_end};
}

struct TokenSpan {
  size_t begin, last;
  double score;
};

// Returns the `count` best spans of at most `most` tokens, best first.
std::vector<TokenSpan> best_spans(const WindowScores& scores, size_t count, size_t most) {
  std::vector<TokenSpan> spans;
  const auto better = [](const TokenSpan& a, const TokenSpan& b) { return a.score > b.score; };
  const auto cut = [&] {
    std::stable_sort(spans.begin(), spans.end(), better);
    if (spans.size() > count)
      spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(count), spans.end());
  };
  for (size_t begin = 0; begin < scores.begin.size(); ++begin) {
    const size_t stop = std::min(scores.end.size(), begin + most);
    for (size_t last = begin; last < stop; ++last)
      spans.push_back({begin, last, scores.begin[begin] * scores.end[last]});
    if (spans.size() > 4096 + 2 * count) cut();
  }
  cut();
  return spans;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  while (!text.empty()) {
    const text::utf8::Character c = text::utf8::first(text);
    for (const char32_t character : text::unicode::lowercase(c.code_point))
      if (character != 0) text::utf8::append(lower, character);
    text.remove_prefix(c.bytes);
  }
  return lower;
}

using FoundAnswer = ReadResults<ExtractedAnswer>::Found;

// The answers to one question so far. Equal texts are one answer, whose scores are added.
class AnswerList {
 public:
  // `before`: number of tokens before the context. `first_window`: the number of the question's
  // first window.
  AnswerList(const Question& question, const ReadQuestion& read, int64_t before,
             size_t first_window)
      : question_(question), read_(read), before_(before), first_window_(first_window) {}

  void add(size_t window, const TokenSpan& span) {
    const Interval& range = read_.windows[window];
    const auto first = static_cast<size_t>(range.begin), end = static_cast<size_t>(range.end);
    size_t begin = first + span.begin, last = first + span.last;
    while (begin > first && read_.context->inner[begin] != 0) --begin;
    while (last + 1 < end && read_.context->inner[last + 1] != 0) ++last;
    const TextSpan &from = read_.context->spans[begin], &to = read_.context->spans[last];
    const TextSpan in_text = {from.begin, to.end, from.first_byte, to.end_byte};
    const std::string text = text_at(question_.context, in_text), key = lower_case(text);
    const auto same =
        static_cast<size_t>(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
    if (same == keys_.size()) {
      keys_.push_back(key);
      best_spans_.push_back(-1);  // below every score
      answers_.push_back({{in_text, text, 0}, 0, 0, 0});
    }
    FoundAnswer& answer = answers_[same];
    answer.result.score += span.score;
    if (span.score <= best_spans_[same]) return;
    best_spans_[same] = span.score;
    answer.window = first_window_ + window;
    answer.begin = before_ + static_cast<int64_t>(span.begin);
    answer.end = before_ + static_cast<int64_t>(span.last) + 1;
  }

  void add_null(size_t window, double score) {
    answers_.push_back({{{}, "", score}, first_window_ + window, 0, 1});
  }

  std::vector<FoundAnswer> best(int64_t count) {
    std::stable_sort(answers_.begin(), answers_.end(),
                     [](const auto& a, const auto& b) { return a.result.score > b.result.score; });
    if (std::ssize(answers_) > count)
      answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(count), answers_.end());
    return std::move(answers_);
  }

 private:
  const Question& question_;
  const ReadQuestion& read_;
  const int64_t before_;
  const size_t first_window_;
  std::vector<std::string> keys_;
  std::vector<double> best_spans_;  // of each answer, the score of its best span
  std::vector<FoundAnswer> answers_;
};

// The contexts of questions, each of them once.
class ContextList {
 public:
  ContextList(const text::Tokenizer& tokenizer, const std::vector<Question>& questions,
              const ClassifyOptions& options) {
    std::map<std::string_view, size_t> numbers;
    std::vector<const std::string*> texts;
    for (const Question& question : questions) {
      const auto [at, added] = numbers.emplace(question.context, texts.size());
      if (added) texts.push_back(&question.context);
      number_of_.push_back(at->second);
    }
    contexts_.resize(texts.size());
    tokenize_all(texts.size(), [&](size_t i) {
      check_not_stopped(options);
      contexts_[i] = read_context(tokenizer, *texts[i]);
      return TokenizedText();
    });
  }
  const ContextTokens& operator[](size_t question) const { return contexts_[number_of_[question]]; }

 private:
  std::vector<ContextTokens> contexts_;
  std::vector<size_t> number_of_;
};

// Returns the best answers to a question. `list` is empty at first.
std::vector<FoundAnswer> answers_of(AnswerList list, std::span<const WindowScores> windows,
                                    const ClassifyOptions& options) {
  const int64_t top = options.top > 0 ? options.top : 1;
  size_t null = 0;  // the window with the least score of the empty answer
  for (size_t w = 0; w < windows.size(); ++w) {
    if (windows[w].null < windows[null].null) null = w;
    const auto candidates = static_cast<size_t>(top * 2 + 10);  // several spans may be one answer
    for (const TokenSpan& span :
         best_spans(windows[w], candidates, static_cast<size_t>(options.answer_tokens)))
      list.add(w, span);
  }
  if (options.null_answer) list.add_null(null, windows[null].null);
  return list.best(top);
}

}  // namespace

ReadResults<ExtractedAnswer> read_answers(const Classifier::Parts& parts,
                                          const std::vector<Question>& questions,
                                          const ClassifyOptions& options) {
  check_field(!options.null_answer || parts.cls, "null_answer",
              "the tokenizer has no classification token, which stands for the empty answer; "
              "expected false");
  const ContextList contexts(parts.format.tokenizer(), questions, options);
  std::vector<ReadQuestion> read;
  for (size_t i = 0; i < questions.size(); ++i)
    read.push_back(read_question(parts, questions[i], contexts[i], options, i));
  ReadResults<ExtractedAnswer> result;
  std::vector<TokenizedText>& texts = result.windows;
  std::vector<size_t> owners, first_window;
  for (size_t i = 0; i < read.size(); ++i) {
    first_window.push_back(texts.size());
    for (const Interval& window : read[i].windows) {
      texts.push_back(parts.format.framed(read[i].question, ids_in(read[i], window)));
      owners.push_back(i);
    }
  }
  const auto before = [&](size_t i) {
    return parts.format.before_second() + std::ssize(read[i].question);
  };
  std::vector<WindowScores> scores(texts.size());
  each_batch(texts, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
    check_not_stopped(options);
    const Tensor of_batch = parts.logits(batch);  // [B, T, 2]
    const HostValues<float> logits(of_batch);
    for (size_t b = 0; b < chosen.size(); ++b) {
      const size_t text = chosen[b], owner = owners[text];
      const Interval& window = read[owner].windows[text - first_window[owner]];
      const float* const row = logits.row(static_cast<int64_t>(b) * of_batch.dim(1)).data();
      check_finite_scores(row, 2 * std::ssize(texts[text].ids), owner, options);
      scores[text] =
          scores_of_window(row, texts[text], before(owner), window.end - window.begin, parts.cls);
    }
  });
  for (size_t i = 0; i < questions.size(); ++i)
    result.texts.push_back(
        answers_of(AnswerList(questions[i], read[i], before(i), first_window[i]),
                   std::span(scores).subspan(first_window[i], read[i].windows.size()), options));
  return result;
}

std::vector<std::vector<ExtractedAnswer>> Classifier::answer(const std::vector<Question>& questions,
                                                             const ClassifyOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  parts_->needs(ClassifierTask::answers, "answers");
  return read_answers(*parts_, questions, options).results();
}

}  // namespace fovea::infer
