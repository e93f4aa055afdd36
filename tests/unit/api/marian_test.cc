// Marian's own checkpoints, compared with the same weights in transformers: see
// tools/goldens/make_marian.py.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "fovea/infer/translate.h"
#include "fovea/model/model.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::json;

const std::string kFolder = "tests/goldens/marian/";

class MarianFiles : public testing::TestWithParam<const char*> {};

TEST_P(MarianFiles, TranslateAsInTransformers) {
  const std::string folder = kFolder + GetParam();
  const TemporaryFolder saved;
  const model::Model model = model::Model::open(folder);
  model.save(saved / "model");
  const model::Model again = model::Model::open(saved / "model");
  TranslateOptions options;
  options.beams = 4;
  options.best = 3;
  options.max_tokens = 12;
  options.min_tokens = 2;
  for (const model::Model* one : {&model, &again}) {
    for (const Json& each : Json::parse(std::ifstream(folder + "/expected.json"))) {
      const std::string line = each.at("text");
      EXPECT_EQ(Json(translation_request(*one, options, line).source), each.at("ids"));
      std::vector<std::string> lines = {line};
      translate(
          *one, options,
          [&]() -> std::optional<std::string> {
            if (lines.empty()) return std::nullopt;
            lines.clear();
            return line;
          },
          [&](const Translation& found) {
            for (size_t i = 0; i < found.best.size(); ++i) {
              EXPECT_EQ(Json(found.best[i].ids), each.at("best")[i].at("ids")) << line;
              EXPECT_NEAR(found.best[i].score, each.at("best")[i].at("score").get<float>(), 5e-5f);
            }
            return true;
          });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MarianFiles, testing::Values("post_norm", "pre_norm"));

// Replaces bytes of the weights, with others of equal number.
void refused(const std::string& from, const std::string& to, ErrorKind kind,
             const std::string& message) {
  const TemporaryFolder folder;
  std::string bytes = read_file(kFolder + "post_norm/model.npz", 1 << 20);
  for (size_t at = bytes.find(from); at != bytes.npos; at = bytes.find(from, at + 1))
    bytes.replace(at, from.size(), to);
  write_file_atomically(folder / "model.npz", bytes);
  expect_error(kind, {"model.npz", message}, [&] { model::Model::open(folder.path()); });
}

TEST(MarianFiles, OthersAreRefusedByName) {
  refused("autoreg: self-attention", "autoreg: rnn           ", ErrorKind::Unsupported,
          "transformer-decoder-autoreg is \"rnn");
  refused("type: transformer", "type: s2s        ", ErrorKind::Unsupported, "type is \"s2s");
  refused("encoder_l1_self_Wq", "encoder_l1_self_Xq", ErrorKind::BadFile, "encoder_l1_self_Wq");
  refused("special:model.yml", "special:model.xml", ErrorKind::BadFile, "special:model.yml");
  refused("'<f4'", "'<f2'", ErrorKind::Unsupported, "f2");
}

TEST(MarianFiles, DamagedFilesAreRefused) {
  const std::string bytes = read_file(kFolder + "post_norm/model.npz", 1 << 20);
  for (const size_t size : {size_t{0}, size_t{10}, bytes.size() / 2, bytes.size() - 1}) {
    const TemporaryFolder folder;
    write_file_atomically(folder / "model.npz", bytes.substr(0, size));
    expect_error(ErrorKind::BadFile, {"model.npz", "expected a complete .npz file"},
                 [&] { model::Model::open(folder.path()); });
  }
  const TemporaryFolder two;
  for (const char* name : {"a.npz", "b.npz"}) write_file_atomically(two / name, bytes);
  expect_error(ErrorKind::BadFile, {"2 .npz files", "decoder.yml"},
               [&] { model::Model::open(two.path()); });
}

}  // namespace
}  // namespace fovea::infer
