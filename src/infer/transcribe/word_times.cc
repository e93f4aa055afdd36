#include "transcribe/word_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "audio/log_mel.h"
#include "base/math.h"
#include "generate/sampler.h"
#include "tensor/tape.h"
#include "transcribe/window_decoder.h"

namespace fovea::infer {
namespace {

// What a pass over a text computes: the similarity of tokens and frames, and the probability of
// each token among those of text.
struct TextPass {
  std::vector<float> similarity;  // [T, S]
  std::vector<double> probabilities;
  int64_t T = 0, S = 0;
};

// Normalises each column of weights [T, S] to mean 0 and variance 1.
void normalise_columns(std::vector<float>& weights, int64_t T, int64_t S) {
  for (int64_t s = 0; s < S; ++s) {
    double sum = 0, squares = 0;
    for (int64_t t = 0; t < T; ++t) sum += double{weights[static_cast<size_t>(t * S + s)]};
    const double mean = sum / static_cast<double>(T);
    for (int64_t t = 0; t < T; ++t) {
      const double difference = double{weights[static_cast<size_t>(t * S + s)]} - mean;
      squares += difference * difference;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(T));
    for (int64_t t = 0; t < T; ++t) {
      float& weight = weights[static_cast<size_t>(t * S + s)];
      weight = deviation > 0 ? static_cast<float>((double{weight} - mean) / deviation) : 0.0f;
    }
  }
}

// The alignment heads; if they are unknown, all heads of the upper half of the layers.
std::vector<std::pair<int64_t, int64_t>> heads_of(const SpeechTokens& tokens,
                                                  const model::StackSpec& decoder) {
  if (!tokens.alignment_heads.empty()) return tokens.alignment_heads;
  std::vector<std::pair<int64_t, int64_t>> heads;
  for (int64_t layer = decoder.layers / 2; layer < decoder.layers; ++layer)
    for (int64_t head = 0; head < decoder.attention.heads; ++head) heads.emplace_back(layer, head);
  return heads;
}

// Reads `text` after the beginning, and returns the mean of the heads' filtered weights for the
// rows that predict its tokens.
TextPass read_text(const WordTimeInput& input, const std::vector<int32_t>& text) {
  const NoGradient off;
  const model::Transformer& model = input.generator.model;
  const auto heads = heads_of(input.tokens, *model.spec.decoder);
  std::map<int64_t, Tensor> weights;  // of layers, [1, H, T, S]
  std::set<int64_t> layers;
  for (const auto& [layer, head] : heads) layers.insert(layer);
  const auto wanted = [&](const model::ProbePoint& point) {
    return point.what == model::ProbePoint::What::attention &&
           point.stack == model::ProbePoint::Stack::cross && layers.contains(point.layer);
  };
  const model::Probe probe{.see =
                               [&](const model::ProbePoint& point, const Tensor& value) {
                                 if (wanted(point)) weights[point.layer] = value;
                               },
                           .wants_weights = wanted};
  std::vector<int32_t> ids = input.beginning;
  const int64_t before = std::ssize(ids);
  ids.push_back(input.tokens.no_timestamps);
  ids.insert(ids.end(), text.begin(), text.end());
  ids.push_back(input.tokens.end);
  model::Pass pass;
  pass.compute = input.generator.compute;
  pass.memory = input.memory;
  pass.probe = &probe;
  const Tensor hidden =
      model.decode({tensor_of(ids, {1, std::ssize(ids)}), {}, {}, {}}, pass);  // [1, all, C]

  TextPass found;
  const int64_t all = std::ssize(ids);
  found.T = std::ssize(text) + 1;  // the tokens, and the end
  found.S = std::min(input.frames / 2, input.memory.dim(1));
  found.similarity.resize(static_cast<size_t>(found.T * found.S));
  for (const auto& [layer, head] : heads) {
    const Tensor& of_layer = weights.at(layer);
    const int64_t keys = of_layer.dim(3);
    std::vector<float> one(static_cast<size_t>(all * found.S));
    for (int64_t t = 0; t < all; ++t) {
      const float* row = of_layer.data_as<float>() + (head * all + t) * keys;
      double sum = 0;  // the softmax over the frames of audio alone
      for (int64_t s = 0; s < found.S; ++s) sum += double{row[s]};
      for (int64_t s = 0; s < found.S; ++s)
        one[static_cast<size_t>(t * found.S + s)] = static_cast<float>(double{row[s]} / sum);
    }
    normalise_columns(one, all, found.S);
    median_filter(one, found.S, input.tokens.median_width);
    for (size_t i = 0; i < found.similarity.size(); ++i)
      found.similarity[i] +=
          one[static_cast<size_t>(before * found.S) + i] / static_cast<float>(heads.size());
  }
  each_logits(model, hidden, before, before + std::ssize(text), [&](int64_t row, float* logits) {
    const int32_t id = text[static_cast<size_t>(row - before)];
    found.probabilities.push_back(
        math::exp(double{logits[id]} - log_sum(logits, input.tokens.end)));
  });
  return found;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n\r"), end = text.find_last_not_of(" \t\n\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// Returns whether `part` occurs in `marks`, as a whole number of characters.
bool among(const std::string& part, const char* marks) {
  return std::string_view(marks).find(part) != std::string_view::npos;
}

}  // namespace

std::vector<TimedWord> align(const WordTimeInput& input, const std::vector<int32_t>& text) {
  const std::vector<TokenWord> words = words_of(*input.generator.tokenizer, text, input.language);
  if (words.empty() || input.frames < 2) return {};
  TextPass pass = read_text(input, text);
  std::vector<float> cost = pass.similarity;
  for (float& x : cost) x = -x;
  const WarpPath path = warp_path(cost, pass.T, pass.S);
  constexpr double kPerSecond = 50;  // outputs of the encoder
  std::vector<double> times;         // of the beginning of each token, and of the end
  for (size_t i = 0; i < path.rows.size(); ++i)
    if (i == 0 || path.rows[i] != path.rows[i - 1])
      times.push_back(static_cast<double>(path.columns[i]) / kPerSecond);
  std::vector<TimedWord> timed;
  size_t token = 0;
  for (const TokenWord& word : words) {
    const size_t next = token + word.tokens.size();
    const auto count = static_cast<double>(word.tokens.size());
    double sum = 0;
    std::vector<float> similarity(static_cast<size_t>(pass.S));
    for (size_t i = token; i < next; ++i) {
      sum += pass.probabilities[i];
      for (size_t at = 0; at < similarity.size(); ++at)
        similarity[at] += pass.similarity[i * similarity.size() + at] / static_cast<float>(count);
    }
    timed.push_back(
        {word.text, word.tokens, times[token], times[next], sum / count, std::move(similarity)});
    token = next;
  }
  return timed;
}

namespace {

double median_duration(const std::vector<TimedWord>& words) {
  std::vector<double> durations;
  for (const TimedWord& word : words)
    if (word.end != word.start) durations.push_back(word.end - word.start);
  if (durations.empty()) return 0;
  std::sort(durations.begin(), durations.end());
  const size_t half = durations.size() / 2;
  const double median =
      durations.size() % 2 == 1 ? durations[half] : (durations[half - 1] + durations[half]) / 2;
  constexpr double kMost = 0.7;
  return std::min(kMost, median);
}

// A word at the end of a sentence is at most `most` long: the rest is a pause.
void shorten_at_sentences(std::vector<TimedWord>& words, double most) {
  constexpr const char* kEnds = ".。!！?？";
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].end - words[i].start <= most) continue;
    if (among(words[i].text, kEnds)) {
      words[i].end = words[i].start + most;
    } else if (among(words[i - 1].text, kEnds)) {
      words[i].start = words[i].end - most;
    }
  }
}

void append(TimedWord& to, TimedWord& from, bool before) {
  to.text = before ? from.text + to.text : to.text + from.text;
  to.tokens.insert(before ? to.tokens.begin() : to.tokens.end(), from.tokens.begin(),
                   from.tokens.end());
  from.text.clear();
  from.tokens.clear();
}

// Joins punctuation with the word after it or before it; the words that it leaves have no text.
void join_punctuation(std::vector<TimedWord>& words) {
  constexpr const char* kOpening = "\"'“¿([{-";
  constexpr const char* kClosing = "\"'.。,，!！?？:：”)]}、";
  for (size_t following = words.size(), i = words.size(); i-- > 0;) {
    const bool joins = following < words.size() && words[i].text.starts_with(' ') &&
                       among(trimmed(words[i].text), kOpening);
    if (joins) {
      append(words[following], words[i], true);
    } else {
      following = i;
    }
  }
  for (size_t previous = 0, i = 1; i < words.size(); ++i) {
    if (!words[previous].text.ends_with(' ') && among(words[i].text, kClosing)) {
      append(words[previous], words[i], false);
    } else {
      previous = i;
    }
  }
}

double rounded(double seconds) { return std::round(seconds * 100) / 100; }

// Corrects the first and the last words of a segment, which pauses lengthen, and the segment's own
// times. `median`: duration of the words of the window.
void correct_ends(TranscribedSegment& segment, double median, double last_end) {
  std::vector<TranscribedWord>& words = segment.words;
  TranscribedWord &first = words.front(), &last = words.back();
  const double most = 2 * median;
  const bool two = words.size() > 1;
  const bool late = first.end - last_end > 4 * median;
  if (late && (first.end - first.start > most || (two && words[1].end - first.start > 2 * most))) {
    if (two && words[1].end - words[1].start > most) {
      const double boundary = std::max(words[1].end / 2, words[1].end - most);
      first.end = words[1].start = boundary;
    }
    first.start = std::max(0.0, first.end - most);
  }
  if (segment.start < first.end && segment.start - 0.5 > first.start) {
    first.start = std::max(0.0, std::min(first.end - median, segment.start));
  } else {
    segment.start = first.start;
  }
  if (segment.end > last.start && segment.end + 0.5 < last.end) {
    last.end = std::max(last.start + median, segment.end);
  } else {
    segment.end = last.end;
  }
}

}  // namespace

WarpPath warp_path(const std::vector<float>& cost, int64_t T, int64_t S) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  const auto at = [S](int64_t t, int64_t s) { return static_cast<size_t>(t * (S + 1) + s); };
  std::vector<float> total(at(T, S) + 1, kFar);
  std::vector<int8_t> step(total.size(), -1);  // 0: from both, 1: from the row above, 2: the column
  total[0] = 0;
  for (int64_t s = 1; s <= S; ++s) {
    for (int64_t t = 1; t <= T; ++t) {
      const float both = total[at(t - 1, s - 1)], row = total[at(t - 1, s)],
                  column = total[at(t, s - 1)];
      const int8_t best = both < row && both < column ? 0 : row < both && row < column ? 1 : 2;
      const float before = best == 0 ? both : best == 1 ? row : column;
      total[at(t, s)] = cost[static_cast<size_t>((t - 1) * S + s - 1)] + before;
      step[at(t, s)] = best;
    }
  }
  WarpPath path;
  for (int64_t t = T, s = S; t > 0 || s > 0;) {
    path.rows.push_back(t - 1);
    path.columns.push_back(s - 1);
    const int8_t how = t == 0 ? int8_t{2} : s == 0 ? int8_t{1} : step[at(t, s)];
    if (how != 2) --t;
    if (how != 1) --s;
  }
  std::reverse(path.rows.begin(), path.rows.end());
  std::reverse(path.columns.begin(), path.columns.end());
  return path;
}

void median_filter(std::vector<float>& x, int64_t S, int64_t width) {
  const int64_t half = width / 2;
  if (S <= half) return;
  std::vector<float> around(static_cast<size_t>(width)), result(static_cast<size_t>(S));
  for (auto row = x.begin(); row != x.end(); row += S) {
    for (int64_t s = 0; s < S; ++s) {
      for (int64_t i = -half; i <= half; ++i) {
        int64_t index = std::abs(s + i);
        if (index >= S) index = 2 * (S - 1) - index;
        around[static_cast<size_t>(i + half)] = row[index];
      }
      std::nth_element(around.begin(), around.begin() + half, around.end());
      result[static_cast<size_t>(s)] = around[static_cast<size_t>(half)];
    }
    std::copy(result.begin(), result.end(), row);
  }
}

std::vector<TokenWord> words_of(const text::Tokenizer& tokenizer,
                                const std::vector<int32_t>& tokens, const std::string& language) {
  static const std::set<std::string> unspaced = {"zh", "ja", "th", "lo", "my", "yue"};
  constexpr const char* kReplacement = "\xEF\xBF\xBD";  // of incomplete characters
  constexpr const char* kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  std::vector<TokenWord> words;
  TokenWord part;
  const std::string whole = tokenizer.decode(tokens);
  size_t index = 0;
  for (const int32_t token : tokens) {
    part.tokens.push_back(token);
    part.text = tokenizer.decode(part.tokens);
    const size_t incomplete = part.text.find(kReplacement);
    // A replacement character that is also in the whole text stands for invalid bytes.
    if (incomplete != std::string::npos && whole.compare(index + incomplete, 3, kReplacement) != 0)
      continue;
    index += part.text.size();
    const bool begins = words.empty() || unspaced.contains(language) ||
                        part.text.starts_with(' ') || among(trimmed(part.text), kPunctuation);
    if (begins) {
      words.push_back(std::move(part));
    } else {
      words.back().text += part.text;
      words.back().tokens.insert(words.back().tokens.end(), part.tokens.begin(), part.tokens.end());
    }
    part = {};
  }
  if (!part.tokens.empty()) words.push_back(std::move(part));
  return words;
}

void add_word_times(const WordTimeInput& input, std::vector<TranscribedSegment>& segments) {
  std::vector<int32_t> text;
  std::vector<size_t> counts;  // tokens of text in each segment
  for (const TranscribedSegment& segment : segments) {
    const size_t before = text.size();
    for (const int32_t id : segment.tokens)
      if (id < input.tokens.end) text.push_back(id);
    counts.push_back(text.size() - before);
  }
  if (text.empty()) return;
  // Alignment also reads the beginning, the token without timestamps, and the end. A text that
  // fills the context repeats itself; what does not fit has no times.
  const auto context = static_cast<size_t>(input.generator.model.spec.context);
  text.resize(std::min(text.size(), context - std::min(context, input.beginning.size() + 2)));
  std::vector<TimedWord> words = align(input, text);
  const double median = median_duration(words);
  if (median > 0) shorten_at_sentences(words, 2 * median);
  join_punctuation(words);
  double last_end = input.last_end;
  size_t next = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    TranscribedSegment& segment = segments[i];
    const double offset = static_cast<double>(segment.seek * media::kHop) / media::kSampleRate;
    for (size_t tokens = 0; next < words.size() && tokens < counts[i]; ++next) {
      const TimedWord& word = words[next];
      tokens += word.tokens.size();
      if (!word.text.empty())
        segment.words.push_back({word.text, rounded(offset + word.start),
                                 rounded(offset + word.end), word.probability});
    }
    if (segment.words.empty()) continue;
    correct_ends(segment, median, last_end);
    last_end = segment.end;
  }
}

}  // namespace fovea::infer
