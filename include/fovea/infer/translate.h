#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/infer/generate.h"
#include "fovea/infer/metrics.h"

namespace fovea::infer {

struct TranslateOptions {
  int64_t beams = 5;  // 1 = greedy
  // Hypotheses are ranked by log-probability / length ^ length_penalty. Unset: the checkpoint's
  // value, or 1 if it has none.
  std::optional<float> length_penalty;
  int64_t best = 1;  // hypotheses to return per line, at most `beams`
  // Maximum number of target tokens per source token; ten more are always allowed.
  double length_factor = 3.0;
  int64_t max_tokens = 0;     // maximum target tokens, instead of length_factor; 0 = unset
  int64_t min_tokens = 0;     // minimum target tokens
  std::string source_prefix;  // prepended to every source, such as "translate English to German: "
  std::string task;  // instead of source_prefix: the name of one of the checkpoint's own prefixes
  // The languages of a model that has several, as its own codes (eng_Latn, en_XX, deu) or as BCP 47
  // tags (en, pt-BR, zh-Hans). NLLB, M2M-100 and mBART need both, unless tokenizer_config.json has
  // src_lang and the checkpoint a forced_bos_token_id; in other models they select the prefix.
  std::string source_language, target_language;
  std::string prefix;      // the first words of every translation
  bool alignment = false;  // also return word alignments
  bool tree = false;       // also return the tree of the beam search. Needs at least 2 beams.
  // A file of lines "source term<TAB>target term": if a line contains the source term as whole
  // words, each hypothesis of its translation contains the target term. Needs at least 2 beams.
  std::string terms;
  // Keep mark-up: tags of XML and HTML are removed from a line and inserted into its translation
  // next to the words that are aligned with their neighbours; URLs and placeholders such as {name},
  // %s and $1 appear in the translation as they are, if the tokenizer can write them. Needs at
  // least 2 beams.
  bool markup = false;
  // Throw InvalidArgument for a line that exceeds the model's context instead of truncating it.
  bool refuse_long = false;
  std::function<std::string(size_t)> name_of_line;  // used in errors; unset: "line 1", ...
  // Maximum hypotheses (lines times beams) per batch. A larger batch is faster; a smaller one takes
  // less memory.
  int64_t sequences = 128;
};
void visit(TranslateOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct Translation {
  std::vector<Generation> best;  // best first
  bool cut = false;              // the source was truncated to the model's context
  // Aligned words of the best hypothesis: pairs of word indices (source, target), from 0. The
  // source includes its prefix. Derived from the weights of the last layer's cross-attention.
  std::vector<std::pair<int64_t, int64_t>> alignment;
};

// Translates line by line. `next` returns the next line, or nothing at the end. `put` receives the
// translations in the same order; return false to stop. Memory use does not depend on the number of
// lines. The translation of an empty line is empty. `next` and `put` are called on the caller's
// thread; the Translation is valid during the call only. Throws InvalidArgument if the model is not
// an encoder-decoder, or if an option is out of range.
void translate(const model::Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put);

// The translation of one line as a request to an Engine (fovea/infer/engine.h).
struct TranslationRequest {
  std::vector<int32_t> source;
  GenerateOptions options;
  bool cut = false;  // the line was truncated to the model's context
};
// Throws the errors of translate().
TranslationRequest translation_request(const model::Model& model, const TranslateOptions& options,
                                       const std::string& line);

// A translation direction.
struct TranslationDirection {
  std::string source, target;  // language codes; empty = unknown
  std::string source_prefix;   // as in TranslateOptions
};
// Returns the directions that a model's files name: tasks such as "translation_en_to_de" in
// config.json, language codes such as ">>deu<<" in the vocabulary, else source_lang and target_lang
// in tokenizer_config.json; empty for other models.
std::vector<TranslationDirection> translation_directions(const model::Model& model);
// Returns the codes of a model that translates between any two of its languages, such as NLLB,
// M2M-100 and mBART, in the order of their tokens; empty for other models.
std::vector<std::string> translation_languages(const model::Model& model);

// Returns the metrics of evaluation_task("pairs"), with one reference per translation: BLEU
// (Papineni et al. 2002: cased, tokenizer 13a, exponential smoothing) and chrF2 (Popovic 2015) as
// computed by sacrebleu, and the mean ROUGE-L of the lines (Lin 2004: uncased, without stemming) as
// computed by rouge-score. Throws InvalidArgument if the lists differ in length.
MetricValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references);

}  // namespace fovea::infer
