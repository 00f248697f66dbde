// The kinds of files, as the server numbers them: what people call them, and why one cannot be shown.
export const image = 0, document = 1, video = 2, recording = 3, font = 4, container = 5;

export const names = ["photo", "document", "video", "recording", "font", "document"];
const plurals = ["photos", "documents", "videos", "recordings", "fonts", "documents"];
export const symbols = ["picture", "document", "video", "music", "font", "document"];
// Width by height, where nothing is known of a file.
export const usualAspects = [1.4, 0.75, 16 / 9, 1, 1, 0.75];

export const counted = (number, one, many) => `${number.toLocaleString()} ${number === 1 ? one : many}`;

// "3 photos", "1 video": one text for each kind that there is.
export function counts(numbers) {
  const order = [image, video, recording, document, font];
  const all = [...numbers];
  all[document] += all[container] ?? 0;
  return order.filter((kind) => all[kind] > 0).map((kind) => counted(all[kind], names[kind], plurals[kind]));
}

// The end of a name in capitals.
export const ending = (name) => /\.([a-z0-9]{1,8})$/i.exec(name)?.[1].toUpperCase() ?? "";

// Files that are whole, and have no picture.
const isPlain = (code, kind) =>
  (kind === recording && ["no-video", "unsupported-image"].includes(code)) || (kind === container && code === "unsupported-image");

const reasons = {
  "not-an-image": ["Unknown content", "Its content is not what its name says."],
  "damaged-image": ["Damaged", "The file is damaged, or ends early."],
  undecodable: ["Damaged", "The file is damaged."],
  "unsupported-image": ["Unknown variant", "The file is of a variant that is not read."],
  encrypted: ["Needs a password", "Download it, and open it with a program that asks for its password."],
  "no-video": ["No image", "The file has no moving images."],
  "limit-exceeded": ["Too large", "It has more pixels than the server is allowed to decode."],
  "source-too-large": ["Too large", "The file has more bytes than the server is allowed to read."],
  "helper-missing": ["Not installed", "This server lacks the program for files of this kind."],
  "not-readable": ["Not readable", "The server may not read the file: it has no right to it."],
  "source-not-found": ["Gone", "The file was deleted or renamed."],
};

// A few words below the name on a tile; empty for a file that only has no picture.
export const shortReason = (code, kind) => (isPlain(code, kind) ? "" : reasons[code]?.[0] ?? "Cannot be shown");

// A heading and a sentence for the whole window.
export function longReason(code, kind) {
  if (kind === recording && isPlain(code, kind)) return ["No cover", "The recording has no cover."];
  if (isPlain(code, kind)) return ["No preview", "The file has no preview inside. Download it to open it."];
  if (code === "encrypted") return [`This ${names[kind]} needs a password.`, reasons[code][1]];
  return [`This ${names[kind]} cannot be shown.`, reasons[code]?.[1] ?? "The file may be damaged, too large, or of an unknown kind."];
}
