#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// How the next token is drawn. What changes logits comes first, in this order: bias, repetition,
// presence and frequency penalties, n-grams; then temperature, top-k, top-p, typical, min-p.
struct Sampling {
  float temperature = 0.8f;  // 0 = greedy: always the likeliest token
  int64_t top_k = 40;        // only the k likeliest; 0 = all
  float top_p = 0.95f;  // the smallest set of likeliest tokens with this much probability; 1 = all
  float min_p = 0.0f;   // none below this share of the likeliest token's probability; 0 = all
  // Meister et al. 2023: the tokens whose surprise is nearest to the expected one, with this much
  // probability; 1 = all.
  float typical_p = 1.0f;
  // Keskar et al. 2019: logits of seen tokens are divided (if > 0) or multiplied by this; 1 = off.
  float repetition_penalty = 1.0f;
  // Of a written token's logit this much is taken off, once, and this much for each time; 0 = off.
  float presence_penalty = 0.0f, frequency_penalty = 0.0f;
  int64_t no_repeat_ngram = 0;                             // no n tokens in a row twice; 0 = off
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added to a token's logit
  uint64_t seed = 0;
};

// When a beam search ends that has as many whole hypotheses as beams: once the best one under way,
// were it whole now, would not be among them (no); at once (yes); once it could not be among them
// at any length (never), as transformers has it.
enum class EarlyStopping { no, yes, never };

struct GenerateOptions {
  Sampling sampling;
  int64_t answers = 1;  // so many, drawn apart from one another; the best ones of a beam search
  // Above 1: beam search, that keeps so many hypotheses, instead of drawing.
  int64_t beams = 1;
  // Hypotheses compare by log-probability / length ^ penalty.
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::no;

  int64_t max_tokens = 256;  // -1 = until the end-of-text token or `stop`
  int64_t min_tokens = 0;    // no end before these
  bool ignore_end = false;   // go on past the end-of-text token
  // Generation ends before the first of these; they are not part of the text.
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;  // end like the end-of-text token
  bool keep_special = false;      // in the text
  // What the answer of an encoder-decoder begins with.
  std::vector<int32_t> forced;

  // Guesses so many tokens at a time and checks them in one pass (Leviathan et al. 2023): faster
  // where many are right, and the answer is the same. They come from a draft, a smaller model, or
  // without one from what followed the same words before. 0 = none.
  int64_t guesses = 0;

  // -1 = no log-probabilities; n = that of each token and of the n likeliest in its place.
  int64_t logprobs = -1;
  // May change the logits [V] for the token behind `written`, as a grammar does; -inf forbids. Is
  // asked for what a draft guesses too, of which the answer may know nothing later.
  std::function<void(const std::vector<int32_t>& written, float* logits, int64_t vocabulary)>
      constrain;
};

// Before any penalty or filter.
struct TokenLogprob {
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;  // likeliest first
};

struct Generation {
  std::vector<int32_t> ids;            // the new tokens, without the end-of-text token
  std::string text;                    // decoded, without the stop string
  std::string finish;                  // "length", "stop" (a stop string or id) or "end"
  std::vector<TokenLogprob> logprobs;  // of each of ids, if asked for
  float score = 0;  // of a beam: log-probability, its end included, / length ^ penalty
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;                        // of the prompt, that were not computed again
  int64_t guessed_tokens = 0, accepted_tokens = 0;  // guesses that were checked, that were right
  double prompt_seconds = 0, generation_seconds = 0;
};

// Receives pieces of text as they become sure: never half a character, never the start of a stop
// string. false ends the generation. Of one answer only; a beam search gives its text at the end.
using TextSink = std::function<bool(std::string_view piece)>;

// Continues `prompt`; an encoder-decoder reads it and answers. Past a decoder's context the oldest
// half is dropped and read again. An empty prompt begins with the end-of-text token if there is
// one, else with a newline or the vocabulary's first character. InvalidArgument where the draft's
// vocabulary is not the model's.
std::vector<Generation> generate(const Model& model, const std::string& prompt,
                                 const GenerateOptions& options, const TextSink& stream = {},
                                 const Model* draft = nullptr);
// The same on token ids; texts stay empty without a tokenizer.
std::vector<Generation> generate(const Model& model, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream = {},
                                 const Model* draft = nullptr);

// The program's options with what the model's generation_config.json says in their place. An
// encoder-decoder answers greedily unless it says otherwise.
GenerateOptions generation_defaults(const Model& model, const GenerateOptions& program = {});
// The tokens that end the model's texts.
const std::vector<int32_t>& end_ids(const Model& model);

// The ids that a model reads of a prompt: with the special tokens that its tokenizer adds in front.
std::vector<int32_t> prompt_ids(const Model& model, const std::string& prompt);

// The log-probability of each of `ids` behind the ids before it; the first has none (0).
std::vector<TokenLogprob> score(const Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives = 0);
// exp(-logprob / tokens), where logprob is the sum of that many tokens'; NaN of none.
double perplexity(double logprob, int64_t tokens);
// The softmax of texts' log-probabilities: the probability of each among them.
std::vector<double> probabilities(const std::vector<double>& logprobs);

}  // namespace fovea
