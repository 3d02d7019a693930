// Functions of a gate program (program.h) on vectors, each within two units in the last place for all normal arguments,
// with the IEEE meaning of NaN, infinities and zeros, as torch has it. Numbers below the normal ones count as 0, as
// everywhere in the kernels; a gate for which that matters is refused before it runs (kernel.py).
//
// float goes through double, where a short polynomial is exact enough for every digit of the result. double asks the C
// library, lane by lane: its users check derivatives, they do not train.
#pragma once
#include "elementary.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

typedef float HalfFloats __attribute__((vector_size(GATEDRNN_VECTOR_BYTES / 2)));

namespace wide {

constexpr double infinite = __builtin_inf();

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, to 2e-10 relative to e^r: 300 times below the last digit of a float.
GATEDRNN_INLINE Doubles tail(Doubles r) {
  Doubles sum = splat<double>(inverse_factorial<double>(8));
#pragma GCC unroll 16
  for (int k = 7; k >= 2; --k) sum = sum * r + inverse_factorial<double>(k);
  return sum;
}
// Beyond +-700 the float is 0 or infinite already, and powers of two stay normal.
GATEDRNN_INLINE Doubles bounded(Doubles x) { return at_least<double>(at_most<double>(x, 700), -700); }

GATEDRNN_INLINE Doubles exp(Doubles x) {
  Doubles r, n = reduce<double>(bounded(x), r);
  return ((tail(r) * r + 1.0) * r + 1.0) * power_of_two<double>(n);
}
GATEDRNN_INLINE Doubles expm1_unsigned(Doubles x) {  // -0 gives +0
  Doubles r, n = reduce<double>(bounded(x), r), scale = power_of_two<double>(n);
  Doubles p = tail(r) * (r * r) + r;
  return p * scale + (scale - 1.0);
}
GATEDRNN_INLINE Doubles expm1(Doubles x) { return x == 0.0 ? x : expm1_unsigned(x); }

// x = 2^e m with m about 1: between the root of 1/2 and of 2. For normal x > 0.
GATEDRNN_INLINE Doubles mantissa(Doubles x, Doubles& e) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: its last bits count
  typedef uint64_t Unsigned __attribute__((vector_size(GATEDRNN_VECTOR_BYTES)));
  constexpr uint64_t half_root = 0x3fe6a09e667f3bcd;  // the root of 1/2
  // Unsigned, which wraps around: what comes of a negative x is replaced later.
  const Unsigned raw = (Unsigned)bits<double>(x);
  // The exponent relative to the root may be negative: 1024 more while it is shifted.
  Longs exponent = (Longs)((raw - half_root + (uint64_t(1024) << 52)) >> 52) - 1024;
  e = (Doubles)(bits<double>(splat<double>(magic)) + exponent) - magic;
  return (Doubles)(raw - ((Unsigned)exponent << 52));
}
// log((1 + f) / (1 - f)) for |f| <= 0.172, relative to 2e-12: power multiplies it by up to 104.
GATEDRNN_INLINE Doubles twice_atanh(Doubles f) {
  Doubles square = f * f, sum = splat<double>(1.0 / 13);
#pragma GCC unroll 16
  for (int k = 11; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return (f + f) * sum;
}
GATEDRNN_INLINE Doubles logarithm(Doubles x) {  // of normal x > 0
  Doubles e, m = mantissa(x, e);
  return e * 0.69314718055994531 + twice_atanh((m - 1.0) / (m + 1.0));
}
GATEDRNN_INLINE Doubles with_ends_of_log(Doubles result, Doubles x) {  // x: the argument of the logarithm
  result = x == 0.0 ? splat<double>(-infinite) : result;
  result = x < 0.0 ? splat<double>(__builtin_nan("")) : result;
  return x == infinite || x != x ? x : result;
}
GATEDRNN_INLINE Doubles log(Doubles x) { return with_ends_of_log(logarithm(x), x); }
GATEDRNN_INLINE Doubles log1p(Doubles x) {
  Doubles sum = x + 1.0, e, m = mantissa(sum, e);
  // Near 0 the sum has lost digits of x, which are all there in x / (x + 2).
  auto near = e == 0.0;
  Doubles f = (near ? x : m - 1.0) / (near ? x + 2.0 : m + 1.0);
  return x == 0.0 ? x : with_ends_of_log(e * 0.69314718055994531 + twice_atanh(f), sum);  // keeps the sign of -0
}

GATEDRNN_INLINE Doubles sinh(Doubles x) {
  Doubles e = expm1_unsigned(magnitude<double>(x));
  return with_sign_of<double>((e + e / (e + 1.0)) * 0.5, x);
}
GATEDRNN_INLINE Doubles cosh(Doubles x) {
  Doubles e = exp(magnitude<double>(x));
  return (e + 1.0 / e) * 0.5;
}
GATEDRNN_INLINE Doubles tanh(Doubles x) {
  Doubles e = expm1_unsigned(at_most<double>(magnitude<double>(x) * 2.0, 100));
  return with_sign_of<double>(e / (e + 2.0), x);
}
GATEDRNN_INLINE Doubles asinh(Doubles x) {
  Doubles a = magnitude<double>(x), square = a * a;
  Doubles result = logarithm(a + square_root(square + 1.0));
  // Near 0 the sum has lost digits of x; a cubic has them all.
  result = a < 1e-3 ? a - a * square * (1.0 / 6) : result;
  return with_sign_of<double>(a < infinite ? result : a, x);
}
GATEDRNN_INLINE Doubles sigmoid(Doubles x) { return 1.0 / (1.0 + exp(-x)); }

// x^n for a whole n: what overflows double or is lost below it has left float long before.
GATEDRNN_INLINE Doubles whole_power(Doubles x, int64_t n) {
  Doubles result = splat<double>(1), square = x;
  for (int64_t k = n < 0 ? -n : n; k > 0; k >>= 1) {
    if (k & 1) result *= square;
    square *= square;
  }
  return n < 0 ? 1.0 / result : result;
}
// x^y for arguments that are floats.
GATEDRNN_INLINE Doubles power(Doubles x, Doubles y) {
  constexpr double magic = 6755399441055744.0;
  Doubles a = magnitude<double>(x), absolute = magnitude<double>(y);
  Doubles result = exp(y * log(a));
  // Where the logarithm is infinite or 0 and y is 0 or infinite, the product is no number.
  result = a == 1.0 && absolute == infinite ? splat<double>(1) : result;
  auto large = absolute >= 16777216.0;  // whole and even, as every float from there on
  Doubles rounded = (absolute + magic) - magic, half = absolute * 0.5, rounded_half = (half + magic) - magic;
  auto whole = large || rounded == absolute;
  auto odd = !large && whole && rounded_half != half;
  auto negative = bits<double>(x) < 0;
  result = negative && odd ? -result : result;
  result = x < 0.0 && !whole && a != infinite ? splat<double>(__builtin_nan("")) : result;
  return y == 0.0 || x == 1.0 ? splat<double>(1) : result;
}

}  // namespace wide

template <class Function> GATEDRNN_INLINE Floats through_double(Floats x, Floats y, const Function& function) {
  HalfFloats xs[2], ys[2];
  __builtin_memcpy(xs, &x, sizeof x);
  __builtin_memcpy(ys, &y, sizeof y);
  for (int half = 0; half < 2; ++half)
    xs[half] = __builtin_convertvector(function(__builtin_convertvector(xs[half], Doubles), __builtin_convertvector(ys[half], Doubles)),
                                       HalfFloats);
  __builtin_memcpy(&x, xs, sizeof x);
  return x;
}

// One overload for each dtype.
#define GATEDRNN_FUNCTION(name)                                                                            \
  GATEDRNN_INLINE Floats name##_of(Floats x) {                                                             \
    return through_double(x, x, [](Doubles a, Doubles) GATEDRNN_LAMBDA { return wide::name(a); });         \
  }                                                                                                        \
  GATEDRNN_INLINE Doubles name##_of(Doubles x) {                                                           \
    for (int i = 0; i < Tile<double>::lanes; ++i) x[i] = __builtin_##name(x[i]);                           \
    return x;                                                                                              \
  }
#define GATEDRNN_LAMBDA __attribute__((always_inline))
GATEDRNN_FUNCTION(exp)
GATEDRNN_FUNCTION(expm1)
GATEDRNN_FUNCTION(log)
GATEDRNN_FUNCTION(log1p)
GATEDRNN_FUNCTION(sinh)
GATEDRNN_FUNCTION(cosh)
GATEDRNN_FUNCTION(tanh)
GATEDRNN_FUNCTION(asinh)
#undef GATEDRNN_FUNCTION
GATEDRNN_INLINE Floats sigmoid_of(Floats x) {
  return through_double(x, x, [](Doubles a, Doubles) GATEDRNN_LAMBDA { return wide::sigmoid(a); });
}
GATEDRNN_INLINE Doubles sigmoid_of(Doubles x) { return 1.0 / (1.0 + exp_of(-x)); }
GATEDRNN_INLINE Floats power_of(Floats x, Floats y) {
  return through_double(x, y, [](Doubles a, Doubles b) GATEDRNN_LAMBDA { return wide::power(a, b); });
}
GATEDRNN_INLINE Doubles power_of(Doubles x, Doubles y) {
  for (int i = 0; i < Tile<double>::lanes; ++i) x[i] = __builtin_pow(x[i], y[i]);
  return x;
}
GATEDRNN_INLINE Floats whole_power_of(Floats x, int64_t n) {
  return through_double(x, x, [n](Doubles a, Doubles) GATEDRNN_LAMBDA { return wide::whole_power(a, n); });
}
GATEDRNN_INLINE Doubles whole_power_of(Doubles x, int64_t n) { return power_of(x, splat<double>(double(n))); }

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
