#include "serve/served_model.h"

#include <fstream>
#include <sstream>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

std::optional<std::string> file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class Value, class Flag>
void take(const std::optional<Flag>& flag, Value& value) {
  if (flag) value = static_cast<Value>(*flag);
}

std::string token_text(const std::optional<Tokenizer>& tokenizer, bool begin) {
  if (!tokenizer) return {};
  const auto id = begin ? tokenizer->bos_id() : tokenizer->eos_id();
  return id ? std::string(tokenizer->text_of(*id)) : std::string();
}

// What ModelChat gives the templates of a directory.
std::string variables_of(const ChatRequest& request, const std::string& bos,
                         const std::string& eos) {
  Json variables = request.variables.empty() ? Json::object() : Json::parse(request.variables);
  variables["messages"] = Json::parse(request.messages);
  if (!request.tools.empty()) variables["tools"] = Json::parse(request.tools);
  if (!request.documents.empty()) variables["documents"] = Json::parse(request.documents);
  variables["add_generation_prompt"] = request.add_generation_prompt;
  variables["bos_token"] = bos;
  variables["eos_token"] = eos;
  return variables.dump();
}

bool names_developer(const std::string& source) {
  return source.find("developer") != std::string::npos;
}

}  // namespace

const Tokenizer& ServedModel::needs_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw ApiError{400, "model: has no tokenizer; expected prompts of token ids", "model",
                 "no_tokenizer"};
}

const TextEngine& ServedModel::needs_engine() const {
  if (engine) return *engine;
  throw ApiError{400, "model: writes no text; expected a model that does", "model", "wrong_model"};
}

const Embedder& ServedModel::needs_embedder() const {
  if (embedder) return *embedder;
  throw ApiError{400, "model: makes no vectors; expected a model for embeddings", "model",
                 "wrong_model"};
}

RerankQueue& ServedModel::needs_reranker() const {
  if (rerank_queue) return *rerank_queue;
  throw ApiError{400, "model: is no re-ranker; expected a cross-encoder", "model", "wrong_model"};
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
  if (!template_file.empty()) {
    const auto source = file_text(template_file);
    if (!source) {
      throw Error(ErrorKind::BadFile, template_file + ": cannot be read; expected a chat template");
    }
    const ChatTemplate program = ChatTemplate::parse(*source, template_file);
    const std::string bos = token_text(tokenizer, true), eos = token_text(tokenizer, false);
    return ChatFormat{[=](const ChatRequest& request) {
                        return program.render(variables_of(request, bos, eos)).text;
                      },
                      names_developer(*source)};
  }
  try {
    const ModelChat chat = ModelChat::open(folder);
    return ChatFormat{[=](const ChatRequest& request) { return chat.render(request).text; },
                      names_developer(chat.choose({}).source())};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace fovea::serve
