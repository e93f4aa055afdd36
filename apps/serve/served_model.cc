#include "serve/served_model.h"

#include <utility>

#include "fovea/error.h"
#include "fovea/excerpt.h"
#include "fovea/read_file.h"

namespace fovea::serve {
namespace {

constexpr size_t kTemplateBytes = size_t{1} << 20;  // the limit of ChatTemplate

template <class Value, class Flag>
void take(const std::optional<Flag>& flag, Value& value) {
  if (flag) value = static_cast<Value>(*flag);
}

std::string token_text(const std::optional<Tokenizer>& tokenizer, bool begin) {
  if (!tokenizer) return {};
  const auto id = begin ? tokenizer->bos_id() : tokenizer->eos_id();
  return id ? std::string(tokenizer->text_of(*id)) : std::string();
}

// Returns the variables that ModelChat passes to the templates of a directory.
std::string variables_of(const ChatRequest& request, const std::string& bos,
                         const std::string& eos) {
  Json variables = request.variables.empty() ? Json::object()
                                             : parse_ordered_json(request.variables, "variables");
  variables["messages"] = parse_ordered_json(request.messages, "messages");
  if (!request.tools.empty()) variables["tools"] = parse_ordered_json(request.tools, "tools");
  if (!request.documents.empty()) {
    variables["documents"] = parse_ordered_json(request.documents, "documents");
  }
  variables["add_generation_prompt"] = request.add_generation_prompt;
  variables["bos_token"] = bos;
  variables["eos_token"] = eos;
  return variables.dump();
}

ChatFormat format_of(std::function<std::string(const ChatRequest&)> render,
                     const std::string& source, const std::string& source_with_tools) {
  const auto names = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  return {std::move(render), names(source, "developer"), names(source_with_tools, "tools"),
          names(source, "documents")};
}

// Removes the path of the template file from an error, since clients must not see it.
std::string without_path(std::string message, const std::string& path) {
  const size_t end = message.find(": line ");
  if (message.starts_with(path) && end != std::string::npos) {
    message.replace(0, end, "the chat template");
  }
  return excerpt(message, 400);
}

}  // namespace

const Tokenizer& ServedModel::needs_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw ApiError{400, "model: has no tokenizer; expected prompts of token ids", "model",
                 "no_tokenizer"};
}

const TextEngine& ServedModel::needs_engine() const {
  if (engine) return *engine;
  throw ApiError{
      400,
      "model: " + facts.name + ": has no language-model head; expected a model that generates text",
      "model", "wrong_model"};
}

const Embedder& ServedModel::needs_embedder() const {
  if (embedder) return *embedder;
  throw ApiError{
      400, "model: " + facts.name + ": does not compute embeddings; expected an embedding model",
      "model", "wrong_model"};
}

RerankQueue& ServedModel::needs_reranker() const {
  if (rerank_queue) return *rerank_queue;
  throw ApiError{400, "model: " + facts.name + ": is not a re-ranker; expected a cross-encoder",
                 "model", "wrong_model"};
}

void ServedModel::end_work() {
  engine.reset();
  embed_queue.reset();
  rerank_queue.reset();
}

std::shared_ptr<const JsonVocabulary> ServedModel::json_vocabulary() {
  const std::lock_guard lock(mutex_);
  if (json_vocabulary_) return json_vocabulary_;
  std::vector<int32_t> all = ends;
  if (const auto eos = needs_tokenizer().eos_id(); eos && all.empty()) all.push_back(*eos);
  json_vocabulary_ = std::make_shared<const JsonVocabulary>(needs_tokenizer(), all);
  return json_vocabulary_;
}

GenerateOptions program_defaults() {
  GenerateOptions options;
  options.max_tokens = -1;
  return options;
}

void set_defaults(ServedModel& model, const GenerateOptions& of_model, const SamplingFlags& flags) {
  model.defaults = of_model;
  model.defaults.beams =
      1;  // answers are streamed and drawn; translations ask for beams themselves
  if (of_model.max_tokens >= 0) model.max_tokens = of_model.max_tokens;
  Sampling& sampling = model.defaults.sampling;
  take(flags.temperature, sampling.temperature);
  take(flags.top_k, sampling.top_k);
  take(flags.top_p, sampling.top_p);
  take(flags.min_p, sampling.min_p);
  take(flags.typical_p, sampling.typical_p);
  take(flags.repetition_penalty, sampling.repetition_penalty);
  if (flags.max_tokens) model.max_tokens = flags.max_tokens;
}

std::optional<ChatFormat> chat_format(const std::string& folder, const std::string& template_file,
                                      const std::optional<Tokenizer>& tokenizer) {
  const auto told = [](const std::string& path, const auto& render) {
    try {
      return render().text;
    } catch (const Error& error) {
      throw Error(error.kind(), without_path(error.what(), path));
    }
  };
  if (!template_file.empty()) {
    const std::string source = read_file(template_file, kTemplateBytes);
    const ChatTemplate program = ChatTemplate::parse(source, template_file);
    const std::string bos = token_text(tokenizer, true), eos = token_text(tokenizer, false);
    return format_of(
        [=](const ChatRequest& request) {
          return told(template_file,
                      [&] { return program.render(variables_of(request, bos, eos)); });
        },
        source, source);
  }
  try {
    const ModelChat chat = ModelChat::open(folder);
    ChatRequest with_tools;
    with_tools.tools = "[]";
    return format_of(
        [=](const ChatRequest& request) {
          return told(folder, [&] { return chat.render(request); });
        },
        chat.choose({}).source(), chat.choose(with_tools).source());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace fovea::serve
