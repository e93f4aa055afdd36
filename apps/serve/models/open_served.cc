#include "serve/models/open_served.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "fovea/core/error.h"
#include "fovea/core/read_file.h"
#include "fovea/open.h"
#include "fovea/text/languages.h"
#include "fovea/train/plan.h"

namespace fovea::serve {
namespace {

// `model`: see Engine::submit().
TextEngine text_engine(const std::shared_ptr<infer::Engine>& engine, size_t model,
                       const infer::EngineOptions& limits) {
  TextEngine text;
  text.most_waiting = limits.most_waiting;
  text.most_sequences = limits.most_sequences;
  text.submit = [engine, model](const infer::ImagePrompt& prompt,
                                const infer::GenerateOptions& options, infer::Engine::Sink sink,
                                const infer::AttentionTraceOptions& trace) {
    return engine->submit(prompt, options, std::move(sink), trace, model);
  };
  text.cancel = [engine](uint64_t request) { engine->cancel(request); };
  text.status = [engine] { return engine->status(); };
  text.room = [engine](int64_t prompt, int64_t generations) {
    return engine->room(prompt, generations);
  };
  return text;
}

// Splits "de-en" into {"de", "en"}.
infer::TranslationDirection direction_of(const std::string& languages) {
  const size_t dash = languages.find('-');
  if (dash == std::string::npos || dash == 0 || dash + 1 == languages.size()) {
    throw Error(ErrorKind::InvalidArgument,
                "--languages: \"" + languages + "\"; expected source-target, such as de-en");
  }
  return {languages.substr(0, dash), languages.substr(dash + 1), ""};
}

// Returns the tokenizer_config.json of a model; an empty object if it has no such file.
Json tokenizer_config_in(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  constexpr size_t kMostBytes = size_t{16} << 20;
  Json config;
  if (std::filesystem::exists(path)) config = json_or_discarded(read_file(path, kMostBytes));
  return config.is_object() ? config : Json::object();
}

// Returns the directions of a translation model. `languages`, if set, selects one of those in its
// files, or replaces them if none is equal.
std::vector<infer::TranslationDirection> directions_of(const model::Model& model,
                                                       const std::string& languages) {
  std::vector<infer::TranslationDirection> directions = infer::translation_directions(model);
  const infer::TranslationDirection one =
      languages.empty() ? infer::TranslationDirection() : direction_of(languages);
  for (infer::TranslationDirection& each : directions) {
    if (each.source.empty()) each.source = one.source;
    if (!languages.empty() && each.source == one.source && each.target == one.target) return {each};
  }
  if (directions.empty() || !languages.empty()) return {one};
  return directions;
}

Translator translator_of(const model::Model& model, const ServedOptions& options) {
  Translator translator;
  translator.languages = infer::translation_languages(model);
  translator.directions = directions_of(model, options.languages);
  translator.most_hypotheses = options.engine.most_sequences;
  translator.request = [model, most = options.engine.most_sequences,
                        many = !translator.languages.empty()](
                           const std::string& line, const infer::TranslationDirection& direction,
                           int64_t hypotheses) {
    infer::TranslateOptions settings;
    settings.source_prefix = direction.source_prefix;
    if (many) {
      settings.source_language = direction.source;
      settings.target_language = direction.target;
    }
    settings.beams = std::min(std::max(settings.beams, hypotheses), most);
    settings.best = hypotheses;
    return infer::translation_request(model, settings, line);
  };
  // Both languages of a model of many, if --languages names them.
  if (!translator.languages.empty() && !options.languages.empty()) {
    const infer::TranslationDirection one = direction_of(options.languages);
    infer::TranslateOptions settings;
    settings.source_language = one.source;
    settings.target_language = one.target;
    static_cast<void>(infer::translation_request(model, settings, "-"));  // refuses unknown ones
    std::vector<std::string> both;
    for (const std::string& language : {one.source, one.target})
      for (const std::string& code : text::matching_codes(language, translator.languages))
        both.push_back(code);
    translator.languages = both;
  }
  return translator;
}

void set_facts(const model::Spec& spec, const ServedOptions& options, ServedModel& served) {
  served.facts = {.name = options.name,
                  .created = std::time(nullptr),
                  .context = spec.context,
                  .vocabulary = spec.vocabulary,
                  .parameters = train::plan(spec).parameters,
                  .width = spec.width};
}

using Warn = std::function<void(const std::string&)>;

void warn_all(const std::vector<std::string>& warnings, const Warn& warn) {
  for (const std::string& warning : warnings) warn(warning);
}

std::shared_ptr<http::HandlerPool> worker_of(const ServedOptions& options) {
  return std::make_shared<http::HandlerPool>(1, static_cast<size_t>(options.engine.most_waiting));
}

const text::CallFormat* call_format_of(const ServedOptions& options) {
  return options.tool_format.empty() ? nullptr : text::find_call_format(options.tool_format);
}

// Sets everything of a model that generates text except its engine.
void set_writer(const model::Model& model, const std::string& folder, const ServedOptions& options,
                ServedModel& served) {
  const model::Spec& spec = model.spec();
  TextGenerator& generator = served.part.emplace<TextGenerator>();
  set_facts(spec, options, served);
  served.facts.layers = spec.decoder->layers;
  served.facts.heads = spec.decoder->attention.heads;
  served.facts.encoder = spec.encoder.has_value();
  served.facts.weight_bytes = model.weight_bytes();
  if (const auto formats = model.weight_formats(); !formats.empty())
    served.facts.weight_format = formats.front().format;
  if (model.has_tokenizer()) served.tokenizer = model.tokenizer();
  set_chat(generator, text::chat_format(folder, options.template_file, served.tokenizer),
           call_format_of(options), served.tokenizer);
  if (infer::reads_images(model)) {
    generator.image_mark = infer::image_mark(model);
    generator.image_prompt = [model](const std::string& text, size_t count, const auto& image,
                                     const std::vector<std::string>& names) {
      return infer::image_prompt(model, text, count, image, text::SpecialTokens::guarded, names);
    };
  }
  generator.ends = infer::end_ids(model);
  infer::GenerateOptions requests = infer::generation_defaults(model, program_defaults());
  if (options.set_requests) options.set_requests(requests);
  set_defaults(generator, requests);
  generator.score = [model](const std::vector<int32_t>& ids, int64_t alternatives) {
    return infer::score(model, ids, alternatives);
  };
  generator.reasoning_tokens = options.reasoning_tokens;
  served.worker = worker_of(options);
  served.most_seconds = options.most_seconds;
  if (!options.draft.empty()) generator.defaults.speculative_tokens = options.draft_tokens;
  if (spec.encoder && served.tokenizer) {
    generator.translator = translator_of(model, options);
  }
}

model::Model opened(const std::string& folder, const ServedOptions& options) {
  if (options.opened) return *options.opened;
  return model::Model::open(folder, options.precision, options.cache);
}

// Adds the model and its adapters, which share the engine.
void open_writer(const std::string& folder, const ServedOptions& options, const Warn& warn,
                 std::vector<std::shared_ptr<ServedModel>>& all) {
  model::Model model = opened(folder, options);
  if (!options.mmproj.empty()) model = model.with_image_encoder(options.mmproj, options.precision);
  warn_all(model.warnings(), warn);
  set_writer(model, folder, options, *all.emplace_back(std::make_shared<ServedModel>()));
  infer::EngineOptions engine_options = options.engine;
  if (!options.draft.empty()) {
    engine_options.draft = model::Model::open(options.draft, options.precision);
    warn_all(engine_options.draft->warnings(), warn);
  }
  const auto engine = std::make_shared<infer::Engine>(model, engine_options);
  const std::shared_ptr<ServedModel> base = all.front();
  auto& generator = base->needs<TextGenerator>();
  generator.engine = text_engine(engine, 0, engine_options);
  generator.open_adapter = [model, folder, options, engine](const std::string& name,
                                                            const model::AdapterUse& use) {
    const model::Model adapted = model.with_adapters({use});
    auto served = std::make_shared<ServedModel>();
    set_writer(adapted, folder, options, *served);
    auto& own = served->needs<TextGenerator>();
    served->facts.name = name;
    served->facts.parent = options.name;
    // The directory of an adapter of chats may have a chat template.
    if (std::filesystem::is_directory(use.folder)) {
      if (auto chat = text::chat_format(use.folder, options.template_file, served->tokenizer))
        set_chat(own, std::move(chat), call_format_of(options), served->tokenizer);
    }
    own.engine = text_engine(engine, engine->add(adapted), options.engine);
    return served;
  };
  for (const auto& [name, use] : options.adapters) all.push_back(generator.open_adapter(name, use));
}

infer::QueueOptions queue_options(const ServedOptions& options) {
  return {.most_waiting = options.engine.most_waiting};
}

ServedClassifier classifier_part(const infer::Classifier& classifier,
                                 const ServedOptions& options) {
  return {classifier, std::make_shared<infer::ClassifyQueue>(classifier, queue_options(options))};
}

ServedEmbedder embedder_part(const infer::Embedder& embedder, const ServedOptions& options) {
  return {embedder, std::make_shared<infer::EmbedQueue>(embedder, queue_options(options))};
}

void open_embedder(const std::string& folder, const ServedOptions& options, const Warn& warn,
                   ServedModel& served) {
  const infer::Embedder embedder = infer::Embedder::open(folder, options.precision);
  warn_all(embedder.warnings(), warn);
  set_facts(embedder.spec(), options, served);
  served.facts.context = embedder.max_tokens();
  served.facts.width = embedder.width();
  served.tokenizer = embedder.tokenizer();
  served.part = embedder_part(embedder, options);
}

// A model of token weights alone has no Transformer whose facts could be reported.
void open_sparse_embedder(const std::string& folder, const ServedOptions& options, const Warn& warn,
                          ServedModel& served) {
  const auto embedder = infer::SparseEmbedder::open(folder, options.precision);
  warn_all(embedder.warnings(), warn);
  if (const model::Spec* spec = embedder.spec())
    set_facts(*spec, options, served);
  else
    served.facts = {.name = options.name,
                    .created = std::time(nullptr),
                    .vocabulary = embedder.tokenizer().size()};
  served.facts.context = embedder.max_tokens();
  served.facts.width = embedder.width();
  served.tokenizer = embedder.tokenizer();
  served.part = ServedSparseEmbedder{
      embedder, std::make_shared<infer::SparseQueue>(embedder, queue_options(options))};
}

void open_multi_vector_embedder(const std::string& folder, const ServedOptions& options,
                                const Warn& warn, ServedModel& served) {
  const auto embedder = infer::MultiVectorEmbedder::open(folder, options.precision);
  warn_all(embedder.warnings(), warn);
  set_facts(embedder.spec(), options, served);
  served.facts.context = embedder.max_tokens(infer::TextRole::document);
  served.facts.width = embedder.width();
  served.tokenizer = embedder.tokenizer();
  served.part = ServedMultiVectorEmbedder{
      embedder, std::make_shared<infer::MultiVectorQueue>(embedder, queue_options(options))};
}

// Entities, answers, or masked words, which have vectors too.
void open_tagger(const std::string& folder, const ServedOptions& options, const Warn& warn,
                 ServedModel& served) {
  std::optional<ServedEmbedder> vectors;
  if (model_use(folder) == ModelUse::masks) {
    const infer::Embedder embedder = infer::Embedder::open(folder, options.precision);
    vectors = embedder_part(embedder, options);
  }
  const infer::Classifier model = vectors ? infer::Classifier::of(vectors->model)
                                          : infer::Classifier::open(folder, options.precision);
  warn_all(model.warnings(), warn);
  set_facts(model.spec(), options, served);
  served.facts.context = model.max_tokens();
  served.tokenizer = model.tokenizer();
  served.worker = worker_of(options);
  served.part = ServedTagger{model, std::move(vectors)};
}

void open_reranker(const std::string& folder, const ServedOptions& options, const Warn& warn,
                   ServedModel& served) {
  const infer::Reranker reranker = infer::Reranker::open(folder, options.precision);
  warn_all(reranker.warnings(), warn);
  set_facts(reranker.spec(), options, served);
  served.facts.context = reranker.max_tokens();
  const infer::Classifier labels = infer::Classifier::of(reranker);
  served.tokenizer = labels.tokenizer();
  served.part =
      ServedReranker{std::make_shared<infer::RerankQueue>(reranker, queue_options(options)),
                     classifier_part(labels, options)};
}

void open_classifier(const std::string& folder, const ServedOptions& options, const Warn& warn,
                     ServedModel& served) {
  const infer::Classifier classifier = infer::Classifier::open(folder, options.precision);
  warn_all(classifier.warnings(), warn);
  set_facts(classifier.spec(), options, served);
  served.facts.context = classifier.max_tokens();
  served.tokenizer = classifier.tokenizer();
  served.worker = worker_of(options);
  served.part = classifier_part(classifier, options);
}

void open_speech(const std::string& folder, const ServedOptions& options, const Warn& warn,
                 ServedModel& served) {
  const model::Model model = opened(folder, options);
  warn_all(model.warnings(), warn);
  set_facts(model.spec(), options, served);
  if (model.has_tokenizer()) served.tokenizer = model.tokenizer();
  served.part = ServedSpeech{model};
  served.worker = worker_of(options);
}

}  // namespace

std::vector<std::shared_ptr<ServedModel>> open_served(const std::string& folder,
                                                      const ServedOptions& options,
                                                      const Warn& warn) {
  std::vector<std::shared_ptr<ServedModel>> all;
  const auto added = [&]() -> ServedModel& {
    return *all.emplace_back(std::make_shared<ServedModel>());
  };
  const ModelUse use = model_use(folder);
  switch (use) {
    case ModelUse::text: open_writer(folder, options, warn, all); break;
    case ModelUse::speech: open_speech(folder, options, warn, added()); break;
    case ModelUse::vectors: open_embedder(folder, options, warn, added()); break;
    case ModelUse::sparse: open_sparse_embedder(folder, options, warn, added()); break;
    case ModelUse::multi_vector: open_multi_vector_embedder(folder, options, warn, added()); break;
    case ModelUse::scores: open_reranker(folder, options, warn, added()); break;
    case ModelUse::labels: open_classifier(folder, options, warn, added()); break;
    case ModelUse::entities:
    case ModelUse::answers:
    case ModelUse::masks: open_tagger(folder, options, warn, added()); break;
    case ModelUse::images:
      throw Error(ErrorKind::Unsupported,
                  folder +
                      ": a model of images; expected one that the server can serve: of text, "
                      "vectors, scores, labels, entities, answers, masked words or speech");
  }
  Json config = tokenizer_config_in(folder);
  config.erase("added_tokens_decoder");  // may have thousands of tokens
  for (const auto& served : all) {
    served->tokenizer_config = config;
    served->facts.use = use;
  }
  const auto* const generator = all.front()->find<TextGenerator>();
  if (!options.languages.empty() && (generator == nullptr || !generator->translator)) {
    throw Error(ErrorKind::InvalidArgument,
                "--languages: " + options.languages + " for " + folder +
                    ", which is not a translation model; expected an empty value");
  }
  if (!options.adapters.empty() && generator == nullptr) {
    throw Error(ErrorKind::InvalidArgument,
                "--adapter: " + options.adapters[0].name + " for " + folder +
                    ", which does not generate text; expected a language model");
  }
  if (!options.draft.empty() && generator == nullptr) {
    throw Error(ErrorKind::InvalidArgument,
                "--draft: " + options.draft + " for " + folder +
                    ", which does not generate text; expected an empty value");
  }
  return all;
}

std::string served_name(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path last = folder.has_filename() ? folder : folder.parent_path();
  return last.extension() == ".gguf" ? last.stem() : last.filename();
}

}  // namespace fovea::serve
