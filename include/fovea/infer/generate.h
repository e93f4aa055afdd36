#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/infer/beam_tree.h"
#include "fovea/infer/image_prompt.h"
#include "fovea/model/model.h"

namespace fovea::infer {

// How the next token is sampled. Logits are changed first, in this order: bias; repetition,
// presence and frequency penalties; repeated n-grams; DRY; tokens that the checkpoint forbids;
// GenerateOptions::constrain. Then follow the filters, in the order of `samplers`.
struct Sampling {
  float temperature = 0.8f;  // 0 = greedy: always the most likely token
  int64_t top_k = 40;        // keep only the k most likely tokens; 0 = all
  // Keep the smallest set of most likely tokens with at least this total probability; 1 = all.
  float top_p = 0.95f;
  float min_p = 0.0f;  // drop tokens below this fraction of the highest probability; 0 = off
  // Locally typical sampling (Meister et al. 2023): keep the tokens whose surprisal is nearest to
  // the entropy, up to this total probability; 1 = all.
  float typical_p = 1.0f;
  // Keep the tokens whose logit is at most this many standard deviations of all logits below the
  // highest (Tang et al. 2024); 0 = off.
  float top_n_sigma = 0.0f;
  // XTC ("exclude top choices", p-e-w 2024): with this probability, of the tokens that have at
  // least the probability `xtc_threshold`, all but the least likely one are dropped; 0 = off.
  float xtc_probability = 0.0f, xtc_threshold = 0.1f;
  // The filters, separated by ";" or ",", each at most once; those that are not named are off.
  // Empty: top_k;top_n_sigma;temperature;top_p;typical_p;min_p;xtc. The penalties, and DRY, precede
  // the filters unless "penalties" or "dry" is among the names.
  std::string samplers = {};
  // 2 = Mirostat 2.0 (Basu et al. 2021, algorithm 2) instead of the other filters, after the
  // temperature: keeps the mean surprisal of the text near `mirostat_tau` bits; 0 = off.
  int64_t mirostat = 0;
  float mirostat_tau = 5.0f, mirostat_eta = 0.1f;  // the target, and the rate of its control
  // Divides positive and multiplies negative logits of tokens that already occur in the prompt or
  // in the generated text (Keskar et al. 2019); 1 = off.
  float repetition_penalty = 1.0f;
  // Subtracted from the logits of tokens that were already generated: once, and once per
  // occurrence; 0 = off.
  float presence_penalty = 0.0f, frequency_penalty = 0.0f;
  int64_t no_repeat_ngram = 0;  // never repeat an n-gram of this length; 0 = off
  // DRY ("don't repeat yourself", p-e-w 2024): subtracts multiplier * base ^ (n - allowed length)
  // from the logit of a token that would continue a repetition of the last n tokens, for n of at
  // least the allowed length; a multiplier of 0 = off.
  float dry_multiplier = 0.0f, dry_base = 1.75f;
  int64_t dry_allowed_length = 2;
  int64_t dry_penalty_last_n = -1;  // only the last n tokens are searched; -1 = all
  // Texts that end a repetition; empty = a line break, ":", "\"" and "*"; {"none"} = none. Their
  // tokens are added to `dry_breaker_ids`.
  std::vector<std::string> dry_sequence_breakers = {};
  std::vector<int32_t> dry_breaker_ids = {};
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added to a token's logit
  uint64_t seed = 0;
};

// When a beam search with `beams` finished hypotheses ends, as in transformers. no: when the best
// unfinished hypothesis, if it ended now, would not be among them. yes: immediately. never: when no
// unfinished hypothesis could be among them at any length.
enum class EarlyStopping { no, yes, never };

struct GenerateOptions {
  Sampling sampling;
  int64_t generations = 1;  // number of independent samples, or of the best hypotheses to return
  int64_t beams = 1;        // number of hypotheses of a beam search; 1 = sampling
  // Hypotheses are ranked by log-probability / length ^ length_penalty.
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::no;
  // Diverse beam search (Vijayakumar et al. 2018): the beams form this many groups of equal size,
  // and the log-probability of a token is reduced by diversity_penalty for each time that an
  // earlier group continues with this token at the same step (Hamming diversity).
  int64_t beam_groups = 1;
  float diversity_penalty = 0.5f;
  bool beam_tree = false;  // also return Generation::beam_tree

  // Maximum number of generated tokens; -1 = no limit, but an Engine and a beam search also end
  // when the context is full.
  int64_t max_tokens = 256;
  int64_t min_tokens = 0;   // minimum number of generated tokens
  bool ignore_end = false;  // continue past the end-of-text token
  // Generation ends before the first occurrence of one of these strings; the text excludes it.
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;    // tokens that end generation like the end-of-text token
  std::vector<std::string> banned;  // texts that are never generated, however they are tokenised
  // Beam search: texts that every hypothesis contains (dynamic beam allocation, Post and Vilar
  // 2018). If the maximum number of tokens is too small for them, those that fit.
  std::vector<std::string> required;
  bool keep_special = false;          // keep special tokens in the text
  std::vector<int32_t> kept_special;  // those that are kept in any case, such as marks of calls
  // The tokens with which the output begins.
  std::vector<int32_t> forced;

  // Number of speculative tokens per pass and text, at most 64 (Leviathan et al. 2023); 0 = off.
  // They come from a draft model or, without one, from the continuation of the latest earlier
  // occurrence of the last 4, 3 or 2 tokens (prompt lookup decoding, Saxena 2023). The model checks
  // them in one pass and rejects those that it would not generate, so the results do not change.
  // Generation is faster if many are accepted. A model or draft model with recurrent layers limits
  // the number to 15.
  // -1 = automatic: 0 to 15 for each text and pass, by the fraction that was accepted so far, the
  // number of texts in the pass and the size of the draft model. It becomes 0 while speculation
  // does not pay, except for one token from time to time. A beam search uses none.
  int64_t speculative_tokens = -1;

  // -1 = no log-probabilities; n = those of each generated token and of the n most likely tokens at
  // its position. A beam search returns only those of the generated tokens.
  int64_t logprobs = -1;
  // Called with the tokens generated so far; may change the logits [V] of the next token (-inf
  // forbids a token). Also called after speculative tokens, which may be rejected later. The
  // arguments are valid during the call only. Calls for one request do not overlap, but may come
  // from different threads. An Error that it throws ends the request.
  std::function<void(std::span<const int32_t> generated, std::span<float> logits)> constrain;
};
// Visits the fields, including those of `sampling` (fovea/core/options.h), except logit_bias,
// dry_breaker_ids, early_stopping, keep_special, kept_special, forced and constrain.
void visit(GenerateOptions& options, OptionVisitor& visitor);

// Log-probabilities before any penalty or filter; in a beam search, after the penalties.
struct TokenLogprob {
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;  // most likely first; empty in a beam search
};

// Why a generation ended. length: the maximum number of tokens, or the end of the context. end: an
// end-of-text token. stop: a stop string or a stop id. cancelled: the callback or the caller ended
// it.
enum class FinishReason : uint8_t { none, length, end, stop, cancelled };
const char* name_of(FinishReason reason);  // "" for none

struct Generation {
  std::vector<int32_t> ids;  // generated tokens, without an end-of-text token or stop id
  std::string text;          // decoded, without the stop string
  FinishReason finish = FinishReason::none;
  std::vector<TokenLogprob> logprobs;  // of each of `ids`, if requested
  float score = 0;  // beam search: log-probability / length ^ length_penalty, end token included
  int64_t prompt_tokens = 0;
  int64_t dropped_tokens = 0;  // prompt tokens before those that fit into the context: not read
  int64_t cached_tokens = 0;   // prompt tokens found in the cache
  int64_t speculative_tokens = 0, accepted_tokens = 0;  // numbers of those checked, and accepted
  double prompt_seconds = 0, generation_seconds = 0;
  int32_t end_id = -1;    // the token that ended the generation; -1 = no token did
  std::string stop = {};  // the stop string that ended it
  // Beam search, if requested: the tree, which all results share, and the node of the last token.
  std::shared_ptr<const BeamTree> beam_tree = {};
  int64_t beam_node = -1;
};

// Receives text of the first generation as soon as it is final: never a partial character, never
// the start of a stop string. `piece` is valid during the call only. Return false to end the
// generation. A beam search passes its whole text at the end.
using TextSink = std::function<bool(std::string_view piece)>;

// A file that keeps the keys and values of a prompt, so that they need not be computed again by
// later processes. `identity` names the model and its weights; a file of another one is refused.
struct PromptCache {
  std::string path, identity;
};

// Continues `prompt`, and returns one result per generation. An encoder-decoder reads the prompt in
// its encoder. When the context of a decoder is full, the older half of the text is dropped and the
// rest is read again, except in a beam search. An empty prompt of a decoder-only model is replaced
// by the end-of-text token, else by a newline, else by token 0. Throws InvalidArgument if the model
// generates no text, if an option is out of range, or if `draft` does not fit the model, for
// example because its vocabulary differs. Throws OutOfMemory if the keys and values do not fit into
// memory. Safe to call from several threads; `stream` is called on the caller's thread.
std::vector<Generation> generate(const model::Model& model, const std::string& prompt,
                                 const GenerateOptions& options, const TextSink& stream = {},
                                 const model::Model* draft = nullptr);
// Does the same for token ids; throws InvalidArgument if `prompt` is empty. If the model has no
// tokenizer, the texts stay empty. With `cache`, the longest common prefix of the prompt and that
// of the file is not computed, and the file is written if it lacks full pages of 64 tokens of the
// prompt; the results stay the same. Throws BadFile if the file is damaged or of another model, and
// Unsupported if the model's keys depend on the length of the text.
std::vector<Generation> generate(const model::Model& model, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream = {},
                                 const model::Model* draft = nullptr,
                                 const PromptCache* cache = nullptr);

// Does the same for a prompt with images, which ends when the context is full.
std::vector<Generation> generate(const model::Model& model, const ImagePrompt& prompt,
                                 const GenerateOptions& options, const TextSink& stream = {},
                                 const model::Model* draft = nullptr,
                                 const PromptCache* cache = nullptr);

// Returns `program` overridden by the settings in the model's generation_config.json or
// config.json. An encoder-decoder decodes greedily unless they enable sampling.
GenerateOptions generation_defaults(const model::Model& model, const GenerateOptions& program = {});
// Returns the tokens that end a text of this model; valid as long as a copy of the model exists.
const std::vector<int32_t>& end_ids(const model::Model& model);

// Returns the ids of a prompt, with the special tokens that the tokenizer adds; for a decoder-only
// model, without an end token. `special`: what names of special tokens in the prompt are. Throws
// InvalidArgument if the model has no tokenizer.
std::vector<int32_t> prompt_ids(const model::Model& model, const std::string& prompt,
                                text::SpecialTokens special = text::SpecialTokens::as_text);

// Returns the log-probability of each of `ids` given the ids before it (0 for the first), and of
// the `alternatives` most likely tokens at its position. Throws InvalidArgument if the model is not
// decoder-only, or if `ids` is empty or exceeds its context.
std::vector<TokenLogprob> score(const model::Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives = 0);
// Returns the log-probability of each of the continuations of a prompt: the sum over its tokens.
// Throws InvalidArgument if the model is not decoder-only, if the prompt or a continuation is
// empty, or if they exceed the context.
std::vector<double> score(const model::Model& model, const ImagePrompt& prompt,
                          const std::vector<std::vector<int32_t>>& continuations);
// Returns exp(-logprob / tokens), where `logprob` is the sum over `tokens` tokens; NaN for 0
// tokens.
double perplexity(double logprob, int64_t tokens);
// Returns the softmax of the log-probabilities of texts: the probability of each among these texts.
std::vector<double> probabilities(const std::vector<double>& logprobs);

}  // namespace fovea::infer
