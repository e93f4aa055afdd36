#pragma once

// Models and data sets of the Hugging Face Hub, in the cache that huggingface_hub and other
// programs share. Only files that fovea reads are fetched; each is verified by its hash.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::model {

// The name of a repository on the Hub, and what is wanted of it.
struct HubName {
  std::string repository = {};    // "USER/NAME", or "NAME" of the oldest models
  std::string revision = "main";  // a branch, a tag or a commit
  std::string quantisation = {};  // of a .gguf file, such as "Q4_K_M"; empty = the best that fits
  std::string file = {};          // one file of the repository; empty = all that fovea reads
  bool dataset = false;
  bool operator==(const HubName&) const = default;
};

// How the Hub is reached, and what this machine can run.
struct HubSettings {
  std::string endpoint = {};  // without a slash at the end
  std::string cache = {};     // the folder with models--USER--NAME
  std::string token = {};     // sent to the endpoint's host only; empty = none
  bool offline = false;
  uint64_t memory = 0;  // bytes that the weights may use; 0 = any
  // Returns the speed of the memory, in bytes per second; called if there are several
  // quantisations. Empty: the speed does not limit their choice.
  std::function<double()> bandwidth = {};
};
// Returns the settings of the environment: HF_ENDPOINT (https://huggingface.co); HF_HUB_CACHE, else
// $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub; HF_TOKEN, else
// the file HF_TOKEN_PATH or $HF_HOME/token; HF_HUB_OFFLINE. `memory` is the available memory.
HubSettings hub_settings();

// Returns the parts of a name: USER/NAME, hf:USER/NAME or hf:NAME, then optionally @REVISION and
// :QUANTISATION, or the address of a repository or of one of its files at the Hub. Nothing if the
// text has another form. Throws InvalidArgument for an hf: name or an address that is malformed.
std::optional<HubName> parse_hub_name(std::string_view text,
                                      const HubSettings& settings = hub_settings());
// Returns the shortest text with this name: "USER/NAME:Q4_K_M".
std::string text_of(const HubName& name);

// Returns where a model is: `text` itself if something has this path or the text is no name of the
// Hub, or else the directory or the .gguf file in the cache if the cache has the whole model.
// A name without hf: whose first part is a folder here is a path. Does not use the network.
std::string find_model(const std::string& text);
// Returns the name if `text` is the name of a model that find_model() does not find, and a pull
// could fetch it: it contains a slash or begins with hf:.
std::optional<HubName> missing_model(const std::string& text);

struct HubFile {
  std::string path = {};  // in the repository
  uint64_t bytes = 0;
  std::string hash = {};  // hexadecimal: SHA-256 of a large file, else the SHA-1 that git has
  bool cached = false;
};

// What a pull fetches.
struct HubPlan {
  HubName name = {};
  std::string commit = {};
  std::vector<HubFile> files = {};  // the weights last
  std::string model = {};   // the path of a .gguf file in the repository; empty = its folder
  std::string choice = {};  // a sentence about the choice among several quantisations; may be empty
  std::string licence = {};
  uint64_t bytes() const;    // of all files
  uint64_t missing() const;  // of those that are not in the cache
};

// Asks the Hub for the files of a repository, and chooses those that fovea reads: the weights in
// safetensors, or one .gguf file, never pickles; of a data set, text files and tables. Throws
// BadFile if the repository, revision, quantisation or file does not exist, Unsupported if it has
// no weights that fovea reads, and Failed if the Hub cannot be reached or refuses.
HubPlan plan_pull(const HubName& name, const HubSettings& settings = hub_settings());

struct PullProgress {
  uint64_t done = 0, bytes = 0;  // of the missing files
  std::string event = {};        // something to tell the user, such as a retry; mostly empty
};

// Fetches the missing files of a plan, several at once, and returns the path of the model or of the
// data set in the cache. Connections that break are resumed, and a file gets its name in the cache
// only when its hash is right; what is fetched stays for the next pull if this one fails.
// `progress` is called several times a second, from one thread at a time; false stops the pull.
// Throws Failed: no connection, no space, a wrong hash, or stopped.
std::string pull(const HubPlan& plan, const HubSettings& settings = hub_settings(),
                 const std::function<bool(const PullProgress&)>& progress = {});

// A repository in the cache.
struct CachedRepository {
  std::string name = {};  // "USER/NAME"
  bool dataset = false;
  std::string folder = {};  // models--USER--NAME
  std::string path = {};    // of the model: a directory or a .gguf file; empty = incomplete
  uint64_t bytes = 0;       // on the disk
  int64_t last_used = 0;    // seconds since 1970
};
std::vector<CachedRepository> cached_repositories(const HubSettings& settings = hub_settings());

// Removes a repository from the cache. Throws BadFile if it is not there, and Failed if another
// program fetches it.
void remove_cached(const CachedRepository& repository);

// Compares the files of a repository with their hashes, and returns one message for each that is
// damaged or missing. `progress`: as for pull().
std::vector<std::string> verify_cached(
    const CachedRepository& repository,
    const std::function<bool(const PullProgress&)>& progress = {});

}  // namespace fovea::model
