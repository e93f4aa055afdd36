#include <algorithm>

#include "cli/command.h"

int main(int argc, char** argv) {
  return fovea::cli::run_program({argv + std::min(argc, 1), argv + argc});
}
