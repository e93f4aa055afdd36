#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace fovea {

// Runs `action` and expects an Error of this kind whose message is one line that contains all of
// `texts`.
template <class Action>
void expect_error(ErrorKind kind, std::initializer_list<std::string> texts, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one with: " << *texts.begin();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    for (const std::string& text : texts)
      EXPECT_NE(message.find(text), message.npos) << message << "\n  lacks: " << text;
  }
}

}  // namespace fovea
