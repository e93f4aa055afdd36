// Chats and other requests of the server, answered in this process, and the server itself.

#include "service.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "http/http_server.h"
#include "keywords.h"
#include "queue.h"
#include "serve/generation/tool_calls.h"
#include "serve/models/open_served.h"
#include "serve/protocols/speech.h"
#include "serve/request/api_error.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

// A response of the server, or a piece of one that is written in pieces.
struct Piece {
  int status = 200;
  std::string text;
};

// Passes a response to the caller.
class QueueExchange : public http::Exchange {
 public:
  explicit QueueExchange(std::shared_ptr<Queue<Piece>> queue) : queue_(std::move(queue)) {}
  ~QueueExchange() override { queue_->end(); }

  void send(http::Response response) override {
    queue_->put({response.status, std::move(response.body)});
    queue_->end();
  }
  void begin(http::Response head) override {
    if (!head.body.empty()) queue_->put({head.status, std::move(head.body)});
  }
  bool write(std::string_view piece) override { return queue_->put({200, std::string(piece)}); }
  void finish() override { queue_->end(); }
  void abort() override { queue_->end(); }
  bool gone() const override { return queue_->closed(); }
  bool hold(int64_t) override { return true; }
  void on_gone(std::function<void()> call) override { queue_->on_close(std::move(call)); }

 private:
  std::shared_ptr<Queue<Piece>> queue_;
};

// Throws the error in a response of the server.
[[noreturn]] void fail(const Piece& response) {
  const auto json = nlohmann::json::parse(response.text, nullptr, false);
  std::string message = response.text;
  if (json.is_object() && json.contains("error")) {
    const auto& error = json["error"];
    message = error.is_object() ? error.value("message", message) : error.get<std::string>();
  }
  const ErrorKind kind = response.status == 501   ? ErrorKind::Unsupported
                         : response.status == 503 ? ErrorKind::Failed
                         : response.status >= 500 ? ErrorKind::Internal
                                                  : ErrorKind::InvalidArgument;
  throw Error(kind, message);
}

// The pieces of a response, as they arrive.
class Pieces {
 public:
  Pieces(const std::shared_ptr<Service>& service, const std::string& path, std::string body)
      : service_(service) {
    service->answer(path, std::move(body), std::make_shared<QueueExchange>(queue_));
  }
  ~Pieces() { queue_->close(); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::optional<std::string> next() {
    std::optional<Piece> piece = call([queue = queue_] { return queue->take(); },
                                      {.interrupt = [queue = queue_] { queue->close(); }});
    if (!piece) return {};
    if (piece->status >= 400) fail(*piece);
    return std::move(piece->text);
  }

 private:
  std::shared_ptr<Queue<Piece>> queue_ = Queue<Piece>::made();
  std::shared_ptr<Service> service_;
};

// A server over HTTP, on threads of its own.
class Server {
 public:
  Server(std::shared_ptr<Service> service, http::ServerOptions options)
      : service_(std::move(service)), host_(options.host), process_(getpid()) {
    http::Router router = serve::all_routes(service_->api(), kMostUpload);
    serve::add_speech_routes(router, service_->api(), kMostUpload);
    options.format_error = serve::error_format(serve::ErrorShape::openai);
    server_ = std::make_unique<http::Server>(std::move(router), std::move(options));
    server_->start();
  }
  ~Server() {
    if (getpid() == process_)
      stop(0);
    else
      static_cast<void>(server_.release());  // its threads are those of the parent
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return server_ ? server_->port() : 0; }
  std::string url() const {
    const bool six = host_.find(':') != std::string::npos;
    return fmt::format("http://{}:{}", six ? "[" + host_ + "]" : host_, port());
  }
  void stop(double grace) {
    if (!server_) return;
    server_->stop(std::chrono::milliseconds(static_cast<int64_t>(grace * 1000)));
    // The engines must end before the server, since they refer to it.
    for (const auto& model : service_->api().models()) model->end_work();
    server_.reset();
  }

 private:
  static constexpr size_t kMostUpload = size_t{64} << 20;

  std::shared_ptr<Service> service_;
  std::string host_;
  int process_;
  std::unique_ptr<http::Server> server_;
};

std::shared_ptr<Service> opened_service(const std::string& path, const std::string& name,
                                        const std::optional<model::Model>& model,
                                        const std::string& chat_template,
                                        const std::string& precision, const nb::kwargs& given) {
  serve::ServedOptions options;
  options.name = name;
  options.template_file = chat_template;
  options.opened = model;
  options.precision = precision_of(precision);
  Keywords(given).into(options.engine).refuse_others();
  return call([path, options] {
    return std::make_shared<Service>(serve::open_served(path, options, [](const auto&) {}));
  });
}

void add_calls(nb::module_& module) {
  module.def(
      "find_tool_calls",
      [](const std::string& answer, const std::vector<std::string>& names) {
        text::MessageRules rules;
        for (const std::string& name : names) rules.functions.push_back({name, ""});
        const serve::Message found = serve::message_of(answer, rules, true);
        return nb::make_tuple(found.content, parsed(serve::calls_json(found.calls).dump()));
      },
      nb::arg("answer"), nb::arg("names"),
      "Returns the text before the calls of these functions in an answer, and the calls, as the "
      "server does.");
  module.def(
      "short_call_id", [](const std::string& text) { return serve::short_call_id(text); },
      nb::arg("text"),
      "Returns an id of nine letters and digits, which is the same for the same text.");
}

}  // namespace

Service::Service(serve::Api::Models models)
    : api_(std::make_unique<serve::Api>(std::move(models))),
      router_(serve::all_routes(*api_)),
      process_(getpid()) {}

Service::~Service() {
  if (getpid() != process_) {  // its threads are those of the parent
    static_cast<void>(api_.release());
    return;
  }
  // The engine's thread may wait for the interpreter's lock. A thread of this module has none.
  std::optional<nb::gil_scoped_release> unlocked;
  if (PyGILState_GetThisThreadState() != nullptr) unlocked.emplace();
  for (const auto& model : api_->models()) model->end_work();
  api_.reset();
}

void Service::check_process() const {
  if (getpid() != process_)
    throw Error(ErrorKind::Failed,
                "the process was forked after this model was used; expected a model that is opened "
                "in the new process");
}

void Service::answer(const std::string& path, std::string body,
                     const std::shared_ptr<http::Exchange>& exchange) {
  check_process();
  http::Request request;
  request.method = "POST";
  request.path = path;
  request.headers = {{"content-type", "application/json"}};
  request.body = std::move(body);
  request.id = "python";
  const auto found = router_.find(request);
  const auto* const route = std::get_if<const http::Route*>(&found);
  if (route == nullptr)
    throw Error(ErrorKind::InvalidArgument, path + ": no such route; see docs/serve.md");
  (*route)->handler(std::move(request), exchange);
}

const serve::TextEngine& Service::engine() {
  check_process();
  const auto model = api_->models().front();
  auto* const generator = model->find<serve::TextGenerator>();
  if (generator == nullptr)
    throw Error(ErrorKind::InvalidArgument,
                "the model has no language-model head; expected a model that generates text");
  return *generator->engine;
}

void add_service(nb::module_& module) {
  nb::class_<Service>(module, "Service", "The routes of the server, answered in this process.")
      .def_static("open", &opened_service, nb::arg("path"), nb::arg("name"),
                  nb::arg("model").none(), nb::arg("chat_template"), nb::arg("precision"),
                  nb::arg("options"))
      .def(
          "add",
          [](Service& s, Service& other) {
            for (const auto& model : other.api().models()) s.api().add(model);
          },
          nb::arg("other"), "Serves the models of another service too.")
      .def_prop_ro("models", [](Service& s) {
        std::vector<std::string> names;
        for (const auto& model : s.api().models()) names.push_back(model->facts.name);
        return names;
      });
  nb::class_<Pieces>(module, "Pieces", "The pieces of a response of the server.")
      .def(
          "__iter__", [](nb::handle self) { return self; }, nb::sig("def __iter__(self) -> Pieces"))
      .def("__next__", [](Pieces& p) {
        std::optional<std::string> piece = p.next();
        if (!piece) throw nb::stop_iteration();
        return *piece;
      });
  module.def(
      "answer",
      [](const std::shared_ptr<Service>& service, const std::string& path,
         const std::string& body) { return std::make_unique<Pieces>(service, path, body); },
      nb::arg("service"), nb::arg("path"), nb::arg("body"));

  add_calls(module);

  nb::class_<Server>(module, "Server", "A server over HTTP, on threads of its own.")
      .def(
          "__init__",
          [](Server* self, const std::shared_ptr<Service>& service, const std::string& host,
             uint16_t port, const std::vector<std::string>& keys) {
            http::ServerOptions options;
            options.host = host;
            options.port = port;
            options.access.keys = keys;
            options.access.host = host;
            options.access.loopback = http::is_loopback(host);
            new (self) Server(service, std::move(options));
          },
          nb::arg("service"), nb::arg("host"), nb::arg("port"), nb::arg("keys"),
          nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("port", &Server::port)
      .def_prop_ro("url", &Server::url)
      .def("stop", &Server::stop, nb::arg("grace") = 30.0, nb::call_guard<nb::gil_scoped_release>(),
           "Accepts no more requests, and waits `grace` seconds for those that run.");
}

}  // namespace fovea::python
