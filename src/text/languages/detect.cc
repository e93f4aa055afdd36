#include <dlfcn.h>

#include "base/error.h"
#include "base/module.h"
#include "languages/detector.h"

namespace fovea::text {
namespace {

DetectLanguages* module_function() {
  static DetectLanguages* const function = []() -> DetectLanguages* {
    const std::string path = module_path("fovea_languages.so");
    void* const module = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = module == nullptr ? nullptr : dlsym(module, kDetectLanguages);
    return reinterpret_cast<DetectLanguages*>(found);
  }();
  return function;
}

// Returns the code with the language of this library: "he" of "iw", "zh-Hant" as it is.
std::string with_own_code(const std::string& code) {
  const std::string primary = code.substr(0, code.find('-'));
  return language_tag(primary, {}) + code.substr(primary.size());
}

}  // namespace

bool detects_languages() { return module_function() != nullptr; }

std::vector<DetectedLanguage> detect_languages(std::string_view text) {
  DetectLanguages* const detect = module_function();
  if (detect == nullptr)
    fail(ErrorKind::Unsupported,
         "languages: no text's language can be detected without the module fovea_languages.so; "
         "expected a fovea that is built with libcld2-dev installed, and libcld2");
  std::vector<DetectedLanguage> found;
  detect(text.substr(0, kMostDetected), found);
  for (DetectedLanguage& each : found) each.language = with_own_code(each.language);
  return found;
}

}  // namespace fovea::text
