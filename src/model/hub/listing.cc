// The files of a repository, by the Hub's interface /api/models/USER/NAME/revision/REVISION.

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "hub/cache.h"
#include "hub/name.h"
#include "hub/request.h"
#include "hub/selection.h"

namespace fovea::model {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of a listing; 100,000 files have 30 MB

std::string read_listing(const HubName& name, const HubSettings& settings) {
  const HttpRequest request =
      request_to((name.dataset ? "api/datasets/" : "api/models/") + name.repository + "/revision/" +
                     url_encoded(name.revision, false) + "?blobs=true",
                 settings);
  const std::unique_ptr<Transport> transport = hub_module().transport();
  Patience patience;
  const auto always = [] { return true; };
  for (;;) {
    std::string text;
    const HttpResponse response = transport->get(
        request,
        [&](const HttpResponse&, std::string_view bytes) {
          if (text.size() + bytes.size() > kMostBytes)
            fail(ErrorKind::OutOfMemory, "{}: its listing is larger than {} bytes", text_of(name),
                 kMostBytes);
          text += bytes;
        },
        always);
    if (response.status == 200 && response.error.empty()) return text;
    patience.wait(response, false, text_of(name), [](const std::string&) {}, always);
  }
}

bool is_hash(const std::string& text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Reads {"rfilename": "model.gguf", "size": 1, "blobId": "...", "lfs": {"sha256": "..."}}. The name
// becomes a path in the cache, and so does the hash.
HubFile file_of(const nlohmann::json& json, const std::string& source) {
  const auto text = [&](const nlohmann::json& from, const char* key) -> std::string {
    const auto found = from.find(key);
    return found != from.end() && found->is_string() ? found->get<std::string>() : "";
  };
  HubFile file;
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: siblings: {}; expected objects", source, brief(json));
  file.path = text(json, "rfilename");
  const auto lfs = json.find("lfs");
  const bool large = lfs != json.end() && lfs->is_object();
  file.hash = large ? text(*lfs, "sha256") : text(json, "blobId");
  const auto size = json.find("size");
  if (!is_inner_path(file.path) || !is_hash(file.hash, large ? 64 : 40) || size == json.end() ||
      !size->is_number_unsigned())
    fail(ErrorKind::BadFile,
         "{}: {}: expected a path inside of the repository, a size and a hash of each file", source,
         brief(json));
  file.bytes = size->get<uint64_t>();
  return file;
}

bool is_in_cache(const HubFile& file, const HubName& name, const HubSettings& settings) {
  std::error_code missing;
  const auto bytes =
      std::filesystem::file_size(cache_folder(name, settings) + "/blobs/" + file.hash, missing);
  return !missing && bytes == file.bytes;
}

}  // namespace

uint64_t HubPlan::bytes() const {
  uint64_t sum = 0;
  for (const HubFile& file : files) sum += file.bytes;
  return sum;
}

uint64_t HubPlan::missing() const {
  uint64_t sum = 0;
  for (const HubFile& file : files) sum += file.cached ? 0 : file.bytes;
  return sum;
}

HubPlan plan_pull(const HubName& name, const HubSettings& settings) {
  if (settings.offline)
    fail(ErrorKind::Failed,
         "{}: is not in the cache {}, and HF_HUB_OFFLINE is set; expected a name in the cache",
         text_of(name), settings.cache);
  const std::string source = "the listing of " + text_of(name);
  const nlohmann::json json = parse_json(read_listing(name, settings), source);
  HubPlan plan{.name = name};
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array() ||
      !json.contains("sha") || !json["sha"].is_string())
    fail(ErrorKind::BadFile, "{}: expected an object with sha and siblings", source);
  plan.commit = json["sha"].get<std::string>();
  if (!is_commit(plan.commit))
    fail(ErrorKind::BadFile, "{}: sha: expected 40 hexadecimal digits", source);
  std::vector<HubFile> files;
  for (const nlohmann::json& each : json["siblings"]) files.push_back(file_of(each, source));
  Selection selection = select_files(files, name, settings);
  plan.files = std::move(selection.files);
  for (HubFile& file : plan.files) file.cached = is_in_cache(file, name, settings);
  plan.model = std::move(selection.model);
  plan.choice = std::move(selection.choice);
  if (const auto card = json.find("cardData"); card != json.end() && card->is_object())
    if (const auto licence = card->find("license"); licence != card->end() && licence->is_string())
      plan.licence = licence->get<std::string>();
  return plan;
}

}  // namespace fovea::model
