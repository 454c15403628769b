export type FileKind =
  "text" | "table" | "slides" | "archive" | "code" | "picture" | "sound" | "film" | "other";

const ENDINGS: Record<Exclude<FileKind, "other">, string> = {
  text: "pdf txt md rtf doc docx odt pages epub log tex",
  table: "xls xlsx ods csv tsv numbers",
  slides: "ppt pptx odp key",
  archive: "zip gz tgz tar bz2 xz zst 7z rar jar dmg iso",
  code: "js ts py rb go rs c h cpp java kt swift sh sql html css json xml yaml yml toml ipynb",
  picture: "png jpg jpeg gif webp avif svg bmp tiff tif heic heif psd",
  sound: "mp3 m4a aac ogg oga opus flac wav weba mid",
  film: "mp4 webm mov mkv avi m4v",
};

/** The extension in lowercase; "" if it has no meaningful one. */
export function extensionOf(name: string): string {
  return /[^.]\.([a-z0-9]{1,5})$/i.exec(name)?.[1]?.toLowerCase() ?? "";
}

/** The kind by media type if specific, otherwise by extension. */
export function fileKind(name: string, mediaType = ""): FileKind {
  if (mediaType.startsWith("image/")) return "picture";
  if (mediaType.startsWith("audio/")) return "sound";
  if (mediaType.startsWith("video/")) return "film";
  const ending = extensionOf(name);
  for (const [kind, endings] of Object.entries(ENDINGS)) {
    if (ending && endings.split(" ").includes(ending)) return kind as FileKind;
  }
  return mediaType.startsWith("text/") ? "text" : "other";
}

/** "1.2 MB" in the user's language, in powers of 1,000. */
export function formatSize(bytes: number, language: string): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  let value = bytes;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit: units[at]!,
    unitDisplay: at ? "short" : "long",
    maximumFractionDigits: value < 10 ? 1 : 0,
  }).format(value);
}

/** The `path_id` of an uploaded file's URL. */
export function pathIdOf(address: string): string {
  const path = address.replace(/^\/user_uploads\/(?:download\/)?/, "").replace(/[?#].*$/, "");
  try {
    return decodeURIComponent(path);
  } catch {
    // A percent sign that isn't part of an escape.
    return path;
  }
}

/** The URL that downloads a file instead of showing it. */
export function downloadUrl(address: string): string {
  return address.replace(/^\/user_uploads\/(?:download\/)?/, "/user_uploads/download/");
}
