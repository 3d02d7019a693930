// exp, expm1, tanh and the logistic function on vectors, accurate to about two units in the last place.
#pragma once
#include "simd.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

template <class Real> struct Exponent;
template <> struct Exponent<float> {
  static constexpr int terms = 7, mantissa_bits = 23, bias = 127;
  static constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  static constexpr float ln2_high = 0x1.62e4000000000p-1f, ln2_low = 0x1.7f7d1c0000000p-20f;
  static constexpr float underflow = 87.6f;    // exp(-x) is below the smallest normal number from here on
  static constexpr float saturation = 173.0f;  // exp(-x) times any finite slope is below it
  static constexpr float tanh_saturation = 40.0f;
};
template <> struct Exponent<double> {
  static constexpr int terms = 13, mantissa_bits = 52, bias = 1023;
  static constexpr double round_magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_high = 0x1.62e42fefa2000p-1, ln2_low = 0x1.9ef35793c7673p-41;
  static constexpr double underflow = 708.7;
  static constexpr double saturation = 1410.0;
  static constexpr double tanh_saturation = 80.0;
};

template <class Real> constexpr Real inverse_factorial(int k) {
  double product = 1;
  for (int i = 2; i <= k; ++i) product *= i;
  return Real(1.0 / product);
}

// 2^n for whole n within the normal range, n as a vector of floating-point numbers.
template <class Real> GATEDRNN_INLINE Vec<Real> power_of_two(Vec<Real> n, int more = 0) {
  using E = Exponent<Real>;
  Vec<Real> magic = splat<Real>(E::round_magic);
  IntVec<Real> whole = bits<Real>(n + magic) - bits<Real>(magic);
  return (Vec<Real>)((whole + (E::bias + more)) << E::mantissa_bits);
}

// x = n ln 2 + r, |r| <= ln 2 / 2. Returns n; ln2_high has few bits, so that n * ln2_high is exact without FMA.
template <class Real> GATEDRNN_INLINE Vec<Real> reduce(Vec<Real> x, Vec<Real>& r) {
  using E = Exponent<Real>;
  Vec<Real> magic = splat<Real>(E::round_magic);
  Vec<Real> n = (x * Real(1.4426950408889634) + magic) - magic;
  r = (x - n * E::ln2_high) - n * E::ln2_low;
  return n;
}

// (exp r - 1 - r) / r^2, the tail of the Taylor series.
template <class Real> GATEDRNN_INLINE Vec<Real> exp_tail(Vec<Real> r) {
  constexpr int terms = Exponent<Real>::terms;
  Vec<Real> sum = splat<Real>(inverse_factorial<Real>(terms));
#pragma GCC unroll 16
  for (int k = terms - 1; k >= 2; --k) sum = sum * r + inverse_factorial<Real>(k);
  return sum;
}

// exp x for x <= 0; 0 (flushed) below the smallest normal number.
template <class Real> GATEDRNN_INLINE Vec<Real> exp_negative(Vec<Real> x) {
  Vec<Real> r;
  Vec<Real> n = reduce<Real>(at_least<Real>(x, -Exponent<Real>::underflow), r);
  return ((exp_tail<Real>(r) * r + Real(1)) * r + Real(1)) * power_of_two<Real>(n);
}

// exp x - 1 for 0 <= x <= tanh_saturation, relatively accurate near 0.
template <class Real> GATEDRNN_INLINE Vec<Real> expm1_positive(Vec<Real> x) {
  Vec<Real> r;
  Vec<Real> n = reduce<Real>(x, r);
  Vec<Real> scale = power_of_two<Real>(n);
  Vec<Real> p = exp_tail<Real>(r) * (r * r) + r;
  return p * scale + (scale - Real(1));
}

template <class Real> GATEDRNN_INLINE Vec<Real> tanh(Vec<Real> x) {
  Vec<Real> e = expm1_positive<Real>(at_most<Real>(magnitude<Real>(x) * Real(2), Exponent<Real>::tanh_saturation));
  return with_sign_of<Real>(e / (e + Real(2)), x);
}

template <class Real> GATEDRNN_INLINE Vec<Real> logistic(Vec<Real> x) {
  Vec<Real> e = exp_negative<Real>(-magnitude<Real>(x));
  Vec<Real> inverse = Real(1) / (Real(1) + e);
  return x < Real(0) ? e * inverse : inverse;
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
