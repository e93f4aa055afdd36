#pragma once

namespace fovea::math {

// Own elementary functions: the C library's differ in their last bits between versions and CPUs,
// and so would all results computed with them. These consist of IEEE additions, products, divisions
// and fused multiply-adds in a fixed order, so that every compiler and library gives the same bits.
// They require the default float mode (base/float_mode.h).
//
// For all arguments, including signed zeros, denormal numbers, infinities and NaN, they return what
// C's Annex F specifies, but they neither set errno nor raise exceptions on purpose. A result is
// within 0.57 units in the last place of the true value (exp, pow: 0.53; log10: 0.51). The float
// versions compute in double and round once more.
// of floats is computed in double and rounded once more.

double sin(double x);  // any size: the reduction uses as many digits of 2 / pi as the argument
                       // needs
double cos(double x);
struct SineAndCosine {
  double sine, cosine;
};
SineAndCosine sine_and_cosine(double x);

double exp(double x);
double log(double x);
double log10(double x);
double pow(double x, double y);
double tanh(double x);

float log(float x);
inline float pow(float x, float y) { return static_cast<float>(pow(double{x}, double{y})); }

}  // namespace fovea::math
