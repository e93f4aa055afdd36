#include "c/guard.h"

#include <exception>
#include <new>

#include "fovea/core/machine.h"

namespace fovea::c {
namespace {

fovea_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument: return FOVEA_INVALID_ARGUMENT;
    case ErrorKind::BadFile: return FOVEA_BAD_FILE;
    case ErrorKind::Unsupported: return FOVEA_UNSUPPORTED;
    case ErrorKind::OutOfMemory: return FOVEA_OUT_OF_MEMORY;
    case ErrorKind::Failed: return FOVEA_FAILED;
    case ErrorKind::Internal: return FOVEA_INTERNAL;
  }
  return FOVEA_INTERNAL;
}

}  // namespace

void Message::set(std::string_view text) noexcept {
  try {
    text_ = text;
    // One line, which callers can print.
    for (char& c : text_)
      if (c == '\n' || c == '\r' || c == '\0') c = ' ';
    shown_ = text_.c_str();
  } catch (...) {
    shown_ = "memory: out of memory; expected room for an error's message";
  }
}

Message& thread_message() {
  thread_local Message message;
  return message;
}

fovea_status explain_exception(Message& message) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    message.set(error.what());
    return status_of(error.kind());
  } catch (const std::bad_alloc&) {
    message.set("memory: out of memory; expected a smaller model, batch or context");
    return FOVEA_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    message.set(error.what());
    return FOVEA_INTERNAL;
  } catch (...) {
    message.set("an exception that is not a std::exception; expected none, also from callbacks");
    return FOVEA_INTERNAL;
  }
}

void check_cpu() {
  static const std::string missing = missing_cpu_features();
  if (!missing.empty())
    fail(ErrorKind::Unsupported, "this CPU lacks {}; expected AVX2 and FMA", missing);
}

}  // namespace fovea::c
