/** Recording a voice note: from asking for the microphone to a file. */

import { BITS, formFor, LONGEST, loudness, noteName, plainType } from "../data/recording";
import { words } from "../words/index.svelte";

/** How often one sees how loud it is, in ms. */
const LOOKS = 100;
/** What was loud lately: so many looks. */
const SHOWN = 48;

export class Recorder {
  phase = $state<"asking" | "recording" | "done" | "failed">("asking");
  /** How long it is, in seconds. */
  seconds = $state(0);
  /** How loud it was lately, from 0 to 1, the newest last. */
  levels = $state.raw<readonly number[]>([]);
  /** Why there is none. */
  trouble = $state("");
  file = $state.raw<File | null>(null);
  /** Where it can be listened to. */
  address = $state("");

  #recorder: MediaRecorder | null = null;
  #stream: MediaStream | null = null;
  #sound: AudioContext | null = null;
  #timer: ReturnType<typeof setInterval> | undefined;
  #left = false;

  /** `most` is how large the file may be, in bytes. */
  constructor(private readonly most: number) {}

  /** Ask for the microphone, and begin. */
  async start(): Promise<void> {
    this.phase = "asking";
    this.trouble = "";
    const say = words.media.voice;
    if (!window.isSecureContext) return this.#fail(say.insecure);
    if (!navigator.mediaDevices?.getUserMedia || !("MediaRecorder" in window)) {
      return this.#fail(say.unable);
    }
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      this.#stream = stream;
      if (this.#left) this.#release();
      else this.#record(stream);
    } catch (error) {
      this.#release();
      const name = error instanceof DOMException ? error.name : "";
      if (name === "NotAllowedError" || name === "SecurityError") this.#fail(say.refused);
      else if (name === "NotFoundError") this.#fail(say.none);
      else if (name === "NotReadableError") this.#fail(say.busy);
      else this.#fail(say.failed);
    }
  }

  /** It is enough. Answers the file; null where nothing was heard. */
  stop(): Promise<File | null> {
    const recorder = this.#recorder;
    if (!recorder || recorder.state === "inactive") return Promise.resolve(this.file);
    return new Promise((resolve) => {
      recorder.addEventListener("stop", () => resolve(this.file), { once: true });
      recorder.stop();
    });
  }

  /** It is not wanted, or was taken over. */
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

  #fail(trouble: string): void {
    this.phase = "failed";
    this.trouble = trouble;
  }

  #record(stream: MediaStream): void {
    const form = formFor((type) => MediaRecorder.isTypeSupported(type));
    const recorder = new MediaRecorder(stream, {
      audioBitsPerSecond: BITS,
      ...(form.recorded ? { mimeType: form.recorded } : {}),
    });
    this.#recorder = recorder;
    const pieces: Blob[] = [];
    let bytes = 0;
    const began = Date.now();
    recorder.ondataavailable = ({ data }) => {
      if (!data.size) return;
      // One that would be too large is left out, with what comes after it.
      if (bytes + data.size > this.most) {
        bytes = this.most;
        if (recorder.state !== "inactive") recorder.stop();
        return;
      }
      bytes += data.size;
      pieces.push(data);
    };
    recorder.onstop = () => {
      this.#release();
      if (!pieces.length) return this.#fail(words.media.voice.failed);
      const name = noteName(words.media.voice.name, new Date(), form.ending);
      this.file = new File(pieces, name, { type: plainType(recorder.mimeType) });
      this.address = URL.createObjectURL(this.file);
      this.phase = "done";
    };
    recorder.onerror = () => this.#fail(words.media.voice.failed);
    // A microphone that is pulled out ends it; what was said until then is there.
    stream.getAudioTracks()[0]?.addEventListener("ended", () => void this.stop());
    recorder.start(1000);
    this.phase = "recording";
    const analyser = this.#listen(stream);
    const samples = new Uint8Array(analyser?.fftSize ?? 0);
    this.#timer = setInterval(() => {
      this.seconds = (Date.now() - began) / 1000;
      analyser?.getByteTimeDomainData(samples);
      this.levels = [...this.levels, loudness(samples)].slice(-SHOWN);
      if (this.seconds >= LONGEST) void this.stop();
    }, LOOKS);
  }

  /** How loud it is can be seen where the browser tells. */
  #listen(stream: MediaStream): AnalyserNode | null {
    try {
      this.#sound = new AudioContext();
      const analyser = this.#sound.createAnalyser();
      analyser.fftSize = 1024;
      this.#sound.createMediaStreamSource(stream).connect(analyser);
      return analyser;
    } catch {
      return null;
    }
  }

  /** The microphone is free again. */
  #release(): void {
    clearInterval(this.#timer);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    void this.#sound?.close().catch(() => {});
    this.#sound = null;
  }
}
