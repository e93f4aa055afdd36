#include "serve/models/served_model.h"

#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

constexpr int64_t kUnsetTokens = -2;  // -1 is a valid value of max_tokens

}  // namespace

const text::Tokenizer& ServedModel::needs_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw ApiError{400, "model: has no tokenizer; expected prompts of token ids", "model",
                 "no_tokenizer"};
}

const TextEngine& ServedModel::needs_engine() {
  if (const auto& engine = needs<TextGenerator>().engine) return *engine;
  refuse_use(TextGenerator::kExpected);
}

void ServedModel::refuse_use(const char* expected) const {
  throw ApiError{400, "model: " + facts.name + ": " + expected, "model", "wrong_model"};
}

void ServedModel::cancel(uint64_t request) {
  if (const auto* generator = find<TextGenerator>(); generator && generator->engine)
    generator->engine->cancel(request);
}

void ServedModel::end_work() {
  if (auto* labels = find<ServedClassifier>()) labels->queue.reset();
  if (auto* vectors = find<ServedEmbedder>()) vectors->queue.reset();
  std::visit(
      [](auto& some) {
        if constexpr (requires { some.queue; }) some.queue.reset();
        if constexpr (requires { some.engine; }) {
          some.engine.reset();
          some.open_adapter = nullptr;
        }
      },
      part);
  if (worker) worker->stop();
}

std::shared_ptr<const text::JsonVocabulary> ServedModel::json_vocabulary() {
  return vocabulary_with({}, json_vocabulary_);
}

std::shared_ptr<const text::JsonVocabulary> ServedModel::message_vocabulary() {
  const std::vector<int32_t>& marks = needs<TextGenerator>().marks;
  return marks.empty() ? json_vocabulary() : vocabulary_with(marks, message_vocabulary_);
}

std::shared_ptr<const text::JsonVocabulary> ServedModel::vocabulary_with(
    const std::vector<int32_t>& marks, std::shared_ptr<const text::JsonVocabulary>& known) {
  const std::lock_guard lock(mutex_);
  if (known) return known;
  std::vector<int32_t> all = needs<TextGenerator>().ends;
  if (const auto eos = needs_tokenizer().eos_id(); eos && all.empty()) all.push_back(*eos);
  return known = std::make_shared<const text::JsonVocabulary>(needs_tokenizer(), all, marks);
}

void set_chat(TextGenerator& generator, std::optional<text::ChatFormat> chat,
              const text::CallFormat* calls, const std::optional<text::Tokenizer>& tokenizer) {
  generator.chat = std::move(chat);
  generator.message = {};
  if (generator.chat) generator.message = text::message_format(*generator.chat);
  if (calls != nullptr) generator.message.calls = calls;
  if (!generator.chat || !tokenizer) return;
  generator.reasoning_marks = text::mark_ids(generator.message, false, *tokenizer);
  generator.marks = text::mark_ids(generator.message, true, *tokenizer);
}

infer::GenerateOptions program_defaults() {
  infer::GenerateOptions options;
  options.max_tokens = kUnsetTokens;
  return options;
}

void apply_defaults(GenerationRequest& request, ServedModel& model, int64_t tokens) {
  if (model.needs_engine().full()) throw too_busy();
  const auto& generator = model.needs<TextGenerator>();
  request.options = generator.defaults;
  request.options.max_tokens = generator.max_tokens.value_or(tokens);
}

void set_defaults(TextGenerator& generator, const infer::GenerateOptions& options) {
  generator.defaults = options;
  generator.defaults.beams =
      1;  // chats and completions are sampled; translations set their own beams
  if (options.max_tokens != kUnsetTokens) generator.max_tokens = options.max_tokens;
}

}  // namespace fovea::serve
