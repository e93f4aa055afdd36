#include "fovea/infer/engine.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/check_draft.h"
#include "generate/scheduler.h"
#include "open/model_parts.h"
#include "transformer/adapters.h"

namespace fovea::infer {
namespace {

const model::Transformer* draft_of(const EngineOptions& options) {
  return options.draft ? &model::parts_of(*options.draft).transformer : nullptr;
}

SchedulerOptions scheduler_options(const model::ModelParts& parts, const EngineOptions& options) {
  const model::Transformer& model = parts.transformer;
  checked_writer(model.spec);
  check_fields(options);
  const uint64_t bytes = options.cache_bytes > 0 ? options.cache_bytes : available_memory() / 4;
  SchedulerOptions made{.cache = parts.cache,
                        .pages = 1,
                        .most_sequences = options.most_sequences,
                        .step_tokens = options.step_tokens,
                        .draft = draft_of(options)};
  const int64_t page = cache_bytes(model, made);
  check_field(std::cmp_greater_equal(bytes, page), "cache_bytes",
              "{}; expected at least {}, one page", bytes, page);
  // More pages than all sequences can fill are useless.
  made.pages = options.most_sequences * model::pages_for(model.spec.context);
  made.pages = pages_within(bytes, model, made);
  return made;
}

}  // namespace

// Requests arrive on any thread; the scheduler runs on `thread_`.
class Engine::Worker {
 public:
  Worker(const model::Model& model, const EngineOptions& options)
      : model_(model),
        options_(options),
        transformer_(model::parts_of(model).transformer),
        scheduler_(transformer_,
                   rules_of(model::parts_of(model).origin, model::parts_of(model).end_ids),
                   model.has_tokenizer() ? &*model::parts_of(model).target_tokenizer : nullptr,
                   scheduler_options(model::parts_of(model), options)),
        status_(scheduler_.status()),
        thread_([this] { run(); }) {}

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  uint64_t submit(const ImagePrompt& prompt, const GenerateOptions& options, Sink sink,
                  const AttentionTraceOptions& trace, size_t model) {
    const uint64_t number = ++numbers_;
    Task task{number, prompt.ids, options, std::move(sink), false, trace, model};
    task.images = prompt.images;
    auto request = scheduler_.request(std::move(task));
    {
      const std::lock_guard lock(mutex_);
      if (waiting_ >= options_.most_waiting) return 0;
      arrived_.push_back(std::move(request));
      ++waiting_;
    }
    wake_.notify_one();
    return number;
  }

  // The model changes between two steps, on the thread that computes them.
  size_t add(const model::Model& adapted) {
    Addition addition{adapted, {}};
    std::future<size_t> number = addition.number.get_future();
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(std::move(addition));
    }
    wake_.notify_one();
    return number.get();
  }

  void cancel(uint64_t request) {
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(request);
    }
    wake_.notify_one();
  }

  int64_t room(int64_t prompt_tokens, int64_t generations) const {
    return scheduler_.room(prompt_tokens, generations);
  }

  EngineStatus status() const {
    const std::lock_guard lock(mutex_);
    EngineStatus status = status_;
    status.waiting = waiting_;
    return status;
  }

 private:
  struct Addition {
    model::Model model;
    std::promise<size_t> number;
  };

  void run() {
    const FloatMode mode;
    bool busy = false;
    while (take_in(busy)) {
      busy = scheduler_.step();
      const std::lock_guard lock(mutex_);
      status_ = scheduler_.status();
      waiting_ = scheduler_.waiting() + std::ssize(arrived_);
    }
  }

  // Waits for work unless `busy`, and adds and cancels requests. Returns false if the engine stops.
  bool take_in(bool busy) {
    std::vector<std::unique_ptr<Request>> arrived;
    std::vector<uint64_t> cancelled;
    std::vector<Addition> added;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] {
        return busy || stopping_ || !arrived_.empty() || !cancelled_.empty() || !added_.empty();
      });
      if (stopping_) return false;
      arrived.swap(arrived_);
      cancelled.swap(cancelled_);
      added.swap(added_);
    }
    for (Addition& addition : added) take_in(addition);
    for (auto& request : arrived) scheduler_.add(std::move(request));
    for (const uint64_t number : cancelled) scheduler_.cancel(number);
    return true;
  }

  void take_in(Addition& addition) {
    try {
      const model::ModelParts& parts = model::parts_of(addition.model);
      scheduler_.expect_room_for_adapter();  // before the layers get its weights
      model::add_alternative(transformer_, parts.transformer);
      addition.number.set_value(scheduler_.add_adapter(rules_of(parts.origin, parts.end_ids)));
    } catch (...) {
      addition.number.set_exception(std::current_exception());
    }
  }

  const model::Model model_;  // keeps the model alive
  const EngineOptions options_;
  model::Transformer transformer_;  // of the model, with the adapters of add()
  Scheduler scheduler_;

  std::atomic<uint64_t> numbers_ = 0;

  mutable std::mutex mutex_;  // protects the following members
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Request>> arrived_;
  std::vector<uint64_t> cancelled_;
  std::vector<Addition> added_;
  int64_t waiting_ = 0;
  bool stopping_ = false;
  EngineStatus status_;

  std::thread thread_;  // declared last, since it uses the other members
};

Engine::Engine(const model::Model& model, const EngineOptions& options) {
  const FloatMode mode;
  if (options.draft) check_draft(model, *options.draft);
  worker_ = std::make_unique<Worker>(model, options);
}
Engine::~Engine() = default;

uint64_t Engine::submit(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                        Sink sink, const AttentionTraceOptions& trace, size_t model) {
  return submit(ImagePrompt{prompt}, options, std::move(sink), trace, model);
}
uint64_t Engine::submit(const ImagePrompt& prompt, const GenerateOptions& options, Sink sink,
                        const AttentionTraceOptions& trace, size_t model) {
  const FloatMode mode;
  return worker_->submit(prompt, options, std::move(sink), trace, model);
}
size_t Engine::add(const model::Model& adapted) { return worker_->add(adapted); }
void Engine::cancel(uint64_t request) { worker_->cancel(request); }
int64_t Engine::room(int64_t prompt_tokens, int64_t generations) const {
  return worker_->room(prompt_tokens, generations);
}
EngineStatus Engine::status() const { return worker_->status(); }

}  // namespace fovea::infer
