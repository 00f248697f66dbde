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
    // A few pictures alone do not become giants.
    if (isLast && row === rows - 1) height = Math.min(height, wanted * 1.25);
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
