#pragma once

namespace fovea::math {

// Elementary functions that replace the C library's, whose results differ in the last bits between
// versions and CPUs. They consist of IEEE additions, products, divisions and fused multiply-adds in
// a fixed order, so that every compiler and library gives the same bits. They require the default
// float mode (base/float_mode.h).
//
// For all arguments, including signed zeros, denormal numbers, infinities and NaN, they return what
// Annex F of the C standard specifies, but they neither set errno nor deliberately raise
// floating-point exceptions. A result is within 0.57 units in the last place of the true value
// (exp, pow: 0.53; log10: 0.51). The float versions compute in double and round once more.

double sin(double x);  // accurate for any x: the reduction uses enough digits of 2 / pi
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
