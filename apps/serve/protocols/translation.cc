#include "serve/protocols/translation.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fovea/text/languages.h"
#include "fovea/text/text_lines.h"
#include "http/multipart.h"
#include "http/request_head.h"
#include "serve/protocols/beam_tree_json.h"
#include "serve/protocols/translated_files.h"
#include "serve/request/api_error.h"
#include "serve/routes/response_json.h"
#include "serve/routes/response_limits.h"
#include "serve/routes/submissions.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    if (end == std::string::npos) return lines;
    begin = end + 1;
  }
}

const Translator* translator_of(const ServedModel& model) {
  const auto* const generator = model.find<TextGenerator>();
  return generator != nullptr && generator->translator ? &*generator->translator : nullptr;
}

// Returns the one of `codes` that a request's language means; "" if none or several do.
std::string code_of(const std::string& language, const std::vector<std::string>& codes) {
  const std::vector<std::string> found = text::matching_codes(language, codes);
  return found.size() == 1 ? found[0] : "";
}

bool means(const std::string& language, const std::string& code) {
  return code.empty() || !code_of(language, {code}).empty();
}

// Returns how the translator translates from `source`, or from any language if it is empty.
std::optional<infer::TranslationDirection> direction_from(const Translator& translator,
                                                          const std::string& source,
                                                          const std::string& target) {
  if (!translator.languages.empty()) {
    const std::string from = code_of(source, translator.languages),
                      into = code_of(target, translator.languages);
    if (from.empty() || into.empty()) return std::nullopt;
    return infer::TranslationDirection{from, into, ""};
  }
  for (const infer::TranslationDirection& own : translator.directions)
    if ((source.empty() || means(source, own.source)) && means(target, own.target)) return own;
  return std::nullopt;
}

struct Chosen {
  std::shared_ptr<ServedModel> model;
  Translator translator;
  infer::TranslationDirection direction;
  // The language of the texts: the detected one, or the one that the model reads with a confidence
  // of 0.
  std::string source;
  double confidence = 0;
};

// The languages of the texts of a request with the source "auto"; empty if they are unknown.
std::vector<text::DetectedLanguage> detected_in(const TranslateRequest& request) {
  if (request.source != "auto" || !text::detects_languages()) return {};
  std::string all;
  for (const std::string& text : request.texts) all += text + "\n";
  return text::detect_languages(all);
}

[[noreturn]] void refuse_direction(const TranslateRequest& request, bool any) {
  if (!any) {
    throw ApiError{400,
                   request.model.empty()
                       ? "model: no translation model is served; expected an encoder-decoder"
                       : "model: no served translation model has this name; expected that of an "
                         "encoder-decoder",
                   "model", "wrong_model"};
  }
  const bool blind = request.source == "auto" && !text::detects_languages();
  throw ApiError{400,
                 blind
                     ? "source: auto, but this server detects no languages (without libcld2), and "
                       "no model reads one language only; expected a language of GET /languages"
                     : "source: no model translates from this language into the target; GET "
                       "/languages lists the directions",
                 "source", "unknown_language"};
}

// Returns the first model that translates from the request's source into its target. A model with
// unknown languages accepts any. Throws ApiError without such a direction.
Chosen choose(const std::vector<std::shared_ptr<ServedModel>>& models,
              const TranslateRequest& request) {
  std::vector<text::DetectedLanguage> sources = detected_in(request);
  sources.push_back({request.source == "auto" ? "" : request.source, 0});
  bool any = false;
  for (const auto& [source, percent] : sources) {
    for (const auto& model : models) {
      const Translator* const translator = translator_of(*model);
      if (translator == nullptr || (!request.model.empty() && request.model != model->facts.name))
        continue;
      any = true;
      if (const auto found = direction_from(*translator, source, request.target))
        return {model, *translator, *found, source.empty() ? found->source : source, percent};
    }
  }
  refuse_direction(request, any);
}

// Translates the texts of one request.
class TranslationJob : public std::enable_shared_from_this<TranslationJob> {
 public:
  // Returns the body of the response, {"translatedText", ...} or what is sent instead of it.
  using Answer = std::function<Json(Json response)>;

  TranslationJob(const TranslateRequest& request, Chosen chosen,
                 std::shared_ptr<http::Exchange> exchange, Answer answer)
      : request_(request),
        model_(std::move(chosen.model)),
        translator_(std::move(chosen.translator)),
        direction_(std::move(chosen.direction)),
        source_{{"confidence", chosen.confidence}, {"language", std::move(chosen.source)}},
        exchange_(std::move(exchange)),
        submissions_(std::make_shared<Submissions>(
            [served = model_](uint64_t number) { served->cancel(number); })),
        answer_(std::move(answer)),
        ranks_(static_cast<size_t>(request.alternatives + 1)) {}

  void start() {
    check_lines();
    for (const std::string& text : request_.texts) {
      lines_.emplace_back();
      trees_.push_back(Json::array());
      for (const std::string& line : lines_of(text)) {
        if (exchange_->gone()) return;
        if (!text::is_blank(line)) {
          pending_.push_back({lines_.size() - 1, lines_.back().size(), ranks_,
                              translator_.request(line, direction_, request_.alternatives + 1)});
          pending_.back().request.options.beam_tree = request_.beam_tree;
        }
        lines_.back().emplace_back(ranks_);
        trees_.back().push_back(nullptr);
      }
    }
    if (pending_.empty()) return finish();
    submissions_->follow(*exchange_);
    const std::lock_guard lock(mutex_);
    if (!submit_more()) throw too_busy();
  }

 private:
  struct PendingLine {
    size_t text, line;
    size_t left;  // hypotheses that are still missing
    infer::TranslationRequest request;
  };
  // Limits the number of translations, which are kept in memory until the last one arrives.
  void check_lines() const {
    size_t lines = 0;
    for (const std::string& text : request_.texts) {
      lines += 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    }
    if (lines * ranks_ <= kMostTranslations) return;
    throw ApiError{
        400,
        fmt::format("q: {} lines with {} translations each; expected at most {} translations",
                    lines, ranks_, kMostTranslations),
        "q", "out_of_range"};
  }

  static constexpr size_t kMostTranslations = 65'536;
  static constexpr int64_t kNodeBytes = 1024;  // of a node of a tree, as JSON in memory
  // Maximum lines of one request in the engine's queue: a long text leaves room for other requests.
  static constexpr size_t kAtOnce = 32;

  // Submits further lines. Returns false if the engine is full and no line is running. The caller
  // must hold `mutex_`.
  bool submit_more() {
    while (under_way_ < kAtOnce && next_ < pending_.size()) {
      const uint64_t number = model_->needs_engine().submit(
          infer::ImagePrompt{pending_[next_].request.source}, pending_[next_].request.options,
          [self = shared_from_this(), line = next_](const infer::Event& event) {
            return self->take(self->pending_[line], event);
          },
          {});
      if (number == 0) return under_way_ > 0;
      ++next_;
      ++under_way_;
      if (!submissions_->add(number)) return true;
    }
    return true;
  }

  // Processes an event of a line. Called on the engine's thread.
  bool take(PendingLine& line, const infer::Event& event) {
    const std::lock_guard lock(mutex_);
    if (failed_ || submissions_->cancelled()) return false;
    if (event.error != nullptr)
      return fail({status_of(event.error->kind()), event.error->what(), "", ""});
    if (event.finished == nullptr) return true;
    const infer::Generation& made = *event.finished;
    lines_[line.text][line.line][static_cast<size_t>(event.generation)] = made.text;
    try {
      held_.set(held_bytes_ += std::ssize(made.text));
      if (event.generation == 0 && made.beam_tree != nullptr) {
        held_.set(held_bytes_ += kNodeBytes * std::ssize(*made.beam_tree));
        trees_[line.text][line.line] =
            Json{{"node", made.beam_node},
                 {"nodes", beam_tree_json(*made.beam_tree, model_->needs_tokenizer())}};
      }
    } catch (const ApiError& error) {
      return fail(error);
    }
    if (--line.left > 0) return true;
    --under_way_;
    if (!submit_more()) return fail(too_busy());
    if (under_way_ == 0) finish();
    return true;
  }

  bool fail(const ApiError& error) {
    failed_ = true;
    exchange_->send(error_response(ErrorShape::translate, error));
    return false;
  }

  // Joins the hypotheses of rank `rank` of all lines of a text.
  std::string joined(size_t text, size_t rank) const {
    std::string out;
    for (size_t i = 0; i < lines_[text].size(); ++i) {
      if (i > 0) out += '\n';
      out += lines_[text][i][rank];
    }
    return out;
  }

  // Returns the hypotheses that differ from the translation and from one another.
  Json alternatives(size_t text) const {
    std::vector<std::string> found = {joined(text, 0)};
    for (size_t rank = 1; rank < ranks_; ++rank) {
      const std::string other = joined(text, rank);
      if (std::find(found.begin(), found.end(), other) == found.end()) found.push_back(other);
    }
    return std::vector<std::string>(found.begin() + 1, found.end());
  }

  void finish() {
    Json texts = Json::array(), others = Json::array(), languages = Json::array();
    for (size_t i = 0; i < lines_.size(); ++i) {
      texts.push_back(joined(i, 0));
      others.push_back(alternatives(i));
      languages.push_back(source_);
    }
    const auto put = [&](Json& all) { return request_.many ? std::move(all) : std::move(all[0]); };
    Json response = {{"translatedText", put(texts)}};
    if (request_.source == "auto") response["detectedLanguage"] = put(languages);
    if (request_.alternatives > 0) response["alternatives"] = put(others);
    if (request_.beam_tree) response["beamTree"] = request_.many ? trees_ : trees_[0];
    if (answer_) response = answer_(std::move(response));
    exchange_->send({200, "application/json", {}, json_line(response)});
  }

  const TranslateRequest request_;
  const std::shared_ptr<ServedModel> model_;
  const Translator translator_;
  const infer::TranslationDirection direction_;
  const Json source_;  // "detectedLanguage"
  const std::shared_ptr<http::Exchange> exchange_;
  const std::shared_ptr<Submissions> submissions_;
  const Answer answer_;
  const size_t ranks_;  // hypotheses per line

  std::mutex mutex_;                                          // protects the following members
  std::vector<PendingLine> pending_;                          // the lines that are not empty
  std::vector<std::vector<std::vector<std::string>>> lines_;  // [text][line][rank]
  Json trees_ = Json::array();  // [text][line]; null = of a line without a search
  HeldBytes held_;
  int64_t held_bytes_ = 0;           // bytes of lines_ and trees_
  size_t next_ = 0, under_way_ = 0;  // the next line of pending_ to submit; lines in progress
  bool failed_ = false;
};

void serve_translation(const TranslateRequest& request,
                       const std::vector<std::shared_ptr<ServedModel>>& models,
                       const std::shared_ptr<http::Exchange>& exchange,
                       TranslationJob::Answer answer = {}) {
  Chosen chosen = choose(models, request);
  const int64_t most = chosen.translator.most_hypotheses;
  if (request.alternatives >= most) {
    throw ApiError{400, fmt::format("alternatives: expected at most {}", most - 1), "alternatives",
                   "out_of_range"};
  }
  std::make_shared<TranslationJob>(request, std::move(chosen), exchange, std::move(answer))
      ->start();
}

// The targets of each source language, as tags: "auto" stands for the languages of a model that
// names none; /translate accepts any codes for it.
std::map<std::string, std::set<std::string>> targets_of(
    const std::vector<std::shared_ptr<ServedModel>>& models) {
  std::map<std::string, std::set<std::string>> targets;
  for (const auto& model : models) {
    const Translator* const translator = translator_of(*model);
    if (translator == nullptr) continue;
    std::set<std::string> tags;
    for (const std::string& code : translator->languages)
      tags.insert(text::language_tag(code, translator->languages));
    for (const std::string& tag : tags) {
      targets[tag].insert(tags.begin(), tags.end());
      targets[tag].erase(tag);
    }
    if (!tags.empty()) continue;
    for (const auto& [source, target, prefix] : translator->directions) {
      const std::string from = source.empty() ? "auto" : source,
                        to = target.empty() ? "auto" : target;
      targets[from].insert(to);
      targets[to];
    }
  }
  return targets;
}

Json languages_json(const std::vector<std::shared_ptr<ServedModel>>& models) {
  Json all = Json::array();
  for (const auto& [code, into] : targets_of(models)) {
    all.push_back({{"code", code}, {"name", text::language_name(code)}, {"targets", into}});
  }
  return all;
}

std::string json_of_form(const std::string& form) {
  Json json = Json::object();
  for (const auto& [name, value] : http::form_values(form, "body")) {
    const bool number =
        name == "alternatives" && !value.empty() && value.size() < 10 &&
        std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    json[name] = number ? Json(std::stoi(value)) : Json(value);
  }
  return json_line(json);
}

Json body_of(const http::Request& request) {
  const std::string_view type = request.header("content-type");
  const bool form = type.substr(0, type.find(';')) == "application/x-www-form-urlencoded" &&
                    request.body.substr(0, 1) != "{";  // curl -d declares JSON as a form
  return parse_body(form ? json_of_form(request.body) : request.body);
}

void translate(Api& api, const http::Request& request,
               const std::shared_ptr<http::Exchange>& exchange) {
  TranslateRequest parsed;
  read_fields(body_of(request), 0, parsed);
  api.require_loaded(parsed.model);
  serve_translation(parsed, api.models(), exchange);
}

// Reads the form of /translate_file: the file, the languages and the model.
TranslateRequest file_request(const http::Request& request) {
  constexpr std::string_view kEnding = ".txt";
  Json fields = Json::object();
  for (const http::FormPart& part :
       http::form_parts(request.header("content-type"), request.body)) {
    if (part.name == "api_key") continue;
    if (part.name != "file") {
      fields[part.name] = part.content;
      continue;
    }
    if (fields.contains("q")) throw ApiError{400, "file: occurs twice", "file", "invalid_value"};
    if (!part.filename || !part.filename->ends_with(kEnding))
      throw ApiError{400, "file: expected a text whose name ends with .txt", "file",
                     "invalid_value"};
    fields["q"] = part.content;
  }
  if (!fields.contains("q"))
    throw ApiError{400, "file: missing; expected a text whose name ends with .txt", "file",
                   "missing"};
  std::string body;
  try {
    body = fields.dump();
  } catch (const Json::type_error&) {
    throw ApiError{400, "file: not UTF-8; expected a text in UTF-8", "file", "invalid_value"};
  }
  TranslateRequest parsed;
  read_fields(parse_body(body), 0, parsed);
  return parsed;
}

void translate_file(Api& api, const http::Request& request, const ExchangePtr& exchange,
                    const std::shared_ptr<TranslatedFiles>& files) {
  const TranslateRequest parsed = file_request(request);
  api.require_loaded(parsed.model);
  const bool encrypted = request.header("x-forwarded-proto") == "https";
  const std::string address =
      fmt::format("{}://{}/download_file/", encrypted ? "https" : "http", request.header("host"));
  serve_translation(parsed, api.models(), exchange, [=](const Json& response) {
    const std::string name = files->keep(response["translatedText"].get<std::string>());
    return Json{{"translatedFileUrl", address + name}};
  });
}

void download_file(const http::Request& request, const ExchangePtr& exchange,
                   TranslatedFiles& files) {
  const std::shared_ptr<const std::string> text = files.find(request.rest);
  if (text == nullptr)
    throw ApiError{404,
                   "download_file: no such file; expected one that was translated within the last "
                   "30 minutes",
                   "", "not_found"};
  exchange->send({200, "text/plain; charset=utf-8", {}, *text});
}

void detect(Api&, const http::Request& request, const std::shared_ptr<http::Exchange>& exchange) {
  DetectRequest parsed;
  read_fields(body_of(request), 0, parsed);
  if (!text::detects_languages())
    throw ApiError{501,
                   "detect: this server detects no languages; expected a fovea that is built with "
                   "libcld2-dev installed",
                   "", "unsupported"};
  Json found = Json::array();
  for (const auto& [language, percent] : text::detect_languages(parsed.text))
    found.push_back({{"confidence", percent}, {"language", language}});
  exchange->send(json_response(found));
}

void languages(Api& api, const http::Request&, const std::shared_ptr<http::Exchange>& exchange) {
  exchange->send(json_response(languages_json(api.models())));
}

}  // namespace

void add_translation_routes(http::Router& router, Api& api) {
  router.add(api_route(api, "POST", "/translate", translate, ErrorShape::translate));
  router.add(api_route(api, "POST", "/detect", detect, ErrorShape::translate));
  const auto files = std::make_shared<TranslatedFiles>();
  router.add(guarded_route(
      "POST", "/translate_file",
      [&api, files](const http::Request& request, const ExchangePtr& exchange) {
        translate_file(api, request, exchange, files);
      },
      ErrorShape::translate));
  router.add(guarded_route(
      "GET", "/download_file/{name}",
      [files](const http::Request& request, const ExchangePtr& exchange) {
        download_file(request, exchange, *files);
      },
      ErrorShape::translate));
  router.add(api_route(api, "GET", "/languages", languages, ErrorShape::translate));
}

}  // namespace fovea::serve
