// Vectors of the widest size the build may use, written once for every instruction set.
// Each instruction set compiles this file into a namespace of its own (GATEDRNN_ISA), and nothing
// here calls a library function: a shared inline function compiled with AVX flags could be the
// copy the linker keeps for machines without AVX.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef GATEDRNN_VECTOR_BYTES
#if defined(__AVX512F__)
#define GATEDRNN_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define GATEDRNN_VECTOR_BYTES 32
#else
#define GATEDRNN_VECTOR_BYTES 16
#endif
#endif

#define GATEDRNN_INLINE inline __attribute__((always_inline))

namespace gatedrnn {
namespace GATEDRNN_ISA {

typedef float Floats __attribute__((vector_size(GATEDRNN_VECTOR_BYTES)));
typedef double Doubles __attribute__((vector_size(GATEDRNN_VECTOR_BYTES)));
typedef int32_t Words __attribute__((vector_size(GATEDRNN_VECTOR_BYTES)));
typedef int64_t Longs __attribute__((vector_size(GATEDRNN_VECTOR_BYTES)));

template <class Real> struct Simd;
template <> struct Simd<float> {
  using V = Floats;
  using Int = Words;
};
template <> struct Simd<double> {
  using V = Doubles;
  using Int = Longs;
};
template <class Real> using Vec = typename Simd<Real>::V;
template <class Real> using IntVec = typename Simd<Real>::Int;

// Lanes of a vector, vectors of a panel, and rows of a register tile. A panel is the unit of
// every layout: columns are stored in groups of `width`, so that a tile's accumulators
// (rows x vectors) fill the registers and every store is of whole vectors.
template <class Real> struct Tile {
  static constexpr int lanes = GATEDRNN_VECTOR_BYTES / sizeof(Real);
#if GATEDRNN_VECTOR_BYTES == 64
  static constexpr int vectors = 4;
#else
  static constexpr int vectors = 2;
#endif
  static constexpr int rows = 6;
  static constexpr int width = lanes * vectors;
};

template <class Real> GATEDRNN_INLINE Vec<Real> load(const Real* p) {
  Vec<Real> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class Real> GATEDRNN_INLINE void store(Real* p, Vec<Real> v) { __builtin_memcpy(p, &v, sizeof v); }
// A store past the caches, for what is not read again soon; p is aligned to a vector.
template <class Real> GATEDRNN_INLINE void stream(Real* p, Vec<Real> v) {
#if defined(__AVX512F__) && GATEDRNN_VECTOR_BYTES == 64
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#elif defined(__AVX2__) && GATEDRNN_VECTOR_BYTES == 32
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#elif defined(__x86_64__) && GATEDRNN_VECTOR_BYTES == 16
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#else
  store(p, v);
#endif
}
// Streamed stores are seen by other threads after this.
GATEDRNN_INLINE void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}
template <class Real> GATEDRNN_INLINE Vec<Real> splat(Real x) { return x - Vec<Real>{}; }
template <class Real> GATEDRNN_INLINE IntVec<Real> bits(Vec<Real> v) { return (IntVec<Real>)v; }

template <class Real> GATEDRNN_INLINE Vec<Real> magnitude(Vec<Real> x) {
  constexpr auto mask = ~(decltype(IntVec<Real>{}[0] + 0))0 ^ ((decltype(IntVec<Real>{}[0] + 0))1 << (8 * sizeof(Real) - 1));
  return (Vec<Real>)(bits<Real>(x) & (mask - IntVec<Real>{}));
}
template <class Real> GATEDRNN_INLINE Vec<Real> with_sign_of(Vec<Real> positive, Vec<Real> x) {
  return (Vec<Real>)(bits<Real>(positive) | (bits<Real>(x) ^ bits<Real>(magnitude<Real>(x))));
}
// A NaN compares false and passes through.
template <class Real> GATEDRNN_INLINE Vec<Real> at_most(Vec<Real> x, Real limit) {
  Vec<Real> bound = splat<Real>(limit);
  return x > bound ? bound : x;
}
template <class Real> GATEDRNN_INLINE Vec<Real> at_least(Vec<Real> x, Real limit) {
  Vec<Real> bound = splat<Real>(limit);
  return x < bound ? bound : x;
}

// The first `count` entries of a vector; what is loaded is 0 beyond them.
template <class Real> GATEDRNN_INLINE Vec<Real> load_first(const Real* p, int64_t count) {
  if (count == Tile<Real>::lanes) return load(p);
  Vec<Real> v = {};
  __builtin_memcpy(&v, p, size_t(count) * sizeof(Real));
  return v;
}
template <class Real> GATEDRNN_INLINE void store_first(Real* p, Vec<Real> v, int64_t count) {
  if (count == Tile<Real>::lanes) return store(p, v);
  __builtin_memcpy(p, &v, size_t(count) * sizeof(Real));
}

// Entries of two vectors: those of `a` where the index is below the number of lanes, those of `b` from there on.
#if defined(__clang__)
template <class Real, int... index> GATEDRNN_INLINE Vec<Real> shuffled(Vec<Real> a, Vec<Real> b, std::integer_sequence<int, index...>) {
  return __builtin_shufflevector(a, b, index...);
}
#else
template <class Real, int... index> GATEDRNN_INLINE Vec<Real> shuffled(Vec<Real> a, Vec<Real> b, std::integer_sequence<int, index...>) {
  return __builtin_shuffle(a, b, IntVec<Real>{index...});
}
#endif
// Exchanges the off-diagonal quarters of each square of 2 * side entries: row a is above row b.
template <int side, class Real, int... lane>
GATEDRNN_INLINE void exchange(Vec<Real>& a, Vec<Real>& b, std::integer_sequence<int, lane...>) {
  constexpr int lanes = Tile<Real>::lanes;
  const Vec<Real> above = shuffled<Real>(a, b, std::integer_sequence<int, (lane & side ? lanes + lane - side : lane)...>{});
  b = shuffled<Real>(a, b, std::integer_sequence<int, (lane & side ? lanes + lane : lane + side)...>{});
  a = above;
}
// A square of as many vectors as a vector has lanes: rows become columns.
template <class Real, int side = Tile<Real>::lanes / 2> GATEDRNN_INLINE void transpose(Vec<Real> (&rows)[Tile<Real>::lanes]) {
  if constexpr (side > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < Tile<Real>::lanes; ++i)
      if (!(i & side)) exchange<side, Real>(rows[i], rows[i + side], std::make_integer_sequence<int, Tile<Real>::lanes>{});
    transpose<Real, side / 2>(rows);
  }
}

// The compilers have no generic vector square root: halves are taken until an instruction fits.
#if defined(__AVX512F__)
GATEDRNN_INLINE Floats square_root(Floats x) { return (Floats)_mm512_sqrt_ps((__m512)x); }
GATEDRNN_INLINE Doubles square_root(Doubles x) { return (Doubles)_mm512_sqrt_pd((__m512d)x); }
#elif defined(__AVX2__) && GATEDRNN_VECTOR_BYTES == 32
GATEDRNN_INLINE Floats square_root(Floats x) { return (Floats)_mm256_sqrt_ps((__m256)x); }
GATEDRNN_INLINE Doubles square_root(Doubles x) { return (Doubles)_mm256_sqrt_pd((__m256d)x); }
#elif defined(__x86_64__) && GATEDRNN_VECTOR_BYTES == 16
GATEDRNN_INLINE Floats square_root(Floats x) { return (Floats)_mm_sqrt_ps((__m128)x); }
GATEDRNN_INLINE Doubles square_root(Doubles x) { return (Doubles)_mm_sqrt_pd((__m128d)x); }
#elif defined(__aarch64__) && GATEDRNN_VECTOR_BYTES == 16
GATEDRNN_INLINE Floats square_root(Floats x) { return (Floats)vsqrtq_f32((float32x4_t)x); }
GATEDRNN_INLINE Doubles square_root(Doubles x) { return (Doubles)vsqrtq_f64((float64x2_t)x); }
#else
GATEDRNN_INLINE Floats square_root(Floats x) {
  for (int i = 0; i < Tile<float>::lanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}
GATEDRNN_INLINE Doubles square_root(Doubles x) {
  for (int i = 0; i < Tile<double>::lanes; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
}
#endif

// a * b - product, the rounding error of product = a * b, exactly but for overflow. Written out where there is a fused
// instruction: the compiler would take a * b for the product itself and find 0.
#if defined(__AVX512F__)
template <class Real> GATEDRNN_INLINE Floats lost_by_product(Floats a, Floats b, Floats product) {
  return (Floats)_mm512_fmsub_ps((__m512)a, (__m512)b, (__m512)product);
}
template <class Real> GATEDRNN_INLINE Doubles lost_by_product(Doubles a, Doubles b, Doubles product) {
  return (Doubles)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product);
}
#elif defined(__FMA__) && GATEDRNN_VECTOR_BYTES == 32
template <class Real> GATEDRNN_INLINE Floats lost_by_product(Floats a, Floats b, Floats product) {
  return (Floats)_mm256_fmsub_ps((__m256)a, (__m256)b, (__m256)product);
}
template <class Real> GATEDRNN_INLINE Doubles lost_by_product(Doubles a, Doubles b, Doubles product) {
  return (Doubles)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)product);
}
#elif defined(__FMA__) || defined(__aarch64__)
template <class Real> GATEDRNN_INLINE Vec<Real> lost_by_product(Vec<Real> a, Vec<Real> b, Vec<Real> product) {
  for (int i = 0; i < Tile<Real>::lanes; ++i)
    a[i] = sizeof(Real) == 4 ? Real(__builtin_fmaf(a[i], b[i], -product[i])) : Real(__builtin_fma(a[i], b[i], -product[i]));
  return a;
}
#else
// The upper half of the digits of x; products of halves are exact.
template <class Real> GATEDRNN_INLINE Vec<Real> upper_half(Vec<Real> x) {
  Vec<Real> spread = x * (sizeof(Real) == 4 ? Real(4097) : Real(134217729));
  return spread - (spread - x);
}
template <class Real> GATEDRNN_INLINE Vec<Real> lost_by_product(Vec<Real> a, Vec<Real> b, Vec<Real> product) {
  Vec<Real> a_high = upper_half<Real>(a), b_high = upper_half<Real>(b), a_low = a - a_high, b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}
#endif

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
