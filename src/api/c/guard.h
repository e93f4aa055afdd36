#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "fovea/c.h"

namespace fovea::c {

// The message of the last failed call with a handle, or of a thread's last one without a handle.
class Message {
 public:
  void set(std::string_view text) noexcept;
  const char* text() const { return shown_; }

 private:
  std::string text_;
  const char* shown_ = "";  // text_, or a constant if memory ran out
};

Message& thread_message();

// The base of the structs of handles.
struct Handle {
  Message message;
  std::atomic_flag used = {};  // set during a call
};

inline const char* message_of(const Handle* handle) {
  return handle == nullptr ? thread_message().text() : handle->message.text();
}

// Stores the message of the exception that is being handled and returns its status.
fovea_status explain_exception(Message& message) noexcept;

// Throws Unsupported if the CPU lacks features that the library requires.
void check_cpu();

// Every function of the interface that can fail runs its body in a guard, which no exception
// leaves.
template <class Body>
fovea_status guard(Message& message, Body&& body) noexcept {
  try {
    check_cpu();
    body();
    return FOVEA_OK;
  } catch (...) {
    return explain_exception(message);
  }
}

// The same for a function without a handle.
template <class Body>
fovea_status guard(Body&& body) noexcept {
  return guard(thread_message(), std::forward<Body>(body));
}

// The same for a function with a handle; `name` is the name of the handle's argument.
template <class Body>
fovea_status guard(Handle* handle, const char* name, Body&& body) noexcept {
  if (handle == nullptr || handle->used.test_and_set()) {
    return guard([&] {
      check(handle != nullptr, "{}: NULL; expected a handle", name);
      check(false, "{}: in use by another call; expected one call at a time with a handle", name);
    });
  }
  const fovea_status status = guard(handle->message, std::forward<Body>(body));
  handle->used.clear();
  return status;
}

}  // namespace fovea::c
