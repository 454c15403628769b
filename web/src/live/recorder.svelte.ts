/** Records a voice message. */

import {
  BIT_RATE,
  audioFormat,
  MAX_SECONDS,
  loudness,
  recordingName,
  plainType,
} from "../data/recording";
import { words } from "../words/index.svelte";

/** Interval of level measurements, in ms. */
const LEVEL_INTERVAL = 100;
/** Number of levels shown. */
const LEVEL_COUNT = 48;

export class Recorder {
  phase = $state<"asking" | "recording" | "done" | "failed">("asking");
  /** Duration in seconds. */
  seconds = $state(0);
  /** Recent levels from 0 to 1, newest last. */
  levels = $state.raw<readonly number[]>([]);
  /** Error message. */
  error = $state("");
  file = $state.raw<File | null>(null);
  /** URL for playback. */
  address = $state("");

  #recorder: MediaRecorder | null = null;
  #stream: MediaStream | null = null;
  #sound: AudioContext | null = null;
  #timer: ReturnType<typeof setInterval> | undefined;
  #left = false;

  /** `maxBytes` is the maximum file size in bytes. */
  constructor(private readonly maxBytes: number) {}

  /** Request the microphone and start. */
  async start(): Promise<void> {
    this.phase = "asking";
    this.error = "";
    const texts = words.voice;
    if (!window.isSecureContext) return this.#fail(texts.insecure);
    if (!navigator.mediaDevices?.getUserMedia || !("MediaRecorder" in window)) {
      return this.#fail(texts.unsupported);
    }
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      this.#stream = stream;
      if (this.#left) this.#release();
      else this.#record(stream);
    } catch (error) {
      this.#release();
      const name = error instanceof DOMException ? error.name : "";
      if (name === "NotAllowedError" || name === "SecurityError") this.#fail(texts.blocked);
      else if (name === "NotFoundError") this.#fail(texts.noMicrophone);
      else if (name === "NotReadableError") this.#fail(texts.busy);
      else this.#fail(texts.failed);
    }
  }

  /** Stop and return the file; null if nothing was recorded. */
  stop(): Promise<File | null> {
    const recorder = this.#recorder;
    if (!recorder || recorder.state === "inactive") return Promise.resolve(this.file);
    return new Promise((resolve) => {
      recorder.addEventListener("stop", () => resolve(this.file), { once: true });
      recorder.stop();
    });
  }

  /** Discard the recording. */
  leave(): void {
    this.#left = true;
    if (this.#recorder) {
      this.#recorder.ondataavailable = null;
      this.#recorder.onstop = null;
      if (this.#recorder.state !== "inactive") this.#recorder.stop();
    }
    this.#release();
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = "";
  }

  #fail(error: string): void {
    this.phase = "failed";
    this.error = error;
  }

  #record(stream: MediaStream): void {
    const format = audioFormat((type) => MediaRecorder.isTypeSupported(type));
    const recorder = new MediaRecorder(stream, {
      audioBitsPerSecond: BIT_RATE,
      ...(format.mimeType ? { mimeType: format.mimeType } : {}),
    });
    this.#recorder = recorder;
    const pieces: Blob[] = [];
    let bytes = 0;
    const began = Date.now();
    recorder.ondataavailable = ({ data }) => {
      if (!data.size) return;
      // Drop data beyond the limit.
      if (bytes + data.size > this.maxBytes) {
        bytes = this.maxBytes;
        if (recorder.state !== "inactive") recorder.stop();
        return;
      }
      bytes += data.size;
      pieces.push(data);
    };
    recorder.onstop = () => {
      this.#release();
      if (!pieces.length) return this.#fail(words.voice.failed);
      const name = recordingName(words.voice.name, new Date(), format.extension);
      this.file = new File(pieces, name, { type: plainType(recorder.mimeType) });
      this.address = URL.createObjectURL(this.file);
      this.phase = "done";
    };
    recorder.onerror = () => this.#fail(words.voice.failed);
    // Unplugging the microphone ends the recording and keeps it.
    stream.getAudioTracks()[0]?.addEventListener("ended", () => void this.stop());
    recorder.start(1000);
    this.phase = "recording";
    const analyser = this.#listen(stream);
    const samples = new Uint8Array(analyser?.fftSize ?? 0);
    this.#timer = setInterval(() => {
      this.seconds = (Date.now() - began) / 1000;
      analyser?.getByteTimeDomainData(samples);
      this.levels = [...this.levels, loudness(samples)].slice(-LEVEL_COUNT);
      if (this.seconds >= MAX_SECONDS) void this.stop();
    }, LEVEL_INTERVAL);
  }

  /** Measure the level if the browser supports it. */
  #listen(stream: MediaStream): AnalyserNode | null {
    try {
      this.#sound = new AudioContext();
      const analyser = this.#sound.createAnalyser();
      analyser.fftSize = 1024;
      this.#sound.createMediaStreamSource(stream).connect(analyser);
      return analyser;
    } catch {
      // Recording works without a level.
      return null;
    }
  }

  /** Release the microphone. */
  #release(): void {
    clearInterval(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    // It may be closed already.
    void this.#sound?.close().catch(() => {});
    this.#sound = null;
  }
}
