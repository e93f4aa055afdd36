#include "fovea/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "fovea/error.h"
#include "fovea/image_search.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class SearchCommand : public Command {
 public:
  SearchCommand()
      : Command(
            "search INDEX QUERY [OPTIONS] | search --build FOLDER --model MODEL --out INDEX",
            "Finds the passages of a directory's text files whose meaning is most similar to a "
            "query. --build splits the files into passages and writes an index of their vectors; a "
            "second run embeds only changed passages. --explain shows which words matched. With a "
            "model of images, it indexes a directory's pictures, and finds those most similar to "
            "the picture --image, or, with a model of images and texts, to a query.") {}

  void declare(OptionTable& table) override {
    table.add(place("INDEX", {"--index"}, "index to search", index_));
    table.add(place("QUERY", {"-q", "--query"}, "the query", query_));
    table.add(
        integer("--top", {"-n", "--top-k", "-k"}, "number of passages to print", top_, 1, 100'000));
    table.add(
        flag("--explain", {}, "also print the matching words and their similarity", explain_));
    table.add(
        as("DIR", text("--model", {"-m", "--model-name-or-path"},
                       "model directory; a search needs it only if the model has moved", model_)));
    table.add(as("FILE", text("--image", {}, "the query is this picture", image_)));
    table.section("Building an index");
    table.add(as("DIR", text("--build", {}, "directory of text files to index", folder_)));
    table.add(as("DIR", text("--out", {"-o", "--output"}, "the index to write", out_)));
    add_fields(table, build_);
  }

  int run(const OptionTable& table) override {
    if (table.given("--build")) return build();
    for (const char* option : {"--out", "--passage-tokens", "--overlap-tokens"})
      if (table.given(option)) throw UsageError(std::string(option) + ": requires --build");
    if (index_.empty()) throw UsageError("INDEX: not given; expected an index written by --build");
    if (query_.empty() == image_.empty())
      throw UsageError(query_.empty() ? "QUERY: not given; expected a text, or --image"
                                      : "--image: cannot be combined with QUERY");
    if (ImageIndex::holds_images(index_, model_)) return search_images();
    if (!image_.empty())
      throw UsageError("--image: " + index_ + " is not an index of pictures; expected one");
    return search();
  }

 private:
  int build() {
    if (model_.empty()) throw UsageError("--model: not given; expected a model directory");
    if (out_.empty()) throw UsageError("--out: not given; expected the index to write");
    catch_signals();
    ProgressLine line;
    if (ImageModel::reads_images(model_)) return build_of_images(line);
    build_.progress = [&](int64_t embedded, int64_t passages) {
      const std::string state = fmt::format("{} of {} passages", embedded, passages);
      line.show(static_cast<double>(embedded) / static_cast<double>(passages), state,
                "embedded " + state);
      return !asked_to_stop();
    };
    SearchBuild result;
    try {
      result = build_search_index(folder_, model_, out_, build_);
    } catch (const Error&) {
      line.clear();
      if (asked_to_stop()) return stop_code();
      throw;
    }
    line.clear();
    for (const std::string& file : result.skipped)
      note("warning: " + printable(file) + ": not a text file, skipped\n");
    for (const std::string& link : result.links_out)
      note("warning: " + printable(link) + ": a link out of the directory, skipped\n");
    if (result.cut > 0)
      note(fmt::format(
          "warning: {} truncated to {} tokens, the model's limit, the first at {}; a smaller "
          "--passage-tokens avoids this\n",
          result.cut == 1 ? "1 passage" : fmt::format("{} passages", result.cut), result.limit,
          printable(result.first_cut)));
    print(json ? json_line({{"files", result.files},
                            {"skipped", result.skipped},
                            {"passages", result.passages},
                            {"embedded", result.embedded}}) +
                     "\n"
               : fmt::format("{} files, {} passages, {} of them new\n", result.files,
                             result.passages, result.embedded));
    return 0;
  }

  int build_of_images(ProgressLine& line) const {
    ImageIndexBuild result;
    try {
      result = build_image_index(folder_, model_, out_, [&](int64_t embedded, int64_t pictures) {
        const std::string state = fmt::format("{} of {} pictures", embedded, pictures);
        line.show(static_cast<double>(embedded) / static_cast<double>(pictures), state,
                  "embedded " + state);
        return !asked_to_stop();
      });
    } catch (const Error&) {
      line.clear();
      if (asked_to_stop()) return stop_code();
      throw;
    }
    line.clear();
    for (const std::string& link : result.links_out)
      note("warning: " + printable(link) + ": a link out of the directory, skipped\n");
    print(json ? json_line({{"pictures", result.pictures}, {"embedded", result.embedded}}) + "\n"
               : fmt::format("{} pictures, {} of them new\n", result.pictures, result.embedded));
    return 0;
  }

  int search_images() const {
    if (explain_) throw UsageError("--explain: cannot be combined with an index of pictures");
    const ImageIndex index = ImageIndex::open(index_, model_);
    warn(index.warnings());
    const auto found =
        image_.empty() ? index.search(query_, top_) : index.search(read_image(image_), top_);
    Json results = Json::array();
    std::string out;
    for (const FoundImage& one : found) {
      const std::string file = (std::filesystem::path(index.folder()) / one.file).string();
      results.push_back({{"file", file}, {"score", one.score}});
      out += fmt::format("{:.4f}  {}\n", one.score, printable(file));
    }
    const Json query = image_.empty() ? Json{{"query", query_}} : Json{{"image", image_}};
    Json object = query;
    object["results"] = results;
    print(json ? json_line(object) + "\n" : out);
    return 0;
  }

  int search() const {
    const SearchIndex index = SearchIndex::open(index_, model_);
    warn(index.warnings());
    Json results = Json::array();
    std::string out;
    for (const FoundPassage& found : index.search(query_, top_)) {
      const auto matches = explain_ ? index.explain(query_, found) : std::vector<WordMatch>();
      const std::string file = (std::filesystem::path(index.folder()) / found.file).string();
      if (json)
        results.push_back(as_json(file, found, matches));
      else
        out += as_text(file, found, matches);
    }
    print(json ? json_line({{"query", query_}, {"results", results}}) + "\n" : out);
    return 0;
  }

  Json as_json(const std::string& file, const FoundPassage& found,
               const std::vector<WordMatch>& matches) const {
    Json object = {{"file", file},
                   {"line", found.line},
                   {"last_line", found.last_line},
                   {"score", found.score},
                   {"text", found.text}};
    if (!explain_) return object;
    object["matches"] = Json::array();
    for (const WordMatch& m : matches)
      object["matches"].push_back({{"query", m.query},
                                   {"passage", m.passage},
                                   {"line", m.line},
                                   {"similarity", m.similarity}});
    return object;
  }

  static std::string as_text(const std::string& file, const FoundPassage& found,
                             std::vector<WordMatch> matches) {
    constexpr size_t kShown = 5;  // maximum number of words to print; --json prints all
    std::stable_sort(matches.begin(), matches.end(),
                     [](auto& a, auto& b) { return a.similarity > b.similarity; });
    matches.resize(std::min(matches.size(), kShown));
    std::string out = fmt::format("{:.4f}  {}:{}\n", found.score, printable(file), found.line);
    for (const WordMatch& m : matches)
      out += fmt::format("    {:<16} {:.2f}  {} (line {})\n", printable(m.query), m.similarity,
                         printable(m.passage), m.line);
    size_t at = 0;
    while (at < found.text.size()) {
      const size_t end = std::min(found.text.find('\n', at), found.text.size());
      out += "  | " + printable(found.text.substr(at, end - at)) + "\n";
      at = end + 1;
    }
    return out + "\n";
  }

  std::string index_, query_, image_, folder_, model_, out_;
  SearchBuildOptions build_;
  int64_t top_ = 5;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_search() { return std::make_unique<SearchCommand>(); }

}  // namespace fovea::cli
