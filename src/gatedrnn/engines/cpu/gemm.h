// Matrix products on panels. A matrix of R rows and C columns is stored as [panel][row][width]: columns in
// groups of Tile::width, the rows of a group one after the other. The same storage serves as the left operand
// (scalars are broadcast along a row), as the right operand (whole vectors) and as the result.
#pragma once
#include <type_traits>

#include "simd.h"

namespace gatedrnn {
namespace GATEDRNN_ISA {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The left operand of a product over K = panels * depth: element (row, k) is at
// data[(k / depth) * panel_stride + row * row_stride + k % depth].
template <class Real> struct Left {
  const Real* data = nullptr;
  int64_t panel_stride = 0;
  int64_t row_stride = 0;
  int64_t panels = 0;
  int64_t depth = 0;
  // Each matrix that is `group` panels wide ends with a panel of which only `last` columns are used, or all if 0. The first
  // panel here is number `position` of its matrix.
  int64_t group = 1, last = 0, position = 0;
  int64_t used(int64_t panel) const { return last && (position + panel) % group == group - 1 ? last : depth; }
};

// A matrix of so many columns in panels, or several side by side.
template <class Real>
Left<Real> in_panels(const Real* data, int64_t panel_stride, int64_t columns, int64_t matrices = 1) {
  constexpr int64_t width = Tile<Real>::width;
  const int64_t panels = divide_up(columns, width);
  return {data, panel_stride, width, matrices * panels, width, panels, columns - (panels - 1) * width};
}

// Calls the function with a value of 1 to most as a constant.
template <int most, class Function> GATEDRNN_INLINE void with_constant(int64_t value, const Function& function) {
  if constexpr (most > 1)
    if (value < most) return with_constant<most - 1>(value, function);
  function(std::integral_constant<int, most>{});
}

// The vectors that hold so many of a panel's columns.
template <class Real> GATEDRNN_INLINE int64_t vectors_of(int64_t columns) {
  return smaller(divide_up(columns, Tile<Real>::lanes), Tile<Real>::vectors);
}

// Rows of a register tile of so many vectors. With a single one, the usual rows would not fill the pipeline.
template <class Real, int vectors> constexpr int most_rows() { return vectors == 1 ? 2 * Tile<Real>::rows : Tile<Real>::rows; }

// What an accumulator starts from.
enum class Start { zero, bias, result };

// Weights that are needed soon and are not in the caches: with each k a tile fetches a line of them, `step` after the last.
// Without data it has no code for that, which would cost small layers three percent.
template <class Real> struct Ahead {
  static constexpr bool fetches = true;
  const Real* data;
  int64_t step;
};
struct Nothing {
  static constexpr bool fetches = false;
};

template <class Real, int Rows, int Count, int vectors, class Fetched>
GATEDRNN_INLINE void multiply(const Left<Real>& left, int64_t row, const Real* (&right)[Count], Vec<Real> (&sums)[Count][Rows][vectors],
                              Fetched ahead) {
  constexpr int lanes = Tile<Real>::lanes, width = Tile<Real>::width;
  for (int64_t q = 0; q < left.panels; ++q) {
    const Real* a = left.data + q * left.panel_stride + row * left.row_stride;
    const int64_t row_stride = left.row_stride, depth = left.used(q);
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k) {
      if constexpr (Fetched::fetches) {
        __builtin_prefetch(ahead.data, 0, 2);
        ahead.data += ahead.step;
      }
#pragma GCC unroll 4
      for (int p = 0; p < Count; ++p) {
        Vec<Real> b[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) b[v] = load(right[p] + k * width + v * lanes);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) {
          Vec<Real> scalar = splat<Real>(a[r * row_stride + k]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[p][r][v] += scalar * b[v];
        }
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < Count; ++p) right[p] += left.depth * width;
  }
}

// Rows of a right panel that are used together: 32 kB. All rows of the left operand pass them one after the other, so
// they come from the nearest caches; shorter pieces would write and read the sums more often.
template <class Real> constexpr int64_t weight_piece() { return 32768 / (sizeof(Real) * Tile<Real>::width); }

// results[p](row..row+Rows) = start + first * rights[p] + second * rights[p] after it; rights[p] holds both. Only so many
// vectors of a panel are computed; a new result is 0 in the others.
template <class Real, int Rows, int Count, int vectors, class Fetched>
void tile(Start start, const Left<Real>& first, const Left<Real>& second, int64_t row, const Real* const* rights,
          const Real* const* biases, Real* const* results, Fetched ahead) {
  constexpr int lanes = Tile<Real>::lanes, width = Tile<Real>::width;
  Vec<Real> sums[Count][Rows][vectors];
  const Real* right[Count];
#pragma GCC unroll 4
  for (int p = 0; p < Count; ++p) {
    right[p] = rights[p];
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        if (start == Start::zero)
          sums[p][r][v] = Vec<Real>{};
        else if (start == Start::bias)
          sums[p][r][v] = load(biases[p] + v * lanes);
        else
          sums[p][r][v] = load(results[p] + (row + r) * width + v * lanes);
      }
  }
  multiply<Real, Rows, Count, vectors>(first, row, right, sums, Nothing());
  multiply<Real, Rows, Count, vectors>(second, row, right, sums, ahead);
#pragma GCC unroll 4
  for (int p = 0; p < Count; ++p)
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Tile<Real>::vectors; ++v)
        if (v < vectors)
          store(results[p] + (row + r) * width + v * lanes, sums[p][r][v < vectors ? v : 0]);
        else if (start != Start::result)
          store(results[p] + (row + r) * width + v * lanes, Vec<Real>{});
}

// With few rows a tile of one panel has too few independent sums to fill the pipeline; then panels share a tile.
template <class Real> GATEDRNN_INLINE int panels_per_tile(int64_t rows) {
#if GATEDRNN_VECTOR_BYTES == 64
  return rows == 1 ? 2 : 1;
#else
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
#endif
}

// Rows are cut into tiles of nearly equal height: seven rows are 4 + 3, not 6 + 1. The first ones fetch the weights at `next`,
// as many as are used here, unless it is null.
template <class Real, int Count>
void tiles(Start start, const Left<Real>& first, const Left<Real>& second, int64_t rows, const Real* const* rights,
           const Real* const* biases, Real* const* results, int64_t vectors, const Real* next) {
  with_constant<Tile<Real>::vectors>(vectors, [&](auto wide) __attribute__((always_inline)) {
    constexpr int some = decltype(wide)::value, most = Count == 1 ? most_rows<Real, some>() : Count == 2 ? 3 : 1;
    int64_t left_over = rows, count = (rows + most - 1) / most;
    // With fewer tiles than a row of the weights has lines, a line brings its neighbours.
    const int64_t depth = second.panels * second.depth, step = Tile<Real>::width / smaller(larger(count, 1), Tile<Real>::vectors);
    const Real* const end = next ? next + depth * Tile<Real>::width : nullptr;
    for (int64_t row = 0; count > 0; --count) {
      int64_t height = (left_over + count - 1) / count;
      with_constant<most>(height, [&](auto tall) __attribute__((always_inline)) {
        constexpr int Rows = decltype(tall)::value;
        if constexpr (Count == 1 && some == Tile<Real>::vectors)
          if (next < end) return tile<Real, Rows, Count, some>(start, first, second, row, rights, biases, results, Ahead<Real>{next, step});
        tile<Real, Rows, Count, some>(start, first, second, row, rights, biases, results, Nothing());
      });
      if (next < end) next += depth * step;
      row += height;
      left_over -= height;
    }
  });
}

// The product for `count` result panels, of each of which so many columns are used. Right panel p is at
// right + p * right_stride, result panel p at result + p * result_stride. K is cut into nearly equal pieces; each is used by
// all panels before the next one, so that it is read from memory only once. If that is far from the core, the piece that comes
// next is fetched meanwhile, at the end the one behind these panels.
template <class Real>
void product(Start start, const Left<Real>& first, const Left<Real>& second, int64_t rows, int64_t count, const Real* right,
             int64_t right_stride, const Real* bias, Real* result, int64_t result_stride, int64_t columns = Tile<Real>::width,
             bool far = false) {
  constexpr int width = Tile<Real>::width;
  const int64_t vectors = vectors_of<Real>(columns);
  constexpr int64_t cut = weight_piece<Real>();
  Left<Real> once = first, rest = second;
  const Real* const behind = right + count * right_stride;
  for (int64_t pieces = larger(divide_up(rest.panels * rest.depth, cut), 1); pieces > 0; --pieces) {
    Left<Real> now = rest;
    now.panels = divide_up(rest.panels, pieces);
    for (int64_t p = 0, group = panels_per_tile<Real>(rows); p < count; p += group) {
      while (group > count - p) group /= 2;
      const Real* next = p + group < count ? right + (p + group) * right_stride
                         : pieces > 1      ? right + (once.panels * once.depth + now.panels * now.depth) * width
                                           : behind;
      if (!far) next = nullptr;
      const Real *rights[4], *biases[4];
      Real* results[4];
      for (int64_t i = 0; i < group; ++i) {
        rights[i] = right + (p + i) * right_stride;
        biases[i] = bias + (p + i) * width;
        results[i] = result + (p + i) * result_stride;
      }
      if (group == 4)
        tiles<Real, 4>(start, once, now, rows, rights, biases, results, vectors, next);
      else if (group == 2)
        tiles<Real, 2>(start, once, now, rows, rights, biases, results, vectors, next);
      else
        tiles<Real, 1>(start, once, now, rows, rights, biases, results, vectors, next);
    }
    right += (once.panels * once.depth + now.panels * now.depth) * width;
    rest.data += now.panels * rest.panel_stride;
    rest.panels -= now.panels;
    rest.position += now.panels;
    once = Left<Real>();
    start = Start::result;
  }
}

// The product for a result of so many columns: the last panel may be used in part.
template <class Real>
void product_of_columns(Start start, const Left<Real>& left, int64_t rows, int64_t columns, const Real* right, int64_t right_stride, Real* result,
                        int64_t result_stride, bool far = false) {
  constexpr int64_t width = Tile<Real>::width;
  const int64_t whole = columns / width;
  const Left<Real> none;
  if (whole > 0) product<Real>(start, none, left, rows, whole, right, right_stride, nullptr, result, result_stride, width, far);
  if (columns % width)
    product<Real>(start, none, left, rows, 1, right + whole * right_stride, right_stride, nullptr, result + whole * result_stride,
                  result_stride, columns % width, far);
}

// total(column, :) += sum over rows of left(row, column) * right(row, :), for Columns columns of a left panel
// and one right panel.
template <class Real, int Columns, int vectors>
void outer(const Real* left, const Real* right, int64_t rows, Real* total) {
  constexpr int lanes = Tile<Real>::lanes, width = Tile<Real>::width;
  Vec<Real> sums[Columns][vectors] = {};
#pragma GCC unroll 4
  for (int64_t k = 0; k < rows; ++k) {
    Vec<Real> b[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) b[v] = load(right + k * width + v * lanes);
#pragma GCC unroll 12
    for (int c = 0; c < Columns; ++c) {
      Vec<Real> scalar = splat<Real>(left[k * width + c]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[c][v] += scalar * b[v];
    }
  }
#pragma GCC unroll 12
  for (int c = 0; c < Columns; ++c)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Real* t = total + c * width + v * lanes;
      store(t, load<Real>(t) + sums[c][v]);
    }
}

// total += left^T right for `columns` columns of the left matrix and `right_columns` of the right one, both with `rows` rows.
// The total is in panels with a row for each left column, so that it is passed through in order.
template <class Real>
void accumulate(const Real* left, int64_t columns, const Real* right, int64_t right_columns, int64_t rows, Real* total) {
  constexpr int width = Tile<Real>::width;
  for (int64_t p = 0; p * width < right_columns; ++p) {
    const Real* b = right + p * rows * width;
    with_constant<Tile<Real>::vectors>(vectors_of<Real>(right_columns - p * width), [&](auto wide) __attribute__((always_inline)) {
      constexpr int some = decltype(wide)::value, most = most_rows<Real, some>();
      for (int64_t begin = 0; begin < columns; begin += width) {
        const Real* a = left + begin * rows;
        int64_t left_over = smaller(columns - begin, width);
        for (int64_t column = 0, count = (left_over + most - 1) / most; count > 0; --count) {
          int64_t height = (left_over + count - 1) / count;
          Real* t = total + (p * columns + begin + column) * width;
          with_constant<most>(height, [&](auto tall) __attribute__((always_inline)) {
            outer<Real, decltype(tall)::value, some>(a + column, b, rows, t);
          });
          column += height;
          left_over -= height;
        }
      }
    });
  }
}

}  // namespace GATEDRNN_ISA
}  // namespace gatedrnn
