// Draws a ThumbHash: the format of Evan Wallace's thumbhash, as the server makes it.
export function drawThumbHash(text, canvas) {
  const hash = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (hash.length < 5) return false;
  const header = hash[0] | (hash[1] << 8) | (hash[2] << 16);
  const head = hash[3] | (hash[4] << 8);
  const base = { l: (header & 63) / 63, p: ((header >> 6) & 63) / 31.5 - 1, q: ((header >> 12) & 63) / 31.5 - 1 };
  const scale = { l: ((header >> 18) & 31) / 31, p: ((head >> 3) & 63) / 63, q: ((head >> 9) & 63) / 63 };
  const hasAlpha = header >> 23;
  const isLandscape = head >> 15;
  const countX = Math.max(3, isLandscape ? (hasAlpha ? 5 : 7) : head & 7);
  const countY = Math.max(3, isLandscape ? head & 7 : hasAlpha ? 5 : 7);
  const alphaBase = hasAlpha ? (hash[5] & 15) / 15 : 1;
  const alphaScale = (hash[5] >> 4) / 15;
  const start = hasAlpha ? 6 : 5;
  let place = 0;
  const channel = (nx, ny, factor) => {
    const values = [];
    for (let y = 0; y < ny; y += 1) {
      for (let x = y ? 0 : 1; x * ny < nx * (ny - y); x += 1) {
        values.push((((hash[start + (place >> 1)] >> ((place++ & 1) << 2)) & 15) / 7.5 - 1) * factor);
      }
    }
    return values;
  };
  const l = channel(countX, countY, scale.l);
  const p = channel(3, 3, scale.p * 1.25);
  const q = channel(3, 3, scale.q * 1.25);
  const a = hasAlpha ? channel(5, 5, alphaScale) : null;
  const ratio = countX / countY;
  const width = Math.round(ratio > 1 ? 32 : 32 * ratio);
  const height = Math.round(ratio > 1 ? 32 / ratio : 32);
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(width, height);
  const cosines = (count, size) => Array.from({ length: size }, (_, at) =>
    Float64Array.from({ length: count }, (_, order) => Math.cos((Math.PI / size) * (at + 0.5) * order)));
  const fx = cosines(Math.max(countX, hasAlpha ? 5 : 3), width);
  const fy = cosines(Math.max(countY, hasAlpha ? 5 : 3), height);
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, at += 4) {
      const sum = (values, first, nx, ny) => {
        let result = first;
        for (let cy = 0, index = 0; cy < ny; cy += 1) {
          const factor = fy[y][cy] * 2;
          for (let cx = cy ? 0 : 1; cx * ny < nx * (ny - cy); cx += 1, index += 1) result += values[index] * fx[x][cx] * factor;
        }
        return result;
      };
      const light = sum(l, base.l, countX, countY);
      const cp = sum(p, base.p, 3, 3);
      const cq = sum(q, base.q, 3, 3);
      const alpha = a ? sum(a, alphaBase, 5, 5) : 1;
      const blue = light - (2 / 3) * cp;
      const red = (3 * light - blue + cq) / 2;
      const green = red - cq;
      pixels.data[at] = Math.max(0, Math.min(255, Math.round(red * 255)));
      pixels.data[at + 1] = Math.max(0, Math.min(255, Math.round(green * 255)));
      pixels.data[at + 2] = Math.max(0, Math.min(255, Math.round(blue * 255)));
      pixels.data[at + 3] = Math.max(0, Math.min(255, Math.round(alpha * 255)));
    }
  }
  context.putImageData(pixels, 0, 0);
  return true;
}
