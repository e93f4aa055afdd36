#include "parallel/communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fovea/core/error.h"

namespace fovea {
namespace {

class OneProcess : public testing::Test {
 protected:
  void SetUp() override { unsetenv("OMPI_COMM_WORLD_SIZE"); }
};

TEST_F(OneProcess, IsRankZeroOfOne) {
  const auto alone = open_communicator();
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->size(), 1);
  EXPECT_EQ(alone->neighbours(), std::vector<int>{0});
}

TEST_F(OneProcess, CollectivesKeepTheValues) {
  const auto alone = open_communicator();
  const std::vector<float> values = {1.5f, -0.0f, 3.0f};
  const std::vector<int64_t> count = {3};
  std::vector<float> received(3);
  alone->all_to_all({values, count}, {received, count});
  alone->all_gather({received, count});
  EXPECT_EQ(received, (std::vector<float>{1.5f, -0.0f, 3.0f}));
  EXPECT_EQ(alone->gather("x"), std::vector<std::string>{"x"});
  alone->barrier();
}

TEST_F(OneProcess, ReceivesItsMessagesInOrder) {
  const auto alone = open_communicator();
  EXPECT_FALSE(alone->receive());
  alone->send(0, std::vector<uint8_t>{1});
  alone->send(0, std::vector<uint8_t>{2, 3});
  EXPECT_EQ(alone->receive()->bytes, std::vector<uint8_t>{1});
  EXPECT_EQ(alone->receive()->bytes, (std::vector<uint8_t>{2, 3}));
  EXPECT_FALSE(alone->receive());
}

TEST_F(OneProcess, InitialisesSharedMemoryWithZeros) {
  const auto alone = open_communicator();
  std::atomic<int>* const first = alone->share(2);
  first[1] = 5;
  EXPECT_EQ(alone->share(1)[0], 0);
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(first[1], 5);
}

TEST(StartedProcesses, AreReadFromMpirunsVariable) {
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_EQ(started_processes(), 3);
  setenv("OMPI_COMM_WORLD_SIZE", "none", 1);
  EXPECT_EQ(started_processes(), 1);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(started_processes(), 1);
}

// Regression: under srun without --mpi=pmix and under MPICH, each process trained the whole model.
TEST(StartedProcesses, AreThoseOfSlurmWithPmixOnly) {
  unsetenv("OMPI_COMM_WORLD_SIZE");
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(started_processes(), 4);
  unsetenv("PMIX_RANK");
  EXPECT_THROW(started_processes(), Error);
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_EQ(started_processes(), 1);
  unsetenv("SLURM_STEP_NUM_TASKS");
  setenv("PMI_SIZE", "2", 1);
  EXPECT_THROW(started_processes(), Error);
  unsetenv("PMI_SIZE");
}

}  // namespace
}  // namespace fovea
