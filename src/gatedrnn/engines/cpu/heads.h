// The heads of the NRU for one row: its change of the memory, and the gradients. Equations: cells/nru.py.
#pragma once
#include "functions.h"
#include "gemm.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

// A row of the second stage is [alpha (K), beta (K), p, q of the directions to write, p, q of those to erase], s each.
template <class Real> class Heads {
  static constexpr int64_t lanes = Tile<Real>::lanes;
  static constexpr Real largest_norm = Real(50859007.85596004);  // LARGEST_NORM of cells/nru.py
  static constexpr Real least_scale = Real(1e-12);

 public:
  Heads(int64_t memory, int64_t heads, int64_t factor, bool relu, Real* scratch) : M(memory), K(heads), s(factor), relu_(relu) {
    for (Real*& part : outer_) part = take(scratch, s * s);
    d_outer_ = take(scratch, s * s);
    sums_ = take(scratch, 2 * K);
    scales_ = take(scratch, 2 * K);
    inverse_ = take(scratch, 2 * K);
    row_ = take(scratch, pre_activations());
  }
  static int64_t scratch(int64_t heads, int64_t factor) {
    return 3 * padded(factor * factor) + 3 * padded(2 * heads) + padded(2 * heads + 4 * factor);
  }
  int64_t pre_activations() const { return 2 * K + 4 * s; }
  // Where a row is put before it is used: whole vectors are read from there, beyond its end too.
  Real* row() const { return row_; }

  // m += the mean over the heads of alpha v_alpha - beta v_beta.
  void forward(Real* m) const {
    directions();
    const Real share = Real(1) / Real(K);
    for (int64_t j = 0; j < M; j += lanes) {
      Vec<Real> change = {};
      for (int64_t k = 0; k < K; ++k) {
        change += amplitude(k) * (load(outer_[0] + k * M + j) * inverse_[k]);
        change -= amplitude(K + k) * (load(outer_[1] + k * M + j) * inverse_[K + k]);
      }
      put(m + j, part(m + j, M - j) + change * share, M - j);
    }
  }

  // The gradient of the row, given that of m.
  void backward(const Real* dm, Real* d_row) const {
    directions();
    for (int side = 0; side < 2; ++side) {
      const Real share = (side ? Real(-1) : Real(1)) / Real(K);
      const Real *p = row_ + 2 * K + side * 2 * s, *q = p + s;
      Real *dp = d_row + 2 * K + side * 2 * s, *dq = dp + s;
      for (int64_t k = 0; k < K; ++k) {
        const int64_t head = side * K + k;
        const Real inverse = inverse_[head], *outer = outer_[side] + k * M;
        Vec<Real> products = {};
        for (int64_t j = 0; j < M; j += lanes) products += part(dm + j, M - j) * (part(outer + j, M - j) * inverse);
        const Real along = sum_of(products);
        d_row[head] = relu_ && !(row_[head] > 0) ? Real(0) : along * share;
        // Below a norm of 1e-12 the direction is the row over that: then the norm has no gradient.
        const bool normed = scales_[head] > least_scale || !(sums_[head] < 1);
        const Real norm_part = normed ? along : Real(0), factor = amplitude(head) * share;
        for (int64_t j = 0; j < M; j += lanes) {
          Vec<Real> x = load(outer + j), v = x * inverse, square = v * v;
          Vec<Real> d = (part(dm + j, M - j) - norm_part * with_sign_of<Real>(square * square, v)) * (factor * inverse);
          if (relu_) d = x > Real(0) ? d : Vec<Real>{};
          put(d_outer_ + k * M + j, d, M - j);
        }
      }
      for (int64_t j = 0; j < s; j += lanes) {
        Vec<Real> sum = {};
        for (int64_t i = 0; i < s; ++i) sum += p[i] * part(d_outer_ + i * s + j, s - j);
        put(dq + j, sum, s - j);
      }
      for (int64_t i = 0; i < s; ++i) {
        Vec<Real> sum = {};
        for (int64_t j = 0; j < s; j += lanes) sum += part(d_outer_ + i * s + j, s - j) * part(q + j, s - j);
        dp[i] = sum_of(sum);
      }
    }
  }

 private:
  static int64_t padded(int64_t count) { return (count + lanes + 15) / 16 * 16; }  // a vector more than there is
  static Real* take(Real*& scratch, int64_t count) {
    Real* taken = scratch;
    if (scratch) scratch += padded(count);
    return taken;
  }
  // The first `count` entries of a vector, zeros after them; and back.
  static GATEDRNN_INLINE Vec<Real> part(const Real* from, int64_t count) {
    if (count >= lanes) return load(from);
    Vec<Real> v = {};
    for (int64_t i = 0; i < count; ++i) v[i] = from[i];
    return v;
  }
  static GATEDRNN_INLINE void put(Real* to, Vec<Real> v, int64_t count) {
    if (count >= lanes) return store(to, v);
    for (int64_t i = 0; i < count; ++i) to[i] = v[i];
  }
  static GATEDRNN_INLINE Real sum_of(Vec<Real> v) {
    Real sum = 0;
    for (int64_t i = 0; i < lanes; ++i) sum += v[i];
    return sum;
  }
  Real amplitude(int64_t head) const { return relu_ && row_[head] < 0 ? Real(0) : row_[head]; }

  // The outer products, and for each head what makes a direction of its row: one over the norm, 0 where the norm is too
  // large. `sums_` holds the norm relative to the largest entry, or to 1e-12 if that is smaller.
  void directions() const {
    for (int side = 0; side < 2; ++side) {
      const Real *p = row_ + 2 * K + side * 2 * s, *q = p + s;
      for (int64_t i = 0; i < s; ++i)
        for (int64_t j = 0; j < s; j += lanes) {
          Vec<Real> x = p[i] * load(q + j);
          if (relu_) x = at_least<Real>(x, 0);
          store(outer_[side] + i * s + j, x);  // what goes beyond a row is written over by the next one
        }
      for (int64_t k = 0; k < K; ++k) {
        const Real* x = outer_[side] + k * M;
        Vec<Real> most = {}, sum = {};
        for (int64_t j = 0; j < M; j += lanes) {
          Vec<Real> size = magnitude<Real>(part(x + j, M - j));
          most = size > most ? size : most;
        }
        Real scale = least_scale;
        for (int64_t i = 0; i < lanes; ++i) scale = most[i] > scale ? most[i] : scale;
        const Real to_one = Real(1) / scale;
        for (int64_t j = 0; j < M; j += lanes) {
          Vec<Real> size = magnitude<Real>(part(x + j, M - j)) * to_one, square = size * size;
          sum += square * square * size;
        }
        sums_[side * K + k] = sum_of(sum);
        scales_[side * K + k] = scale;
      }
    }
    for (int64_t head = 0; head < 2 * K; head += lanes) {
      Vec<Real> scale = part(scales_ + head, 2 * K - head), norm = power_of(part(sums_ + head, 2 * K - head), splat<Real>(Real(0.2)));
      put(sums_ + head, norm, 2 * K - head);
      Vec<Real> size = at_least<Real>(norm, 1) * scale;
      put(inverse_ + head, size > largest_norm ? Vec<Real>{} : Real(1) / size, 2 * K - head);
    }
  }

  const int64_t M, K, s;
  const bool relu_;
  Real *outer_[2], *d_outer_, *sums_, *scales_, *inverse_, *row_;
};

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
