// Pieces of words put together: what is shared adds up, of likelihoods the largest speaks for the
// word; over the pieces of an output word the mean is taken.

export function matrixOf(bytes, offset, rows, columns, [low, high]) {
  const values = new Float64Array(rows * columns);
  for (let index = 0; index < values.length; index += 1) {
    const level = bytes[offset + index];
    values[index] = level === 255 ? NaN : low + ((high - low) * level) / 254;
  }
  return { rows, columns, values };
}

export function merged(matrix, inputGroups, outputGroups, rule) {
  const columns = Math.max(...inputGroups) + 1;
  const rows = Math.max(...outputGroups) + 1;
  const values = new Float64Array(rows * columns);
  const seen = new Uint8Array(rows * columns);
  const pieces = new Uint16Array(rows);
  for (let t = 0; t < matrix.rows; t += 1) {
    if (outputGroups[t] < 0) continue;
    pieces[outputGroups[t]] += 1;
    const row = mergedRow(matrix, t, inputGroups, columns, rule);
    row.forEach((value, word) => {
      if (Number.isNaN(value)) return;
      values[outputGroups[t] * columns + word] += value;
      seen[outputGroups[t] * columns + word] = 1;
    });
  }
  for (let index = 0; index < values.length; index += 1) {
    values[index] = seen[index] ? values[index] / pieces[Math.floor(index / columns)] : NaN;
  }
  return { rows, columns, values };
}

function mergedRow(matrix, t, groups, columns, rule) {
  const row = new Float64Array(columns).fill(NaN);
  for (let l = 0; l < matrix.columns; l += 1) {
    const value = matrix.values[t * matrix.columns + l];
    const word = groups[l];
    if (word < 0 || Number.isNaN(value)) continue;
    if (Number.isNaN(row[word])) row[word] = value;
    else row[word] = rule === "sum" ? row[word] + value : Math.max(row[word], value);
  }
  return row;
}

export function mergedWords(pieces, groups) {
  const words = [];
  pieces.forEach((piece, index) => {
    const word = groups[index];
    if (word >= 0) words[word] = (words[word] ?? "") + piece;
  });
  return words.map((text) => text.replace("▁", ""));
}

export function endsOf(matrices) {
  let low = 0;
  let high = 0;
  for (const matrix of matrices) {
    for (const value of matrix.values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}
