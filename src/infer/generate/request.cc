#include "generate/request.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/fields.h"
#include "generate/reading.h"
#include "generate/repetition.h"

namespace fovea::infer {
namespace {

// Forbids the tokens that would complete one of several texts.
class BannedTexts {
 public:
  BannedTexts(const std::vector<std::string>& texts, const text::Tokenizer& tokenizer) {
    for (int32_t id = 0; id < tokenizer.size(); ++id) tokens_.push_back(tokenizer.bytes_of(id));
    for (const std::string& bytes : texts) {
      Text& text = texts_.emplace_back();
      text.bytes = bytes;
      text.completing.resize(bytes.size());
      longest_ = std::max(longest_, bytes.size());
      for (size_t id = 0; id < tokens_.size(); ++id) {
        if (tokens_[id].find(bytes) != std::string::npos)
          text.completing[0].push_back(static_cast<int32_t>(id));
        for (size_t done = 1; done < bytes.size(); ++done)
          if (tokens_[id].starts_with(std::string_view(bytes).substr(done)))
            text.completing[done].push_back(static_cast<int32_t>(id));
      }
    }
  }

  // Sets the logits [V] of these tokens after `generated` to -infinity.
  void forbid(std::span<const int32_t> generated, std::span<float> logits) const {
    std::string tail;
    for (auto id = generated.rbegin(); id != generated.rend() && tail.size() < longest_; ++id)
      if (*id >= 0 && *id < std::ssize(tokens_)) tail.insert(0, tokens_[static_cast<size_t>(*id)]);
    for (const Text& text : texts_)
      for (size_t done = 0; done < text.bytes.size(); ++done) {
        if (!tail.ends_with(std::string_view(text.bytes).substr(0, done))) continue;
        for (const int32_t id : text.completing[done])
          if (id < std::ssize(logits))
            logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
      }
  }

 private:
  struct Text {
    std::string bytes;
    // By the number of its bytes that are already generated: the tokens that begin with the rest.
    // For 0 bytes: the tokens that contain the text.
    std::vector<std::vector<int32_t>> completing;
  };

  std::vector<std::string> tokens_;  // the bytes of each token
  std::vector<Text> texts_;
  size_t longest_ = 0;
};

// Returns the maximum number of generated tokens; -1 = no limit. Without `slide`, and in a beam
// search, the decoder's context and the cache limit it.
int64_t limit_of(const Task& task, int64_t prompt, int64_t context, int64_t pages) {
  const int64_t most = task.options.max_tokens;
  if (task.slide && task.options.beams == 1) return most;
  const int64_t texts = std::max(task.options.generations, task.options.beams);
  const int64_t room =
      std::max<int64_t>(0, std::min(context - prompt, room_in(pages, prompt, texts)));
  return most < 0 ? room : std::min(most, room);
}

// Adds the texts that are never generated to the constraint.
void ban(GenerateOptions& options, const text::Tokenizer& tokenizer) {
  const auto banned = std::make_shared<const BannedTexts>(options.banned, tokenizer);
  options.constrain = [banned, other = std::move(options.constrain)](
                          std::span<const int32_t> generated, std::span<float> logits) {
    if (other) other(generated, logits);
    banned->forbid(generated, logits);
  };
}

}  // namespace

int64_t room_in(int64_t pages, int64_t beginning, int64_t texts) {
  const int64_t shared = beginning / kPageTokens;  // a partly filled page is copied
  return (shared + (pages - shared) / texts) * kPageTokens - beginning;
}

Request::Request(Task task, const model::Spec& spec, const GenerationRules& rules,
                 const text::Tokenizer* tokenizer, model::PagePool& pool)
    : task_(std::move(task)),
      rules_(rules),
      pool_(pool),
      context_(spec.context),
      short_context_(short_context(spec)),
      vocabulary_(spec.vocabulary) {
  GenerateOptions& options = task_.options;
  check_options(options, std::min<int64_t>(spec.vocabulary, rules.tokens));
  if (tokenizer != nullptr && options.sampling.dry_multiplier > 0)
    find_breakers(options.sampling, *tokenizer);
  if (tokenizer != nullptr && !options.banned.empty()) ban(options, *tokenizer);
  for (const int32_t id : task_.prompt) {
    const int64_t known = spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
    check(id >= 0 && id < known, "prompt: token id {}; expected 0 to {}", id, known - 1);
  }
  check(task_.memory || spec.input.kind == model::InputKind::tokens,
        "prompt: the model does not read text; expected one that does (use transcribe for speech)");
  check(!task_.prompt.empty() || task_.memory, "prompt: no tokens; expected at least one");
  Branch& first = branches_.emplace_back();
  first.ids = task_.prompt;
  if (spec.encoder) {
    check(rules.start.has_value(),
          "generate: the checkpoint names no decoder_start_token_id; expected one");
    first.ids = {*rules.start};
    if (!task_.beginning.empty()) first.ids = task_.beginning;
  }
  counted_ = first.ids;
  if (task_.images) page_contents_ = task_.images->page_contents();
  if (task_.slide && std::ssize(first.ids) > context_) {
    dropped_ = std::ssize(first.ids) - std::max<int64_t>(1, context_ / 2);
    first.ids.erase(first.ids.begin(), first.ids.begin() + dropped_);
  }
  check(std::ssize(first.ids) <= context_,
        "prompt: {} tokens; expected at most {}, the model's "
        "context",
        first.ids.size(), context_);
  options.max_tokens = limit_of(task_, std::ssize(first.ids), context_, pool_.pages());
  horizon_ = std::ssize(first.ids);
  for (int64_t generation = 0; generation < options.generations; ++generation) {
    generations_.emplace_back(tokenizer, options, rules, options.max_tokens);
    samplers_.emplace_back(options.sampling, generation);
    token_counts_.emplace_back(options.sampling, counted_);
  }
  if (options.beams > 1) {
    if (!options.required.empty()) {
      check_field(tokenizer != nullptr, "required",
                  "the model has no tokenizer; expected one that has");
      required_.emplace(options.required, *tokenizer, task_.whole_words);
    }
    beams_.emplace(rules_, options, counted_, required_ ? &*required_ : nullptr, &task_.prompt);
    found_.resize(1);
  }
}

Request::~Request() {
  for (Branch& branch : branches_) model::shorten(pool_, branch.text, 0);
}

void Request::release_pages() {
  for (Branch& branch : branches_) {
    propose(branch, {});
    model::shorten(pool_, branch.text, 0);
  }
}

double Request::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool Request::emit(const Event& event) { return !task_.sink || task_.sink(event); }

void Request::complete(GenerationBuilder& generation, Event last) {
  Generation& result = generation.result();
  result.prompt_tokens = std::ssize(task_.prompt);
  result.dropped_tokens = dropped_;
  result.cached_tokens = cached_;
  result.prompt_seconds = prompt_seconds_;
  result.generation_seconds = seconds() - prompt_seconds_;
  last.finished = &result;
  if (!emit(last)) done_ = true;
}

void Request::fail(const std::exception& error) {
  if (std::exchange(done_, true)) return;
  const auto* const known = dynamic_cast<const Error*>(&error);
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const Error other = memory ? Error(ErrorKind::OutOfMemory,
                                     "generate: no memory is left for this request; expected more")
                             : Error(ErrorKind::Internal, error.what());
  try {
    Event event;
    event.error = known != nullptr ? known : &other;
    emit(event);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the error cannot be reported
  }
}

void Request::finish(Branch& branch) {
  branch.done = true;
  model::shorten(pool_, branch.text, 0);
  done_ = done_ ||
          std::all_of(branches_.begin(), branches_.end(), [](const Branch& s) { return s.done; });
}

void Request::accept(size_t index, const float* logits, std::vector<AttentionTrace> traces) {
  traces_ = std::move(traces);
  if (std::exchange(first_, false)) {
    prompt_seconds_ = seconds();
    // All generations continue the prompt.
    for (int64_t generation = 1; generation < task_.options.generations && !beams_; ++generation) {
      Branch next = branches_[0];
      next.text = model::forked(pool_, branches_[0].text);
      next.generation = generation;
      branches_.push_back(std::move(next));
    }
    if (!beams_) {
      for (Branch& branch : branches_) draw(branch, logits);
      return;
    }
  }
  if (!beams_) return draw(branches_[index], logits);
  const auto known = [](const auto& continuations) { return continuations.has_value(); };
  if (std::all_of(found_.begin(), found_.end(), known)) advance_beams();
}

void Request::process_logits(size_t branch, const float* logits) {
  if (!beams_) return;
  found_[branch] = beams_->best_after(branch, logits, vocabulary_);
}

int32_t Request::choose(std::vector<float>& logits, const std::vector<int32_t>& generated,
                        TokenCounts& counts, Sampler& sampler) const {
  counts.follow(generated);
  const Restraints restraints{rules_, task_.options, counted_, counts, &task_.prompt};
  restrain(logits.data(), std::ssize(logits), restraints, generated);
  const auto adjust = [&](Filter filter, float* row) {
    if (filter == Filter::penalties)
      penalise_tokens(row, restraints);
    else
      penalise_dry(row, std::ssize(logits), restraints, generated);
  };
  return sampler(logits.data(), std::ssize(logits), adjust);
}

// Draws the next token of a branch, `id`, from its logits; returns false if the generation ends.
bool Request::draw_one(Branch& branch, const float* logits, const int32_t* proposal,
                       const AttentionTrace* trace, int32_t& id) {
  const auto index = static_cast<size_t>(branch.generation);
  GenerationBuilder& generation = generations_[index];
  thread_local std::vector<float> row;  // reused, since fresh memory costs more than the copy
  row.assign(logits, logits + vocabulary_);
  id = choose(row, generation.ids(), token_counts_[index], samplers_[index]);
  if (proposal != nullptr) {
    ++counts_.speculative, ++generation.result().speculative_tokens;
    counts_.accepted += id == *proposal, generation.result().accepted_tokens += id == *proposal;
  }
  TokenLogprob logprob;
  const bool wanted = task_.options.logprobs >= 0;
  if (wanted)
    logprob = logprob_of(logits, {vocabulary_, rules_.tokens}, id, task_.options.logprobs);
  const auto before = std::ssize(generation.ids());
  const std::string text = generation.add(id, wanted ? &logprob : nullptr);
  const bool counts = std::ssize(generation.ids()) > before;
  counts_.generated += counts;
  Event event{.generation = branch.generation, .text = text};
  if (counts) {
    event.id = id;
    if (wanted) event.logprob = &logprob;
    event.trace = trace;
  }
  if (generation.done()) {
    complete(generation, event);
    return false;
  }
  if (emit(event)) return true;
  generation.finish(FinishReason::cancelled);
  complete(generation, {.generation = branch.generation});
  done_ = true;
  return false;
}

void Request::draw(Branch& branch, const float* logits) {
  GenerationBuilder& generation = generations_[static_cast<size_t>(branch.generation)];
  if (generation.at_limit()) {  // no tokens were requested, or there is no room for one
    const std::string text = generation.finish(FinishReason::length);
    complete(generation, {.generation = branch.generation, .text = text});
    return finish(branch);
  }
  const int64_t proposed = std::exchange(branch.speculative, 0),
                certain = std::ssize(branch.ids) - proposed;
  for (int64_t i = 0;; ++i) {
    int32_t id = -1;
    const AttentionTrace* const trace =
        traces_.empty() ? nullptr : &traces_[static_cast<size_t>(i)];
    const auto index = static_cast<size_t>(certain + i);
    const int32_t* const proposal = i < proposed ? &branch.ids[index] : nullptr;
    if (!draw_one(branch, logits + i * vocabulary_, proposal, trace, id)) return finish(branch);
    if (proposal != nullptr && *proposal == id) continue;
    branch.counts[branch.origin].update(std::min(i + 1, proposed), i);
    branch.ids.resize(index);
    model::shorten(pool_, branch.text, certain + i);
    return commit(branch, id);
  }
}

void Request::commit(Branch& branch, int32_t id) {
  branch.ids.push_back(id);
  if (std::ssize(branch.ids) > context_) {
    branch.ids.erase(branch.ids.begin(), branch.ids.end() - std::max<int64_t>(1, context_ / 2));
    branch.ngrams.clear();
    model::shorten(pool_, branch.text, 0);
  }
}

int64_t Request::most_speculative(const Branch& branch) const {
  if (first_ || beams_ || branch.pending() != 1) return 0;
  const int64_t wanted_tokens =
      chooses_length() ? SpeculationLength::kMost : task_.options.speculative_tokens;
  const int64_t length = std::ssize(branch.ids);
  int64_t room = std::min({wanted_tokens, context_ - length, pool_.layout().most_rejected()});
  if (length <= short_context_) room = std::min(room, short_context_ - length);
  // One more token is drawn after the speculative tokens.
  return std::min(room, generations_[static_cast<size_t>(branch.generation)].left() - 1);
}

int64_t Request::speculation_length(Branch& branch, size_t origin, int64_t most,
                                    const PassLoad& load) const {
  branch.origin = origin;
  return chooses_length() ? branch.counts[origin].choose(load, most) : most;
}

int64_t Request::draft_length(Branch& branch, int64_t most, const PassLoad& load) const {
  return speculation_length(branch, 0, most, load);
}

void Request::look_up(Branch& branch, int64_t most, const PassLoad& load) const {
  const std::optional<NgramIndex::Match> found = branch.ngrams.find(branch.ids);
  if (!found) return;
  const int64_t count =
      speculation_length(branch, static_cast<size_t>(found->length - 1), most, load);
  propose(branch, continuation(branch.ids, found->next, count));
}

Drafter::Draw Request::draft_draw(const Branch& branch) {
  const auto generation = static_cast<size_t>(branch.generation);
  return [this, sampler = samplers_[generation], counts = token_counts_[generation],
          generated = generations_[generation].ids()](std::vector<float> logits) mutable {
    // Either vocabulary may be padded. Tokens that the draft lacks rank last but are not forbidden,
    // since the rules may forbid all other tokens.
    constexpr float kLast = -1e30f;
    logits.resize(static_cast<size_t>(vocabulary_), kLast);
    int32_t id = 0;
    try {
      id = choose(logits, generated, counts, sampler);
    } catch (const Error& error) {
      fail(Error(error.kind(), std::string("draft: ") + error.what()));
    } catch (const std::exception& error) {
      fail(error);
    }
    generated.push_back(id);
    return id;
  };
}

void Request::propose(Branch& branch, const std::vector<int32_t>& ids) const {
  branch.ids.resize(branch.ids.size() - static_cast<size_t>(branch.speculative));
  branch.ids.insert(branch.ids.end(), ids.begin(), ids.end());
  branch.speculative = std::ssize(ids);
}

void Request::advance_beams() {
  if (task_.options.max_tokens == 0) return finish_beams();
  std::vector<std::vector<BeamSearch::Continuation>> continuations;
  for (auto& found : found_) continuations.push_back(std::move(*found));
  beams_->advance(continuations);
  ++counts_.generated;
  if (beams_->done()) return finish_beams();
  std::vector<Branch> next;
  for (size_t i = 0; i < beams_->hypotheses().size(); ++i) {
    const Branch& source = branches_[static_cast<size_t>(beams_->sources()[i])];
    Branch& branch = next.emplace_back(source);
    branch.text = model::forked(pool_, source.text);
    branch.ids.push_back(beams_->hypotheses()[i].ids.back());
  }
  for (Branch& branch : branches_) model::shorten(pool_, branch.text, 0);
  branches_ = std::move(next);
  found_.assign(branches_.size(), {});
}

void Request::finish_beams() {
  const std::vector<BeamSearch::Hypothesis> best = beams_->best();
  std::shared_ptr<const BeamTree> tree;
  if (task_.options.beam_tree) tree = std::make_shared<const BeamTree>(beams_->tree());
  for (size_t i = 0; i < generations_.size(); ++i) {
    GenerationBuilder& generation = generations_[i];
    std::string text;
    if (i < best.size()) {
      generation.result().score = best[i].score;
      generation.result().beam_tree = tree;
      generation.result().beam_node = best[i].node;
      for (size_t n = 0; n < best[i].ids.size() && !generation.done(); ++n) {
        const TokenLogprob logprob{best[i].logprobs[n], {}};
        text += generation.add(best[i].ids[n], task_.options.logprobs >= 0 ? &logprob : nullptr);
      }
    }
    if (!generation.done()) text += generation.finish(FinishReason::length);
    complete(generation, {.generation = static_cast<int64_t>(i), .text = text});
  }
  for (Branch& branch : branches_) finish(branch);
}

}  // namespace fovea::infer
