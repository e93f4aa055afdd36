// A server and a coding agent that uses it.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/command.h"
#include "fovea/core/error.h"
#include "options/fetch_model.h"
#include "options/open_model.h"
#include "terminal/terminal.h"
#include "tuning/child_process.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// What a client needs to use the server.
struct Launch {
  std::vector<std::string> arguments;            // before those of the user
  std::map<std::string, std::string> variables;  // of its environment
};

struct ServedName {
  std::string url, model;
  int64_t context = 0;  // in tokens; 0 = unknown
};

struct Client {
  const char* name;
  const char* program;
  const char* package;  // of npm
  Launch (*launch)(const ServedName& served);
};

// Codex reads settings from arguments; the name of the provider is free.
Launch launch_codex(const ServedName& served) {
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };  // as in TOML
  Launch launch;
  launch.arguments = {
      "-c",
      "model_provider=\"fovea\"",
      "-c",
      fmt::format("model_providers.fovea={{name=\"fovea\", base_url={}, wire_api=\"responses\"}}",
                  quoted(served.url + "/v1")),
      "-c",
      "model=" + quoted(served.model)};
  if (served.context > 0)
    for (const std::string& word :
         {std::string("-c"), fmt::format("model_context_window={}", served.context)})
      launch.arguments.push_back(word);
  return launch;
}

Launch launch_claude(const ServedName& served) {
  Launch launch;
  launch.variables = {{"ANTHROPIC_BASE_URL", served.url},
                      {"ANTHROPIC_AUTH_TOKEN", "fovea"},
                      {"ANTHROPIC_API_KEY", ""},
                      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"}};
  for (const char* which :
       {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL"})
    launch.variables[which] = served.model;
  return launch;
}

Launch launch_opencode(const ServedName& served) {
  Json settings = {{"name", served.model}, {"tool_call", true}, {"reasoning", true}};
  if (served.context > 0)
    settings["limit"] = {{"context", served.context}, {"output", served.context / 4}};
  const Json config = {{"model", "fovea/" + served.model},
                       {"small_model", "fovea/" + served.model},
                       {"provider",
                        {{"fovea",
                          {{"npm", "@ai-sdk/openai-compatible"},
                           {"name", "fovea"},
                           {"options", {{"baseURL", served.url + "/v1"}, {"apiKey", "fovea"}}},
                           {"models", {{served.model, settings}}}}}}}};
  return {{}, {{"OPENCODE_CONFIG_CONTENT", config.dump()}}};
}

constexpr Client kClients[] = {
    {"codex", "codex", "@openai/codex", launch_codex},
    {"claude", "claude", "@anthropic-ai/claude-code", launch_claude},
    {"opencode", "opencode", "opencode-ai", launch_opencode},
};

const Client& client_named(const std::string& name) {
  for (const Client& client : kClients)
    if (name == client.name) return client;
  throw UsageError(name + ": unknown; expected codex, claude or opencode");
}

// Returns the path of a program in $PATH; empty if it is not found.
std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file))
      return file.string();
  }
  return {};
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the response of the server of this machine to a GET; empty if it does not answer.
std::string get(int port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return {};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  std::string response;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(connection, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char part[4096];
    for (ssize_t read; (read = recv(connection, part, sizeof part, 0)) > 0;)
      response.append(part, static_cast<size_t>(read));
  }
  close(connection);
  return response;
}

bool is_ready(int port) { return get(port, "/health").starts_with("HTTP/1.1 200"); }

// Returns the context of the served model in tokens; 0 = unknown.
int64_t context_of(int port) {
  const std::string response = get(port, "/v1/models");
  const Json body =
      Json::parse(response.substr(std::min(response.find('{'), response.size())), nullptr, false);
  const Json models = body.is_object() ? body.value("data", Json()) : Json();
  return models.is_array() && !models.empty() ? models[0].value("max_model_len", int64_t{0}) : 0;
}

// A folder for the output of the server, which is removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fovea-launch-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error(ErrorKind::Failed, pattern + ": cannot be made; expected a writable folder");
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

class LaunchCommand : public Command {
 public:
  LaunchCommand()
      : Command("launch CLIENT MODEL [-- ARGUMENTS ...]",
                "Starts a coding agent - codex, claude or opencode - with a served model: a server "
                "for it alone, and the client with the settings for this server. The client's own "
                "settings stay as they are. The server ends with the client.") {}

  void declare(OptionTable& table) override {
    table.add(positional("CLIENT", {}, "codex, claude or opencode", client_));
    table.add(positional("MODEL", {}, "a model that generates text", model_));
    table.add(as("OPTIONS", text("--serve", {}, "options of fovea serve, separated by spaces",
                                 serve_options_)));
  }

  bool passes_arguments() const override { return true; }

  int run(const OptionTable&) override {
    if (model_.empty())
      throw UsageError(
          "MODEL: not given; expected a client and a model, as in fovea launch codex "
          "model");
    const Client& client = client_named(client_);
    const std::string program = find_program(client.program);
    if (program.empty())
      throw Error(ErrorKind::Failed,
                  fmt::format("{0}: not found in $PATH; expected the program, which npm install -g "
                              "{1} installs",
                              client.program, client.package));
    const std::string model = model::find_model(model_);
    const Scratch scratch;
    tuning::ChildProcess server(server_command(model, scratch.path));
    const int port = wait_for(server, scratch.path);
    const std::string name = std::filesystem::path(model).filename().string();
    note(printable(fmt::format("{} uses {} at http://127.0.0.1:{}\n", client.name, name, port)));
    const int code = run_client(
        program, client.launch({fmt::format("http://127.0.0.1:{}", port), name, context_of(port)}));
    server.stop();
    for (int i = 0; i < 100 && !server.exit_code(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return code;
  }

 private:
  tuning::ChildCommand server_command(const std::string& model, const std::string& folder) const {
    tuning::ChildCommand command;
    command.program = own_command();
    command.arguments = {"serve", model, "--port", "0", "--json", "--any-model", "--grace", "0"};
    std::istringstream more(serve_options_);
    for (std::string word; more >> word;) command.arguments.push_back(word);
    command.folder = std::filesystem::current_path().string();
    command.output = folder + "/output";
    command.errors = folder + "/errors";
    command.low_priority = false;
    return command;
  }

  // Waits until the model is loaded, and returns the port. Throws if the server ends before.
  static int wait_for(tuning::ChildProcess& server, const std::string& folder) {
    note("loading the model ...\n");
    while (true) {
      if (server.exit_code())
        throw Error(ErrorKind::Failed, "the server ended: " + text_of_file(folder + "/errors"));
      const Json line = Json::parse(text_of_file(folder + "/output"), nullptr, false);
      const int port = line.is_object() ? line.value("port", 0) : 0;
      if (port > 0 && is_ready(port)) return port;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  int run_client(const std::string& program, const Launch& launch) const {
    for (const auto& [name, value] : launch.variables) setenv(name.c_str(), value.c_str(), 1);
    std::vector<std::string> all = {program};
    all.insert(all.end(), launch.arguments.begin(), launch.arguments.end());
    all.insert(all.end(), passed.begin(), passed.end());
    std::vector<char*> words;
    for (std::string& argument : all) words.push_back(argument.data());
    words.push_back(nullptr);
    // The client handles the signals of the terminal.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, program.c_str(), nullptr, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
      throw Error(ErrorKind::Failed,
                  program + ": cannot be started (" + std::strerror(error) + ")");
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string client_, model_;
  std::string serve_options_;
};

}  // namespace

std::unique_ptr<Command> make_launch() { return std::make_unique<LaunchCommand>(); }

}  // namespace fovea::cli
