// What the server is asked for.
const base = "/gallery/";

export class ServerError extends Error {
  constructor(status, reason, code) { super(reason); this.status = status; this.code = code ?? ""; }
}

async function json(path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  // The server takes a plus sign for one.
  const response = await fetch(`${base}api/${path}?${query.toString().replaceAll("+", "%20")}`, { signal });
  if (!response.ok) {
    const error = await response.json().catch(() => ({}));
    throw new ServerError(response.status, error.reason || `The server answers ${response.status}.`, error.code);
  }
  return response.json();
}

export const folder = (parameters, signal) => json("folder", parameters, signal);
export const details = (parameters, signal) => json("details", parameters, signal);
export const cover = (path, signal) => json("cover", { path }, signal);
export const changes = (path) => new EventSource(`${base}api/changes?path=${encodeURIComponent(path)}`);

const encoded = (path) => path.split("/").filter(Boolean).map(encodeURIComponent).join("/");
export const join = (path, name) => (path ? `${path}/${name}` : name);

const base64 = (text) => btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

// A picture made of a file. The version changes with the file, so that a browser keeps what it has.
export function image(path, options, version, format) {
  const source = `local:///${encoded(path)}`;
  const head = `${base}media/insecure/${options}/cb:${version}`;
  const plain = `${head}/plain/${encodeURIComponent(source).replaceAll("%2F", "/").replaceAll("%3A", ":")}@${format}`;
  // Percent signs need three characters each in the plain form.
  return plain.length < 4000 ? plain : `${head}/${base64(source)}.${format}`;
}

// A part of a picture, by IIIF; null for names that its paths cannot have. The query changes with the file.
export function tile(path, version, format) {
  if (/[\u0000-\u001f\u007f]/.test(path)) return null;
  const head = `${base}media/iiif/3/${encodeURIComponent(path)}`;
  return ({ x, y, width, height }, w, h) => `${head}/${x},${y},${width},${height}/${w},${h}/0/default.${format}?${version}`;
}

// Makes a picture ready, behind the work of everyone else: the server sees the priority.
export async function prepare(url, signal) {
  const response = await fetch(url, { signal, priority: "low", headers: { Priority: "u=7" } });
  await response.blob();
}

export async function signIn(token) {
  const response = await fetch(`${base}token`, { method: "POST", body: new URLSearchParams({ token }) });
  return response.ok;
}

export async function information(path, version, signal) {
  const source = base64(`local:///${encoded(path)}`);
  const response = await fetch(`${base}media/info/insecure/cb:${version}/${source}`, { signal });
  if (!response.ok) {
    const error = await response.json().catch(() => ({}));
    throw new ServerError(response.status, "The file cannot be described.", error.code);
  }
  return response.json();
}

export const original = (path, download) => `${base}original/${encoded(path)}${download ? "?download=1" : ""}`;

// Whether a browser shows the frames of a file; other files have several pages.
export const isAnimated = (name, details) => details?.[3] > 1 && /\.(gif|webp|a?png|avif)$/i.test(name);

// Fast to make and to read; only pictures without transparency become JPEG.
export const format = (name) => (/\.(jpe?g|jpe|jfif|heic|heif|mp4|mov|m4v|pdf)$/i.test(name) ? "jpg" : "webp");
