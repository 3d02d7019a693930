// The one C++ definition of each forget-gate function. The formulas, and why the complement is never
// formed by subtraction, are in gates/*.py; `kept` is what the forward pass stores for the backward:
// s = alpha(z) where the slope follows from it, z otherwise.
#pragma once
#include "elementary.h"
#include "plan.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// Odd powers beyond the first of the polynomial gate, empty for all others; the program of a gate of one's own.
template <class Real> struct GateParameters {
  const Real* coefficients = nullptr;
  int64_t count = 0;
  const GateProgram* program = nullptr;  // of the gate Program
};

template <class Real> struct GateValue {
  Vec<Real> value, complement;
};
template <class Real> struct GateSlope {
  Vec<Real> value, complement, slope, slope_aux;
};

// sigma(s) and sigma(-s): the small one as exp/(1+exp), so neither loses digits.
template <class Real> GATEDRNN_INLINE GateValue<Real> sigmoid_pair(Vec<Real> s) {
  Vec<Real> e = exp_negative<Real>(-magnitude<Real>(s));
  Vec<Real> large = Real(1) / (Real(1) + e), small = e * large;
  auto negative = s < Real(0);
  return {negative ? small : large, negative ? large : small};
}

// The same with the slope sigma(s) sigma(-s) alpha'(z). exp(-|s|) may be below the normal numbers while
// its product with alpha' is not, so its power of two is applied in two steps, after the product.
template <class Real> GATEDRNN_INLINE GateSlope<Real> sigmoid_slope(Vec<Real> s, Vec<Real> alpha_slope) {
  constexpr Real lowest = 1 - Exponent<Real>::bias;
  Vec<Real> r;
  Vec<Real> n = reduce<Real>(at_least<Real>(-magnitude<Real>(s), -Exponent<Real>::saturation), r);
  Vec<Real> first = at_least<Real>(n, lowest);
  Vec<Real> scale = power_of_two<Real>(first), rest = power_of_two<Real>(n - first);
  Vec<Real> m = (exp_tail<Real>(r) * r + Real(1)) * r + Real(1);
  Vec<Real> e = (m * scale) * rest;
  Vec<Real> large = Real(1) / (Real(1) + e), small = e * large;
  auto negative = s < Real(0);
  Vec<Real> slope = ((m * large * large * alpha_slope) * rest) * scale;
  return {negative ? small : large, negative ? large : small, slope, Vec<Real>{}};
}

// sinh x for 0 <= x, relatively accurate near 0, saturated where sigma of it is exactly 0 or 1.
template <class Real> GATEDRNN_INLINE Vec<Real> sinh_saturated(Vec<Real> z, Real limit) {
  Vec<Real> e = expm1_positive<Real>(at_most<Real>(magnitude<Real>(z), limit));
  return with_sign_of<Real>((e + e / (e + Real(1))) * Real(0.5), z);
}

template <class Real> struct Saturation;  // asinh of Exponent::saturation, once and twice
template <> struct Saturation<float> {
  static constexpr float once = 5.846f, twice = 2.466f;
};
template <> struct Saturation<double> {
  static constexpr double once = 7.944, twice = 2.769;
};

struct Sigmoid {
  static constexpr int preactivations = 1;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) { return z; }
  template <class Real> static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> z, Vec<Real>, const GateParameters<Real>&) {
    return sigmoid_pair<Real>(z);
  }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> z, Vec<Real>, const GateParameters<Real>&) {
    auto g = sigmoid_pair<Real>(z);
    return {g.value, g.complement, g.value * g.complement, Vec<Real>{}};
  }
};

struct Softsign {
  static constexpr int preactivations = 1;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) { return z; }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> z, Vec<Real>, const GateParameters<Real>&) {
    // small <= 1/2, so the large side loses nothing in 1 - small.
    Vec<Real> small = Real(1) / (magnitude<Real>(z) + Real(2)), large = Real(1) - small;
    auto negative = z < Real(0);
    return {negative ? small : large, negative ? large : small, small * small, Vec<Real>{}};
  }
  template <class Real>
  static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> z, Vec<Real> aux, const GateParameters<Real>& parameters) {
    auto g = slopes<Real>(z, aux, parameters);
    return {g.value, g.complement};
  }
};

struct Fast {
  static constexpr int preactivations = 1;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) {
    return sinh_saturated<Real>(z, Saturation<Real>::once);
  }
  template <class Real> static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> s, Vec<Real>, const GateParameters<Real>&) {
    return sigmoid_pair<Real>(s);
  }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> s, Vec<Real>, const GateParameters<Real>&) {
    return sigmoid_slope<Real>(s, square_root(s * s + Real(1)));  // cosh z
  }
};

struct IteratedFast {
  static constexpr int preactivations = 1;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) { return z; }
  template <class Real> static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> z, Vec<Real>, const GateParameters<Real>&) {
    return sigmoid_pair<Real>(Twice<Real>(z).s);
  }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> z, Vec<Real>, const GateParameters<Real>&) {
    Twice<Real> twice(z);
    return sigmoid_slope<Real>(twice.s, square_root((twice.s * twice.s + Real(1)) * (twice.u * twice.u + Real(1))));
  }

 private:
  // u = sinh z and s = sinh u. The second sinh would multiply the rounding error of the first, so what the last
  // two sums of u lose is carried along: each is an exact sum with its remainder.
  template <class Real> struct Twice {
    Vec<Real> u, s;
    GATEDRNN_INLINE explicit Twice(Vec<Real> z) {
      Vec<Real> r, lost_e, lost_u;
      Vec<Real> n = reduce<Real>(at_most<Real>(magnitude<Real>(z), Saturation<Real>::twice), r);
      Vec<Real> scale = power_of_two<Real>(n);
      Vec<Real> e = sum(scale - Real(1), (exp_tail<Real>(r) * (r * r) + r) * scale, lost_e, Real());
      Vec<Real> inverse = Real(1) / (e + Real(1));
      Vec<Real> twice_u = sum(e, e * inverse, lost_u, Real());
      Vec<Real> lost = (lost_u + lost_e * (inverse * inverse + Real(1))) * Real(0.5);
      Vec<Real> magnitude_u = twice_u * Real(0.5);
      Vec<Real> magnitude_s = sinh_saturated<Real>(magnitude_u, Saturation<Real>::once);
      magnitude_s += lost * square_root(magnitude_s * magnitude_s + Real(1));
      u = with_sign_of<Real>(magnitude_u, z);
      s = with_sign_of<Real>(magnitude_s, z);
    }
    static GATEDRNN_INLINE Vec<Real> sum(Vec<Real> a, Vec<Real> b, Vec<Real>& lost, Real) {
      Vec<Real> total = a + b, b_part = total - a;
      lost = (a - (total - b_part)) + (b - b_part);
      return total;
    }
  };
};

struct Polynomial {
  static constexpr int preactivations = 1;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) { return z; }
  template <class Real>
  static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> z, Vec<Real>, const GateParameters<Real>& parameters) {
    return sigmoid_pair<Real>(alpha<Real>(clamped<Real>(z), parameters));
  }
  template <class Real>
  static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> z, Vec<Real>, const GateParameters<Real>& parameters) {
    z = clamped<Real>(z);
    Vec<Real> s = alpha<Real>(z, parameters), square = z * z, sum = {};
    for (int64_t k = parameters.count; k > 0; --k) sum = (sum + parameters.coefficients[k - 1] * Real(2 * k + 1)) * square;
    // Beyond saturation the slope is 0, whatever a coefficient makes of alpha'.
    auto g = sigmoid_slope<Real>(s, sum + Real(1));
    g.slope = magnitude<Real>(s) > Exponent<Real>::saturation ? Vec<Real>{} : g.slope;
    return g;
  }

 private:
  // |alpha(z)| >= |z|: beyond saturation z itself saturates, and its powers cannot overflow into 0 * inf.
  template <class Real> static GATEDRNN_INLINE Vec<Real> clamped(Vec<Real> z) {
    return at_least<Real>(at_most<Real>(z, 2 * Exponent<Real>::saturation), -2 * Exponent<Real>::saturation);
  }
  template <class Real> static GATEDRNN_INLINE Vec<Real> alpha(Vec<Real> z, const GateParameters<Real>& parameters) {
    // Horner's scheme with the rounding error of every step carried along: sigma multiplies an error of alpha by alpha.
    Vec<Real> square = z * z, lost_square = lost_by_product<Real>(z, z, square), sum = {}, low = {};
    for (int64_t k = parameters.count; k > 0; --k) {
      Vec<Real> coefficient = splat<Real>(parameters.coefficients[k - 1]);
      Vec<Real> inner = sum + coefficient, part = inner - sum;
      Vec<Real> inner_low = low + ((sum - (inner - part)) + (coefficient - part));
      sum = inner * square;
      low = inner_low * square + inner * lost_square + lost_by_product<Real>(inner, square, sum);
    }
    Vec<Real> high = z * sum, total = high + z;
    Vec<Real> lost = lost_by_product<Real>(z, sum, high) + (z - (total - high)) + z * low;
    return magnitude<Real>(total) > Exponent<Real>::saturation ? total : total + lost;
  }
};

struct Refine {
  static constexpr int preactivations = 2;
  static constexpr bool traced = false;
  template <class Real> static GATEDRNN_INLINE Vec<Real> kept(Vec<Real> z, const GateParameters<Real>&) { return z; }
  template <class Real> static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> z, Vec<Real> aux, const GateParameters<Real>&) {
    Doubled<Real> g(z);
    auto r = sigmoid_pair<Real>(aux);
    return {g.twice_value * (g.value * Real(0.5) + r.value * g.complement),
            g.twice_complement * (g.complement * Real(0.5) + r.complement * g.value)};
  }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> z, Vec<Real> aux, const GateParameters<Real>&) {
    Doubled<Real> g(z);
    auto r = sigmoid_pair<Real>(aux);
    Vec<Real> twice = g.twice_product();
    return {g.twice_value * (g.value * Real(0.5) + r.value * g.complement),
            g.twice_complement * (g.complement * Real(0.5) + r.complement * g.value),
            twice * (r.value * g.complement + r.complement * g.value), twice * (r.value * r.complement)};
  }

 private:
  // 2 sigma(z) and 2 sigma(-z) as well: the double of a small part can be a normal number when the part is not.
  template <class Real> struct Doubled {
    Vec<Real> value, complement, twice_value, twice_complement, twice_e, one_and_e;
    GATEDRNN_INLINE explicit Doubled(Vec<Real> z) {
      Vec<Real> r;
      Vec<Real> n = reduce<Real>(at_least<Real>(-magnitude<Real>(z), -Exponent<Real>::underflow - Real(0.69)), r);
      twice_e = ((exp_tail<Real>(r) * r + Real(1)) * r + Real(1)) * power_of_two<Real>(n, 1);
      Vec<Real> e = twice_e * Real(0.5);
      one_and_e = Real(1) + e;
      Vec<Real> large = Real(1) / one_and_e, twice_large = large + large;
      Vec<Real> twice_small = twice_e / one_and_e, small = twice_small * Real(0.5);
      auto negative = z < Real(0);
      value = negative ? small : large;
      complement = negative ? large : small;
      twice_value = negative ? twice_small : twice_large;
      twice_complement = negative ? twice_large : twice_small;
    }
    // 2 sigma(z) sigma(-z), with fewer roundings than the product of the two.
    GATEDRNN_INLINE Vec<Real> twice_product() const { return twice_e / (one_and_e * one_and_e); }
  };
};

// A gate of one's own: the interpreter has made s and, for the backward, alpha' of z, which is what is kept.
struct Program {
  static constexpr int preactivations = 1;
  static constexpr bool traced = true;
  template <class Real> static GATEDRNN_INLINE GateValue<Real> parts(Vec<Real> s, Vec<Real>, const GateParameters<Real>&) {
    return sigmoid_pair<Real>(s);
  }
  template <class Real> static GATEDRNN_INLINE GateSlope<Real> slopes(Vec<Real> s, Vec<Real> alpha_slope, const GateParameters<Real>&) {
    auto g = sigmoid_slope<Real>(s, alpha_slope);
    // Beyond saturation 0, whatever alpha' is there; a gate does not fall, as in gates/stable.py.
    g.slope = magnitude<Real>(s) > Exponent<Real>::saturation || g.slope < Real(0) ? Vec<Real>{} : g.slope;
    return g;
  }
};

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
