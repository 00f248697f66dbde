// Justified rows: the pictures of a block fill the width, in rows of nearly the wanted height.
export function justify(aspects, width, wanted, gap, isLast) {
  const boxes = new Array(aspects.length);
  const total = aspects.reduce((sum, aspect) => sum + aspect * wanted + gap, 0);
  // The rows of a block share its pictures evenly, so that no row is left over in the middle of the page.
  const rows = Math.max(1, isLast && total < width ? 1 : Math.round(total / (width + gap)));
  const share = total / rows;
  let top = 0, index = 0, used = 0;
  for (let row = 0; row < rows && index < aspects.length; row += 1) {
    const first = index;
    let sum = 0;
    while (index < aspects.length) {
      const size = aspects[index] * wanted + gap;
      if (row < rows - 1 && index > first && used + size / 2 > share * (row + 1)) break;
      used += size;
      sum += aspects[index];
      index += 1;
    }
    const count = index - first;
    let height = (width - gap * (count - 1)) / sum;
    // The last row fills the width like the others, unless its few pictures would become giants.
    if (isLast && row === rows - 1 && height > wanted * 1.6) height = wanted;
    height = Math.max(40, Math.min(height, wanted * 2.2));
    let left = 0;
    for (let place = first; place < index; place += 1) {
      const isEnd = place === index - 1;
      let size = aspects[place] * height;
      if (isEnd && Math.abs(left + size - width) < 2 * gap + 2) size = width - left;
      size = Math.min(size, Math.max(width - left, 20));
      boxes[place] = { x: left, y: top, w: size, h: height };
      left += size + gap;
    }
    top += height + gap;
  }
  return { boxes, height: top };
}

export function wantedHeight(width) {
  return width < 500 ? 130 : width < 900 ? 170 : width < 1600 ? 210 : 250;
}

// The picture that a key leads to; null for other keys. box(index): the place of a picture.
export function neighbour(key, { index, total, rows, box }) {
  // The one above or below, by the middle of this one.
  const beside = (from, direction) => {
    const { x, y, w } = box(from);
    let best = null, row = null;
    for (let other = from + direction; other >= 0 && other < total; other += direction) {
      const place = box(other);
      if (Math.abs(place.y - y) < 2) continue;
      if (row === null) row = place.y;
      if (Math.abs(place.y - row) > 2) break;
      const distance = Math.abs(place.x + place.w / 2 - x - w / 2);
      if (!best || distance < best.distance) best = { index: other, distance };
    }
    return best?.index ?? from;
  };
  let next = index;
  switch (key) {
    case "ArrowLeft": next -= 1; break;
    case "ArrowRight": next += 1; break;
    case "ArrowUp": next = beside(index, -1); break;
    case "ArrowDown": next = beside(index, 1); break;
    case "PageUp": for (let row = 0; row < rows; row += 1) next = beside(next, -1); break;
    case "PageDown": for (let row = 0; row < rows; row += 1) next = beside(next, 1); break;
    case "Home": next = 0; break;
    case "End": next = total - 1; break;
    default: return null;
  }
  return Math.max(0, Math.min(total - 1, next));
}
