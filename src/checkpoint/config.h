#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fovea/spec.h"

namespace fovea {

// A config.json in one direction: a family's function names each key once with its field, and the
// same lines read a file into a Spec or write a Spec into one. A key without default is mandatory.
// Errors (BadFile, Unsupported) name file and key.
class Config {
 public:
  // Reads from `json`; `name` is the file's, for errors.
  Config(const nlohmann::json& json, std::string name);
  // Writes.
  Config() = default;

  bool reading() const { return reading_; }

  void operator()(const char* key, int64_t& field);
  // A null in the file counts as absent.
  void operator()(const char* key, int64_t& field, int64_t absent);
  void operator()(const char* key, float& field, float absent);
  void operator()(const char* key, bool& field, bool absent);
  void operator()(const char* key, ActivationKind& field, const char* absent);
  void spec(const char* key, Spec& field);  // a whole Spec, as spec.json has it
  // Only this value is understood: any other changes the arithmetic and is refused by name.
  void only(const char* key, const nlohmann::json& value);
  // Said for other readers; without effect here.
  void write(const char* key, const nlohmann::ordered_json& value);

  // After a family's function has run: refuses what it did not ask for and what is not known to be
  // harmless.
  void refuse_unknown(std::initializer_list<const char*> harmless) const;

  const nlohmann::ordered_json& written() const { return written_; }

 private:
  const nlohmann::json* find(const char* key);
  [[noreturn]] void refuse(const char* key, const nlohmann::json& value,
                           const std::string& expected) const;

  bool reading_ = false;
  const nlohmann::json* json_ = nullptr;
  std::string name_;
  std::set<std::string, std::less<>> known_;
  nlohmann::ordered_json written_;
};

}  // namespace fovea
