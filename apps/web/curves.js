// Points of a log as the values of a line.

/** Resamples at equal distances, with linear interpolation. @param {number[][]} points @param {number} most */
export function spread(points, most) {
  const usable = points.filter(([, y]) => Number.isFinite(y));
  if (usable.length === 0) return [NaN];
  let at = 0;
  const count = Math.min(most, 400);
  return Array.from({ length: count + 1 }, (_, i) => {
    const x = (i / count) * most;
    while (at + 1 < usable.length && usable[at + 1][0] <= x) ++at;
    const [x0, y0] = usable[at];
    const [x1, y1] = usable[Math.min(at + 1, usable.length - 1)];
    if (x < x0) return NaN;
    return x1 === x0 ? y0 : y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
  });
}

/** @param {number[]} values */
export function smooth(values) {
  let mean = values.find(Number.isFinite) ?? NaN;
  return values.map((value) => (Number.isFinite(value) ? (mean += 0.3 * (value - mean)) : NaN));
}

/** The least and the greatest of the values. @param {number[]} values @returns {[number, number]} */
export function range(values) {
  const finite = values.filter(Number.isFinite);
  return [Math.min(...finite), Math.max(...finite)];
}
