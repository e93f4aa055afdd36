#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/descriptor.h"
#include "base/fields.h"
#include "base/ordered_json.h"
#include "fovea/core/excerpt.h"
#include "rewards/rewards.h"

extern char** environ;

namespace fovea::train {
namespace {

// The process group of the program, for end_reward_program(); 0 = none runs.
std::atomic<pid_t> running{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

using RewardClock = std::chrono::steady_clock;

constexpr auto kLookForStop = std::chrono::milliseconds(50);
constexpr size_t kBytesPerAnswer = 4096;  // of output; more is refused
constexpr const char* kCommand = "reward_command";

template <class... Args>
[[noreturn]] void command_fails(fmt::format_string<Args...> format, Args&&... args) {
  fail_field(ErrorKind::Failed, kCommand, format, std::forward<Args>(args)...);
}

std::array<int, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    command_fails("no socket for it ({})", std::strerror(errno));
  return ends;
}

// A shell that runs the command in a process group of its own. Sockets instead of pipes: writing to
// a program that has ended is an error then, not a signal.
class RunningCommand {
 public:
  RunningCommand(const std::string& command, std::array<int, 2> in, std::array<int, 2> out)
      : input(in[0]), output(out[0]) {
    const Descriptor its_input(in[1]), its_output(out[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    std::string shell = "/bin/sh", option = "-c", text = command;
    const std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
    const int error =
        posix_spawn(&process_, shell.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      process_ = -1;
      command_fails("{} cannot be started ({})", command, std::strerror(error));
    }
    running = process_;
  }
  ~RunningCommand() {
    if (process_ <= 0) return;
    end_reward_program();  // programs that the shell has started, too
    running = 0;
    waitpid(process_, nullptr, 0);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // Returns the status of the shell, or unset if it still runs.
  std::optional<int> ended() {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) != process_) return std::nullopt;
    running = 0;
    ::kill(-process_, SIGKILL);  // what it has left in the background
    process_ = -1;
    return status;
  }

  Descriptor input, output;

 private:
  pid_t process_ = -1;
};

class RewardProgram : public Reward {
 public:
  RewardProgram(std::string command, double seconds, std::function<bool()> stop)
      : command_(std::move(command)), seconds_(seconds), stop_(std::move(stop)) {}

  std::vector<double> operator()(const std::vector<GeneratedAnswer>& answers) override {
    std::string lines;
    for (const GeneratedAnswer& answer : answers) lines += line_of(answer);
    return rewards_in(output_for(lines, answers.size()), answers.size());
  }

 private:
  // The record, with the answer.
  static std::string line_of(const GeneratedAnswer& answer) {
    nlohmann::ordered_json record =
        parse_ordered_json(answer.prompt->record, answer.prompt->conversation.location);
    record["completion"] = answer.text;
    record["completion_tokens"] = answer.tokens;
    return json_line(record) + "\n";
  }

  std::string output_for(const std::string& lines, size_t answers) const {
    const auto deadline = RewardClock::now() + std::chrono::duration_cast<RewardClock::duration>(
                                                   std::chrono::duration<double>(seconds_));
    check_time(deadline);
    RunningCommand program(command_, socket_pair(), socket_pair());
    const std::string output = exchange(program, lines, kBytesPerAnswer * (answers + 1), deadline);
    program.input.close();
    std::optional<int> status;
    while (!(status = program.ended())) {
      check_time(deadline);
      usleep(1000);
    }
    if (WIFSIGNALED(*status))
      command_fails("{} was ended by signal {}; expected one line for each of {} answers", command_,
                    WTERMSIG(*status), answers);
    if (WEXITSTATUS(*status) != 0)
      command_fails("{} ended with code {}; expected code 0 and one line for each of {} answers",
                    command_, WEXITSTATUS(*status), answers);
    return output;
  }

  void check_time(RewardClock::time_point deadline) const {
    if (stop_ && stop_()) throw RewardsStopped();
    if (RewardClock::now() < deadline) return;
    command_fails(
        "{} did not end within {} seconds; expected an end after its input, or a larger "
        "`reward_timeout`",
        command_, seconds_);
  }

  // Writes the lines and reads the output at the same time, until the program closes its output.
  std::string exchange(RunningCommand& program, std::string_view lines, size_t most,
                       RewardClock::time_point deadline) const {
    std::string output;
    std::array<char, 65536> block;
    while (true) {
      check_time(deadline);
      std::array<pollfd, 2> ready = {
          {{program.output.number(), POLLIN, 0}, {program.input.number(), POLLOUT, 0}}};
      if (poll(ready.data(), ready.size(), kLookForStop.count()) < 0 && errno != EINTR)
        command_fails("{}: no communication ({})", command_, std::strerror(errno));
      if (ready[1].revents != 0) {
        const ssize_t sent =
            send(program.input.number(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) lines.remove_prefix(static_cast<size_t>(sent));
        const bool gone = sent < 0 && errno != EAGAIN && errno != EINTR;
        if (lines.empty() || gone) program.input.close();  // a program may ignore its input
      }
      if (ready[0].revents == 0) continue;
      const ssize_t got = ::read(program.output.number(), block.data(), block.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return output;
      output.append(block.data(), static_cast<size_t>(got));
      if (output.size() > most)
        command_fails("{} wrote more than {} bytes; expected one line for each answer", command_,
                      most);
    }
  }

  std::vector<double> rewards_in(std::string_view output, size_t answers) const {
    std::vector<double> rewards;
    while (!output.empty()) {
      const std::string_view line = output.substr(0, output.find('\n'));
      output.remove_prefix(std::min(line.size() + 1, output.size()));
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      rewards.push_back(reward_in(line, rewards.size() + 1));
    }
    if (rewards.size() != answers)
      command_fails("{} wrote {} rewards; expected one line for each of {} answers", command_,
                    rewards.size(), answers);
    return rewards;
  }

  double reward_in(std::string_view line, size_t number) const {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("reward")) json = nlohmann::ordered_json(json["reward"]);
    if (!json.is_number() || !std::isfinite(json.get<double>()))
      command_fails(
          "{}: line {} of its output is \"{}\"; expected a number, or an object with "
          "\"reward\"",
          command_, number, excerpt(line));
    return json.get<double>();
  }

  std::string command_;
  double seconds_;
  std::function<bool()> stop_;
};

}  // namespace

void end_reward_program() noexcept {
  if (const pid_t group = running; group > 0) ::kill(-group, SIGKILL);
}

std::unique_ptr<Reward> make_reward_program(const std::string& command, double seconds,
                                            std::function<bool()> stop) {
  return std::make_unique<RewardProgram>(command, seconds, std::move(stop));
}

}  // namespace fovea::train
