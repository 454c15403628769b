/** Uploads files: small ones in one request, large ones in resumable chunks. */

import { csrfToken } from "../wire/early";
import { words } from "../words/index.svelte";

export interface Upload {
  id: number;
  name: string;
  size: number;
  file: File;
  /** From 0 to 1. */
  sent: number;
  state: "going" | "failed";
  error?: string;
  /** Local URL of an image during the upload. */
  preview?: string;
}

interface Stored {
  url: string;
  filename: string;
}

/** Larger files are uploaded in chunks. */
const RESUMABLE_SIZE = 5 * 1024 * 1024;
const CHUNK_SIZE = 4 * 1024 * 1024;

class UploadError extends Error {}

export class Uploads {
  list = $state.raw<readonly Upload[]>([]);

  #next = 1;
  #cancels = new Map<number, () => void>();

  /** `done` gets the stored file; null if the upload was canceled. */
  constructor(private readonly done: (upload: Upload, stored: Stored | null) => void) {}

  get busy(): boolean {
    return this.list.some((upload) => upload.state === "going");
  }

  add(file: File, maxBytes: number): Upload {
    const upload: Upload = {
      id: this.#next++,
      name: file.name,
      size: file.size,
      file,
      sent: 0,
      state: "going",
      ...(file.type.startsWith("image/") ? { preview: URL.createObjectURL(file) } : {}),
    };
    this.list = [...this.list, upload];
    if (file.size > maxBytes)
      this.#put(upload.id, { state: "failed", error: words.compose.fileTooLarge });
    else void this.#send(upload.id, file);
    return upload;
  }

  cancel(id: number): void {
    const upload = this.list.find((other) => other.id === id);
    this.#cancels.get(id)?.();
    this.#forget(id);
    if (upload) this.done(upload, null);
  }

  retry(id: number): void {
    const upload = this.list.find((other) => other.id === id);
    if (!upload) return;
    this.#put(id, { state: "going", error: undefined, sent: 0 });
    void this.#send(id, upload.file);
  }

  cancelAll(): void {
    for (const { id } of this.list) this.cancel(id);
  }

  #put(id: number, changes: Partial<Upload>): void {
    this.list = this.list.map((upload) => (upload.id === id ? { ...upload, ...changes } : upload));
  }

  #forget(id: number): void {
    this.#cancels.delete(id);
    const preview = this.list.find((upload) => upload.id === id)?.preview;
    if (preview) URL.revokeObjectURL(preview);
    this.list = this.list.filter((upload) => upload.id !== id);
  }

  async #send(id: number, file: File): Promise<void> {
    const progress = (sent: number) => this.#put(id, { sent });
    const cancelling = (cancel: () => void) => this.#cancels.set(id, cancel);
    try {
      const send = file.size > RESUMABLE_SIZE ? uploadChunks : uploadWhole;
      const stored = await send(file, progress, cancelling);
      const upload = this.list.find((other) => other.id === id);
      this.#forget(id);
      if (upload) this.done(upload, stored);
    } catch (error) {
      const problem = error instanceof UploadError ? error.message : words.compose.fileFailed;
      this.#put(id, { state: "failed", error: problem });
    }
  }
}

type Uploader = (
  file: File,
  progress: (sent: number) => void,
  cancelling: (cancel: () => void) => void,
) => Promise<Stored>;

function storedIn(text: string): Stored {
  let body: Partial<Stored> & { msg?: string; result?: string };
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    throw new UploadError(words.compose.fileFailed);
  }
  if (body.result !== "success" || !body.url) {
    throw new UploadError(body.msg || words.compose.fileFailed);
  }
  return { url: body.url, filename: body.filename ?? "" };
}

/** `fetch` reports no upload progress. */
const uploadWhole: Uploader = (file, progress, cancelling) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/v1/user_uploads");
    request.setRequestHeader("X-CSRF-Token", csrfToken());
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total);
    };
    request.onerror = () => reject(new UploadError(words.compose.fileFailed));
    request.onload = () => {
      try {
        resolve(storedIn(request.responseText));
      } catch (error) {
        reject(error as Error);
      }
    };
    cancelling(() => request.abort());
    const form = new FormData();
    form.set("file", file, file.name);
    request.send(form);
  });

const uploadChunks: Uploader = async (file, progress, cancelling) =>
  storedIn((await sendPieces(file, { retries: RETRIES }, progress, cancelling)).text);

/** Delays before retries, in milliseconds. */
const RETRIES = [500, 2000, 5000, 10_000, 20_000];
/** Large files survive an hour without a connection. */
const PATIENT_RETRIES = [...RETRIES, ...Array<number>(120).fill(30_000)];

/** Upload an export of another chat server, which continues an interrupted upload of the same file.
 * Returns its key. Rejects with a UploadError; never settles if it's canceled. */
export async function uploadExport(
  file: File,
  progress: (sent: number) => void,
  cancelling: (cancel: () => void) => void,
): Promise<string> {
  const options = { purpose: "import", retries: PATIENT_RETRIES };
  const { url } = await sendPieces(file, options, progress, cancelling);
  return url.slice(url.lastIndexOf("/") + 1);
}

async function sendPieces(
  file: File,
  options: { purpose?: string; retries: number[] },
  progress: (sent: number) => void,
  cancelling: (cancel: () => void) => void,
): Promise<{ url: string; text: string }> {
  const { Upload: Tus } = await import("tus-js-client");
  const purpose = options.purpose ?? "";
  return new Promise((resolve, reject) => {
    const upload = new Tus(file, {
      endpoint: "/api/v1/tus",
      chunkSize: CHUNK_SIZE,
      retryDelays: options.retries,
      removeFingerprintOnSuccess: true,
      fingerprint: async () =>
        ["tertulia", purpose, file.name, file.type, file.size, file.lastModified].join("-"),
      metadata: { filename: file.name, filetype: file.type, ...(purpose ? { purpose } : {}) },
      headers: { "X-CSRF-Token": csrfToken() },
      onProgress: (sent, all) => progress(all ? sent / all : 0),
      // Also offline, where the default gives up.
      onShouldRetry: (error) => {
        const status = error.originalResponse?.getStatus() ?? 0;
        return status < 400 || status >= 500 || status === 409 || status === 423;
      },
      onError: (error) => {
        const body = "originalResponse" in error ? error.originalResponse?.getBody() : undefined;
        reject(new UploadError(body ? messageIn(body) : words.compose.fileFailed));
      },
      onSuccess: ({ lastResponse }) =>
        resolve({ url: upload.url ?? "", text: lastResponse.getBody() }),
    });
    // The server deletes unfinished uploads anyway.
    cancelling(() => void upload.abort(true).catch(() => {}));
    upload
      .findPreviousUploads()
      .then(([previous]) => {
        if (previous) upload.resumeFromPreviousUpload(previous);
        upload.start();
      })
      .catch(() => upload.start());
  });
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { msg?: string }).msg || words.compose.fileFailed;
  } catch {
    // A reverse proxy's error isn't JSON.
    return words.compose.fileFailed;
  }
}
