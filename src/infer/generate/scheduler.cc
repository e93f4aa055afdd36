#include "generate/scheduler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "generate/reading.h"
#include "tensor/tape.h"

namespace fovea::infer {

namespace {

model::PagePool::Layout layout_of(const model::Transformer& model, DType cache) {
  return model::page_layout(*checked_writer(model.spec).decoder, cache);
}

model::PagePool::Size pool_size(const SchedulerOptions& options) {
  return {options.pages, options.most_sequences, options.step_tokens};
}

// A pass over up to this many tokens takes about as long as a pass over one, since memory bandwidth
// limits both. The texts in progress share these tokens.
constexpr int64_t kCheckedTokens = 16;

// Returns the number of parameters. The copy shares their values.
double size_of(model::Transformer model) {
  return static_cast<double>(model::parameter_count(model));
}

// Only tokens of the tokenizer are generated.
GenerationRules limited(GenerationRules rules, const text::Tokenizer* tokenizer) {
  if (tokenizer != nullptr) rules.tokens = tokenizer->size();
  return rules;
}

}  // namespace

int64_t cache_bytes(const model::Transformer& model, const SchedulerOptions& options) {
  const int64_t bytes =
      model::PagePool::bytes_of(layout_of(model, options.cache), pool_size(options));
  if (options.draft == nullptr) return bytes;
  return bytes +
         model::PagePool::bytes_of(layout_of(*options.draft, options.cache),
                                   Drafter::pool_size(options.pages, options.most_sequences));
}

int64_t pages_within(uint64_t bytes, const model::Transformer& model, SchedulerOptions options) {
  int64_t fits = 0, most = options.pages;
  while (fits < most) {
    options.pages = most - (most - fits) / 2;
    if (std::cmp_less_equal(cache_bytes(model, options), bytes))
      fits = options.pages;
    else
      most = options.pages - 1;
  }
  return fits;
}

Scheduler::Scheduler(const model::Transformer& model, GenerationRules rules,
                     const text::Tokenizer* tokenizer, const SchedulerOptions& options)
    : model_(model),
      rules_{limited(std::move(rules), tokenizer)},
      tokenizer_(tokenizer),
      options_(options),
      pool_(layout_of(model, options.cache), pool_size(options), model.token_embedding.device()),
      prefixes_(pool_, options.most_adapters + 1) {
  if (options.draft == nullptr) return;
  drafter_.emplace(*options.draft, options.compute, options.cache,
                   Drafter::pool_size(options.pages, options.most_sequences));
  draft_time_ = size_of(*options.draft) / size_of(model);
}

void Scheduler::expect_room_for_adapter() const {
  const std::lock_guard lock(rules_mutex_);
  check(rules_.size() <= options_.most_adapters, "adapters: already {}; expected fewer",
        options_.most_adapters);
}

size_t Scheduler::add_adapter(GenerationRules rules) {
  expect_room_for_adapter();
  const std::lock_guard lock(rules_mutex_);
  rules_.push_back(limited(std::move(rules), tokenizer_));
  return rules_.size() - 1;
}

const GenerationRules& Scheduler::rules_for(size_t adapter) {
  const std::lock_guard lock(rules_mutex_);
  check(adapter < rules_.size(), "adapter {}; expected 0 to {}", adapter, rules_.size() - 1);
  return rules_[adapter];  // a deque does not move its elements
}

std::unique_ptr<Request> Scheduler::request(Task task) {
  const GenerationRules& rules = rules_for(task.adapter);
  auto request = std::make_unique<Request>(std::move(task), model_.spec, rules, tokenizer_, pool_);
  const int64_t branches = request->most_branches();
  check_attention_trace(request->trace(), *model_.spec.decoder);
  const bool traced = request->trace().attention || request->trace().hidden;
  const Device& device = model_.token_embedding.device();
  check(!traced || &device == &cpu_device(),  // keys are read from the pages
        "trace: the model is on device {}; expected cpu", device.name);
  check(!traced || !request->beams(),
        "trace: cannot be combined with beam search; expected no beams");
  check(branches <= options_.most_sequences, "{} generations or beams; expected at most {}",
        branches, options_.most_sequences);
  const int64_t needed = model::pages_for(request->horizon() + 1) + branches - 1;
  check(needed <= pool_.pages(),
        "prompt: {} tokens and the first generated tokens need {} pages of {} tokens; expected at "
        "most {}, the size of the key-value cache",
        request->horizon(), needed, kPageTokens, pool_.pages());
  return request;
}

int64_t Scheduler::room(int64_t prompt_tokens, int64_t generations) const {
  return std::min(model_.spec.context - prompt_tokens,
                  room_in(pool_.pages(), prompt_tokens, generations));
}

void Scheduler::add(std::unique_ptr<Request> request) {
  ++status_.requests;
  waiting_.push_back(std::move(request));
}

void Scheduler::cancel(uint64_t number) {
  const auto is = [&](const std::unique_ptr<Request>& r) { return r->number() == number; };
  std::erase_if(waiting_, is);
  running_.remove_if(is);
}

// Returns whether the free pages and those of the prefix cache can contain the prompt.
bool Scheduler::has_room(const Request& request) const {
  const model::PagePool::Size one{model::pages_for(request.horizon() + 1), 1, options_.step_tokens};
  for (size_t group = 0; group < pool_.groups(); ++group)
    if (model::PagePool::pages_of(pool_.reach(group), one) >
        pool_.free_pages(group) + prefixes_.pages(group))
      return false;
  return true;
}

// Admits waiting requests while the limit of sequences and the free pages allow it.
void Scheduler::admit() {
  int64_t free_sequences = options_.most_sequences;
  for (const auto& request : running_) free_sequences -= request->most_branches();
  std::vector<Source> fresh;
  std::vector<Request*> owners;
  const NoGradient off;
  while (!waiting_.empty() && waiting_.front()->most_branches() <= free_sequences) {
    Request& request = *waiting_.front();
    if (!running_.empty() && !has_room(request)) break;
    free_sequences -= request.most_branches();
    if (request.cross()) {
      request.branches()[0].text.memory = request.cross();
    } else if (request.memory()) {
      remember_source(model_, pool_, request.branches()[0].text, request.memory(),
                      options_.compute);
    } else if (model_.spec.encoder) {
      fresh.push_back({&request.source(), &request.branches()[0].text, request.adapter()});
      owners.push_back(&request);
      status_.prompt_tokens += std::ssize(request.source());
    }
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (fresh.empty()) return;
  try {
    encode_sources(model_, pool_, std::move(fresh), options_.compute, options_.step_tokens);
  } catch (const std::exception& error) {
    for (Request* request : owners) request->fail(error);
  }
}

// Preempts the newest request that has pages, if it is newer than `request`: releases its pages and
// removes it from this step. Returns false if there is no such request.
bool Scheduler::preempt(const Request& request, std::vector<Row>& rows) {
  for (auto it = running_.rbegin(); it != running_.rend() && it->get() != &request; ++it) {
    Request& last = **it;
    const bool holds = std::any_of(last.branches().begin(), last.branches().end(),
                                   [](const Branch& b) { return !b.text.pages.empty(); });
    if (!holds) continue;
    last.release_pages();
    std::erase_if(rows, [&](const Row& row) { return row.request == &last; });
    return true;
  }
  return false;
}

// Reserves pages for a branch's next tokens: first free pages, then pages cached from earlier
// texts, then pages of newer requests, whose texts will be read again.
bool Scheduler::reserve(const Request& request, Branch& branch, int64_t tokens,
                        std::vector<Row>& rows) {
  while (!prefixes_.make_room(branch.text, branch.text.length + tokens))
    if (!preempt(request, rows)) return false;
  return true;
}

// A text whose rotary frequencies change with its length is read again, since the keys in the cache
// have the frequencies of a shorter text.
void Scheduler::begin_reading(Branch& branch) {
  const int64_t length = std::ssize(branch.ids), limit = short_context(model_.spec);
  if (branch.horizon <= limit && length > limit) model::shorten(pool_, branch.text, 0);
  if (branch.text.length == 0) branch.horizon = length;
}

// Gives a text that is about to be read the pages of its longest known prefix. Prompts that arrive
// together share what the first of them has read.
void Scheduler::share_prefix(Request& request, Branch& branch) {
  if (!branch.text.pages.empty() || !shares_beginnings(model_.spec)) return;
  prefixes_.begin(branch.text, branch.ids, request.adapter(), request.page_contents());
  if (request.counts().generated > 0) return;  // a preempted text is read again
  request.count_cached(branch.text.length);
  status_.cached_tokens += branch.text.length;
}

// Selects the tokens to read in this step. Texts with one unread token (and speculative tokens)
// come first; prompts get the rest of the step's tokens.
std::vector<Scheduler::Row> Scheduler::plan() {
  std::vector<Row> rows;
  int64_t left = options_.step_tokens;
  for (const bool prompts : {false, true}) {
    for (const auto& request : running_) {
      for (size_t i = 0; i < request->branches().size(); ++i) {
        Branch& branch = request->branches()[i];
        if (!branch.done) begin_reading(branch);
        int64_t pending = branch.pending();
        const bool is_prompt = pending > 1 + branch.speculative;
        if (pending == 0 || is_prompt != prompts || (prompts && left <= 0)) continue;
        if (prompts) {
          share_prefix(*request, branch);
          pending = branch.pending();
        }
        int64_t tokens = prompts ? std::min(pending, left) : pending;
        // Speculative tokens are dropped rather than evicting a request.
        if (branch.speculative > 0 &&
            !prefixes_.make_room(branch.text, branch.text.length + tokens)) {
          request->propose(branch, {});
          tokens = 1;
        }
        if (reserve(*request, branch, tokens, rows)) {
          rows.push_back({request.get(), i, tokens});
          left -= tokens;
        } else if (request == running_.front()) {  // a later request waits for free pages
          request->fail(Error(ErrorKind::OutOfMemory,
                              "generate: the key-value cache is full; expected a larger one"));
        }
      }
    }
  }
  encode_images(rows);
  std::erase_if(rows, [](const Row& row) { return row.request->done(); });
  return rows;
}

// Computes the vectors of the images that the rows read. If that fails, the request ends.
void Scheduler::encode_images(const std::vector<Row>& rows) {
  const NoGradient off;
  for (const Row& row : rows) {
    const model::PromptImages* images = row.request->images();
    if (images == nullptr || row.request->done()) continue;
    try {
      images->encode(row.request->branches()[row.branch].text.length, row.tokens);
    } catch (const std::exception& error) {
      row.request->fail(error);
    }
  }
}

void Scheduler::compute(const std::vector<Row>& rows) {
  const NoGradient off;
  std::vector<model::KvCache::Member> members;
  std::vector<int32_t> tokens;
  std::vector<size_t> adapters;
  model::TokenVectors vectors;
  AttentionTracer tracer;
  for (const Row& row : rows) {
    Branch& branch = row.request->branches()[row.branch];
    if (row.tokens == branch.pending()) {
      const int64_t drawn = 1 + branch.speculative;
      tracer.want(row.request->trace(), members.size(), std::ssize(tokens) + row.tokens - drawn,
                  drawn);
    }
    members.push_back({&branch.text, row.tokens, branch.horizon});
    adapters.push_back(row.request->adapter());
    if (const model::PromptImages* images = row.request->images())
      images->add_vectors(branch.text.length, row.tokens, std::ssize(tokens), vectors);
    const auto begin = branch.ids.begin() + branch.text.length;
    tokens.insert(tokens.end(), begin, begin + row.tokens);
    if (row.tokens > 1 + branch.speculative) status_.prompt_tokens += row.tokens;
  }
  const Tensor hidden = read_batch(model_, pool_, std::move(members), tokens, options_.compute,
                                   tracer.probe(), adapters, vectors);
  deliver(rows, hidden, tracer);
}

// Computes the logits of the rows from which tokens are drawn, and passes them to the requests.
void Scheduler::deliver(const std::vector<Row>& rows, const Tensor& hidden,
                        AttentionTracer& tracer) {
  std::vector<int32_t> picked;
  std::vector<const Row*> drawing;
  std::vector<int64_t> drawn;  // rows of logits; a beam search may have fewer branches afterwards
  int64_t end = 0;
  for (const Row& row : rows) {
    end += row.tokens;
    Branch& branch = row.request->branches()[row.branch];
    // A page with speculative tokens, which may be rejected and replaced, is not stored.
    const int64_t certain = branch.text.length - branch.speculative;
    if (shares_beginnings(model_.spec) && certain / kPageTokens > branch.text.kept)
      prefixes_.keep(branch.text, branch.ids, certain, row.request->adapter(),
                     row.request->page_contents());
    model::release_unread(pool_, branch.text);
    if (branch.pending() > 0) continue;
    drawing.push_back(&row);
    drawn.push_back(1 + branch.speculative);
    for (int64_t r = end - 1 - branch.speculative; r < end; ++r)
      picked.push_back(static_cast<int32_t>(r));
  }
  if (picked.empty()) return;
  const Tensor logits = logits_of(model_, hidden, picked);  // [picked, V]
  const int64_t V = logits.dim(1);
  const float* next = logits.data_as<float>();
  const std::vector<std::exception_ptr> errors = process_logits(drawing, next, V);
  for (size_t i = 0; i < drawing.size(); ++i) {
    const Row* row = drawing[i];
    const Request::Counts before = row->request->counts();
    try {
      if (errors[i]) std::rethrow_exception(errors[i]);
      if (!row->request->done()) {
        const auto member = static_cast<size_t>(row - rows.data());
        row->request->accept(row->branch, next, tracer.take(member));
      }
    } catch (const std::exception& error) {
      row->request->fail(error);
    }
    const Request::Counts after = row->request->counts();
    status_.generated_tokens += after.generated - before.generated;
    status_.speculative_tokens += after.speculative - before.speculative;
    status_.accepted_tokens += after.accepted - before.accepted;
    next += drawn[i] * V;
  }
}

// Processes the logits of all requests on all threads; the beams of one request are processed in
// sequence, since they share its constraint.
std::vector<std::exception_ptr> Scheduler::process_logits(const std::vector<const Row*>& drawing,
                                                          const float* logits, int64_t vocabulary) {
  std::vector<std::exception_ptr> errors(drawing.size());
  std::vector<int64_t> first = {0};  // the first row of logits of each element of `drawing`
  std::map<const Request*, size_t> numbers;
  std::vector<std::vector<size_t>> of_requests;  // elements; those of a request may be apart
  for (size_t i = 0; i < drawing.size(); ++i) {
    const Row& row = *drawing[i];
    first.push_back(first.back() + 1 + row.request->branches()[row.branch].speculative);
    const auto [number, added] = numbers.emplace(row.request, of_requests.size());
    if (added) of_requests.emplace_back();
    of_requests[number->second].push_back(i);
  }
  parallel_tasks(std::ssize(of_requests), [&](int64_t task) {
    for (const size_t i : of_requests[static_cast<size_t>(task)]) {
      try {
        drawing[i]->request->process_logits(drawing[i]->branch, logits + first[i] * vocabulary);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  });
  return errors;
}

void Scheduler::sweep() {
  running_.remove_if([](const std::unique_ptr<Request>& r) { return r->done(); });
}

// Proposes speculative tokens for the texts with one unread token. The next pass reads this token
// and the speculative ones.
void Scheduler::propose() {
  int64_t texts = 0;
  for (const auto& request : running_) {
    for (const Branch& branch : request->branches()) texts += branch.pending() > 0;
  }
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const int64_t share = texts > 1 ? kCheckedTokens / texts - 1 : kAny;
  const PassLoad load{.texts = texts, .draft = draft_time_};
  std::vector<Drafter::DraftRequest> drafts;
  std::vector<std::pair<Request*, Branch*>> drafting;
  for (const auto& request : running_) {
    for (Branch& branch : request->branches()) {
      const int64_t most = std::min(request->most_speculative(branch), share);
      if (most <= 0) continue;
      if (!drafter_) {
        request->look_up(branch, most, load);
        continue;
      }
      const int64_t count = request->draft_length(branch, most, load);
      if (count == 0) continue;
      drafting.emplace_back(request.get(), &branch);
      drafts.push_back({branch.ids, request->source(), branch.draft, count, request->horizon(),
                        request->draft_draw(branch)});
    }
  }
  if (drafts.empty()) return;
  try {
    drafter_->propose(drafts);
  } catch (const std::exception& error) {
    for (const auto& [request, branch] : drafting) request->fail(error);
    return;
  }
  for (size_t i = 0; i < drafts.size(); ++i)
    drafting[i].first->propose(*drafting[i].second, drafts[i].proposed);
}

bool Scheduler::step() {
  admit();
  propose();
  const std::vector<Row> rows = plan();
  if (!rows.empty()) {
    try {
      compute(rows);
    } catch (const std::exception& error) {  // the failing request is unknown
      for (const Row& row : rows) row.request->fail(error);
    }
    ++status_.steps;
  }
  sweep();
  return !running_.empty() || !waiting_.empty();
}

EngineStatus Scheduler::status() const {
  EngineStatus status = status_;
  status.waiting = std::ssize(waiting_);
  for (const auto& request : running_) status.running += std::ssize(request->branches());
  status.cache_bytes = pool_.bytes();
  status.cache_used_bytes = pool_.used_bytes();
  return status;
}

}  // namespace fovea::infer
