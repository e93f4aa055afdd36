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

class SingleProcess : public Communicator {
 public:
  void all_reduce(std::span<float>) override {}
  void broadcast(std::span<uint8_t>, int) override {}
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

 private:
  std::deque<Message> messages_;
  std::vector<std::unique_ptr<std::atomic<int>[]>> shared_;
};

std::string find_module() {
  if (const std::string path = module_path(kModule); !path.empty()) return path;
  fail(ErrorKind::Unsupported,
       "mpirun: this fovea has no MPI module ({} in {}); expected a build with libopenmpi-dev "
       "installed",
       kModule, program_folder());
}

}  // namespace

int started_processes() {
  const char* const text = std::getenv("OMPI_COMM_WORLD_SIZE");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
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
