#pragma once

namespace fovea {

// What a classifier predicts for a text; transformers writes these names into config.json.
// single_label: one of several labels. multi_label: any number of labels. regression: a number.
// automatic: the data determines it.
enum class ProblemType { automatic, single_label, multi_label, regression };

}  // namespace fovea
