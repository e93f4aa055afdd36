// The two functions that a program of g++ 12 takes from the newest libstdc++ (GLIBCXX_3.4.30). With
// its own, the portable program runs with the libstdc++ of g++ 11, which is that of the
// manylinux_2_34 policy.

#include <pthread.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace std {

[[noreturn]] void __glibcxx_assert_fail(const char* file, int line, const char* function,
                                        const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  std::abort();
}

void condition_variable::wait(unique_lock<mutex>& lock) noexcept {
  pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
}

}  // namespace std
