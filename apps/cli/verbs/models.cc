#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/model_list.h"
#include "fovea/core/error.h"
#include "options/fetch_model.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Models to begin with, whose licences allow most uses. The sizes are about those of what is
// fetched.
struct Suggestion {
  const char* use;
  const char* name;
  const char* size;
  const char* licence;
  const char* what;
};
constexpr Suggestion kSuggestions[] = {
    {"chat", "HuggingFaceTB/SmolLM2-135M-Instruct", "270 MB", "apache-2.0", "English, very small"},
    {"chat", "Qwen/Qwen3-0.6B-GGUF:Q8_0", "640 MB", "apache-2.0", "many languages, reasons"},
    {"chat", "HuggingFaceTB/SmolLM2-360M-Instruct", "725 MB", "apache-2.0", "English"},
    {"chat", "Qwen/Qwen2.5-1.5B-Instruct-GGUF:Q4_K_M", "1.1 GB", "apache-2.0", "many languages"},
    {"chat", "Qwen/Qwen3-4B-GGUF:Q4_K_M", "2.5 GB", "apache-2.0", "many languages, reasons"},
    {"embed", "sentence-transformers/all-MiniLM-L6-v2", "91 MB", "apache-2.0", "English, fast"},
    {"embed", "BAAI/bge-small-en-v1.5", "134 MB", "mit", "English, for search"},
    {"embed", "cross-encoder/ms-marco-MiniLM-L6-v2", "91 MB", "apache-2.0",
     "English, sorts results (fovea rerank)"},
    {"transcribe", "openai/whisper-tiny", "155 MB", "apache-2.0", "99 languages, fast"},
    {"transcribe", "openai/whisper-base", "295 MB", "apache-2.0", "99 languages"},
    {"transcribe", "openai/whisper-small", "970 MB", "apache-2.0", "99 languages, accurate"},
    {"translate", "google-t5/t5-small", "245 MB", "apache-2.0",
     "English to German, French, Romanian"},
    {"translate", "google-t5/t5-base", "895 MB", "apache-2.0",
     "English to German, French, Romanian"},
};

class ModelsCommand : public Command {
 public:
  ModelsCommand()
      : Command("models [list | rm NAME... | verify [NAME...] | suggest [USE]]",
                "Lists the models of the Hugging Face Hub that are on this disk, with their size, "
                "what they can do and when they were last used. rm removes models, verify "
                "compares their files with their hashes, and suggest names models to begin with: "
                "for chat, embed, transcribe or translate.") {}

  void declare(OptionTable& table) override {
    table.add(positionals("WORD", {},
                          "list, rm, verify or suggest, and what to apply it to; "
                          "unset: list",
                          words_));
  }

  int run(const OptionTable&) override {
    const std::string action = words_.empty() ? "list" : words_[0];
    const std::vector<std::string> rest(words_.begin() + (words_.empty() ? 0 : 1), words_.end());
    if (action == "list") return list(rest);
    if (action == "rm" || action == "remove") return remove(rest);
    if (action == "verify") return verify(rest);
    if (action == "suggest") return suggest(rest);
    throw UsageError(fmt::format("{}: unknown; expected list, rm, verify or suggest{}", action,
                                 did_you_mean(action, {"list", "rm", "verify", "suggest"})));
  }

 private:
  int list(const std::vector<std::string>& rest) const {
    if (!rest.empty())
      throw UsageError(rest[0] + ": unexpected argument; expected nothing after list");
    const model::HubSettings settings = model::hub_settings();
    const std::vector<ListedModel> all = listed_models(settings);
    if (json) {
      Json models = Json::array();
      for (const ListedModel& each : all)
        models.push_back({{"name", each.repository.name},
                          {"dataset", each.repository.dataset},
                          {"path", each.repository.path},
                          {"bytes", each.repository.bytes},
                          {"family", each.family},
                          {"use", each.use},
                          {"last_used", each.repository.last_used}});
      print(json_line({{"cache", settings.cache}, {"models", models}}) + "\n");
      return 0;
    }
    if (all.empty())
      note(
          fmt::format("No models in {}; 'fovea models suggest' names some, and 'fovea pull NAME' "
                      "fetches one.\n",
                      printable(settings.cache)));
    else
      print(model_table(all));
    return 0;
  }

  // Returns the repositories with these names, as listed or as hf:USER/NAME.
  static std::vector<model::CachedRepository> named(const std::vector<std::string>& names) {
    const std::vector<model::CachedRepository> all = model::cached_repositories();
    std::vector<model::CachedRepository> found;
    for (const std::string& typed : names) {
      const auto name = model::parse_hub_name(typed);
      const std::string wanted = name ? name->repository : typed;
      const auto match = std::find_if(all.begin(), all.end(), [&](const auto& each) {
        return each.name == wanted && (!name || each.dataset == name->dataset);
      });
      if (match != all.end()) {
        found.push_back(*match);
        continue;
      }
      std::vector<std::string> known;
      for (const auto& each : all) known.push_back(each.name);
      throw Error(ErrorKind::BadFile, fmt::format("{}: is not in the cache{}; see 'fovea models'",
                                                  typed, did_you_mean(wanted, known)));
    }
    return found;
  }

  static int remove(const std::vector<std::string>& names) {
    if (names.empty()) throw UsageError("NAME: not given; expected a model to remove");
    for (const model::CachedRepository& each : named(names)) {
      model::remove_cached(each);
      note(fmt::format("removed {} ({})\n", printable(each.name),
                       memory(static_cast<double>(each.bytes))));
    }
    return 0;
  }

  static int verify(const std::vector<std::string>& names) {
    bool good = true;
    for (const model::CachedRepository& each :
         names.empty() ? model::cached_repositories() : named(names)) {
      ProgressLine line;
      const auto wrong = model::verify_cached(each, [&](const model::PullProgress& now) {
        if (now.bytes > 0)
          line.show(static_cast<double>(now.done) / static_cast<double>(now.bytes), each.name,
                    each.name);
        return true;
      });
      line.clear();
      print(fmt::format("{} {}\n", wrong.empty() ? "ok   " : "WRONG", printable(each.name)));
      for (const std::string& message : wrong) print("      " + printable(message) + "\n");
      if (!wrong.empty())
        print(fmt::format("      to fetch it again: fovea models rm {}; fovea pull {}\n",
                          printable(each.name), printable(each.name)));
      good = good && wrong.empty();
    }
    return good ? 0 : 1;
  }

  int suggest(const std::vector<std::string>& uses) const {
    const std::string use = uses.empty() ? "" : uses[0];
    std::vector<std::string> known;
    Json all = Json::array();
    std::string text;
    for (const Suggestion& each : kSuggestions) {
      if (std::find(known.begin(), known.end(), each.use) == known.end())
        known.emplace_back(each.use);
      if (!use.empty() && use != each.use) continue;
      all.push_back({{"use", each.use},
                     {"name", each.name},
                     {"size", each.size},
                     {"licence", each.licence},
                     {"description", each.what}});
      text += fmt::format("{:<11} {:<40} {:>7}  {:<11} {}\n", each.use, each.name, each.size,
                          each.licence, each.what);
    }
    if (text.empty())
      throw UsageError(
          fmt::format("{}: unknown use; expected one of {}", use, fmt::join(known, ", ")));
    print(json ? json_line({{"models", all}}) + "\n"
               : text + fmt::format("\nfovea {} NAME fetches a model and uses it.\n",
                                    use.empty() ? "chat" : use));
    return 0;
  }

  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_models() { return std::make_unique<ModelsCommand>(); }

}  // namespace fovea::cli
