#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/study/inspect.h"

namespace fovea::study {

// How the output of a model is attributed to the tokens of a text.
// gradient_input: the gradient of the output, multiplied by the token's embedding (Shrikumar et al.
// 2017, arXiv:1704.02685).
// integrated_gradients: the mean of the gradients between a baseline and the text, multiplied by
// the difference of the embeddings (Sundararajan et al. 2017, arXiv:1703.01365).
// rollout: attention weights multiplied over the layers (Abnar and Zuidema 2020, arXiv:2005.00928);
// they do not depend on the output, and have no sign.
enum class AttributionMethod { gradient_input, integrated_gradients, rollout };

// The methods to use. all: those that the model allows, in the order of AttributionMethod; the
// others correspond to AttributionMethod.
enum class AttributionMethods { all, gradient_input, integrated_gradients, rollout };

// What replaces the tokens of a text in the baseline of integrated gradients; special tokens stay.
// padding, mask: the embedding of this token. zero: a vector of zeros. automatic: the first of
// these that the tokenizer has.
enum class IntegrationBaseline { automatic, padding, mask, zero };

struct ExplainOptions {
  AttributionMethods method = AttributionMethods::all;
  // The output to explain: the name of a label, or a next token, by its text or as "#ID"; empty =
  // the most probable one.
  std::string target;
  IntegrationBaseline baseline = IntegrationBaseline::automatic;
  // Points of integrated gradients; 0 = 64, or twice as many, and so on up to 1024, until the
  // result has converged (see Attribution).
  int64_t integration_steps = 0;
  // The deletion test removes this share of the tokens, rounded up, those with the greatest scores,
  // and then as many random tokens, `random_choices` times.
  double removed_share = 0.2;
  int64_t random_choices = 20;
  uint64_t seed = 0;
  // explain_results(): the number of the result of each text that has attributions and is of
  // `target`; the others have only what is explained, which takes a pass or two. -1 = all.
  int64_t only = -1;
};
void visit(ExplainOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// How far the output changes if tokens are removed from the text: the value of the shorter text,
// minus that of the text.
struct DeletionTest {
  std::vector<int64_t> removed;  // indices of the tokens with the greatest scores, greatest first
  double change = 0;
  // The mean and the standard deviation of the change if as many random tokens are removed.
  double random_change = 0, random_deviation = 0;
};

struct Attribution {
  AttributionMethod method = AttributionMethod::gradient_input;
  std::vector<double> scores;  // of each token
  // integrated_gradients only: the output's value at the baseline, and the completeness error
  // |sum of scores - (value - baseline_value)| (Sundararajan et al. 2017, proposition 1).
  std::optional<double> baseline_value, completeness_error;
  // The number of points, and whether the error is at most 2 % of |value - baseline_value|, or
  // 0.001 if that is more.
  int64_t integration_steps = 0;
  bool converged = true;
  std::optional<DeletionTest> deletion;  // unset if the text has fewer than two own tokens
};

// A possible output, and its score: the probability of a label or of a next token.
struct ScoredOutput {
  std::string name;
  double score = 0;
  std::optional<int32_t> id = {};  // of a token
};

// What the output of a model for one text rests on.
struct Explanation {
  std::vector<InspectedToken> tokens;  // `special`: added to the text, and never removed
  int64_t cut = 0;                     // number of truncated tokens
  // The tokens that the output is about: a mask token, or those of an entity or of an answer to a
  // question. The deletion test keeps them.
  std::vector<int64_t> positions;
  // The label, the token, the answer to a question, or the other text of a similarity.
  std::string target;
  std::string value_name;  // logit, log-probability, cosine or dot
  double value = 0;
  std::string baseline;  // of integrated gradients: padding, mask or zero
  // All labels, or the most probable tokens, best first; empty for similarities and for answers to
  // questions. Of an entity: the mean probabilities of the labels for its tokens.
  std::vector<ScoredOutput> outputs;
  std::vector<Attribution> attributions;
};

// These functions return one explanation for each text. Its bits do not depend on the other texts
// and on the number of threads. Weights in a format for inference are used as stored, with exact
// products. Throw Unsupported if a method does not fit the model, as rollout for recurrent layers,
// InvalidArgument if the target or the baseline does not exist, and the errors of classify() and
// embed().

// Explains the logit of a label; the classifier predicts labels of texts. With
// classify_options.labels: the entailment logit of a candidate label, whose hypothesis stays as it
// is, as Classifier::classify_by() computes it.
std::vector<Explanation> explain(const infer::Classifier& classifier,
                                 const std::vector<infer::TextInput>& texts,
                                 const ExplainOptions& options = {},
                                 const infer::ClassifyOptions& classify_options = {});

// Explains each result for each text. The results are, in the same order, the entities of
// find_entities(), the answers of answer(), where a pair is a question and its context, or the
// masks of fill_masks(); classify() has one result. The explained number is the logit of a label,
// as the mean over the tokens of an entity; the logit of the first token of an answer to begin it
// plus that of the last one to end it; or the log-probability of a token at the mask.
// options.target: another label of the entities, or another token at the masks.
std::vector<std::vector<Explanation>> explain_results(
    const infer::Classifier& classifier, const std::vector<infer::TextInput>& texts,
    const ExplainOptions& options = {}, const infer::ClassifyOptions& classify_options = {});

// Explains the similarity of each text's vector and that of `other`, which stays as it is. Throws
// Unsupported unless the model compares vectors by cosine or dot product.
std::vector<Explanation> explain(const infer::Embedder& embedder,
                                 const std::vector<std::string>& texts, const std::string& other,
                                 const ExplainOptions& options = {},
                                 const infer::EmbedOptions& embed_options = {});

// Explains the log-probability of the next token of a decoder, which has one explanation, or the
// results that Classifier::of(model) finds, as explain_results() does. Reads `text` or, for next
// tokens, `ids` of the input; of a model that answers questions, `text` is the question and
// `target` its context. Throws Unsupported for other models.
std::vector<Explanation> explain(const model::Model& model, const InspectInput& input,
                                 const ExplainOptions& options = {},
                                 const infer::ClassifyOptions& classify_options = {});

const std::string& name_of(AttributionMethod method);  // as in the options

}  // namespace fovea::study
