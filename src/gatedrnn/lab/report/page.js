"use strict";
// The interactive curves. Everything drawn comes from the JSON in #data; text goes in by textContent only.
(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const MARGIN = { top: 10, right: 22, bottom: 40, left: 58 };

  const svg = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(element);
    return element;
  };
  const html = (name, className, parent, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  };
  const paint = (element, series) => {
    element.style.setProperty("--light", series.light);
    element.style.setProperty("--dark", series.dark);
    return element;
  };

  const number = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("-", "−").replace("+", "");
    if (size >= 1000) return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u2009");
    return Number(value.toPrecision(4)).toString().replace("-", "−");
  };

  // Ticks at 1, 2 or 5 times a power of ten; on a logarithmic axis whole powers, and 2 and 5 where there is room.
  const linearTicks = (low, high, count, whole) => {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const nearest = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const step = whole ? Math.max(1, nearest) : nearest;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
    return ticks.map((t) => Number(t.toPrecision(12)));
  };
  const logTicks = (low, high, count, whole) => {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const every = Math.max(1, Math.ceil((last - first) / count));
    const between = last - first <= 2 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let p = first; p <= last; p += every)
      for (const m of between) {
        const tick = Number((m * 10 ** p).toPrecision(6));
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
      }
    return ticks.length > 1 ? ticks : linearTicks(low, high, count, whole);
  };

  // A scale maps [low, high] to pixels [from, to]; what a logarithm cannot show maps to NaN.
  const scaleOf = (low, high, log, from, to) => {
    const f = log ? Math.log10 : (v) => v;
    const a = f(low), span = f(high) - a || 1;
    const scale = (v) => (v === null || (log && v <= 0) ? NaN : from + ((f(v) - a) / span) * (to - from));
    scale.ticks = (count, whole = false) => (log ? logTicks : linearTicks)(low, high, count, whole);
    return scale;
  };

  const pathOf = (xs, ys, x, y) => {
    let path = "", pen = false;
    for (let i = 0; i < xs.length; i++) {
      const px = x(xs[i]), py = y(ys[i]);
      if (Number.isFinite(px) && Number.isFinite(py)) {
        path += (pen ? "L" : "M") + px.toFixed(2) + " " + py.toFixed(2);
        pen = true;
      } else pen = false;
    }
    return path;
  };
  // A mean and its band: ± one deviation, on a logarithmic axis of the logarithm, so that it never reaches zero.
  const middleOf = (curve, log) => (log ? curve.log_mean : curve.mean);
  const endsOf = (curve, i, log) => {
    if (!log) return [curve.mean[i] - curve.std[i], curve.mean[i] + curve.std[i]];
    return curve.log_mean[i] === null ? [null, null] : [curve.log_mean[i] / curve.factor[i], curve.log_mean[i] * curve.factor[i]];
  };
  const bandOf = (curve, x, y, log) => {
    const up = [], down = [];
    curve.x.forEach((value, i) => {
      const px = x(value), [low, high] = endsOf(curve, i, log).map(y);
      if (![px, low, high].every(Number.isFinite)) return;
      up.push(px.toFixed(2) + " " + high.toFixed(2));
      down.unshift(px.toFixed(2) + " " + low.toFixed(2));
    });
    return up.length > 1 ? "M" + up.concat(down).join("L") + "Z" : "";
  };
  const CROSS = "m-4.5 -4.5l9 9m0 -9l-9 9";

  class Chart {
    constructor(figure) {
      this.data = DATA.charts[figure.dataset.chart];
      this.figure = figure;
      this.hidden = new Set();
      this.state = { x: this.data.against, logX: false, logY: this.data.log_y, seeds: true, clock: 0 };
      this.cursor = null;
      this.clip = "clip-" + figure.dataset.chart;
      this.controls = figure.querySelector(".controls");
      this.plot = figure.querySelector(".plot");
      this.legend = figure.querySelector(".legend");
      this.buildControls();
      this.buildLegend();
      this.readout = html("div", "readout", this.plot);
      this.readout.setAttribute("role", "status");
      this.readout.hidden = true;
      this.draw();
      new ResizeObserver(() => this.draw()).observe(this.plot);
    }

    button(parent, label, name, pressed, act) {
      const button = html("button", "", parent, label);
      button.type = "button";
      button.dataset.action = name;
      const refresh = () => button.setAttribute("aria-pressed", String(pressed()));
      button.addEventListener("click", () => {
        act();
        this.refresh();
      });
      (this.refreshers ||= []).push(refresh);
      refresh();
      return button;
    }
    refresh() {
      this.refreshers.forEach((refresh) => refresh());
      this.cursor = null;
      this.draw();
    }

    buildControls() {
      const { state } = this;
      const group = (label) => {
        const box = html("div", "group", this.controls);
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", label);
        html("span", "", box, label);
        return box;
      };
      const choice = (box, key, value, label, name) =>
        this.button(box, label, name, () => state[key] === value, () => (state[key] = value));
      const across = group("x");
      if (this.data.clocks.length) {
        choice(across, "x", "updates", this.data.steps, "x-updates");
        choice(across, "x", "seconds", "time", "x-seconds");
      }
      choice(across, "logX", false, "linear", "x-linear");
      choice(across, "logX", true, "log", "x-log");
      const upwards = group("y");
      choice(upwards, "logY", false, "linear", "y-linear");
      choice(upwards, "logY", true, "log", "y-log");
      this.button(group("lines"), "each seed", "seeds", () => state.seeds, () => (state.seeds = !state.seeds));
      if (this.data.clocks.length > 1) {
        // Times of different engines or machines are never drawn together.
        const box = group("timed on");
        this.data.clocks.forEach((clock, i) => choice(box, "clock", i, clock, "clock-" + i));
        (this.refreshers ||= []).push(() => (box.hidden = state.x !== "seconds"));
        box.hidden = state.x !== "seconds";
      }
    }

    buildLegend() {
      this.data.series.forEach((series, i) => {
        const button = this.button(
          this.legend, "", "model-" + i, () => !this.hidden.has(i),
          () => (this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i)));
        const swatch = svg("svg", { class: "swatch", width: 26, height: 10, "aria-hidden": "true" }, button);
        paint(svg("line", { x1: 1, x2: 25, y1: 5, y2: 5, class: "line", "stroke-dasharray": series.dash }, swatch), series);
        html("span", "", button, series.name);
        html("small", "", button, series.legend);
      });
    }

    // What is shown: for each visible series, its mean curve and its seeds for the chosen x.
    shown() {
      const { x, clock } = this.state;
      const picked = [];
      this.data.series.forEach((series, i) => {
        if (this.hidden.has(i)) return;
        const curve = x === "updates" ? series.updates : series.seconds[clock];
        const runs = x === "updates" ? series.runs : series.runs.filter((run) => run.clock === clock);
        if (curve && (curve.x.length || runs.length)) picked.push({ series, curve, runs, i });
      });
      return picked;
    }

    extent(picked) {
      const { x, logX, logY } = this.state;
      let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
      const across = (v) => v !== null && !(logX && v <= 0) && ((x0 = Math.min(x0, v)), (x1 = Math.max(x1, v)));
      const upwards = (v) => v !== null && !(logY && v <= 0) && ((y0 = Math.min(y0, v)), (y1 = Math.max(y1, v)));
      for (const { curve, runs } of picked) {
        curve.x.forEach(across);
        middleOf(curve, logY).forEach(upwards);
        if (this.data.band_in_view) curve.x.forEach((_, i) => endsOf(curve, i, logY).forEach(upwards));
        for (const run of runs) {
          run[x].forEach(across);
          run.value.forEach(upwards);
        }
      }
      if (x0 > x1 || y0 > y1) return null;
      if (x0 === x1) [x0, x1] = logX ? [x0 / 2, x1 * 2] : [x0 - 1, x1 + 1];
      if (y0 === y1) [y0, y1] = logY ? [y0 / 2, y1 * 2] : [y0 - (Math.abs(y0) || 1) / 2, y1 + (Math.abs(y1) || 1) / 2];
      if (logY) [y0, y1] = [y0 / (y1 / y0) ** 0.04, y1 * (y1 / y0) ** 0.04];
      else [y0, y1] = [y0 - (y1 - y0) * 0.04, y1 + (y1 - y0) * 0.04];
      return { x0, x1, y0, y1 };
    }

    draw() {
      const width = Math.max(this.plot.clientWidth, 200);
      const height = Math.round(Math.min(420, Math.max(260, width * 0.52)));
      const picked = this.shown();
      const range = this.extent(picked);
      const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
      const focused = this.canvas && document.activeElement === this.canvas;
      this.canvas?.remove();
      const canvas = svg("svg", {
        viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img",
        "aria-label": `${this.data.title}: ${this.data.y_label}. Use the arrow keys to read values.`,
      });
      this.plot.prepend(canvas);
      this.canvas = canvas;
      this.view = null;
      if (!range) {
        svg("text", { x: width / 2, y: height / 2, class: "empty", "text-anchor": "middle" }, canvas).textContent =
          this.data.series.length === this.hidden.size ? "no model selected" : "no values to show on these axes";
        this.readout.hidden = true;
        return;
      }
      const x = scaleOf(range.x0, range.x1, this.state.logX, MARGIN.left, right);
      const y = scaleOf(range.y0, range.y1, this.state.logY, bottom, MARGIN.top);
      this.axes(canvas, x, y, right, bottom, width);
      const clip = svg("clipPath", { id: this.clip }, svg("defs", {}, canvas));
      svg("rect", { x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top }, clip);
      const area = svg("g", { "clip-path": `url(#${this.clip})` }, canvas);
      for (const { series, curve, i } of picked)
        paint(svg("path", { class: "band", "data-model": i, d: bandOf(curve, x, y, this.state.logY) }, area), series);
      if (this.state.seeds)
        for (const { series, runs, i } of picked)
          for (const run of runs) {
            const d = pathOf(run[this.state.x], run.value, x, y);
            paint(svg("path", { class: "seed", "data-model": i, "data-seed": run.seed, d }, area), series);
          }
      for (const { series, curve, i } of picked) {
        const d = pathOf(curve.x, middleOf(curve, this.state.logY), x, y);
        paint(svg("path", { class: "line", "data-model": i, "stroke-dasharray": series.dash, d }, area), series);
      }
      // Where a run diverged; not clipped, so that a cross at the edge is fully visible.
      for (const { series, runs, i } of picked)
        for (const run of runs) {
          if (run.diverged_at === null) continue;
          const px = x(run[this.state.x][run.diverged_at]), py = y(run.value[run.diverged_at]);
          if (!Number.isFinite(px) || !Number.isFinite(py)) continue;
          const d = `M${px.toFixed(2)} ${py.toFixed(2)}${CROSS}`;
          paint(svg("path", { class: "diverged", "data-model": i, "data-seed": run.seed, d }, canvas), series);
        }
      if (this.data.threshold !== null && Number.isFinite(y(this.data.threshold)))
        svg("line", { class: "threshold", x1: MARGIN.left, x2: right, y1: y(this.data.threshold), y2: y(this.data.threshold) }, area);
      this.marks = svg("g", { class: "marks" }, canvas);
      this.view = { x, y, picked, right, bottom, width };
      this.listen(canvas);
      if (focused) canvas.focus({ preventScroll: true });
      this.point(this.cursor);
    }

    axes(canvas, x, y, right, bottom, width) {
      for (const tick of y.ticks(5)) {
        const at = y(tick);
        svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: at, y2: at }, canvas);
        svg("text", { class: "tick", x: MARGIN.left - 7, y: at + 4, "text-anchor": "end" }, canvas).textContent = number(tick);
      }
      for (const tick of x.ticks(width < 500 ? 4 : 8, this.state.x === "updates")) {  // no half epochs
        const at = x(tick);
        svg("line", { class: "grid", x1: at, x2: at, y1: MARGIN.top, y2: bottom }, canvas);
        svg("text", { class: "tick", x: at, y: bottom + 17, "text-anchor": "middle" }, canvas).textContent = number(tick);
      }
      const label = this.state.x === "updates" ? this.data.steps : "training time (seconds)";
      svg("text", { class: "label", x: (MARGIN.left + right) / 2, y: bottom + 35, "text-anchor": "middle" }, canvas).textContent = label;
      const middle = (MARGIN.top + bottom) / 2;
      svg("text", { class: "label", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, canvas).textContent =
        this.data.y_label;
    }

    listen(canvas) {
      const follow = (event) => {
        const box = canvas.getBoundingClientRect();
        this.point(this.nearest(((event.clientX - box.left) * this.view.width) / box.width));
      };
      canvas.addEventListener("pointermove", follow);
      canvas.addEventListener("pointerdown", follow);
      canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.point(null));
      canvas.addEventListener("blur", () => this.point(null));
      canvas.addEventListener("keydown", (event) => {
        const stops = this.stops();
        const at = this.cursor === null ? -1 : stops.indexOf(this.cursor);
        const to = { ArrowRight: at + 1, ArrowLeft: at < 0 ? stops.length - 1 : at - 1, Home: 0, End: stops.length - 1 }[event.key];
        if (event.key === "Escape") this.point(null);
        else if (to !== undefined && stops.length) {
          event.preventDefault();
          this.point(stops[Math.max(0, Math.min(stops.length - 1, to))]);
        }
      });
    }

    // Every x at which a visible mean curve has a point that these axes can show.
    stops() {
      const found = new Set();
      for (const { curve } of this.view.picked) curve.x.forEach((v) => Number.isFinite(this.view.x(v)) && found.add(v));
      return [...found].sort((a, b) => a - b);
    }
    nearest(pixel) {
      let best = null, distance = Infinity;
      for (const stop of this.stops()) {
        const away = Math.abs(this.view.x(stop) - pixel);
        if (away < distance) [best, distance] = [stop, away];
      }
      return best;
    }

    // Shows the values at x; where a curve has no point there it is interpolated and marked ≈.
    point(at) {
      this.cursor = at;
      if (!this.view) return;
      this.marks.replaceChildren();
      this.readout.hidden = at === null;
      if (at === null) return;
      const { x, y, picked, right, bottom } = this.view;
      const px = x(at);
      svg("line", { class: "cross", x1: px, x2: px, y1: MARGIN.top, y2: bottom }, this.marks);
      this.readout.replaceChildren();
      html("strong", "", this.readout, this.state.x === "updates" ? `${this.data.steps.slice(0, -1)} ${number(at)}` : `${number(at)} s`);
      for (const { series, curve } of picked) {
        const value = valueAt(curve, at, this.state.logY);
        const row = html("div", "row", this.readout);
        paint(html("i", "dot", row), series);
        html("span", "name", row, series.name);
        if (value === null) {
          html("span", "value", row, "no value");
          continue;
        }
        const spread = value.spread > value.none ? ` ${this.state.logY ? "×÷" : "±"} ${number(value.spread)}` : "";
        html("span", "value", row, (value.exact ? "" : "≈ ") + number(value.mean) + spread);
        if (Number.isFinite(y(value.mean)))
          paint(svg("circle", { class: "mark", cx: px, cy: y(value.mean), r: 4 }, this.marks), series);
      }
      const toTheLeft = px > (MARGIN.left + right) / 2;
      this.readout.style.left = toTheLeft ? "" : `${px + 12}px`;
      this.readout.style.right = toTheLeft ? `${this.view.width - px + 12}px` : "";
    }
  }

  // The mean and its spread: a deviation, or on a logarithmic axis a factor. `none` is the spread of a single seed.
  const valueAt = (curve, at, log) => {
    const x = curve.x, mean = middleOf(curve, log), spread = log ? curve.factor : curve.std, none = log ? 1 : 0;
    let low = 0, high = x.length - 1;
    if (high < 0 || at < x[0] || at > x[high]) return null;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (x[middle] <= at) low = middle;
      else high = middle;
    }
    for (const i of [low, high])
      if (x[i] === at) return mean[i] === null ? null : { mean: mean[i], spread: spread[i], none, exact: true };
    if (mean[low] === null || mean[high] === null) return null;
    const part = (at - x[low]) / (x[high] - x[low]);
    const mix = (v) => v[low] + part * (v[high] - v[low]);
    return { mean: mix(mean), spread: mix(spread), none, exact: false };
  };

  document.querySelectorAll("figure.chart").forEach((figure) => new Chart(figure));
  document.documentElement.classList.add("drawn");
})();
