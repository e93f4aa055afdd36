#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fovea/c.h"

namespace fovea::c {

// Throws InvalidArgument if a required pointer is NULL.
template <class T>
T* required(T* pointer, const char* name) {
  check(pointer != nullptr, "{}: NULL; expected a pointer", name);
  return pointer;
}

// Returns `text`, which ends with NUL, or "" for NULL.
inline std::string_view or_empty(const char* text) { return text == nullptr ? "" : text; }

// Returns a text of `size` bytes, or up to its NUL if `size` is FOVEA_NUL_TERMINATED.
std::string_view text_of(const char* text, size_t size, const char* name);

// Returns the elements of an array, which may be NULL if there are none.
template <class T>
std::vector<T> list_of(const T* values, size_t count, const char* name) {
  if (count == 0) return {};
  check(count <= PTRDIFF_MAX / sizeof(T), "{}: {} elements; expected a possible size", name, count);
  return std::vector<T>(required(values, name), values + count);
}

// Returns a struct whose `size` is set and whose other fields are zero.
template <class Struct>
constexpr Struct sized() {
  Struct made = {};
  made.size = sizeof(Struct);
  return made;
}

// Throws InvalidArgument if `size` cannot be the size of a struct of any version.
void check_size(size_t size);

// Returns the caller's options; fields that the caller's version lacks keep the values of
// `defaults`. NULL stands for the defaults. Throws Unsupported if the caller sets a field that this
// version lacks.
template <class Options>
Options options_of(const Options* given, const Options& defaults) {
  if (given == nullptr) return defaults;
  const size_t size = given->size;
  check_size(size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof(Options) &&
      std::any_of(bytes + sizeof(Options), bytes + size, [](unsigned char c) { return c != 0; }))
    fail(ErrorKind::Unsupported, "options: a field of a newer version is set; expected fovea {}.{}",
         FOVEA_VERSION_MAJOR, FOVEA_VERSION_MINOR);
  Options options = defaults;
  std::memcpy(&options, given, std::min(size, sizeof(Options)));
  options.size = sizeof(Options);
  return options;
}

// Writes a struct of `size` bytes to the caller: the fields that the caller's version has, and
// zeros for those that this version lacks.
template <class Struct>
void give(const Struct& values, size_t size, Struct* out) {
  check_size(size);
  auto* const bytes = reinterpret_cast<unsigned char*>(out);
  std::fill(bytes, bytes + size, static_cast<unsigned char>(0));
  std::memcpy(bytes, &values, std::min(size, sizeof(Struct)));
  out->size = size;
}

}  // namespace fovea::c
