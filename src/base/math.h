#pragma once

namespace fovea::math {

// Elementary functions of our own: the C library's differ in their last bits from version to
// version and from CPU to CPU, and so would everything that is computed with them. These are made
// of IEEE additions, products, divisions and fused multiply-adds in a fixed order, so that every
// compiler and library gives the same bits. They expect the default float mode (base/float_mode.h).
//
// For all arguments, including zeros of both signs, denormal numbers, infinities and NaN, they give
// what C's Annex F asks for, but neither set errno nor raise exceptions on purpose. A result is
// within 0.57 units in the last place of the true value (exp, pow: 0.53; log10: 0.51). A function
// of floats is computed in double and rounded once more.

double sin(double x);  // of any size: the argument is reduced by as many digits of 2 / pi as it has
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
