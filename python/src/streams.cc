// Tokens of the engine, which serves many prompts at once.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "generation.h"
#include "images.h"
#include "queue.h"
#include "service.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using Clock = std::chrono::steady_clock;
using infer::Event;
using infer::GenerateOptions;
using infer::Generation;

// A token of a stream.
struct StreamedToken {
  std::string text;
  int32_t token = -1;  // -1: the text is completed
  float logprob = 0;
  double seconds = 0;  // since the stream began
  std::vector<std::pair<int32_t, float>> top;
  std::string finish;  // of the last one
};

std::exception_ptr error_of(const Error& error) { return std::make_exception_ptr(error); }

// Limits the tokens by the context: the engine refuses requests that exceed it.
GenerateOptions fitted(const serve::TextEngine& engine, GenerateOptions options, bool encoder,
                       const infer::ImagePrompt& prompt) {
  const int64_t length = encoder ? 1 : std::ssize(prompt.ids);
  const int64_t room = engine.room(length, options.generations);
  if (options.max_tokens < 0 || options.max_tokens > room)
    options.max_tokens = std::max<int64_t>(room, 1);
  return options;
}

// A generation that Python reads token by token.
class TokenStream {
 public:
  TokenStream(std::shared_ptr<Service> service, const model::Model& model,
              const infer::ImagePrompt& prompt, const GenerationRequest& request)
      : service_(std::move(service)), request_(request) {
    GenerateOptions options = request.options_for(model);
    if (options.generations != 1 || options.beams != 1)
      throw Error(ErrorKind::InvalidArgument,
                  "generations, beams: not 1 in a stream; expected Model.samples()");
    options.logprobs = std::max<int64_t>(options.logprobs, 0);
    const serve::TextEngine& engine = service_->engine();
    options = fitted(engine, std::move(options), model.spec().encoder.has_value(), prompt);
    number_ = engine.submit(prompt, options,
                            [queue = queue_, began = Clock::now()](const Event& event) {
                              return pass(*queue, event, began);
                            },
                            {});
    if (number_ == 0)
      throw Error(ErrorKind::Failed, "the engine: too many waiting requests; expected fewer");
  }
  ~TokenStream() { close(); }
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  std::optional<StreamedToken> next() {
    return call([queue = queue_,
                 request = request_] { return request.rethrowing([&] { return queue->take(); }); },
                {.interrupt = [queue = queue_] { queue->close(); }});
  }
  void close() {
    queue_->close();  // ends the generation at its next event
  }

 private:
  static bool pass(Queue<StreamedToken>& queue, const Event& event, Clock::time_point began) {
    if (event.error != nullptr) {
      queue.end(error_of(*event.error));
      return false;
    }
    StreamedToken token;
    token.text = event.text;
    token.token = event.id;
    if (event.logprob != nullptr)
      token.logprob = event.logprob->logprob, token.top = event.logprob->top;
    token.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    if (event.finished != nullptr) token.finish = name_of(event.finished->finish);
    const bool wanted = queue.put(std::move(token));
    if (event.finished != nullptr) queue.end();
    return wanted;
  }

  std::shared_ptr<Queue<StreamedToken>> queue_ = Queue<StreamedToken>::made();
  std::shared_ptr<Service> service_;
  GenerationRequest request_;
  uint64_t number_ = 0;
};

// The generations of several prompts that run together.
class Batch {
 public:
  explicit Batch(size_t prompts) : found_(prompts) {}

  bool pass(size_t prompt, const Event& event) {
    const std::scoped_lock lock(mutex_);
    if (stopped_) return false;
    if (event.error != nullptr && !error_) error_ = error_of(*event.error);
    if (event.finished != nullptr) found_[prompt].push_back(*event.finished);
    if (event.error != nullptr || event.finished != nullptr) finish();
    return true;
  }
  void stop() {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  // Waits until at most `most` prompts are unfinished.
  void wait(int64_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ <= most || stopped_ || error_; });
    if (error_) {
      stopped_ = true;
      std::rethrow_exception(error_);
    }
  }
  void start() {
    const std::scoped_lock lock(mutex_);
    ++running_;
  }
  std::vector<std::vector<Generation>>& found() { return found_; }

 private:
  void finish() {
    --running_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<Generation>> found_;
  std::exception_ptr error_;
  int64_t running_ = 0;
  bool stopped_ = false;
};

// Generates one text for each prompt, all together. A prompt whose text may exceed the context is
// continued alone, as by generate(), which drops the beginning of the text then.
std::vector<Generation> generated_together(const std::shared_ptr<Service>& service,
                                           const model::Model& model,
                                           const std::vector<PromptText>& prompts,
                                           bool parse_special, const nb::kwargs& given) {
  const GenerationRequest request = generation_request(model, given);
  if (request.options.generations != 1)
    throw Error(ErrorKind::InvalidArgument,
                "generations: not 1 for a list of prompts; expected Model.samples()");
  const auto batch = std::make_shared<Batch>(prompts.size());
  return call(
      [=] {
        return request.rethrowing([&] {
          constexpr int64_t kTogether = 128;  // of which the engine runs 64 at a time
          const serve::TextEngine& engine = service->engine();
          const bool encoder = model.spec().encoder.has_value();
          for (size_t i = 0; i < prompts.size(); ++i) {
            const infer::ImagePrompt prompt = prompt_of(model, prompts[i], {}, parse_special);
            const GenerateOptions options = request.options_for(model);
            const int64_t room = engine.room(encoder ? 1 : std::ssize(prompt.ids), options.beams);
            if (options.max_tokens < 0 || options.max_tokens > room || request.draft) {
              batch->found()[i] = infer::generate(model, prompt, options, {},
                                                  request.draft ? &*request.draft : nullptr);
              continue;
            }
            batch->wait(kTogether - 1);
            batch->start();
            if (engine.submit(prompt, options,
                              [batch, i](const Event& event) { return batch->pass(i, event); },
                              {}) == 0)
              throw Error(ErrorKind::Failed, "the engine: too many waiting requests");
          }
          batch->wait(0);
          std::vector<Generation> all;
          for (std::vector<Generation>& one : batch->found())
            all.push_back(one.empty() ? Generation() : std::move(one.front()));
          return all;
        });
      },
      {.interrupt = [batch] { batch->stop(); }});
}

}  // namespace

void add_streams(nb::module_& module) {
  nb::class_<StreamedToken>(module, "StreamedToken", "A token of a stream; str() is its text.")
      .def_ro("text", &StreamedToken::text,
              "The text that became final; often empty, never a part of a character.")
      .def_ro("token", &StreamedToken::token, "The id; -1 if only the text is completed.")
      .def_ro("logprob", &StreamedToken::logprob)
      .def_ro("top_logprobs", &StreamedToken::top, "With `logprobs`: pairs (id, log-probability).")
      .def_ro("seconds", &StreamedToken::seconds, "Since the stream began.")
      .def_ro("finish", &StreamedToken::finish, "Of the last one: length, end or stop; else \"\".")
      .def("__str__", [](const StreamedToken& t) { return t.text; })
      .def("__repr__", [](const StreamedToken& t) {
        return fmt::format("StreamedToken({}, token={}, logprob={:.4f}, seconds={:.3f})",
                           nb::cast<std::string>(nb::repr(nb::cast(t.text))), t.token, t.logprob,
                           t.seconds);
      });
  nb::class_<TokenStream>(module, "TokenStream", "An iterator over the tokens of a generation.")
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> TokenStream"))
      .def("__next__",
           [](TokenStream& s) {
             std::optional<StreamedToken> token = s.next();
             if (!token) throw nb::stop_iteration();
             return *token;
           })
      .def("close", &TokenStream::close, "Ends the generation.");
  module.def(
      "stream",
      [](const std::shared_ptr<Service>& service, const model::Model& model,
         const PromptText& prompt, const nb::list& images, bool parse_special,
         const nb::kwargs& given) {
        const GenerationRequest request = generation_request(model, given);
        return call([=, given_images = images_of(images)] {
          return std::make_unique<TokenStream>(
              service, model, prompt_of(model, prompt, given_images, parse_special), request);
        });
      },
      nb::arg("service"), nb::arg("model"), nb::arg("prompt"), nb::arg("images"),
      nb::arg("parse_special"), nb::arg("options"));
  module.def("generate_together", &generated_together, nb::arg("service"), nb::arg("model"),
             nb::arg("prompts"), nb::arg("parse_special"), nb::arg("options"));
}

}  // namespace fovea::python
