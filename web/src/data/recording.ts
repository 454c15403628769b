/** Voice messages: format and names. */

/** Maximum length, in seconds. */
export const MAX_SECONDS = 600;
/** Enough for speech, in bits per second. */
export const BIT_RATE = 32_000;

/** Audio formats with their extensions, the most compatible first. */
const AUDIO_FORMATS = [
  ["audio/mp4;codecs=mp4a.40.2", "m4a"],
  ["audio/webm;codecs=opus", "weba"],
  ["audio/ogg;codecs=opus", "ogg"],
  ["audio/mp4", "m4a"],
  ["audio/webm", "weba"],
] as const;

export interface AudioFormat {
  /** The recorder's MIME type; "" for its default. */
  mimeType: string;
  extension: string;
}

/** The best format that the browser can record. */
export function audioFormat(canRecord: (type: string) => boolean): AudioFormat {
  const [mimeType, extension] = AUDIO_FORMATS.find(([type]) => canRecord(type)) ?? ["", "weba"];
  return { mimeType, extension };
}

/** The media type without parameters: `audio/webm` of `audio/webm;codecs=opus`. */
export function plainType(type: string): string {
  return type.split(";")[0]?.trim() || "audio/webm";
}

/** "Voice note 2026-03-01 14.05.m4a", sortable by name. */
export function recordingName(name: string, at: Date, extension: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${name} ${day} ${two(at.getHours())}.${two(at.getMinutes())}.${extension}`;
}

/** "1:05" */
export function clockText(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** Loudness of samples around 128, from 0 to 1, scaled for speech. */
export function loudness(samples: Uint8Array): number {
  let sum = 0;
  for (const sample of samples) sum += ((sample - 128) / 128) ** 2;
  return Math.min(1, Math.sqrt(sum / Math.max(1, samples.length)) * 4);
}
