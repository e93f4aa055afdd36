// longjmp() to another stack is what switches fibers; the check of _FORTIFY_SOURCE, which the first
// header of the C library chooses, takes it for an error.
#undef _FORTIFY_SOURCE

#include "kernels/cuda/model.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "base/error.h"

namespace fovea::cuda::model {
namespace {

#ifdef __SANITIZE_ADDRESS__
// The address sanitizer must know which stack is in use: both are called around each switch.
void leave(void** fake, const void* stack, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, stack, bytes);
}
void arrive(void* fake, const void** from = nullptr, size_t* bytes = nullptr) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
#else
void leave(void**, const void*, size_t) {}
void arrive(void*, const void** = nullptr, size_t* = nullptr) {}
#endif

constexpr int kWarp = 32;
constexpr size_t kStack = 64 << 10;        // bytes
constexpr unsigned char kNoNumber = 0xff;  // four of them are a NaN

enum class State : uint8_t { ready, at_barrier, at_shuffle, done };

struct Copy {
  void* to;
  const void* from;
};

struct Fiber {
  State state = State::ready;
  bool begun = false;
  jmp_buf context;
  void* fake = nullptr;                   // of the address sanitizer
  char* stack = nullptr;                  // [kStack]
  std::vector<std::vector<Copy>> copies;  // the groups that are under way; the last one is open
};

// The stack of thread i of a block. Blocks follow one another on a thread of the host, which keeps
// the stacks: the memory of new ones would take most of the time.
char* stack_of(size_t i) {
  static thread_local std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= i) stacks.push_back(std::make_unique_for_overwrite<char[]>(kStack));
  return stacks[i].get();
}

// The block that runs, on one thread of the host.
class Block {
 public:
  Block(const Grid& grid, const std::function<void()>& body) : grid_(grid), body_(body) {
    fibers_.resize(static_cast<size_t>(grid.threads));
    for (size_t i = 0; i < fibers_.size(); ++i) fibers_[i].stack = stack_of(i);
    make_shared_memory();
  }
  ~Block() {
    if (pages_ != nullptr) munmap(pages_, bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run(int x, int y, std::mt19937_64& random);

  const Now& now() const { return now_; }
  void* shared(size_t bytes) const {
    check(
        bytes <= grid_.shared_bytes,
        "model of a GPU: the kernel uses {} bytes of shared memory; expected at most {}, those of "
        "its launch",
        bytes, grid_.shared_bytes);
    return shared_;
  }
  void wait(State state) {
    Fiber& fiber = current();
    fiber.state = state;
    leave(&fiber.fake, main_stack_, main_bytes_);
    if (_setjmp(fiber.context) == 0) _longjmp(scheduler_, 1);
    arrive(current().fake);
  }
  bool any(bool x) {
    slots_[static_cast<size_t>(now_.thread)] = x;
    wait(State::at_barrier);
    const bool found = std::find(slots_.begin(), slots_.begin() + grid_.threads, 1) !=
                       slots_.begin() + grid_.threads;
    wait(State::at_barrier);  // until all have read
    return found;
  }
  double shuffle(double x, int mask) {
    const int me = now_.thread;
    slots_[static_cast<size_t>(me)] = x;
    wait(State::at_shuffle);
    const double other = slots_[static_cast<size_t>(me ^ mask)];
    wait(State::at_shuffle);  // until all have read
    return other;
  }
  // Calls use(others) when all lanes of the warp have called this; others[i] is what lane i has
  // given.
  template <class Use>
  void exchange(const void* given, const Use& use) {
    given_[static_cast<size_t>(now_.thread)] = given;
    wait(State::at_shuffle);
    use(given_.data() + now_.thread / kWarp * kWarp);
    wait(State::at_shuffle);  // until all have read
  }
  Fiber& current() { return fibers_[static_cast<size_t>(now_.thread)]; }

 private:
  void make_shared_memory();
  // Never returns: so the address sanitizer may not guard its frame.
  [[gnu::no_sanitize_address]] void start(Fiber& fiber);
  [[gnu::no_sanitize_address]] void resume(size_t thread);
  bool release();
  static void enter();

  Grid grid_;
  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  std::array<double, 1024> slots_{};  // what the threads exchange
  std::array<const void*, 1024> given_{};
  jmp_buf scheduler_;
  const void* main_stack_ = nullptr;  // that of the scheduler, for the address sanitizer
  size_t main_bytes_ = 0;
  void* main_fake_ = nullptr;
  Now now_;
  char* pages_ = nullptr;
  size_t bytes_ = 0;
  char* shared_ = nullptr;
  std::exception_ptr failed_;
};

thread_local Block* running = nullptr;

// It ends at a page that cannot be accessed.
void Block::make_shared_memory() {
  if (grid_.shared_bytes == 0) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = (grid_.shared_bytes + 15) / 16 * 16, whole = (used + page - 1) / page * page;
  bytes_ = whole + page;
  void* const mapped =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(mapped != MAP_FAILED, "model of a GPU: no memory for a block; expected some");
  pages_ = static_cast<char*>(mapped);
  mprotect(pages_ + whole, page, PROT_NONE);
  shared_ = pages_ + whole - used;
}

void Block::enter() {
  Block& block = *running;
  arrive(nullptr, &block.main_stack_, &block.main_bytes_);
  try {
    block.body_();
  } catch (...) {
    if (!block.failed_) block.failed_ = std::current_exception();
  }
  block.current().state = State::done;
  leave(nullptr, block.main_stack_, block.main_bytes_);
  _longjmp(block.scheduler_, 1);
}

void Block::start(Fiber& fiber) {
  ucontext_t begin;
  getcontext(&begin);
  begin.uc_stack.ss_sp = fiber.stack;
  begin.uc_stack.ss_size = kStack;
  begin.uc_link = nullptr;
  makecontext(&begin, &Block::enter, 0);
  fiber.begun = true;
  setcontext(&begin);
}

void Block::resume(size_t thread) {
  now_.thread = static_cast<int>(thread);
  Fiber& fiber = fibers_[thread];
  if (_setjmp(scheduler_) != 0) return arrive(main_fake_);
  leave(&main_fake_, fiber.stack, kStack);
  if (!fiber.begun) start(fiber);
  _longjmp(fiber.context, 1);
}

// Releases the threads that wait and whose others have all arrived. Returns whether there are any.
bool Block::release() {
  bool released = false;
  size_t waiting = 0, alive = 0;
  for (size_t first = 0; first < fibers_.size(); first += kWarp) {
    const size_t last = std::min(first + kWarp, fibers_.size());
    size_t at_shuffle = 0, in_warp = 0;
    for (size_t i = first; i < last; ++i) {
      in_warp += fibers_[i].state != State::done;
      at_shuffle += fibers_[i].state == State::at_shuffle;
      waiting += fibers_[i].state == State::at_barrier;
    }
    alive += in_warp;
    if (at_shuffle == 0 || at_shuffle < last - first) continue;
    for (size_t i = first; i < last; ++i) fibers_[i].state = State::ready;
    released = true;
  }
  if (waiting > 0 && waiting == fibers_.size()) {
    for (Fiber& fiber : fibers_) fiber.state = State::ready;
    released = true;
  }
  return released || alive == 0;
}

void Block::run(int x, int y, std::mt19937_64& random) {
  grid_.block_x = x;
  grid_.block_y = y;
  now_.grid = &grid_;
  if (shared_ != nullptr) std::memset(shared_, kNoNumber, grid_.shared_bytes);
  for (Fiber& fiber : fibers_) {
    fiber.state = State::ready;
    fiber.begun = false;
    fiber.fake = nullptr;
    fiber.copies.assign(1, {});
  }
  std::vector<size_t> order(fibers_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto alive = [](const Fiber& fiber) { return fiber.state != State::done; };
  while (std::ranges::any_of(fibers_, alive)) {
    std::ranges::shuffle(order, random);
    for (const size_t i : order)
      if (fibers_[i].state == State::ready) resume(i);
    if (failed_) std::rethrow_exception(failed_);
    check(release(),
          "model of a GPU: a thread waits for others that have ended or wait elsewhere; expected "
          "all threads of the block at a barrier(), or all lanes of the warp at a shuffle");
  }
}

}  // namespace

void run(Grid grid, uint64_t order, const std::function<void()>& body) {
  std::mt19937_64 random(order);
  std::vector<int> blocks(static_cast<size_t>(grid.blocks_x) * static_cast<size_t>(grid.blocks_y));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::ranges::shuffle(blocks, random);
  const auto block = std::make_unique<Block>(grid, body);
  Block* const before = std::exchange(running, block.get());
  try {
    for (const int each : blocks) block->run(each % grid.blocks_x, each / grid.blocks_x, random);
  } catch (...) {
    running = before;
    throw;
  }
  running = before;
}

const Now& now() { return running->now(); }
void* shared_memory(size_t bytes) { return running->shared(bytes); }
void barrier() { running->wait(State::at_barrier); }
bool any_thread(bool x) { return running->any(x); }
double shuffle_xor(double x, int mask) { return running->shuffle(x, mask); }

void load_matrices(uint32_t (&r)[4], const bf16* row, bool transposed) {
  const int lane = running->now().thread % kWarp;
  running->exchange(row, [&](const void* const* rows) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto bits = [&](int i, int j) -> uint32_t {
        return static_cast<const bf16*>(rows[8 * matrix + i])[j].bits;
      };
      const int i = lane / 4, j = 2 * (lane % 4);
      r[matrix] =
          transposed ? bits(j, i) | bits(j + 1, i) << 16 : bits(i, j) | bits(i, j + 1) << 16;
    }
  });
}

void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Operands {
    const uint32_t *a, *b;
  };
  // Number `half` of a word of two bf16.
  const auto number = [](uint32_t word, int half) {
    return double{widen({static_cast<uint16_t>(word >> 16 * half)})};
  };
  const Operands mine = {a, b};
  const int lane = running->now().thread % kWarp;
  running->exchange(&mine, [&](const void* const* given) {
    const auto of = [&](int i) { return static_cast<const Operands*>(given[i]); };
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + e / 2 * 8, column = 2 * (lane % 4) + e % 2;
      double sum = d[e];
      for (int k = 0; k < 16; ++k) {
        const int pair = k % 8 / 2;
        sum += number(of(row % 8 * 4 + pair)->a[row / 8 + k / 8 * 2], k % 2) *
               number(of(column * 4 + pair)->b[k / 8], k % 2);
      }
      d[e] = static_cast<float>(sum);
    }
  });
}

void copy_async(void* to, const void* from) {
  std::memset(to, kNoNumber, 16);
  running->current().copies.back().push_back({to, from});
}

void copies_begun() { running->current().copies.emplace_back(); }

void wait_copies(int left) {
  auto& groups = running->current().copies;
  while (groups.size() > static_cast<size_t>(left) + 1) {
    for (const Copy& copy : groups.front()) std::memcpy(copy.to, copy.from, 16);
    groups.erase(groups.begin());
  }
}

}  // namespace fovea::cuda::model
