#include "nn/connector.h"

#include <gtest/gtest.h>

namespace fovea::model {
namespace {

// A layer whose outputs are its inputs.
Linear identity(int64_t width) {
  Linear layer(width, width, false);
  layer.weight.value = zeros({width, width});
  for (int64_t i = 0; i < width; ++i) layer.weight.value.data_as<float>()[i * width + i] = 1;
  return layer;
}

std::vector<float> elements_of(const Tensor& x) {
  return {x.data_as<float>(), x.data_as<float>() + x.size()};
}

TEST(Connectors, JoinSquaresOfPatches) {
  std::vector<float> patches(16);
  for (size_t i = 0; i < patches.size(); ++i) patches[i] = static_cast<float>(i);
  Connector connector;
  connector.square = 2;
  connector.first = identity(4);
  const Tensor y = connector(tensor_of(patches, {1, 16, 1}));
  EXPECT_EQ(y.shape(), (Shape{4, 4}));
  EXPECT_EQ(elements_of(y),
            (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(Connectors, LeaveOutClassTokens) {
  Connector connector;
  connector.skipped = 1;
  connector.first = connector.second = identity(1);
  connector.activation = Activation::relu;
  EXPECT_EQ(elements_of(connector(tensor_of({9, -1, 2, 3}, {1, 4, 1}))),
            (std::vector<float>{0, 2, 3}));
}

}  // namespace
}  // namespace fovea::model
