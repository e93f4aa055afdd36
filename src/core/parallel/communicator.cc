#include "parallel/communicator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "base/error.h"
#include "base/module.h"

namespace fovea {
namespace {

constexpr const char* kModule = "fovea_mpi.so";

struct Done : Communicator::Transfer {
  void wait() override {}
};

class SingleProcess : public Communicator {
 public:
  void all_to_all(Parts<const float> sent, Parts<float> received) override {
    std::ranges::copy(sent.values, received.values.begin());
  }
  void all_to_all(Parts<const uint16_t> sent, Parts<uint16_t> received) override {
    std::ranges::copy(sent.values, received.values.begin());
  }
  std::unique_ptr<Transfer> begin_all_to_all(Parts<const float> sent,
                                             Parts<float> received) override {
    all_to_all(sent, received);
    return std::make_unique<Done>();
  }
  std::unique_ptr<Transfer> begin_all_gather(Parts<float>) override {
    return std::make_unique<Done>();
  }
  void all_gather(Parts<float>) override {}
  void all_gather(Parts<uint16_t>) override {}
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  void barrier() override {}

  void send(int, std::span<const uint8_t> bytes) override {
    messages_.push_back({0, {bytes.begin(), bytes.end()}});
  }
  std::optional<Message> receive() override {
    if (messages_.empty()) return std::nullopt;
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  std::atomic<int>* share(int count) override {
    shared_.push_back(std::make_unique<std::atomic<int>[]>(static_cast<size_t>(count)));
    return shared_.back().get();
  }
  void abort(int) override {}
  void send_beat(int, const Beat&) override {}
  std::optional<Beat> receive_beat() override { return std::nullopt; }

 private:
  std::deque<Message> messages_;
  std::vector<std::unique_ptr<std::atomic<int>[]>> shared_;
};

// Returns the number in a variable of the environment; 0 if the variable is not set.
int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::max(0, std::atoi(text));
}

std::string find_module() {
  if (const std::string path = module_path(kModule); !path.empty()) return path;
  fail(ErrorKind::Unsupported,
       "mpirun: this fovea has no MPI module ({} in {}); expected a build with libopenmpi-dev "
       "installed",
       kModule, program_folder());
}

}  // namespace

void Communicator::does(Activity activity) {
  activity_ = activity;
  since_ = std::chrono::steady_clock::now();
}

void Communicator::does(Activity activity, int64_t step) {
  step_ = step;
  does(activity);
}

Beat Communicator::beat() const {
  const std::chrono::duration<float> passed = std::chrono::steady_clock::now() - since_.load();
  return {.from = rank_,
          .activity = activity_,
          .step = step_,
          .seconds = passed.count(),
          .allowed = allowed_};
}

int started_processes() {
  if (const int processes = number_in("OMPI_COMM_WORLD_SIZE"); processes > 0) return processes;
  const int tasks = number_in("SLURM_STEP_NUM_TASKS");
  if (std::getenv("PMIX_RANK") != nullptr) return std::max(1, tasks);
  if (const int processes = number_in("PMI_SIZE"); processes > 1)
    fail(ErrorKind::Unsupported,
         "mpirun: another MPI than Open MPI started {} processes; expected mpirun of Open MPI, or "
         "srun --mpi=pmix",
         processes);
  if (tasks > 1)
    fail(
        ErrorKind::Unsupported,
        "srun: {} processes that do not know of one another; expected srun --mpi=pmix, or one task",
        tasks);
  return 1;
}

std::unique_ptr<Communicator> open_communicator() {
  if (started_processes() == 1) return std::make_unique<SingleProcess>();
  const std::string path = find_module();
  // Open MPI's own modules use the symbols of libmpi, so these symbols must be visible.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    fail(ErrorKind::Unsupported, "mpirun: {}; expected Open MPI's library: install openmpi-bin",
         dlerror());
  const auto open = reinterpret_cast<OpenMpiCommunicator*>(dlsym(module, kOpenMpiCommunicator));
  if (open == nullptr)
    fail(ErrorKind::Unsupported, "{}: belongs to another build of fovea; expected this one", path);
  return std::unique_ptr<Communicator>(open());
}

}  // namespace fovea
