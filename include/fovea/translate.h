#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/generate.h"

namespace fovea {

struct TranslateOptions {
  int64_t beams = 5;  // 1 = greedy
  // Hypotheses compare by log-probability / length ^ penalty. Absent: as the checkpoint says, or 1.
  std::optional<float> length_penalty;
  int64_t best = 1;  // so many hypotheses of each line, at most `beams`
  // Tokens of a translation: at most this many for each of the source's, and ten more.
  double length_factor = 3.0;
  int64_t max_tokens = 0;     // instead: at most so many; 0 = by the factor
  int64_t min_tokens = 0;     // no end before these
  std::string source_prefix;  // in front of every source, such as "translate English to German: "
  std::string task;           // instead: the checkpoint's name for one of its own prefixes
  std::string prefix;         // what every translation begins with
  bool alignment = false;     // also which words of the source each word came from
  bool refuse_long = false;   // InvalidArgument for a line over the context, instead of cutting it
  std::function<std::string(size_t)> name_of_line;  // for errors; absent: "line 1", ...
  // Texts computed at a time, times their beams: more fill the machine, fewer take less memory.
  int64_t sequences = 128;
};

struct Translation {
  std::vector<Generation> best;  // best first
  bool cut = false;              // the source was longer than the model's context
  // Of the best: pairs (word of the source, word of the translation), each counted from 0, by the
  // weights of the last layer's cross-attention.
  std::vector<std::pair<int64_t, int64_t>> alignment;
};

// Translates line by line. `next` gives the lines, nothing at their end; `put` receives the
// translations in the same order, and may end it all with false. Memory does not grow with the
// number of lines. An empty line's translation is empty. InvalidArgument where the model is no
// encoder-decoder.
void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put);

// One line as an Engine (fovea/engine.h) has to be asked for it.
struct TranslationRequest {
  std::vector<int32_t> source;
  GenerateOptions options;
  bool cut = false;  // the line was longer than the model's context
};
TranslationRequest translation_request(const Model& model, const TranslateOptions& options,
                                       const std::string& line);

// From one language into another, by their codes; empty = the files do not say.
struct TranslationDirection {
  std::string source, target;
  std::string source_prefix;  // see TranslateOptions
};
// What a model of several directions tells of them: the tasks "translation_en_to_de" of its
// config.json, and the languages that its vocabulary has a code ">>deu<<" for. Empty for others.
std::vector<TranslationDirection> translation_directions(const Model& model);

// Of translations against one reference each, as sacrebleu gives them.
struct TranslationScores {
  double bleu = 0;  // Papineni et al. 2002: cased, tokenizer 13a, exponential smoothing
  double chrf = 0;  // Popovic 2015: chrF2
  std::string bleu_signature, chrf_signature;
};
// InvalidArgument where the lists differ in length.
TranslationScores score_translations(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::string>& references);

}  // namespace fovea
