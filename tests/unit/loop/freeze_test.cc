#include "loop/freeze.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

class Freeze : public testing::Test {
 protected:
  Freeze() {
    spec_.decoder->layers = 3;
    options_.save_every = 4;
  }

  // Trains, and returns the plan.
  TrainPlan run(const std::function<bool(const TrainProgress&)>& progress = {}) const {
    TrainPlan plan;
    train(
        spec_, options_,
        [&](const TrainPlan& given) {
          plan = given;
          return true;
        },
        progress);
    return plan;
  }
  // Returns the names of the parameters in a snapshot, which are those that are trained.
  std::vector<std::string> stored(int64_t step) const {
    const SafeTensors file(model::snapshot_path(options_.out, step) + "/state.safetensors");
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file.stored())
      if (tensor.name.starts_with("weight.")) names.push_back(tensor.name.substr(7));
    return names;
  }

  Runs runs_;
  model::Spec spec_ = small_spec();
  TrainOptions options_ = runs_.options("out");
};

TEST_F(Freeze, TrainsOnlyTheOtherParameters) {
  options_.freeze = {"0-1", "embedding.*", "decoder.position*", "*.final.*"};
  const TrainPlan plan = run();
  int64_t count = 0;
  for (const std::string& name : stored(20)) {
    EXPECT_TRUE(name.starts_with("decoder.2.")) << name;
    ++count;
  }
  EXPECT_EQ(count, 16);  // of a layer: two norms, four matrices of attention, two of its FFN
  EXPECT_EQ(plan.trained_parameters, 12 * 16 * 16 + 13 * 16);
  EXPECT_LT(plan.trained_parameters, plan.parameters);
}

TEST_F(Freeze, LeavesTheWeightsUnchanged) {
  run();
  TrainOptions more = options_;
  more.from = options_.out;
  more.out = runs_ / "more";
  more.freeze = {"transformer.h.1.mlp.c_fc.weight", "2"};
  train(spec_, more);
  const SafeTensors before(options_.out + "/model.safetensors"),
      after(more.out + "/model.safetensors");
  int64_t same = 0;
  for (const StoredTensor& tensor : before.stored()) {
    const bool frozen = tensor.name == more.freeze[0].substr(12) || tensor.name == more.freeze[0] ||
                        tensor.name.find("h.2.") != std::string::npos;
    EXPECT_EQ(to_floats(before.tensor(tensor.name)) == to_floats(after.tensor(tensor.name)), frozen)
        << tensor.name;
    same += frozen;
  }
  EXPECT_EQ(same, 1 + 12);
}

TEST_F(Freeze, ResumesWithTheSameBits) {
  options_.freeze = {"1-2"};
  run(stop_after(6));
  run();
  const std::string stopped = state_bytes(options_, 20);
  options_.out = runs_ / "straight";
  run();
  EXPECT_EQ(stopped, state_bytes(options_, 20));
}

TEST_F(Freeze, RefusesNamesThatTheModelLacks) {
  const auto refused = [&](const std::string& item, const std::string& part) {
    options_.freeze = {"0", item};
    expect_error(ErrorKind::InvalidArgument, {"freeze: ", part, "0-2", "embedding.token"},
                 [&] { run(); });
  };
  refused("*.q_proj", "no parameter named *.q_proj");
  refused("2-3", "no layers 2-3");
  refused("2-1", "no layers 2-1");
  refused("", "no parameter named ");
  options_.freeze = {"*"};
  expect_error(ErrorKind::InvalidArgument, {"freeze: ", "no parameter is left"}, [&] { run(); });
  options_.freeze = {"0"};
  options_.from = "elsewhere";
  options_.lora.rank = 2;
  expect_error(ErrorKind::InvalidArgument, {"freeze: ", "`lora`"}, [&] { run(); });
}

}  // namespace
}  // namespace fovea::train
