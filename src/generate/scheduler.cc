#include "generate/scheduler.h"

#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tape.h"

namespace fovea {

int64_t pages_for(int64_t tokens, int64_t texts) {
  return texts * ((tokens + kPageTokens - 1) / kPageTokens);
}

namespace {

// Whether the keys of a text depend on nothing but the tokens up to them: not where an encoder read
// something before, nor where rotations depend on how long the text will become.
bool shares_beginnings(const Spec& spec) {
  const PositionSpec& position = spec.decoder->position;
  const RotaryScaling scaling = position.rotary.scaling;
  const bool by_length = position.kind == PositionKind::rotary &&
                         (scaling == RotaryScaling::dynamic || scaling == RotaryScaling::longrope);
  return !spec.encoder && !by_length;
}

}  // namespace

Scheduler::Scheduler(const Transformer& model, GenerationRules rules, const Tokenizer* tokenizer,
                     const SchedulerOptions& options)
    : model_(model),
      rules_(std::move(rules)),
      tokenizer_(tokenizer),
      options_(options),
      pool_(PagePool::layout_for(*model.spec.decoder, options.compute), options.pages),
      prefixes_(pool_) {}

std::unique_ptr<Request> Scheduler::request(Task task) {
  auto request = std::make_unique<Request>(std::move(task), model_.spec, rules_, tokenizer_, pool_);
  const int64_t branches = request->most_branches();
  check_watch(request->watch(), *model_.spec.decoder);
  const bool watched = request->watch().attention || request->watch().hidden;
  check(!watched || !request->beams(), "watch: beside beams; expected none");
  check(branches <= options_.most_sequences, "{} answers or beams; expected at most {}", branches,
        options_.most_sequences);
  const int64_t needed = pages_for(request->horizon() + 1, 1) + branches - 1;
  check(needed <= pool_.pages(), "prompt: {} tokens need {} pages; expected at most {}",
        request->horizon(), needed, pool_.pages());
  return request;
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

// Takes in what waits, as long as there are places and pages.
void Scheduler::admit() {
  int64_t places = options_.most_sequences;
  for (const auto& request : running_) places -= request->most_branches();
  std::vector<Request*> fresh;
  const NoGradient off;
  while (!waiting_.empty() && waiting_.front()->most_branches() <= places) {
    Request& request = *waiting_.front();
    const int64_t needed = pages_for(request.horizon() + 1, 1);
    if (!running_.empty() && needed > pool_.free_pages() + prefixes_.pages()) break;
    places -= request.most_branches();
    if (shares_beginnings(model_.spec)) {
      Branch& branch = request.branches()[0];
      prefixes_.begin(branch.text, branch.ids);
      request.count_cached(branch.text.length);
      status_.cached_tokens += branch.text.length;
    }
    if (model_.spec.encoder) fresh.push_back(&request);
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!fresh.empty()) encode(fresh);
}

// Sources of about the same length are read together: padding is work for nothing.
void Scheduler::encode(const std::vector<Request*>& requests) {
  std::vector<Request*> sorted = requests;
  const auto length = [](const Request* r) { return std::ssize(r->source()); };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Request* a, const Request* b) { return length(a) < length(b); });
  for (size_t begin = 0; begin < sorted.size();) {
    const int64_t shortest = length(sorted[begin]);
    size_t end = begin + 1;
    while (end < sorted.size() && length(sorted[end]) <= shortest + shortest / 4 + 1 &&
           static_cast<int64_t>(end - begin + 1) * length(sorted[end]) <= 2 * options_.step_tokens)
      ++end;
    const auto B = static_cast<int64_t>(end - begin);
    const int64_t S = length(sorted[end - 1]);
    const Tensor ids = zeros({B, S}, DType::i32);
    Pass pass;
    pass.compute = options_.compute;
    std::vector<KvCache::Member> members;
    for (int64_t b = 0; b < B; ++b) {
      Request& request = *sorted[begin + static_cast<size_t>(b)];
      std::copy(request.source().begin(), request.source().end(), ids.data_as<int32_t>() + b * S);
      pass.mask.valid.push_back({0, length(&request)});
      members.push_back({&request.branches()[0].text, 0, 0});
      status_.prompt_tokens += length(&request);
    }
    const Tensor memory = model_.encode({ids, {}, {}, {}}, pass);
    KvCache cache(pool_, members);
    pass.cache = &cache;
    pass.memory_valid = pass.mask.valid;
    model_.remember(memory, pass);
    begin = end;
  }
}

// Takes the pages of the request that came last, if that was after `request`, and with them its
// place in this step.
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

// Room for a branch's next tokens: from the free pages, from what was kept of earlier prompts, then
// from the requests that came later, which will read again.
bool Scheduler::reserve(const Request& request, Branch& branch, int64_t tokens,
                        std::vector<Row>& rows) {
  while (!make_room(pool_, branch.text, branch.text.length + tokens)) {
    if (!prefixes_.evict() && !preempt(request, rows)) return false;
  }
  return true;
}

// Texts that wait for one token come first; what is left of the step's tokens goes to prompts.
std::vector<Scheduler::Row> Scheduler::plan() {
  std::vector<Row> rows;
  int64_t left = options_.step_tokens;
  for (const bool prompts : {false, true}) {
    for (const auto& request : running_) {
      for (size_t i = 0; i < request->branches().size(); ++i) {
        Branch& branch = request->branches()[i];
        const int64_t pending = branch.pending();
        const bool is_prompt = pending > 1 + branch.guesses;
        if (pending == 0 || is_prompt != prompts || (prompts && left <= 0)) continue;
        const int64_t tokens = prompts ? std::min(pending, left) : pending;
        if (reserve(*request, branch, tokens, rows)) {
          rows.push_back({request.get(), i, tokens});
          left -= tokens;
        } else if (request == running_.front()) {  // others wait until it is done
          request->fail("generate: the cache of keys and values is full; expected a larger one");
        }
      }
    }
  }
  std::erase_if(rows, [](const Row& row) { return row.request->done(); });
  return rows;
}

void Scheduler::compute(const std::vector<Row>& rows) {
  const NoGradient off;
  std::vector<KvCache::Member> members;
  std::vector<int32_t> tokens;
  Watching watching;
  for (const Row& row : rows) {
    Branch& branch = row.request->branches()[row.branch];
    if (row.tokens == branch.pending()) {
      const int64_t drawn = 1 + branch.guesses;
      watching.want(row.request->watch(), members.size(), std::ssize(tokens) + row.tokens - drawn,
                    drawn);
    }
    members.push_back({&branch.text, row.tokens, row.request->horizon()});
    const auto begin = branch.ids.begin() + branch.text.length;
    tokens.insert(tokens.end(), begin, begin + row.tokens);
    if (row.tokens > 1) status_.prompt_tokens += row.tokens;
  }
  const Tensor ids = empty({1, std::ssize(tokens)}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), ids.data_as<int32_t>());
  KvCache cache(pool_, members);
  Pass pass;
  pass.compute = options_.compute;
  pass.cache = &cache;
  pass.probe = watching.probe();
  const Tensor hidden = model_.hidden(ids, pass);  // [1, R, C]
  deliver(rows, hidden.view({hidden.dim(1), hidden.dim(2)}), watching);
}

// Logits are computed only where a token is to be drawn.
void Scheduler::deliver(const std::vector<Row>& rows, const Tensor& hidden, Watching& watching) {
  std::vector<int32_t> picked;
  std::vector<const Row*> drawing;
  int64_t end = 0;
  for (const Row& row : rows) {
    end += row.tokens;
    const Branch& branch = row.request->branches()[row.branch];
    const int64_t length = branch.text.length, pages = length / kPageTokens;
    if (shares_beginnings(model_.spec) && pages > (length - row.tokens) / kPageTokens)
      prefixes_.keep(branch.text, branch.ids);
    if (branch.pending() > 0) continue;
    drawing.push_back(&row);
    for (int64_t r = end - 1 - branch.guesses; r < end; ++r)
      picked.push_back(static_cast<int32_t>(r));
  }
  if (picked.empty()) return;
  const Tensor at = empty({std::ssize(picked)}, DType::i32);
  std::copy(picked.begin(), picked.end(), at.data_as<int32_t>());
  const Tensor logits = model_.logits(embedding(at, hidden));  // [picked, V]
  const int64_t V = logits.dim(1);
  const float* next = logits.data_as<float>();
  const std::vector<std::exception_ptr> errors = weigh(drawing, next, V);
  for (size_t i = 0; i < drawing.size(); ++i) {
    const Row* row = drawing[i];
    const int64_t drawn = 1 + row->request->branches()[row->branch].guesses;
    const int64_t before = row->request->written();
    try {
      if (errors[i]) std::rethrow_exception(errors[i]);
      if (!row->request->done()) {
        const auto member = static_cast<size_t>(row - rows.data());
        row->request->take(row->branch, next, V, watching.take(member));
      }
    } catch (const Error& error) {
      row->request->fail(error.what());
    }
    status_.written_tokens += row->request->written() - before;
    next += drawn * V;
  }
}

// The part of drawing that walks a vocabulary for each beam, on all threads; the beams of one
// request one after the other, as they share what constrains them.
std::vector<std::exception_ptr> Scheduler::weigh(const std::vector<const Row*>& drawing,
                                                 const float* logits, int64_t vocabulary) {
  std::vector<std::exception_ptr> errors(drawing.size());
  std::vector<int64_t> first = {0};  // row of logits
  std::vector<size_t> begins;        // of the rows of one request
  for (size_t i = 0; i < drawing.size(); ++i) {
    const Row& row = *drawing[i];
    first.push_back(first.back() + 1 + row.request->branches()[row.branch].guesses);
    if (i == 0 || drawing[i - 1]->request != row.request) begins.push_back(i);
  }
  begins.push_back(drawing.size());
  parallel_tasks(std::ssize(begins) - 1, [&](int64_t task) {
    const auto at = static_cast<size_t>(task);
    for (size_t i = begins[at]; i < begins[at + 1]; ++i) {
      try {
        drawing[i]->request->weigh(drawing[i]->branch, logits + first[i] * vocabulary, vocabulary);
      } catch (const Error&) {
        errors[i] = std::current_exception();
      }
    }
  });
  return errors;
}

void Scheduler::sweep() {
  running_.remove_if([](const std::unique_ptr<Request>& r) { return r->done(); });
}

bool Scheduler::step() {
  admit();
  const std::vector<Row> rows = plan();
  if (!rows.empty()) {
    compute(rows);
    ++status_.steps;
  }
  sweep();
  return !running_.empty() || !waiting_.empty();
}

EngineStatus Scheduler::status() const {
  EngineStatus status = status_;
  status.waiting = std::ssize(waiting_);
  for (const auto& request : running_) status.running += std::ssize(request->branches());
  const auto bytes = static_cast<int64_t>(pool_.layout().page_bytes());
  status.cache_bytes = pool_.pages() * bytes;
  status.cache_used_bytes = (pool_.pages() - pool_.free_pages()) * bytes;
  return status;
}

}  // namespace fovea
