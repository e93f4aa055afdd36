#include "probing/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace fovea::study {
namespace {

using Vector = std::vector<double>;

constexpr size_t kMemory = 10;  // pairs of steps and changes of the gradient
constexpr int kMostIterations = 10'000, kMostTrials = 60;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double largest(const Vector& a) {
  double most = 0;
  for (const double x : a) most = std::max(most, std::abs(x));
  return most;
}

void add_scaled(Vector& a, double factor, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

// A step s and the change y of the gradient along it.
struct Change {
  Vector s, y;
  double sy;
};

// Returns -H g with the approximate inverse Hessian H of the last changes: the two loops of Nocedal
// and Wright's algorithm 7.4, with the initial matrix of their equation 7.20.
Vector direction(const std::deque<Change>& changes, const Vector& gradient) {
  Vector q = gradient;
  std::vector<double> alphas;
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    alphas.push_back(dot(change->s, q) / change->sy);
    add_scaled(q, -alphas.back(), change->y);
  }
  if (changes.empty()) {
    const double length = std::sqrt(dot(gradient, gradient));
    for (double& each : q) each /= length;
  } else {
    const double scale = changes.back().sy / dot(changes.back().y, changes.back().y);
    for (double& each : q) each *= scale;
  }
  for (const Change& change : changes) {
    const double beta = dot(change.y, q) / change.sy;
    add_scaled(q, alphas.back() - beta, change.s);
    alphas.pop_back();
  }
  for (double& each : q) each = -each;
  return q;
}

struct Point {
  Vector x, gradient;
  double value = 0;
};

// Finds a step along `d` with the weak Wolfe conditions by bisection (Lewis and Overton 2013,
// algorithm 2.6). Returns false if rounding leaves no such step.
bool search(const Objective& f, const Point& from, const Vector& d, Point& to) {
  constexpr double kDecrease = 1e-4, kCurvature = 0.9;
  const double slope = dot(from.gradient, d);
  double low = 0, high = std::numeric_limits<double>::infinity(), t = 1;
  for (int trial = 0; trial < kMostTrials; ++trial) {
    to.x = from.x;
    add_scaled(to.x, t, d);
    to.value = f(to.x, to.gradient);
    if (!(to.value <= from.value + kDecrease * t * slope)) {
      high = t;
    } else if (dot(to.gradient, d) < kCurvature * slope) {
      low = t;
    } else {
      return true;
    }
    t = std::isfinite(high) ? (low + high) / 2 : 2 * low;
  }
  return false;
}

}  // namespace

bool minimise(const Objective& f, double tolerance, Vector& x) {
  Point now{x, Vector(x.size())}, next{x, Vector(x.size())};
  now.value = f(now.x, now.gradient);
  std::deque<Change> changes;
  for (int i = 0; i < kMostIterations && largest(now.gradient) > tolerance; ++i) {
    if (!search(f, now, direction(changes, now.gradient), next)) {
      if (changes.empty()) break;
      changes.clear();  // continues with the direction of the gradient
      continue;
    }
    Change change{next.x, next.gradient, 0};
    add_scaled(change.s, -1, now.x);
    add_scaled(change.y, -1, now.gradient);
    change.sy = dot(change.s, change.y);
    std::swap(now, next);
    if (change.sy <= 0) continue;
    changes.push_back(std::move(change));
    if (changes.size() > kMemory) changes.pop_front();
  }
  x = now.x;
  return largest(now.gradient) <= tolerance;
}

}  // namespace fovea::study
