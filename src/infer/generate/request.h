#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "cache/kv_cache.h"
#include "fovea/infer/engine.h"
#include "generate/beam_search.h"
#include "generate/drafter.h"
#include "generate/generation_builder.h"
#include "generate/ngram_index.h"
#include "generate/sampler.h"
#include "generate/speculation_length.h"
#include "transformer/prompt_images.h"

namespace fovea::infer {

// A text in progress: `ids` are its tokens; the first text.length of them are in the cache. Reading
// a prompt, drawing a token and reading again after preemption work alike: the uncached tokens are
// read, and then the next token is drawn.
struct Branch {
  model::CachedText text;
  std::vector<int32_t> ids;
  int64_t horizon = 0;      // tokens of the text when its reading began; see KvCache::Member
  int64_t speculative = 0;  // number of unverified tokens at the end of ids
  std::shared_ptr<Drafter::Text> draft = {};
  NgramIndex ngrams = {};  // of the tokens that are final
  // Automatic numbers of speculative tokens, by their origin: 0 = a draft model, n - 1 = an earlier
  // occurrence of n tokens. Tokens after a longer occurrence are accepted more often.
  std::array<SpeculationLength, NgramIndex::kLongest> counts = {
      SpeculationLength(0.75), SpeculationLength(0.5), SpeculationLength(0.65),
      SpeculationLength(0.8)};
  size_t origin = 0;  // of the latest speculative tokens
  int64_t generation = 0;
  bool done = false;

  int64_t pending() const { return done ? 0 : std::ssize(ids) - text.length; }
};

// The inputs of a request.
struct Task {
  uint64_t number = 0;
  std::vector<int32_t> prompt;
  GenerateOptions options;
  Engine::Sink sink;
  bool slide = false;  // if the context is full, drop the older half instead of ending
  AttentionTraceOptions trace = {};
  size_t adapter = 0;  // see generate/reading.h
  // Encoder-decoders: the decoder's tokens before the generated ones; empty = the start token.
  std::vector<int32_t> beginning = {};
  // The encoder's output [1, S, C], instead of that for `prompt`, which may then be empty.
  Tensor memory = {};
  // Its keys and values in cross-attention, if they are known; null = the scheduler computes them.
  std::shared_ptr<model::CachedText::Memory> cross = {};
  std::shared_ptr<const model::PromptImages> images = {};  // null = none; not with `slide`
  bool whole_words = false;  // the required texts are not parts of longer words
};

// Returns the number of tokens that each of `texts` texts may add to a common prefix of `beginning`
// tokens in `pages` pages.
int64_t room_in(int64_t pages, int64_t beginning, int64_t texts);

// A request: its generations, which are drawn independently, or its beams.
class Request {
 public:
  Request(Task task, const model::Spec& spec, const GenerationRules& rules,
          const text::Tokenizer* tokenizer, model::PagePool& pool);
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  uint64_t number() const { return task_.number; }
  size_t adapter() const { return task_.adapter; }
  const std::vector<int32_t>& source() const { return task_.prompt; }  // input of an encoder
  const Tensor& memory() const { return task_.memory; }                // or its output
  const std::shared_ptr<model::CachedText::Memory>& cross() const { return task_.cross; }
  const model::PromptImages* images() const { return task_.images.get(); }  // null = none
  const model::PageContents& page_contents() const { return page_contents_; }
  std::vector<Branch>& branches() { return branches_; }
  bool done() const { return done_; }
  int64_t most_branches() const { return std::max(task_.options.generations, task_.options.beams); }
  bool beams() const { return beams_.has_value(); }
  int64_t horizon() const { return horizon_; }
  struct Counts {  // numbers of tokens of all generations; a beam search counts one per step
    int64_t generated = 0, speculative = 0, accepted = 0;
  };
  const Counts& counts() const { return counts_; }

  // Does the part of accept() that needs no other branch; safe to call for several requests in
  // parallel.
  void process_logits(size_t branch, const float* logits);
  // Draws tokens from the logits of a branch, [1 + speculative tokens, V]: row 0 is for the token
  // after the last accepted one, row i for the token after speculative token i (from 1). `traces`
  // has one entry per row, or is empty.
  void accept(size_t branch, const float* logits, std::vector<AttentionTrace> traces = {});
  // Returns the maximum number of speculative tokens after a branch; 0 in a beam search, before the
  // first generated token, and while more than the last token of the branch is unread.
  int64_t most_speculative(const Branch& branch) const;
  // Returns the number of speculative tokens, 0 to `most`, to request from a draft model.
  int64_t draft_length(Branch& branch, int64_t most, const PassLoad& load) const;
  // Proposes 0 to `most` tokens: those that followed an earlier occurrence of the last tokens.
  void look_up(Branch& branch, int64_t most, const PassLoad& load) const;
  // Returns a function that draws from the draft's logits by the same rules and with the same
  // random numbers as this request. Valid until the branch advances.
  Drafter::Draw draft_draw(const Branch& branch);
  // Replaces the speculative tokens of a branch.
  void propose(Branch& branch, const std::vector<int32_t>& ids) const;
  const AttentionTraceOptions& trace() const { return task_.trace; }
  void count_cached(int64_t tokens) { cached_ = tokens; }
  void release_pages();                    // the texts will be read again
  void fail(const std::exception& error);  // ends the request

 private:
  bool chooses_length() const { return task_.options.speculative_tokens < 0; }
  int64_t speculation_length(Branch& branch, size_t origin, int64_t most,
                             const PassLoad& load) const;
  void draw(Branch& branch, const float* logits);
  // Applies the rules to the logits, and draws from them.
  int32_t choose(std::vector<float>& logits, const std::vector<int32_t>& generated,
                 TokenCounts& counts, Sampler& sampler) const;
  bool draw_one(Branch& branch, const float* logits, const int32_t* proposal,
                const AttentionTrace* trace, int32_t& id);
  void advance_beams();
  void finish_beams();
  void commit(Branch& branch, int32_t id);
  void finish(Branch& branch);
  bool emit(const Event& event);
  void complete(GenerationBuilder& generation, Event last);
  double seconds() const;

  Task task_;
  const GenerationRules& rules_;
  model::PagePool& pool_;
  int64_t context_, short_context_, vocabulary_;
  int64_t horizon_ = 0;
  model::PageContents page_contents_;  // of the prompt's images
  std::vector<int32_t> counted_;  // tokens that penalties count in addition to the generated ones
  std::vector<Branch> branches_;
  std::vector<GenerationBuilder> generations_;
  std::vector<Sampler> samplers_;          // one per generation
  std::vector<TokenCounts> token_counts_;  // one per generation
  std::optional<RequiredTexts> required_;
  std::optional<BeamSearch> beams_;
  // The continuations of each beam, which may be none; used when those of all beams are known. A
  // beam that lost its pages is read again, and its continuations are found again.
  std::vector<std::optional<std::vector<BeamSearch::Continuation>>> found_;
  std::vector<AttentionTrace> traces_;  // traces of the rows being drawn
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double prompt_seconds_ = 0;
  int64_t cached_ = 0, dropped_ = 0;  // tokens of the prompt
  Counts counts_;
  bool first_ = true, done_ = false;
};

}  // namespace fovea::infer
