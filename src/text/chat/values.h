#pragma once

#include "fovea/text/chat_value.h"
#include "jinja/value.h"

namespace fovea::text {

struct ChatValue::Data {
  jinja::Value value;
};

ChatValue chat_value(jinja::Value value);
const jinja::Value& value_of(const ChatValue& value);

// The limits of values that the caller makes: none.
jinja::Runtime unlimited();

}  // namespace fovea::text
