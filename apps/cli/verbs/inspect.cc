#include "fovea/study/inspect.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/open_browser.h"
#include "cli/page_server.h"
#include "cli/verbs/images.h"
#include "fovea/core/error.h"
#include "fovea/core/read_file.h"
#include "fovea/infer/image_prompt.h"
#include "inspector/save.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/heatmap.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Writes a temporary file and renames it, so that the file appears complete or not at all.
void write_whole(const std::string& path, const std::string& content) {
  const std::string beside = path + ".writing";
  std::ofstream file(beside, std::ios::binary);
  file << content;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(beside, path, error);
  if (!file || error) {
    std::filesystem::remove(beside, error);
    throw Error(ErrorKind::Failed,
                path + ": cannot be written; expected a writable directory with free space");
  }
}

class InspectCommand : public Command {
 public:
  InspectCommand()
      : Command("inspect MODEL [TEXT] [OPTIONS]",
                "Serves a local page that shows the intermediate results of a model: attention "
                "maps, the computation of each token, predictions, and statistics of its heads. "
                "For the directory of a training run it also shows the training. With TEXT it "
                "prints one head's attention map in the terminal; with --out it writes a file.") {}

  void declare(OptionTable& table) override {
    table.add(
        of_model(positional("MODEL", {"--model"},
                            "model directory, or the output directory of a training run", model_)));
    add_fields(table, input_, {{"text", {"--text"}, "TEXT"}});
    table.add(of_model(as(
        "DIR", list("--with", {"--compare"}, "further models to compare on the page", others_))));
    table.add(adapter_option(adapters_));
    table.section("One head");
    add_fields(table, head_);
    table.add(as("FILE",
                 text("--out", {"-o", "--output"},
                      "output file: .html (the page with this text), .svg or .safetensors", out_)));
    table.section("The page");
    table.add(as("FILE",
                 text("--image", {},
                      "image with which the page begins, for a model that reads images", image_)));
    table.add(integer("--port", {"-p"}, "port of the page; 0 = any free port", port_, 0, 65535));
    table.add(flag("--no-browser", {}, "print the address without opening a browser", quiet_));
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const bool reads = table.given("TEXT");
    if (!out_.empty() && !reads)
      throw UsageError("TEXT: not given; expected a text, which --out requires");
    if (!out_.empty()) return write();
    if (reads && !image_.empty())
      throw UsageError("--image: cannot be combined with TEXT; ask about an image on the page");
    return reads ? print_map() : serve_page();
  }

 private:
  // The attention map of one head, with labels for its queries and keys.
  struct LabelledMap {
    study::AttentionWeights map;
    std::vector<std::string> rows, keys;
  };
  LabelledMap labelled_map(const study::Inspection& inspection) const {
    const auto& [kind, layer, head] = head_;
    study::MapQuery query;
    query.kind = kind;
    query.layer = layer;
    query.heads = {head};
    LabelledMap labelled_map{inspection.map(query), {}, {}};
    for (const auto& token :
         kind == model::AttentionKind::encoder ? inspection.source() : inspection.tokens())
      labelled_map.rows.push_back(token.text);
    for (const auto& token :
         kind == model::AttentionKind::self ? inspection.tokens() : inspection.source())
      labelled_map.keys.push_back(token.text);
    return labelled_map;
  }

  model::Model opened() const {
    return open_model(model_, model::WeightPrecision::full, {}, adapters_of(adapters_));
  }

  int print_map() {
    const study::Inspection inspection(opened(), input_);
    const LabelledMap labelled = labelled_map(inspection);
    if (json) {
      Json rows = Json::array();
      const ArrayView map = labelled.map.view();
      for (int64_t r = 0; r < labelled.map.rows; ++r) {
        const auto row = map.row<float>(r);
        rows.push_back(std::vector<float>(row.begin(), row.end()));
      }
      print(json_line({{"rows", labelled.rows}, {"keys", labelled.keys}, {"weights", rows}}) +
            "\n");
      return 0;
    }
    const char* const no_colour = std::getenv("NO_COLOR");
    const bool colour =
        is_terminal(Channel::output) && (no_colour == nullptr || *no_colour == '\0');
    const Shades shades = !can_utf8() && !colour ? Shades::digits
                          : colour               ? Shades::colours
                                                 : Shades::blocks;
    print(
        draw_heatmap(labelled.map.view(), labelled.rows, labelled.keys, terminal_width(), shades));
    note(
        fmt::format("layer {}, head {}: rows are queries; the scale is the square root, from 0 "
                    "(dark or .) to 1 (bright or 9)\n",
                    head_.layer, head_.head));
    return 0;
  }

  int write() {
    const std::string ending = std::filesystem::path(out_).extension();
    const model::Model model = opened();
    if (ending == ".html") {
      write_whole(out_, inspector::saved_view(model_, model, input_, head_));
    } else if (ending == ".svg") {
      const LabelledMap labelled = labelled_map(study::Inspection(model, input_));
      write_whole(out_,
                  draw_svg(labelled.map.view(), labelled.rows, labelled.keys,
                           fmt::format("Attention of layer {}, head {}", head_.layer, head_.head)));
    } else if (ending == ".safetensors") {
      study::Inspection(model, input_).save(out_, head_.kind, head_.layer);
    } else {
      throw UsageError("--out: '" + out_ +
                       "'; expected a name ending in .html, .svg or .safetensors");
    }
    if (json) print(Json({{"out", out_}}).dump() + "\n");
    return 0;
  }

  // Opens all models once. Returns whether the first one reads images.
  bool check_models() const {
    for (const std::string& folder : others_)
      if (!infer::ImageModel::reads_images(folder)) open_model(folder);
    if (!infer::ImageModel::reads_images(model_)) return infer::reads_images(opened());
    open_image_model(model_, model::WeightPrecision::full, adapters_of(adapters_));
    return true;
  }

  int serve_page() {
    std::vector<std::string> folders{model_};
    folders.insert(folders.end(), others_.begin(), others_.end());
    // Reports errors now, not in the browser.
    const bool images = check_models();
    std::string image;
    if (!image_.empty()) {
      if (!images)
        throw UsageError("--image: " + model_ + " reads no images; expected a model that does");
      media::read_image(image_);
      image = read_file(image_, inspector::kMostImageBody);
    }
    catch_signals("stopping (press again to stop immediately)");
    const PageServer page(folders, port_, adapters_of(adapters_), std::move(image));
    const bool begins = infer::ImageModel::reads_images(model_) || !image_.empty();
    const std::string address = page.address() + (begins ? "images.html" : "");
    if (json)
      print(Json({{"address", address}}).dump() + "\n");
    else
      print(address + "\n");
    note("Press Ctrl-C to stop.\n");
    if (!quiet_) open_browser(address);
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return stop_code();
  }

  std::string model_, out_, image_;
  study::InspectInput input_;
  std::vector<std::string> others_, adapters_;
  model::HeadIndex head_;
  int64_t port_ = 0;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_inspect() { return std::make_unique<InspectCommand>(); }

}  // namespace fovea::cli
