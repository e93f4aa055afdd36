#include "serve/protocols/ollama_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "fovea/core/excerpt.h"
#include "fovea/core/machine.h"
#include "fovea/model/hub.h"
#include "http/handler_pool.h"
#include "serve/generation/prompts.h"
#include "serve/protocols/ollama_format.h"
#include "serve/protocols/ollama_routes.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;
// The version of Ollama whose API the routes follow: clients compare it with the one that they
// need.
constexpr const char* kOllamaVersion = "0.14.0";
constexpr const char* kArchitecture = "fovea";  // the prefix of a model's figures

// Ollama's names have a tag.
std::string tagged(const std::string& name) {
  const size_t slash = name.rfind('/');
  const bool has_tag = name.find(':', slash == name.npos ? 0 : slash) != name.npos;
  return has_tag ? name : name + ":latest";
}

std::string digest_of(const ModelFacts& facts) {
  std::string digits;
  for (const char c :
       sha256(fmt::format("{} {} {}", facts.name, facts.parameters, facts.weight_bytes)))
    digits += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return digits;
}

// "7.2B", "22.7M"
std::string short_count(int64_t parameters) {
  constexpr double kThousand = 1e3, kMillion = 1e6, kBillion = 1e9;
  const auto count = static_cast<double>(parameters);
  if (count >= kBillion) return fmt::format("{:.1f}B", count / kBillion);
  if (count >= kMillion) return fmt::format("{:.1f}M", count / kMillion);
  return fmt::format("{:.1f}K", count / kThousand);
}

Json ollama_details(const ModelFacts& facts) {
  return {{"parent_model", facts.parent},
          {"format", ""},  // of the files, which the server does not report
          {"family", kArchitecture},
          {"families", {kArchitecture}},
          {"parameter_size", short_count(facts.parameters)},
          {"quantization_level", facts.weight_format}};
}

Json listed(const ModelFacts& facts) {
  return {{"name", tagged(facts.name)},
          {"model", tagged(facts.name)},
          {"modified_at", rfc3339(facts.created, 0)},
          {"size", facts.weight_bytes},
          {"digest", digest_of(facts)},
          {"details", ollama_details(facts)}};
}

void list_tags(Api& api, const http::Request&, const ExchangePtr& exchange) {
  Json models = Json::array();
  for (const auto& model : api.models()) models.push_back(listed(model->facts));
  for (const std::string& name : api.unloaded()) models.push_back(listed({.name = name}));
  exchange->send(json_response({{"models", models}}));
}

// Returns the time at which a model is unloaded unless a request names it.
std::string expiry(const Api& api, const std::string& name) {
  const ModelLoader* const loader = api.options().loader;
  const auto left = loader == nullptr ? std::nullopt : loader->time_left(name);
  if (!left) return "9999-12-31T23:59:59Z";
  const auto end = std::chrono::system_clock::now() + *left;
  return rfc3339(std::chrono::floor<std::chrono::seconds>(end).time_since_epoch().count(), 0);
}

void list_running(Api& api, const http::Request&, const ExchangePtr& exchange) {
  Json models = Json::array();
  for (const auto& model : api.models()) {
    Json entry = listed(model->facts);
    entry.erase("modified_at");
    entry["expires_at"] = expiry(api, model->facts.name);
    entry["size_vram"] = 0;
    entry["context_length"] = model->facts.context;
    models.push_back(std::move(entry));
  }
  exchange->send(json_response({{"models", models}}));
}

void report_version(Api&, const http::Request&, const ExchangePtr& exchange) {
  exchange->send(json_response({{"version", kOllamaVersion}, {"fovea", version()}}));
}

Json capabilities(const ServedModel& model) {
  Json all = Json::array();
  if (const auto* generator = model.find<TextGenerator>()) {
    all.push_back("completion");
    if (generator->chat && generator->chat->knows_tools) all.push_back("tools");
    if (generator->chat && !generator->message.reasoning_end.empty()) all.push_back("thinking");
    if (generator->image_prompt) all.push_back("vision");
    if (model.tokenizer && middle_tokens(*model.tokenizer)) all.push_back("insert");
  }
  if (model.find<ServedEmbedder>()) all.push_back("embedding");
  return all;
}

void show_model(Api& api, const http::Request& request, const ExchangePtr& exchange) {
  const Json body = parse_body(request.body);
  const auto model =
      api.model({{"model", ollama_name(api, body)}}, [](const auto&) { return true; });
  const ModelFacts& facts = model->facts;
  std::string settings, source;
  if (const auto* generator = model->find<TextGenerator>()) {
    const infer::Sampling& sampling = generator->defaults.sampling;
    settings = fmt::format("num_ctx {}\ntemperature {}\ntop_k {}\ntop_p {}", facts.context,
                           sampling.temperature, sampling.top_k, sampling.top_p);
    if (generator->chat) source = generator->chat->source;
  }
  const auto figure = [](const char* name) { return fmt::format("{}.{}", kArchitecture, name); };
  const Json figures = {
      {"general.architecture", kArchitecture},       {"general.basename", facts.name},
      {"general.parameter_count", facts.parameters}, {figure("context_length"), facts.context},
      {figure("embedding_length"), facts.width},     {figure("block_count"), facts.layers},
      {figure("attention.head_count"), facts.heads}, {figure("vocab_size"), facts.vocabulary}};
  exchange->send(json_response({{"modelfile", fmt::format("FROM {}\n", tagged(facts.name))},
                                {"parameters", settings},
                                {"template", source},
                                {"details", ollama_details(facts)},
                                {"model_info", figures},
                                {"capabilities", capabilities(*model)},
                                {"modified_at", rfc3339(facts.created, 0)}}));
}

// What a pull tells its client: lines of JSON, or one object at the end.
class PullReport {
 public:
  PullReport(ExchangePtr exchange, bool stream) : exchange_(std::move(exchange)), stream_(stream) {}

  // Returns false if the client has left.
  bool tell(const Json& progress) {
    if (!stream_) return !exchange_->gone();
    if (!begun_) exchange_->begin({200, "application/x-ndjson", {}, ""});
    begun_ = true;
    return exchange_->write(json_line(progress) + "\n") && !exchange_->gone();
  }
  void succeed() {
    tell({{"status", "success"}});
    if (stream_) return exchange_->finish();
    exchange_->send(json_response({{"status", "success"}}));
  }
  void fail(const ApiError& error) {
    if (!begun_) return exchange_->send(error_response(ErrorShape::translate, error));
    exchange_->write(json_line({{"error", error.message}}) + "\n");
    exchange_->finish();
  }

 private:
  ExchangePtr exchange_;
  bool stream_, begun_ = false;
};

// Names of the Hub only: a name must not become a path of this machine.
model::HubName hub_name(const std::string& name) {
  constexpr std::string_view kHosts[] = {"hf.co/", "huggingface.co/"};
  std::string text = name;
  for (const std::string_view host : kHosts)
    if (text.starts_with(host)) text = "hf:" + text.substr(host.size());
  const auto found = model::parse_hub_name(text);
  if (!found || found->dataset || !found->file.empty())
    throw ApiError{400,
                   fmt::format("model: \"{}\" is not served; expected the name of a model on the "
                               "Hub, such as hf.co/USER/NAME",
                               excerpt(name, 100)),
                   "model", "model_not_found"};
  return *found;
}

// Fetches a model, and serves it by `name`.
void fetch_model(Api& api, const std::string& name, PullReport& report,
                 const http::HandlerPool& pool) {
  ModelLoader& loader = *api.options().loader;
  if (loader.can_load(name)) return;  // since the pull before
  report.tell({{"status", "pulling manifest"}});
  const model::HubPlan plan = model::plan_pull(hub_name(name));
  const auto progress = [&](const model::PullProgress& done) {
    const Json line = {{"status", "pulling " + plan.commit.substr(0, 12)},
                       {"digest", plan.commit},
                       {"total", done.bytes},
                       {"completed", done.done}};
    return report.tell(line) && !pool.stopping();
  };
  const std::string path = model::pull(plan, model::hub_settings(), progress);
  report.tell({{"status", "loading"}});
  loader.add(name, path);
  loader.load(name, [&] { return pool.stopping(); });
}

void pull_model(Api& api, const http::Request& request, const ExchangePtr& exchange,
                const std::shared_ptr<http::HandlerPool>& worker) {
  const Json body = parse_body(request.body);
  const std::string name = ollama_name(api, body);
  if (name.empty()) throw ApiError{400, "model: is missing; expected a name", "model", "missing"};
  const Json stream = body.value("stream", Json());
  if (!stream.is_null() && !stream.is_boolean())
    throw ApiError{400, "stream: expected true or false", "stream", "invalid_type"};
  PullReport report(exchange, stream != false);
  if (api.list().find(name) || api.is_unloaded(name)) return report.succeed();
  if (!worker)
    throw ApiError{403, "pull: not allowed; the server must be started with --allow-pull", "",
                   "not_allowed"};
  if (api.options().loader == nullptr)
    throw ApiError{501, "pull: this server fetches no models", "", "unsupported"};
  static_cast<void>(hub_name(name));  // before the request waits
  const auto work = [&api, name, report, pool = worker.get()]() mutable {
    try {
      fetch_model(api, name, report, *pool);
      report.succeed();
    } catch (const Error& error) {
      const Error shown = without_folder(error, model::hub_settings().cache);
      const bool missing = error.kind() == ErrorKind::BadFile;
      report.fail({missing ? 404 : status_of(error.kind()), shown.what(), "", ""});
    } catch (...) {
      report.fail(api_error(std::current_exception()));
    }
  };
  if (!worker->run(work)) throw too_busy();
}

struct RefusedRoute {
  const char *method, *path, *instead;
};

constexpr RefusedRoute kRefused[] = {
    {"POST", "/api/create", "fovea convert and fovea train make models"},
    {"POST", "/api/copy", "fovea serve --alias names models"},
    {"DELETE", "/api/delete", "the files of models are not deleted by requests"},
    {"POST", "/api/push", "models are not sent to other servers"},
    {"POST", "/api/blobs/{digest}", "files of models are not accepted"},
    {"HEAD", "/api/blobs/{digest}", "files of models are not accepted"},
};

}  // namespace

void add_ollama_model_routes(http::Router& router, Api& api) {
  const auto add = [&](const char* method, const char* path, Answer answer) {
    router.add(api_route(api, method, path, answer, ErrorShape::translate));
  };
  add("GET", "/api/tags", list_tags);
  add("GET", "/api/ps", list_running);
  add("GET", "/api/version", report_version);
  add("POST", "/api/show", show_model);
  // One pull at a time, on a thread of its own.
  constexpr size_t kMostWaiting = 16;
  const auto worker = api.options().allow_pull
                          ? std::make_shared<http::HandlerPool>(1, kMostWaiting)
                          : std::shared_ptr<http::HandlerPool>();
  router.add(guarded_route(
      "POST", "/api/pull",
      [&api, worker](const http::Request& request, const ExchangePtr& exchange) {
        pull_model(api, request, exchange, worker);
      },
      ErrorShape::translate));
  for (const RefusedRoute& route : kRefused) {
    const std::string message = fmt::format("{}: not supported; {}", route.path, route.instead);
    router.add(guarded_route(
        route.method, route.path,
        [message](const http::Request&, const ExchangePtr&) {
          throw ApiError{501, message, "", "unsupported"};
        },
        ErrorShape::translate));
  }
}

}  // namespace fovea::serve
