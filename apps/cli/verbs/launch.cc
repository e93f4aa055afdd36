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

struct Client {
  const char* name;
  const char* program;
  const char* package;  // of npm
  Launch (*launch)(const std::string& url, const std::string& model);
};

// Codex reads settings from arguments; the name of the provider is free.
Launch launch_codex(const std::string& url, const std::string& model) {
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };  // as in TOML
  return {
      {"-c", "model_provider=\"fovea\"", "-c",
       fmt::format("model_providers.fovea={{name=\"fovea\", base_url={}, wire_api=\"responses\"}}",
                   quoted(url + "/v1")),
       "-c", "model=" + quoted(model)},
      {}};
}

Launch launch_claude(const std::string& url, const std::string& model) {
  Launch launch;
  launch.variables = {{"ANTHROPIC_BASE_URL", url},
                      {"ANTHROPIC_AUTH_TOKEN", "fovea"},
                      {"ANTHROPIC_API_KEY", ""},
                      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"}};
  for (const char* which :
       {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL"})
    launch.variables[which] = model;
  return launch;
}

Launch launch_opencode(const std::string& url, const std::string& model) {
  const Json config = {
      {"model", "fovea/" + model},
      {"small_model", "fovea/" + model},
      {"provider",
       {{"fovea",
         {{"npm", "@ai-sdk/openai-compatible"},
          {"name", "fovea"},
          {"options", {{"baseURL", url + "/v1"}, {"apiKey", "fovea"}}},
          {"models", {{model, {{"name", model}, {"tool_call", true}, {"reasoning", true}}}}}}}}}};
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

// Returns the path of a program in $PATH; empty if there is none.
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

// Returns the status of the server's /health, 0 if it does not answer.
int health(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return 0;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  int status = 0;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(connection, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char line[16] = {};
    if (recv(connection, line, sizeof line - 1, MSG_WAITALL) > 12) status = std::atoi(line + 9);
  }
  close(connection);
  return status;
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
    const int code =
        run_client(program, client.launch(fmt::format("http://127.0.0.1:{}", port), name));
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
      if (port > 0 && health(port) == 200) return port;
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
