#include "hub/transport.h"

#include <dlfcn.h>

#include "base/error.h"
#include "base/module.h"

namespace fovea::model {

const HubModule& hub_module() {
  static const HubModule* const module = [] {
    const std::string path = module_path("fovea_hub.so");
    void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = library == nullptr ? nullptr : dlsym(library, kHubModule);
    if (found == nullptr) {
      const char* const reason = path.empty() ? nullptr : dlerror();
      fail(ErrorKind::Unsupported,
           "the Hugging Face Hub: needs libcurl ({}); expected a fovea that is built with "
           "libcurl4-openssl-dev installed, or 'hf download NAME', whose cache fovea reads",
           path.empty()        ? "this fovea has no module fovea_hub.so"
           : reason != nullptr ? reason
                               : "the module belongs to another build of fovea");
    }
    return static_cast<const HubModule*>(found);
  }();
  return *module;
}

}  // namespace fovea::model
