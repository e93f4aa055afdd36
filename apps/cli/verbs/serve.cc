#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/machine.h"
#include "base/stop.h"
#include "cli/command.h"
#include "fovea/core/error.h"
#include "fovea/core/machine.h"
#include "fovea/model/hub.h"
#include "fovea/text/calls.h"
#include "fovea/text/text_lines.h"
#include "http/http_server.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "serve/jobs/served_jobs.h"
#include "serve/model_routes.h"
#include "serve/models/model_loader.h"
#include "serve/models/open_served.h"
#include "serve/openapi.h"
#include "serve/protocols/speech.h"
#include "serve/request/api_error.h"
#include "serve/request/fields.h"
#include "serve/router.h"
#include "serve/routes/api.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns the log line of a request. It contains no text of the request or the response.
std::string log_line(const http::AccessRecord& record, bool as_json) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string time = fmt::format("{:%FT%TZ}", now);
  if (as_json) {
    const Json json = {{"time", time},          {"method", record.method},
                       {"path", record.path},   {"status", record.status},
                       {"bytes", record.bytes}, {"seconds", record.seconds},
                       {"whole", record.whole}, {"id", record.id}};
    return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  }
  return printable(fmt::format("{} {} {} {} {} bytes {:.3f} s{} {}", time,
                               record.method.empty() ? "-" : record.method,
                               record.path.empty() ? "-" : record.path, record.status, record.bytes,
                               record.seconds, record.whole ? "" : " (client disconnected)",
                               record.id)) +
         "\n";
}

// Load balancers ask for the health every second.
bool is_logged(const http::AccessRecord& record) {
  return record.status != 200 || !record.route.ends_with("/health");
}

class ServeCommand : public Command {
 public:
  ServeCommand()
      : Command("serve [MODEL ...] [OPTIONS]",
                "Serves models over HTTP with OpenAI's API: chats, completions, streams, JSON that "
                "conforms to a schema. Requests are batched; see docs/serve.md. Ctrl-C stops the "
                "server after the running requests.") {}

  void declare(OptionTable& table) override {
    Option models = positionals("MODEL", {"-m", "--model", "--model-name-or-path"},
                                "model directories", models_);
    models.model_in = [](const std::string& typed) { return typed; };  // names the model too
    table.add(std::move(models));
    table.add(as("NAME",
                 list("--alias", {"--served-model-name"},
                      "model name in the API; repeat for each model, in the same order; unset: the "
                      "directory's name",
                      names_)));
    table.add(
        as("NAME=ADAPTER[:WEIGHT]",
           list("--adapter", {"--lora-modules"},
                "serve a low-rank adapter of the first model under a name, from the same copy "
                "of the weights; a directory of PEFT or a .gguf file; may be repeated",
                adapters_)));
    table.add(choice("--dtype", {}, "precision of the weights; automatic = as stored", weights_,
                     kWeightPrecisions));
    table.add(cache_option(cache_type_));
    table.add(as("NAME", list("--languages", {},
                              "source and target language of a translation model, such as de-en; "
                              "repeat for each model, in the same order; unset: as in its files",
                              languages_)));
    table.add(as("DIR", text("--models-dir", {},
                             "folder of further models, which requests load by their names",
                             models_folder_)));
    table.add(bytes("--models-memory", {},
                    "memory of the models that requests load, with their caches; those that were "
                    "not used for longest are unloaded; 0 = 70% of the free memory",
                    models_memory_));
    table.add(flag("--any-model", {},
                   "accept any name of a model in requests, if exactly one model is served",
                   any_model_));
    table.add(flag("--allow-pull", {},
                   "let requests to /api/pull fetch models from the Hub, and serve them",
                   allow_pull_));
    table.add(as("FILE", text("--chat-template", {"--chat-template-file"},
                              "chat template to use instead of the models'", template_)));
    table.add(as("NAME", text("--tool-format", {},
                              "format of calls of tools, such as hermes; unset: that of the chat "
                              "template",
                              tool_format_)));
    table.add(
        as("N", integer("--reasoning-budget", {},
                        "maximum tokens of reasoning, after which its end is forced, unless a "
                        "request has another; -1 = no limit",
                        reasoning_tokens_, -1, 1 << 30)));
    table.add(mmproj_option(mmproj_));
    declare_network(table);
    declare_engine(table);
    declare_drafts(table);
    declare_jobs(table);
    declare_requests(table);
    table.show_only(
        {"MODEL",        "--alias",         "--adapter", "--dtype", "--cache-dtype",  "--languages",
         "--models-dir", "--chat-template", "--host",    "--port",  "--api-key-file", "--insecure",
         "--max-time",   "--log-json",      "--jobs",    "--cache", "--parallel",     "--queue",
         "--draft",      "--temperature",   "--predict"});
  }

  int run(const OptionTable& table) override {
    if (!tool_format_.empty()) text::find_call_format(tool_format_);
    if (list_fields_) {
      print(serve::fields_json() + "\n");
      return 0;
    }
    if (models_.empty() && !loads_models())
      throw UsageError(
          "MODEL: not given; expected a model directory, --models-dir or --allow-pull");
    if (names_.size() > models_.size()) {
      throw UsageError(fmt::format("--alias: {} names for {} models; expected at most one for each",
                                   names_.size(), models_.size()));
    }
    if (languages_.size() > models_.size()) {
      throw UsageError(
          fmt::format("--languages: {} pairs for {} models; expected at most one for each",
                      languages_.size(), models_.size()));
    }
    if (drafts_.size() > models_.size()) {
      throw UsageError(
          fmt::format("--draft: {} drafts for {} models; expected at most one for each",
                      drafts_.size(), models_.size()));
    }
    if (!models_folder_.empty() && !std::filesystem::is_directory(models_folder_))
      throw Error(ErrorKind::BadFile,
                  models_folder_ + ": is not a folder; expected one with models");
    require(table, loads_models(), {"--models-memory"}, "--models-dir or --allow-pull");
    http_.socket = socket_path(table);
    http_.access = access();
    http_.format_error = serve::error_format(serve::ErrorShape::openai);
    if (!jobs_.empty() && http_.access.keys.empty()) {
      throw UsageError("--jobs: no API key; expected a key in --api-key-file or FOVEA_API_KEY");
    }
    apply_limits();
    require(table, http_.socket.empty(), {"--host", "--port"}, "an address instead of --listen");
    table_ = &table;
    return serve_all();
  }

 private:
  void declare_network(OptionTable& table) {
    table.section("Network");
    table.add(as("unix:PATH",
                 text("--listen", {},
                      "listen on a Unix socket instead of --host and --port; only its owner and "
                      "its group may connect",
                      listen_)));
    table.add(text("--host", {}, "address to listen on", http_.host));
    table.add(integer("--port", {}, "port to listen on; 0 = any free port", port_, 0, 65535));
    table.add(as("FILE", text("--api-key-file", {},
                              "file of accepted API keys, one per line; unset: the environment "
                              "variable FOVEA_API_KEY",
                              key_file_)));
    table.add(flag("--insecure", {}, "allow any address without an API key", insecure_));
    table.add(list("--cors-origin", {"--cors-origins"},
                   "origin of web pages that may use the server; * = any; may be repeated",
                   origins_));
    table.add(
        bytes("--max-body", {"--payload-limit"}, "maximum size of a request's body", max_body_));
    table.add(integer("--max-connections", {},
                      "maximum number of connections; further ones get status 503", connections_, 1,
                      100'000));
    table.add(integer("--timeout", {},
                      "maximum seconds for a client to send the head of a request, to send its "
                      "body, and to read each piece of the response; 0 = 10, 30 and 30",
                      timeout_, 0, 86400));
    table.add(number("--max-time", {}, "maximum seconds per request; 0 = unlimited", most_seconds_,
                     0, 86400));
    table.add(integer("--grace", {},
                      "maximum seconds to wait for running requests when the server stops", grace_,
                      0, 86400));
    table.add(
        integer("--drain", {},
                "seconds between a signal to stop and the end of accepting requests, in which "
                "/health says 503, so that a load balancer sends them elsewhere",
                drain_, 0, 86400));
    table.add(flag("--log-json", {"--json-output"}, "log requests as JSON", log_json_));
    table.add(flag("--list-fields", {}, "print the request fields as JSON", list_fields_));
  }

  void declare_engine(OptionTable& table) {
    table.section("Engine");
    table.add(bytes(
        "--cache", {"--cache-bytes"},
        "memory of the key-value caches of all models together; 0 = a quarter of the free memory "
        "for each model",
        cache_));
    add_fields(table, engine_,
               {{.field = "cache_bytes", .omitted = true},  // --cache divided by the models
                {"most_sequences", {"--max-num-seqs", "--max-concurrent-requests"}, "--parallel"},
                {"most_waiting", {}, "--queue"},
                {"step_tokens", {"--max-batch-tokens"}}});
  }

  void declare_drafts(OptionTable& table) {
    table.add(of_model(as(
        "DIR", list("--draft", {"--model-draft"},
                    "smaller model with the same vocabulary that proposes speculative tokens while "
                    "few requests run; repeat for each model, in the same order; does not change "
                    "the results",
                    drafts_))));
    table.add(with_words({"-1|auto"},
                         integer("--draft-tokens", {"--draft-max", "--num-speculative-tokens"},
                                 "--draft: speculative tokens per pass; -1 = auto: as many as pay "
                                 "by the acceptance so far; 0 = off",
                                 draft_tokens_, -1, 64)));
  }

  void declare_jobs(OptionTable& table) {
    table.section("Fine-tuning jobs");
    table.add(
        as("DIR", text("--jobs", {},
                       "accept fine-tuning jobs and batches over HTTP and keep their files in this "
                       "directory; requires an API key; see docs/serve.md",
                       jobs_)));
    table.add(bytes("--max-upload", {},
                    "maximum size of an uploaded file: of --jobs, audio to transcribe, or a chat "
                    "with images",
                    max_upload_));
    table.add(
        bytes("--max-jobs", {}, "--jobs: maximum size of all files in the directory", max_jobs_));
  }

  void declare_requests(OptionTable& table) {
    requests_.max_tokens = -1;
    table.section(kRequests);
    Spellings spellings = {
        {"max_tokens", {"-n", "--max-tokens"}, "--predict"},
        {"temperature", {"--temp"}},
        {"top_n_sigma", {"--top-nsigma"}},
        {"samplers", {}, {}, "NAMES"},
        {"mirostat_tau", {"--mirostat-ent"}},
        {"mirostat_eta", {"--mirostat-lr"}},
        {"dry_sequence_breakers", {}, "--dry-sequence-breaker"},
        {"repetition_penalty", {"--repeat-penalty"}},
        {.field = "speculative_tokens",
         .aliases = {"--speculate", "--prompt-lookup"},
         .values = {"-1|auto"}},
    };
    for (const char* field :
         {"stop", "banned", "stop_ids", "ignore_end", "seed", "generations", "beams", "beam_groups",
          "diversity_penalty", "required", "length_penalty", "logprobs"})
      spellings.push_back({.field = field, .omitted = true});
    add_fields(table, requests_, spellings);
  }

  void apply_limits() {
    http_.port = static_cast<uint16_t>(port_);
    http_.connections = static_cast<size_t>(connections_);
    http_.limits.body = max_body_;
    http_.held = std::max(http_.held, static_cast<int64_t>(4 * std::max(max_body_, max_upload_)));
    if (timeout_ > 0) {
      const std::chrono::seconds time(timeout_);
      http_.times.head = http_.times.body = http_.times.write = time;
    }
    http_.times.response =
        std::chrono::milliseconds(static_cast<int64_t>(std::ceil(most_seconds_ * 1000)));
    engine_.cache_bytes = cache_ / std::max(models_.size(), size_t{1});
  }

  std::vector<std::string> keys() const {
    std::string text;
    if (!key_file_.empty()) {
      struct stat status = {};
      if (stat(key_file_.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
        note("warning: " + printable(key_file_) +
             ": readable by other users; run chmod 600 on it\n");
      }
      text = text::read_text(key_file_, size_t{1} << 16);
    } else if (const char* const variable = std::getenv("FOVEA_API_KEY")) {
      text = variable;
    }
    std::vector<std::string> keys;
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
      if (end > begin) keys.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (keys.empty() && !key_file_.empty()) {
      throw Error(ErrorKind::BadFile, key_file_ + ": is empty; expected a key");
    }
    return keys;
  }

  // Returns the path in --listen; empty without the option.
  std::string socket_path(const OptionTable& table) const {
    constexpr std::string_view kScheme = "unix:";
    if (!table.given("--listen")) return {};
    if (!listen_.starts_with(kScheme) || listen_.size() == kScheme.size())
      throw UsageError("--listen: \"" + listen_ + "\"; expected unix:PATH");
    return listen_.substr(kScheme.size());
  }

  http::Access access() const {
    http::Access access;
    access.keys = keys();
    access.origins = origins_;
    if (!http_.socket.empty()) {  // the permissions of the socket say who may connect
      access.loopback = false;
      return access;
    }
    access.host = http_.host;
    access.loopback = http::is_loopback(http_.host);
    if (!access.loopback && access.keys.empty() && !insecure_) {
      throw UsageError(
          fmt::format("--host: {} is reachable from other machines; expected a key in "
                      "--api-key-file or FOVEA_API_KEY, or --insecure",
                      http_.host));
    }
    if (!access.loopback && !access.keys.empty()) {
      note(printable(fmt::format("warning: --host: the API key and all texts reach {} without "
                                 "encryption; let a proxy with TLS forward them (docs/deploy.md)",
                                 http_.host)) +
           "\n");
    }
    return access;
  }

  std::string name_of(size_t i) const {
    if (i < names_.size()) return names_[i];
    return serve::served_name(models_[i]);
  }

  // The adapters of the first model. Their names differ from one another and from the models'.
  std::vector<serve::ServedAdapter> served_adapters() const {
    std::set<std::string> names;
    for (size_t i = 0; i < models_.size(); ++i) names.insert(name_of(i));
    std::vector<serve::ServedAdapter> all;
    for (const std::string& typed : adapters_) {
      const size_t equals = typed.find('=');
      if (equals == typed.npos || equals == 0 || equals + 1 == typed.size())
        throw UsageError("--adapter: \"" + typed +
                         "\"; expected NAME=ADAPTER, such as law=out/law");
      const std::string name = typed.substr(0, equals);
      if (!names.insert(name).second)
        throw UsageError("--adapter: two models have the name " + name +
                         "; expected different names");
      all.push_back({name, adapters_of({typed.substr(equals + 1)}).front()});
    }
    return all;
  }

  std::vector<std::shared_ptr<serve::ServedModel>> open(size_t i) {
    serve::ServedOptions options = options_of(name_of(i));
    if (i == 0) options.adapters = served_adapters();
    if (i < languages_.size()) options.languages = languages_[i];
    if (i < drafts_.size()) options.draft = drafts_[i];
    if (i == 0) options.mmproj = mmproj_;
    return open(models_[i], options);
  }

  static std::vector<std::shared_ptr<serve::ServedModel>> open(
      const std::string& path, const serve::ServedOptions& options) {
    return serve::open_served(model::find_model(path), options,
                              [](const std::string& warning) { warn({warning}); });
  }

  // Returns what applies to every model.
  serve::ServedOptions options_of(const std::string& name) {
    serve::ServedOptions options;
    options.name = name;
    options.template_file = template_;
    options.tool_format = tool_format_;
    options.reasoning_tokens = reasoning_tokens_;
    options.precision = weight_precision(weights_);
    options.cache = cache_type(cache_type_);
    options.engine = engine_;
    options.most_seconds = most_seconds_;
    options.set_requests = [this](infer::GenerateOptions& requests) {
      requests_ = requests;
      table_->apply_section(kRequests);
      requests = requests_;
    };
    options.draft_tokens = draft_tokens_;
    return options;
  }

  bool loads_models() const { return !models_folder_.empty() || allow_pull_; }

  // Opens a model that a request named.
  serve::Api::Models load(const std::string& name, const std::string& path) {
    serve::Api::Models models = open(path, options_of(name));
    note(printable("serving " + name + what_it_does(*models.front())) + "\n");
    return models;
  }

  serve::ModelLoader::Options loader_options() {
    constexpr double kShare = 0.7;  // of the free memory; requests and texts need some
    serve::ModelLoader::Options options;
    options.folder = models_folder_;
    options.memory = models_memory_;
    if (models_memory_ == 0)
      options.memory = static_cast<uint64_t>(kShare * static_cast<double>(available_memory()));
    if (!jobs_.empty())
      for (size_t i = 0; i < models_.size(); ++i) options.kept.insert(name_of(i));
    options.open = [this](const std::string& name, const std::string& path) {
      return load(name, path);
    };
    return options;
  }

  // Jobs can fine-tune the decoders among the models.
  tuning::RunnerOptions job_options(const serve::ModelList& served) const {
    const auto absolute = [](const std::string& path) {
      return std::filesystem::absolute(model::find_model(path)).lexically_normal().string();
    };
    tuning::RunnerOptions options;
    options.program = own_command();
    options.folder = jobs_;
    options.most_bytes = max_jobs_;
    options.threads = thread_count();
    for (size_t i = 0; i < models_.size(); ++i) {
      const serve::ServedModel& model = *served.find(name_of(i));
      const auto* const labels = model.find<serve::ServedClassifier>();
      if (labels != nullptr && labels->model.labels().size() == 1)  // gives rewards
        options.judges.push_back({name_of(i), absolute(models_[i]), ""});
      if (!model.find<serve::TextGenerator>() || model.facts.encoder) continue;
      options.bases.push_back(
          {name_of(i), absolute(models_[i]), template_.empty() ? "" : absolute(template_)});
    }
    if (options.bases.empty()) throw UsageError("--jobs: no MODEL is a decoder; expected one");
    return options;
  }

  // Opens all models, unless a signal requests a stop; then returns false.
  bool open_all(serve::Api& api) {
    const StopScope scope(stop_requested);
    try {
      for (size_t i = 0; i < models_.size(); ++i)
        for (const auto& model : open(i)) api.add(model);
    } catch (const Stopped&) {
      return false;
    }
    return !stop_requested();
  }

  http::Router routes(serve::Api& api, serve::ServedJobs* jobs) const {
    http::Router router = serve::all_routes(api, max_upload_);
    serve::add_speech_routes(router, api, max_upload_);
    if (jobs != nullptr) jobs->add_routes(router, max_upload_);
    if (!models_folder_.empty()) serve::add_model_routes(router, *api.options().loader);
    serve::add_openapi_route(router);
    return router;
  }

  void stop(http::Server& server, serve::ServedJobs* jobs) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(drain_);
    while (std::chrono::steady_clock::now() < end) wait_a_little();
    if (jobs != nullptr) jobs->stop_batches();
    std::thread jobs_end([&] {
      if (jobs != nullptr) jobs->stop_jobs(std::chrono::seconds(grace_));
    });
    server.stop(std::chrono::seconds(grace_));
    jobs_end.join();
  }

  int serve_all() {
    catch_signals("stopping after the running requests (press again to stop immediately)");
    serve::Api api({});
    api.readiness() = serve::Readiness::loading;
    api.set_warn([](const std::string& warning) { warn({warning}); });
    std::optional<serve::ModelLoader> loader;
    std::optional<serve::ServedJobs> jobs;
    http_.log = [&](const http::AccessRecord& record) {
      api.metrics().request(record);
      if (is_logged(record)) note(log_line(record, log_json_));
    };
    // The port is open before the models, so that a load balancer sees that they are being loaded.
    http::Server server(serve::loading_router(api.readiness()), http_);
    server.start();
    if (!open_all(api)) return stop_code();
    if (loads_models()) loader.emplace(api.list(), loader_options());
    api.options() = {any_model_, allow_pull_, models_folder_.empty(), loader ? &*loader : nullptr};
    if (!jobs_.empty())
      jobs.emplace(job_options(api.list()), engine_.most_sequences, api.list(),
                   [](const std::string& line) { note(printable(line) + "\n"); });
    server.replace_routes(routes(api, jobs ? &*jobs : nullptr));
    if (jobs)
      jobs->start(serve::all_routes(api, max_upload_),
                  [](const std::string& warning) { warn({warning}); });
    api.readiness() = serve::Readiness::ready;
    announce(server.port(), api);
    while (!stop_requested()) wait_a_little();
    api.readiness() = serve::Readiness::draining;
    stop(server, jobs ? &*jobs : nullptr);
    if (loader) loader->stop();
    // The engines must end before the server, since they refer to it.
    for (const auto& model : api.models()) model->end_work();
    return stop_code();
  }

  static void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

  static std::string what_it_does(const serve::ServedModel& model) {
    if (!model.facts.parent.empty()) return " (adapter of " + model.facts.parent + ")";
    const auto* const generator = model.find<serve::TextGenerator>();
    if (generator == nullptr) return fmt::format(" ({})", fovea::name_of(model.facts.use));
    if (generator->translator) return " (translation)";
    return generator->chat ? "" : " (without a chat template)";
  }

  void announce(uint16_t port, const serve::Api& api) {
    const bool six = http_.host.find(':') != std::string::npos;
    const std::string url =
        http_.socket.empty()
            ? fmt::format("http://{}:{}", six ? "[" + http_.host + "]" : http_.host, port)
            : "unix:" + http_.socket;
    Json names = Json::array();
    for (const auto& model : api.models()) {
      names.push_back(model->facts.name);
      note(printable(fmt::format("serving {}{}", model->facts.name, what_it_does(*model))) + "\n");
    }
    if (!models_folder_.empty())
      for (const auto& [name, path] : api.options().loader->paths()) {
        names.push_back(name);
        note(printable(fmt::format("serving {} (once a request names it)", name)) + "\n");
      }
    note(printable(fmt::format("listening on {} (press Ctrl-C to stop)", url)) + "\n");
    if (json) print(Json{{"url", url}, {"port", port}, {"models", names}}.dump() + "\n");
  }

  static constexpr const char* kRequests = "Defaults of requests (override generation_config.json)";

  std::string mmproj_;
  std::vector<std::string> models_, names_, adapters_, origins_, languages_, drafts_;
  std::string template_, key_file_, listen_, jobs_, models_folder_;
  std::string tool_format_;
  int64_t reasoning_tokens_ = -1;
  http::ServerOptions http_;
  infer::EngineOptions engine_;
  uint64_t max_body_ = http::Limits().body, cache_ = 0, models_memory_ = 0;
  uint64_t max_upload_ = uint64_t{64} << 20, max_jobs_ = uint64_t{16} << 30;
  int64_t port_ = 8080, connections_ = 512, grace_ = 30, drain_ = 0, timeout_ = 0,
          draft_tokens_ = -1;
  double most_seconds_ = 0;
  int weights_ = 0, cache_type_ = 0;
  infer::GenerateOptions requests_;
  const OptionTable* table_ = nullptr;
  bool insecure_ = false, log_json_ = false, list_fields_ = false;
  bool any_model_ = false, allow_pull_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<ServeCommand>(); }

}  // namespace fovea::cli
