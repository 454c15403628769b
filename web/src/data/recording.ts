/** Voice messages: format and names. */

/** Maximum length, in seconds. */
export const LONGEST = 600;
/** Enough for speech, in bits per second. */
export const BITS = 32_000;

/** Audio formats with their extensions, the most compatible first. */
const FORMS = [
  ["audio/mp4;codecs=mp4a.40.2", "m4a"],
  ["audio/webm;codecs=opus", "weba"],
  ["audio/ogg;codecs=opus", "ogg"],
  ["audio/mp4", "m4a"],
  ["audio/webm", "weba"],
] as const;

export interface Form {
  /** The recorder's MIME type; "" for its default. */
  recorded: string;
  ending: string;
}

/** The best format that the browser can record. */
export function formFor(canRecord: (type: string) => boolean): Form {
  const [recorded, ending] = FORMS.find(([type]) => canRecord(type)) ?? ["", "weba"];
  return { recorded, ending };
}

/** The media type without parameters: `audio/webm` of `audio/webm;codecs=opus`. */
export function plainType(type: string): string {
  return type.split(";")[0]?.trim() || "audio/webm";
}

/** "Voice note 2026-03-01 14.05.m4a", sortable by name. */
export function noteName(called: string, at: Date, ending: string): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${called} ${day} ${two(at.getHours())}.${two(at.getMinutes())}.${ending}`;
}

/** "1:05" */
export function clockText(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** Loudness of samples around 128, from 0 to 1, scaled for speech. */
export function loudness(samples: Uint8Array): number {
  let sum = 0;
  for (const one of samples) sum += ((one - 128) / 128) ** 2;
  return Math.min(1, Math.sqrt(sum / Math.max(1, samples.length)) * 4);
}
