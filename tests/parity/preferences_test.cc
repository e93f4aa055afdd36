// Compares with TRL's losses of preferences, computed by transformers and PEFT for a small model
// with an adapter: log-probabilities, losses and gradients.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "formats/peft/adapters.h"
#include "formats/peft/save.h"
#include "losses/preference_losses.h"
#include "losses/sequence_log_probabilities.h"
#include "open/directory.h"
#include "support/shared_folder.h"
#include "tasks/packed_examples.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr double kPreferenceTolerance = 1e-5;

class PreferencesOfTrl : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = shared("fixtures/align/preferences.json");
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "needs " << file;
    expected_ = read_json(file);
    std::vector<int64_t> row;
    for (const auto& pair : expected_["pairs"]) {
      for (const char* key : {"chosen", "rejected"}) {
        std::vector<int32_t> ids = pair["prompt"], answer = pair[key];
        std::vector<int32_t> labels(ids.size() - 1, -1);
        labels.insert(labels.end(), answer.begin(), answer.end());
        labels.push_back(-1);
        ids.insert(ids.end(), answer.begin(), answer.end());
        row.push_back(texts_.ids.count());
        texts_.ids.add(ids);
        texts_.labels.add(labels);
        counts_.push_back(std::ssize(answer));
      }
    }
    // Rows of several texts of different lengths.
    batch_ = train::packed_batch(
        texts_, {{row[0], row[1], row[2]}, {row[3]}, {row.begin() + 4, row.end()}}, 256, 0);
    train::WholeTexts whole;
    for (const int64_t text : row)
      whole.texts.push_back({text, counts_[static_cast<size_t>(text)]});
    batch_.meaning = whole;
  }

  static model::ModelFiles open(bool adapted) {
    const std::string base = shared("fixtures/models/llama");
    if (!adapted) return model::open_model_files(base, model::Weights::mapped);
    const std::string folder = shared("fixtures/align/lora");
    return model::open_model_files(base, model::Weights::mapped, {}, {{folder, 1}});
  }

  void expect_alike(const Tensor& found, const nlohmann::json& expected, const std::string& name) {
    ASSERT_EQ(found.size(), std::ssize(expected)) << name;
    for (int64_t i = 0; i < found.size(); ++i) {
      const double value = expected[static_cast<size_t>(i)];
      EXPECT_NEAR(found.data_as<double>()[i], value,
                  kPreferenceTolerance * std::max(1.0, std::abs(value)))
          << name << " " << i;
    }
  }

  // Returns the losses of n pairs or 2 n judged answers.
  static Tensor losses(const std::string& name, const Tensor& sums, const Tensor& reference,
                       const Tensor& counts) {
    const double beta = 0.1;
    const Tensor ratios = subtract(sums, reference);
    Tensor each = ratios;
    if (name == "dpo_reference_free") each = sums;
    if (name == "ipo") each = multiply(ratios, counts);
    if (name == "simpo" || name == "orpo") each = multiply(sums, counts);
    const auto [chosen, rejected] = train::alternating(each);
    const Tensor h = subtract(chosen, rejected);
    if (name == "hinge") return train::dpo_losses(h, train::PreferenceLoss::hinge, beta, 0);
    if (name == "ipo") return train::dpo_losses(h, train::PreferenceLoss::ipo, beta, 0);
    if (name == "dpo_smoothed")
      return train::dpo_losses(h, train::PreferenceLoss::sigmoid, beta, 0.1);
    if (name.starts_with("dpo"))
      return train::dpo_losses(h, train::PreferenceLoss::sigmoid, beta, 0);
    if (name == "simpo") return train::simpo_losses(chosen, rejected, 2, 0.5);
    if (name == "orpo") return train::orpo_losses(chosen, rejected, beta);
    const Tensor signs = empty({each.size()}, DType::f64);
    for (int64_t i = 0; i < signs.size(); ++i) signs.data_as<double>()[i] = i % 2 == 0 ? 1 : -1;
    return train::kto_losses(each, signs, 0, {beta, 1, 1});
  }

  nlohmann::json expected_;
  train::LabelledSequences texts_;
  std::vector<int64_t> counts_;
  train::Batch batch_;
};

// Returns the gradients under the names of the adapter's file.
std::map<std::string, Tensor> gradients_of(model::ModelFiles& files) {
  for (const auto& [unused, parameter] : model::parameters_of(files.model))
    if (parameter->trainable) parameter->value = copy(parameter->value.gradient().detach());
  return model::adapter_tensors(files.model, *files.origin.family);
}

double norm_of(const Tensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    sum += double{x.data_as<float>()[i]} * x.data_as<float>()[i];
  return std::sqrt(sum);
}

TEST_F(PreferencesOfTrl, HaveTheSameLogProbabilitiesLossesAndGradients) {
  Tensor reference;
  {
    const NoGradient off;
    const model::ModelFiles base = open(false);
    reference = train::sequence_log_probabilities(base.model, batch_, {}).sums;
    const auto [chosen, rejected] = train::alternating(reference);
    expect_alike(chosen, expected_["reference_chosen"], "reference_chosen");
    expect_alike(rejected, expected_["reference_rejected"], "reference_rejected");
  }
  const Tensor inverse = empty({std::ssize(counts_)}, DType::f64);
  for (size_t i = 0; i < counts_.size(); ++i)
    inverse.data_as<double>()[i] = 1 / static_cast<double>(counts_[i]);
  for (const auto& [name, expected] : expected_["losses"].items()) {
    model::ModelFiles files = open(true);
    for (const auto& [unused, parameter] : model::parameters_of(files.model))
      if (parameter->trainable) parameter->value.want_gradient();
    const Tensor sums = train::sequence_log_probabilities(files.model, batch_, {}).sums;
    const auto [chosen, rejected] = train::alternating(sums.detach());
    expect_alike(chosen, expected_["logp_chosen"], "logp_chosen");
    expect_alike(rejected, expected_["logp_rejected"], "logp_rejected");
    const Tensor found = losses(name, sums, reference, inverse);
    nlohmann::json ordered = expected;
    if (name.starts_with("kto"))  // chosen answers first, then rejected ones
      for (size_t i = 0; i < ordered.size(); ++i)
        ordered[i] = expected[i % 2 * ordered.size() / 2 + i / 2];
    expect_alike(found, ordered, name);
    backward(train::times(sum(found), 1 / static_cast<double>(found.size())));
    const std::map<std::string, Tensor> gradients = gradients_of(files);
    for (const auto& [tensor, norm] : expected_["gradient_norms"][name].items())
      EXPECT_NEAR(norm_of(gradients.at(tensor)) / norm.get<double>(), 1, 1e-5) << name << tensor;
  }
}

}  // namespace
}  // namespace fovea
