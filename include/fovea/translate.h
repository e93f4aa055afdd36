#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/figures.h"
#include "fovea/generate.h"

namespace fovea {

struct TranslateOptions {
  int64_t beams = 5;  // 1 = greedy
  // Hypotheses are ranked by log-probability / length ^ length_penalty. Unset: the checkpoint's
  // value, or 1.
  std::optional<float> length_penalty;
  int64_t best = 1;  // hypotheses to return per line, at most `beams`
  // At most this many target tokens per source token, plus ten.
  double length_factor = 3.0;
  int64_t max_tokens = 0;     // overrides length_factor: at most this many tokens; 0 = unset
  int64_t min_tokens = 0;     // the translation does not end before this many tokens
  std::string source_prefix;  // prepended to every source, such as "translate English to German: "
  std::string task;    // instead of source_prefix: the name of one of the checkpoint's own prefixes
  std::string prefix;  // the first words of every translation
  bool alignment = false;  // also return word alignments
  // throw InvalidArgument for a line longer than the context instead of truncating it
  bool refuse_long = false;
  std::function<std::string(size_t)> name_of_line;  // used in errors; unset: "line 1", ...
  // Lines times beams per batch. More is faster; fewer take less memory.
  int64_t sequences = 128;
};
void visit(TranslateOptions& options, OptionVisitor& visitor);  // fovea/options.h

struct Translation {
  std::vector<Generation> best;  // best first
  bool cut = false;              // the source was truncated to the model's context
  // Word pairs (source, target) of the best hypothesis, counted from 0, from the weights of the
  // last layer's cross-attention.
  std::vector<std::pair<int64_t, int64_t>> alignment;
};

// Translates line by line. `next` returns the next line, or nothing at the end. `put` receives the
// translations in the same order; return false to stop. Memory use does not depend on the number of
// lines. The translation of an empty line is empty. Throws InvalidArgument if the model is not an
// encoder-decoder.
void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put);

// The request of one line, as input for an Engine (fovea/engine.h).
struct TranslationRequest {
  std::vector<int32_t> source;
  GenerateOptions options;
  bool cut = false;  // the line was truncated to the model's context
};
TranslationRequest translation_request(const Model& model, const TranslateOptions& options,
                                       const std::string& line);

// A translation direction, by language codes; empty = unknown.
struct TranslationDirection {
  std::string source, target;
  std::string source_prefix;  // as in TranslateOptions
};
// Lists the directions of a multilingual model: the tasks "translation_en_to_de" of its
// config.json, and the language codes ">>deu<<" of its vocabulary. Empty for other models.
std::vector<TranslationDirection> translation_directions(const Model& model);

// BLEU (Papineni et al. 2002: cased, tokenizer 13a, exponential smoothing) and chrF2 (Popovic 2015)
// against one reference per translation, computed as by sacrebleu, and the mean ROUGE-L of the
// lines (Lin 2004: uncased, without stemming), computed as by Google's rouge-score: the figures of
// evaluation_task("pairs"). Throws InvalidArgument if the lists differ in length.
FigureValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references);

}  // namespace fovea
