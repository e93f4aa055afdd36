#include "fovea/infer/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "fovea/answer.h"
#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "fovea/infer/image_search.h"
#include "fovea/open.h"
#include "jobs/ranks.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "options/text_scorer.h"
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
            "search INDEX QUERY [OPTIONS] | search INDEX --cluster N | search --build FOLDER "
            "--model MODEL --out INDEX | search INDEX --add FILE... | search INDEX --delete "
            "FILE...",
            "Finds the passages of a directory's text files whose meaning is most similar to a "
            "query. --build splits the files into passages and writes an index of their vectors "
            "and words; a second run embeds only changed passages. --add and --delete change "
            "single files. --hybrid also searches by words, --where only in passages that fulfil a "
            "condition, --rerank sorts the results by another model, --explain shows which words "
            "matched, and --answer answers a question from the results. --cluster groups the "
            "passages. With a model of images, --build indexes a directory's images, and a "
            "search finds those most similar to the image --image, or, with a model of images "
            "and texts, to a query.") {}

  void declare(OptionTable& table) override {
    table.add(positional("INDEX", {"--index"}, "index to search", index_));
    table.add(positional("QUERY", {"-q", "--query"}, "the query", query_));
    table.add(
        integer("--top", {"-n", "--top-k", "-k"}, "number of passages to print", top_, 1, 100'000));
    add_fields(table, search_);
    table.add(
        of_model(as("DIR", text("--rerank", {"--reranker"},
                                "sort the results by a cross-encoder or a late interaction model",
                                reranker_))));
    table.add(integer("--candidates", {},
                      "number of results that --rerank sorts, of which --top are printed",
                      candidates_, 1, 100'000));
    table.add(
        flag("--explain", {}, "also print the matching words and their similarity", explain_));
    table.add(of_model(
        as("DIR", text("--model", {"-m", "--model-name-or-path"},
                       "model directory; a search needs it only if the model has moved", model_))));
    table.add(as("FILE", text("--image", {}, "the query is this image", image_)));
    table.section("Answering");
    table.add(of_model(
        as("DIR", text("--answer", {},
                       "answer the query from the passages found, and quote them by number: "
                       "with a model that generates text, a directory or a .gguf file, or "
                       "with one that finds answers in a text",
                       answerer_))));
    add_fields(table, answer_, {{"least_similarity", {"--least-score"}}});
    generation_.sampling.temperature = 0;
    add_fields(table, generation_,
               {{"max_tokens", {"--max-tokens"}, "--predict"}, {"temperature", {"--temp"}}},
               Fields::spelled);
    table.section("Grouping");
    add_fields(
        table, clusters_,
        {{"clusters", {"--clusters"}, "--cluster"}, {.field = "typical"}, {.field = "seed"}});
    table.section("Building an index");
    table.add(as("DIR", text("--build", {}, "directory of text files to index", folder_)));
    table.add(as("DIR", text("--out", {"-o", "--output"}, "the index to write", out_)));
    add_fields(table, build_);
    table.section("Changing an index");
    table.add(as("FILE", files("--add", {},
                               "add these files or directories of the indexed directory, or read "
                               "them again",
                               added_, kMostFiles)));
    table.add(as("FILE",
                 files("--delete", {}, "remove these files or directories", deleted_, kMostFiles)));
    table.show_only({"INDEX", "QUERY", "--top", "--hybrid", "--where", "--rerank", "--explain",
                     "--model", "--image", "--answer", "--predict", "--cluster", "--build", "--out",
                     "--passage-tokens", "--overlap-tokens", "--vectors", "--add", "--delete"});
  }

  bool runs_on_ranks(const OptionTable& table) const override { return table.given("--build"); }

  int run(const OptionTable& table) override {
    if (table.given("--build")) {
      allow_only(table, "--build",
                 {"--model", "--out", "--passage-tokens", "--overlap-tokens", "--kind", "--vectors",
                  "--graph"});
      return build();
    }
    refuse_without(
        table, "--build",
        {"--out", "--passage-tokens", "--overlap-tokens", "--kind", "--vectors", "--graph"});
    refuse_without(table, "--rerank", {"--candidates"});
    refuse_without(table, "--answer", {"--least-similarity", "--predict", "--temperature"});
    refuse_without(table, "--cluster", {"--typical", "--seed"});
    if (index_.empty()) throw UsageError("INDEX: not given; expected an index written by --build");
    if (table.given("--add") || table.given("--delete")) {
      for (const char* option : {"--add", "--delete"})
        if (table.given(option))
          allow_only(table, option, {"INDEX", "--add", "--delete", "--model"});
      return change();
    }
    if (table.given("--cluster")) {
      allow_only(table, "--cluster", {"INDEX", "--typical", "--seed", "--model"});
      return cluster();
    }
    if (query_.empty() == image_.empty())
      throw UsageError(query_.empty() ? "QUERY: not given; expected a text, or --image"
                                      : "--image: cannot be combined with QUERY");
    if (infer::ImageIndex::holds_images(index_, model_)) return search_images(table);
    if (!image_.empty())
      throw UsageError("--image: " + index_ + " is not an index of images; expected one");
    return search(table);
  }

 private:
  // Throws UsageError for options that have an effect only with the option `needed`.
  static void refuse_without(const OptionTable& table, const char* needed,
                             std::initializer_list<const char*> options) {
    for (const char* option : options)
      if (table.given(option) && !table.given(needed))
        throw UsageError(fmt::format("{}: requires {}", option, needed));
  }

  int build() {
    if (model_.empty()) throw UsageError("--model: not given; expected a model directory");
    if (out_.empty()) throw UsageError("--out: not given; expected the index to write");
    const bool images = model_use(model_) == ModelUse::images;
    if (images && (build_.vectors != infer::VectorPrecision::float32 || build_.graph))
      throw UsageError("--vectors, --graph: cannot be combined with a model of images");
    if (const jobs::Ranks* ranks = jobs::Ranks::current())
      build_.ranks = &ranks->communicator();
    else
      catch_signals();
    ProgressLine line;
    if (images) return build_of_images(line);
    return with_progress(line, [&] {
      const infer::SearchBuild result = infer::build_search_index(folder_, model_, out_, build_);
      line.clear();
      if (!jobs::Ranks::only_helps()) report_build(result);
    });
  }

  // Adds and removes files.
  int change() {
    if (infer::ImageIndex::holds_images(index_, model_))
      throw UsageError("--add, --delete: " + index_ +
                       " is an index of images; expected one of texts, or --build");
    catch_signals();
    ProgressLine line;
    return with_progress(line, [&] {
      int64_t removed = 0;
      if (!deleted_.empty()) removed = infer::delete_from_search_index(index_, deleted_);
      if (added_.empty()) {
        print(json ? json_line({{"deleted", removed}}) + "\n"
                   : fmt::format("{} {} deleted\n", removed, removed == 1 ? "file" : "files"));
        return;
      }
      const infer::SearchBuild result = infer::add_to_search_index(index_, added_, model_, build_);
      line.clear();
      report_build(result);
    });
  }

  // Runs `work`, which reports its progress to build_.progress, until a signal stops it.
  template <class Work>
  int with_progress(ProgressLine& line, const Work& work) {
    build_.progress = [&](int64_t embedded, int64_t passages) {
      const std::string state = fmt::format("{} of {} passages", embedded, passages);
      if (passages > 0)  // none while programs read the files
        line.show(static_cast<double>(embedded) / static_cast<double>(passages), state,
                  "embedded " + state);
      return !stop_requested();
    };
    try {
      work();
    } catch (const Error&) {
      line.clear();
      if (stop_requested()) return stop_code();
      throw;
    }
    line.clear();
    return 0;
  }

  void report_build(const infer::SearchBuild& result) const {
    for (const std::string& file : result.skipped)
      note("warning: " + printable(file) + ": not a text file, skipped\n");
    for (const std::string& line : result.unread) note("warning: " + printable(line) + "\n");
    for (const std::string& link : result.links_out)
      note("warning: " + printable(link) + ": a link out of the directory, skipped\n");
    if (result.cut > 0)
      note(fmt::format(
          "warning: {} truncated to {} tokens, the model's limit, the first at {}; a smaller "
          "--passage-tokens avoids this\n",
          result.cut == 1 ? "1 passage" : fmt::format("{} passages", result.cut), result.limit,
          printable(result.first_cut)));
    Json recall = Json::array();
    std::string out = fmt::format("{} files, {} passages, {} of them new\n", result.files,
                                  result.passages, result.embedded);
    if (result.duplicates > 0)
      out += fmt::format("left out {} {} with the text of another\n", result.duplicates,
                         result.duplicates == 1 ? "passage" : "passages");
    for (const infer::GraphRecall& each : result.recall) {
      recall.push_back({{"candidates", each.candidates}, {"recall", each.recall}});
      out += fmt::format("--graph-candidates {}: finds {:.1f}% of the 10 nearest passages\n",
                         each.candidates, 100 * each.recall);
    }
    Json object = {{"files", result.files},           {"skipped", result.skipped},
                   {"unread", result.unread},         {"passages", result.passages},
                   {"duplicates", result.duplicates}, {"embedded", result.embedded}};
    if (!result.recall.empty()) object["recall"] = recall;
    print(json ? json_line(object) + "\n" : out);
  }

  int build_of_images(ProgressLine& line) const {
    infer::ImageIndexBuild result;
    try {
      result = infer::build_image_index(
          folder_, model_, out_,
          [&](int64_t embedded, int64_t images) {
            const std::string state = fmt::format("{} of {} images", embedded, images);
            line.show(static_cast<double>(embedded) / static_cast<double>(images), state,
                      "embedded " + state);
            return !stop_requested();
          },
          build_.ranks);
    } catch (const Error&) {
      line.clear();
      if (stop_requested()) return stop_code();
      throw;
    }
    line.clear();
    if (jobs::Ranks::only_helps()) return 0;
    for (const std::string& link : result.links_out)
      note("warning: " + printable(link) + ": a link out of the directory, skipped\n");
    print(json ? json_line({{"images", result.images}, {"embedded", result.embedded}}) + "\n"
               : fmt::format("{} images, {} of them new\n", result.images, result.embedded));
    return 0;
  }

  int search_images(const OptionTable& table) const {
    for (const char* option :
         {"--explain", "--hybrid", "--rerank", "--answer", "--where", "--graph-candidates"})
      if (table.given(option))
        throw UsageError(std::string(option) + ": cannot be combined with an index of images");
    const infer::ImageIndex index = infer::ImageIndex::open(index_, model_);
    warn(index.warnings());
    const auto found =
        image_.empty() ? index.search(query_, top_) : index.search(media::read_image(image_), top_);
    Json results = Json::array();
    std::string out;
    for (const infer::FoundImage& one : found) {
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

  infer::SearchIndex open() const {
    infer::SearchIndex index = infer::SearchIndex::open(index_, model_);
    warn(index.warnings());
    return index;
  }

  static std::string path_of(const infer::SearchIndex& index, const infer::FoundPassage& found) {
    return (std::filesystem::path(index.folder()) / found.file).string();
  }

  // Returns the results, sorted by the model of --rerank if it is given.
  std::vector<infer::FoundPassage> results_of(const infer::SearchIndex& index) const {
    if (reranker_.empty()) return index.search(query_, top_, search_);
    const TextScorer score = open_scorer(reranker_);
    std::vector<infer::FoundPassage> found =
        index.search(query_, std::max(candidates_, top_), search_);
    std::vector<std::string> texts;
    for (const infer::FoundPassage& passage : found) texts.push_back(passage.text);
    const std::vector<float> scores = score(query_, texts, {});
    for (size_t i = 0; i < found.size(); ++i) found[i].score = scores[i];
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    found.resize(std::min(found.size(), static_cast<size_t>(top_)));
    return found;
  }

  int search(const OptionTable& table) const {
    const infer::SearchIndex index = open();
    const std::vector<infer::FoundPassage> all = results_of(index);
    if (!answerer_.empty()) return answer(index, all, table);
    Json results = Json::array();
    std::string out;
    for (const infer::FoundPassage& found : all) {
      const auto matches =
          explain_ ? index.explain(query_, found) : std::vector<infer::WordMatch>();
      const std::string file = path_of(index, found);
      if (json)
        results.push_back(as_json(file, found, matches));
      else
        out += as_text(file, found, matches);
    }
    print(json ? json_line({{"query", query_}, {"results", results}}) + "\n" : out);
    return 0;
  }

  Json as_json(const std::string& file, const infer::FoundPassage& found,
               const std::vector<infer::WordMatch>& matches) const {
    Json object = {{"file", file},
                   {"line", found.line},
                   {"last_line", found.last_line},
                   {"score", found.score},
                   {"similarity", found.similarity},
                   {"text", found.text}};
    if (!found.fields.empty()) object["fields"] = parse_ordered_json(found.fields, "fields");
    if (!explain_) return object;
    object["matches"] = Json::array();
    for (const infer::WordMatch& m : matches)
      object["matches"].push_back({{"query", m.query},
                                   {"passage", m.passage},
                                   {"line", m.line},
                                   {"similarity", m.similarity}});
    return object;
  }

  static std::string as_text(const std::string& file, const infer::FoundPassage& found,
                             std::vector<infer::WordMatch> matches) {
    constexpr size_t kShown = 5;  // maximum number of words to print; --json prints all
    std::stable_sort(matches.begin(), matches.end(),
                     [](auto& a, auto& b) { return a.similarity > b.similarity; });
    matches.resize(std::min(matches.size(), kShown));
    std::string out = fmt::format("{:.4f}  {}:{}\n", found.score, printable(file), found.line);
    for (const infer::WordMatch& m : matches)
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

  // Prints the groups, each named by its most typical passage.
  int cluster() const {
    const infer::SearchIndex index = open();
    Json groups = Json::array();
    std::string out;
    for (const infer::PassageCluster& group : index.cluster(clusters_)) {
      Json typical = Json::array();
      out += fmt::format("{} passages, cohesion {:.2f}\n", group.passages, group.cohesion);
      for (const infer::FoundPassage& found : group.typical) {
        const std::string file = path_of(index, found);
        typical.push_back(as_json(file, found, {}));
        out += fmt::format("  {:.4f}  {}:{}  {}\n", found.score, printable(file), found.line,
                           printable(excerpt(found.text, kTypicalBytes)));
      }
      groups.push_back({{"passages", group.passages},
                        {"cohesion", group.cohesion},
                        {"typical", std::move(typical)}});
      out += '\n';
    }
    print(json ? json_line({{"clusters", groups}}) + "\n" : out);
    return 0;
  }

  int answer(const infer::SearchIndex& index, const std::vector<infer::FoundPassage>& found,
             const OptionTable& table) const {
    const model::Model model = open_model(answerer_, model::WeightPrecision::stored);
    const model::HeadKind head = model.spec().head.kind;
    if (head == model::HeadKind::span) return answer_by_span(index, found, table, model);
    if (head != model::HeadKind::language_model || !model.spec().decoder)
      throw UsageError(fmt::format(
          "--answer: {} generates no text and has no head for answers; expected such a model",
          answerer_));
    const auto chat = text::chat_format(answerer_, "", model.tokenizer());
    catch_signals();
    infer::GenerateOptions generation = generation_;
    generation.sampling.seed = clusters_.seed;
    if (!table.given("--predict")) generation.max_tokens = kUsualAnswer;
    const PassageAnswer answer = answer_from_passages(model, chat, query_, found, generation,
                                                      answer_, [&](std::string_view piece) {
                                                        if (!json) print(std::string(piece));
                                                        return !stop_requested();
                                                      });
    if (stop_requested()) return stop_code();
    report(index, answer);
    return 0;
  }

  // Prints the part of a passage that answers the question.
  int answer_by_span(const infer::SearchIndex& index, const std::vector<infer::FoundPassage>& found,
                     const OptionTable& table, const model::Model& model) const {
    for (const char* option : {"--predict", "--temperature"})
      if (table.given(option))
        throw UsageError(fmt::format(
            "{}: {} finds answers in the passages; expected a model that generates text", option,
            answerer_));
    const PassageAnswer answer =
        answer_from_passages(infer::Classifier::of(model), query_, found, answer_);
    if (!json) print(answer.text);
    report(index, answer);
    return 0;
  }

  // Prints the sources of an answer; as JSON, the answer too.
  void report(const infer::SearchIndex& index, const PassageAnswer& answer) const {
    if (answer.sources.empty())
      note(fmt::format("no passage has a similarity of at least {} to the question\n",
                       answer_.least_similarity));
    else if (!answer.answered)
      note("the passages do not answer the question, by the model's judgement\n");
    else if (!answer.supported)
      note("warning: the answer quotes no passage: no passage supports it\n");
    for (const int64_t number : answer.unknown)
      note(fmt::format("warning: the answer cites [{}], which is not a passage\n", number));
    Json sources = Json::array();
    std::string out = answer.text.empty() ? "" : "\n\n";
    for (size_t i = 0; i < answer.sources.size(); ++i) {
      const infer::FoundPassage& source = answer.sources[i];
      const auto number = static_cast<int64_t>(i + 1);
      const bool cited = std::ranges::count(answer.cited, number) > 0;
      const std::string file = path_of(index, source);
      Json object = {{"number", number}, {"cited", cited}};
      object.update(as_json(file, source, {}));
      sources.push_back(std::move(object));
      if (cited) out += fmt::format("[{}] {}:{}\n", number, printable(file), source.line);
    }
    Json object = {{"question", query_},
                   {"answered", answer.answered},
                   {"supported", answer.supported},
                   {"answer", answer.text}};
    if (answer.score) object["score"] = *answer.score;
    object["sources"] = sources;
    object["unknown_citations"] = answer.unknown;
    print(json ? json_line(object) + "\n" : out);
  }

  static constexpr size_t kTypicalBytes = 100;
  static constexpr int64_t kUsualAnswer = 256;  // tokens of an answer

  std::string index_, query_, image_, folder_, model_, out_, reranker_, answerer_;
  infer::SearchBuildOptions build_;
  infer::SearchOptions search_;
  infer::ClusterOptions clusters_;
  AnswerOptions answer_;
  infer::GenerateOptions generation_;
  int64_t top_ = 5, candidates_ = 50;
  std::vector<std::string> added_, deleted_;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_search() { return std::make_unique<SearchCommand>(); }

}  // namespace fovea::cli
