#pragma once

#include <algorithm>
#include <string_view>

namespace fovea {

// Orders names by their text, in which a sequence of digits counts as a number: "hidden.2" precedes
// "hidden.10".
struct NumberOrder {
  bool operator()(std::string_view a, std::string_view b) const {
    const std::string_view whole_a = a, whole_b = b;
    while (!a.empty() && !b.empty()) {
      const std::string_view m = take_number(a), n = take_number(b);
      if (m.size() != n.size()) {
        if (!m.empty() && !n.empty()) return m.size() < n.size();
        return m.empty() ? a.front() < n.front() : m.front() < b.front();
      }
      if (m != n) return m < n;
      if (!m.empty()) continue;
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) return a.empty();
    return whole_a < whole_b;  // equal except for leading zeros
  }

 private:
  // Removes the digits at the beginning of the text; returns them without leading zeros.
  static std::string_view take_number(std::string_view& text) {
    const size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
    std::string_view digits = text.substr(0, size);
    text.remove_prefix(size);
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return digits;
  }
};

}  // namespace fovea
