#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "fovea/error.h"
#include "http/http_server.h"
#include "options/open_model.h"
#include "serve/api.h"
#include "serve/fields.h"
#include "serve/open_served.h"
#include "terminal/read_text.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// One line for each request: nothing of what was asked or answered.
std::string log_line(const serve::AccessRecord& record, bool as_json) {
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
                               record.seconds, record.whole ? "" : " (client left)", record.id)) +
         "\n";
}

class ServeCommand : public Command {
 public:
  ServeCommand()
      : Command("serve MODEL [MODEL ...] [OPTIONS]",
                "Answers over HTTP as OpenAI's API does: chats, completions, streams, JSON by a "
                "schema. Many clients share the work; see docs/serve.md. Ctrl-C ends it, once "
                "what is under way is answered.") {}

  void declare(OptionTable& table) override {
    table.add(
        places("MODEL", {"-m", "--model", "--model-name-or-path"}, "model directories", models_));
    table.add(list("--alias", {"--served-model-name"},
                   "name of a model in the API, in the order of the models; else its directory's",
                   names_));
    table.add(choice("--dtype", {}, "precision of the models' weights; automatic = as stored",
                     weights_, kWeightPrecisions));
    table.add(cache_option(cache_precision_));
    table.add(list("--languages", {},
                   "source-target of a translation model, such as de-en, in the order of the "
                   "models; else as its files say",
                   languages_));
    table.add(text("--chat-template", {"--chat-template-file"},
                   "file with a chat template, instead of the models' own", template_));
    declare_network(table);
    declare_engine(table);
    declare_drafts(table);
    declare_defaults(table);
  }

  int run(const OptionTable& table) override {
    if (list_fields_) {
      print(serve::fields_json() + "\n");
      return 0;
    }
    if (models_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (names_.size() > models_.size()) {
      throw UsageError("--alias: more names than models; expected one for each");
    }
    if (languages_.size() > models_.size()) {
      throw UsageError("--languages: more pairs than models; expected one for each");
    }
    if (drafts_.size() > models_.size()) {
      throw UsageError("--draft: more drafts than models; expected one for each");
    }
    http_.access = access();
    take_flags(table);
    return serve_all();
  }

 private:
  void declare_network(OptionTable& table) {
    table.section("Network");
    table.add(text("--host", {}, "address to listen at", http_.host));
    table.add(integer("--port", {}, "port; 0 = one that is free", port_, 0, 65535));
    table.add(text("--api-key-file", {},
                   "file with the keys that clients must send, one a line; else the environment's "
                   "FOVEA_API_KEY",
                   key_file_));
    table.add(flag("--insecure", {}, "listen at any address without a key", insecure_));
    table.add(list("--cors-origin", {"--cors-origins"},
                   "origin whose web pages may use the server; * = every one", origins_));
    table.add(bytes("--max-body", {"--payload-limit"}, "largest request", max_body_));
    table.add(integer("--max-connections", {}, "more are answered 503", connections_, 1, 100'000));
    table.add(integer("--timeout", {},
                      "seconds that a client gets to send a request's head, to send its body, and "
                      "to take each piece of the answer; 0 = 10, 30 and 30",
                      timeout_, 0, 86400));
    table.add(number("--max-time", {}, "seconds that an answer may take; 0 = as long as it likes",
                     most_seconds_, 0, 86400));
    table.add(
        integer("--grace", {}, "seconds that answers under way get at the end", grace_, 0, 86400));
    table.add(flag("--log-json", {"--json-output"}, "log requests as JSON", log_json_));
    table.add(flag("--list-fields", {}, "print what requests may hold, as JSON", list_fields_));
  }

  void declare_engine(OptionTable& table) {
    table.section("Engine");
    table.add(bytes("--cache", {"--cache-bytes"},
                    "memory for keys and values, of all models; 0 = a quarter of what is free",
                    cache_));
    table.add(integer("--parallel", {"--max-num-seqs", "--max-concurrent-requests"},
                      "answers written at a time", engine_.most_sequences, 1, 4096));
    table.add(integer("--queue", {}, "requests that may wait; more are answered 429",
                      engine_.most_waiting, 1, 100'000));
    table.add(integer("--step-tokens", {"--max-batch-tokens"},
                      "tokens computed at a time; long prompts are cut into such pieces",
                      engine_.step_tokens, 1, 65536));
  }

  void declare_drafts(OptionTable& table) {
    table.add(list("--draft", {"--model-draft"},
                   "a smaller model with the same vocabulary that guesses ahead while few answers "
                   "are written, in the order of the models; the answers stay the same",
                   drafts_));
    table.add(integer("--draft-tokens", {"--draft-max", "--num-speculative-tokens"},
                      "--draft: so many tokens ahead", draft_tokens_, 1, 64));
  }

  void declare_defaults(OptionTable& table) {
    table.section("Defaults of requests, before generation_config.json");
    table.add(number("--temperature", {"--temp"}, "0 = always the likeliest token", temperature_, 0,
                     100));
    table.add(integer("--top-k", {}, "among the k likeliest tokens; 0 = all", top_k_, 0, kMost));
    table.add(
        number("--top-p", {}, "among the likeliest with this much probability", top_p_, 1e-6, 1));
    table.add(number("--min-p", {}, "none below this share of the likeliest", min_p_, 0, 1));
    table.add(number("--repetition-penalty", {"--repeat-penalty"},
                     "above 1: seen tokens get less "
                     "likely",
                     repetition_penalty_, 0.01, 100));
    table.add(integer("--predict", {"-n", "--max-tokens"},
                      "tokens to write; -1 = what the context has room for", max_tokens_, -1,
                      kMost));
  }

  void take_flags(const OptionTable& table) {
    const auto take = [&](const char* name, auto value, auto& flag) {
      if (table.given(name)) flag = value;
    };
    take("--temperature", temperature_, flags_.temperature);
    take("--top-k", top_k_, flags_.top_k);
    take("--top-p", top_p_, flags_.top_p);
    take("--min-p", min_p_, flags_.min_p);
    take("--repetition-penalty", repetition_penalty_, flags_.repetition_penalty);
    take("--predict", max_tokens_, flags_.max_tokens);
    http_.port = static_cast<uint16_t>(port_);
    http_.connections = static_cast<size_t>(connections_);
    http_.limits.body = max_body_;
    if (timeout_ > 0) {
      const std::chrono::seconds time(timeout_);
      http_.times.head = http_.times.body = http_.times.write = time;
    }
    http_.times.answer =
        std::chrono::milliseconds(static_cast<int64_t>(std::ceil(most_seconds_ * 1000)));
    engine_.cache_bytes = static_cast<int64_t>(cache_ / models_.size());
  }

  std::vector<std::string> keys() const {
    std::string text;
    if (!key_file_.empty()) {
      struct stat status = {};
      if (stat(key_file_.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
        note("warning: " + printable(key_file_) + ": others may read it; expected chmod 600\n");
      }
      text = read_text(key_file_, size_t{1} << 16);
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

  serve::Access access() const {
    serve::Access access;
    access.keys = keys();
    access.origins = origins_;
    access.host = http_.host;
    access.loopback = serve::is_loopback(http_.host);
    if (!access.loopback && access.keys.empty() && !insecure_) {
      throw UsageError(
          fmt::format("--host: {} can be reached from other machines; expected a key "
                      "by --api-key-file or FOVEA_API_KEY, or --insecure",
                      http_.host));
    }
    return access;
  }

  std::string name_of(size_t i) const {
    if (i < names_.size()) return names_[i];
    const std::filesystem::path folder = std::filesystem::absolute(models_[i]).lexically_normal();
    return (folder.has_filename() ? folder : folder.parent_path()).filename();
  }

  std::shared_ptr<serve::ServedModel> open(size_t i) const {
    serve::ServedOptions options;
    options.name = name_of(i);
    options.template_file = template_;
    options.precision = weight_precision(weights_);
    options.cache = cache_precision(cache_precision_);
    options.engine = engine_;
    options.most_seconds = most_seconds_;
    options.flags = flags_;
    if (i < languages_.size()) options.languages = languages_[i];
    if (i < drafts_.size()) options.draft = drafts_[i];
    options.draft_tokens = draft_tokens_;
    return serve::open_served(models_[i], options,
                              [](const std::string& warning) { warn({warning}); });
  }

  int serve_all() {
    catch_signals();
    std::vector<std::shared_ptr<serve::ServedModel>> served;
    for (size_t i = 0; i < models_.size(); ++i) served.push_back(open(i));
    serve::Api api(served);
    http_.log = [&](const serve::AccessRecord& record) {
      api.metrics().request(record);
      note(log_line(record, log_json_));
    };
    serve::HttpServer server(api.router(), http_);
    server.start();
    announce(server.port(), served);
    while (!asked_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    server.stop(std::chrono::seconds(grace_));
    // The engines end before the server does: what they still hold refers to it.
    for (const auto& model : served) model->end_work();
    return stop_code();
  }

  static const char* what_it_does(const serve::ServedModel& model) {
    if (model.embedder) return " (vectors)";
    if (model.rerank_queue) return " (re-ranking)";
    if (model.translator) return " (translation)";
    return model.chat ? "" : " (without a chat template)";
  }

  void announce(uint16_t port, const std::vector<std::shared_ptr<serve::ServedModel>>& served) {
    const bool six = http_.host.find(':') != std::string::npos;
    const std::string url =
        fmt::format("http://{}:{}", six ? "[" + http_.host + "]" : http_.host, port);
    Json names = Json::array();
    for (const auto& model : served) {
      names.push_back(model->facts.name);
      note(printable(fmt::format("serving {}{}", model->facts.name, what_it_does(*model))) + "\n");
    }
    note(fmt::format("listening at {} (Ctrl-C ends it)\n", url));
    if (json) print(Json{{"url", url}, {"port", port}, {"models", names}}.dump() + "\n");
  }

  static constexpr int64_t kMost = 1'000'000'000;

  std::vector<std::string> models_, names_, origins_, languages_, drafts_;
  std::string template_, key_file_;
  serve::HttpOptions http_;
  serve::SamplingFlags flags_;
  EngineOptions engine_;
  uint64_t max_body_ = serve::HttpLimits().body, cache_ = 0;
  int64_t port_ = 8080, connections_ = 512, grace_ = 30, timeout_ = 0, draft_tokens_ = 4;
  double most_seconds_ = 0;
  int weights_ = 0, cache_precision_ = 0;
  int64_t top_k_ = Sampling().top_k, max_tokens_ = -1;
  double temperature_ = Sampling().temperature, top_p_ = Sampling().top_p;
  double min_p_ = Sampling().min_p, repetition_penalty_ = Sampling().repetition_penalty;
  bool insecure_ = false, log_json_ = false, list_fields_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<ServeCommand>(); }

}  // namespace fovea::cli
