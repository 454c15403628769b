/** Files, voice notes, calls; who will be told, and taking back what was sent just now. */
export const media = {
  // Files in messages
  file: "File",
  open: (name: string) => `Open ${name}`,
  download: (name: string) => `Download ${name}`,

  // Voice notes
  record: "Record a voice note",
  voice: {
    title: "Voice note",
    /** The file is called so, with the day and the time. */
    name: "Voice note",
    asking: "Your browser asks whether the microphone may be used.",
    recording: "Recording",
    rest: (seconds: number) => (seconds === 1 ? "1 second left" : `${seconds} seconds left`),
    stop: "Stop",
    add: "Attach",
    discard: "Discard the voice note",
    refused:
      "The microphone is not allowed here. Allow it in the browser’s settings for this page, then try again.",
    none: "There is no microphone. Connect one, then try again.",
    busy: "The microphone is in use by another program.",
    insecure: "Browsers record only on pages with an https address.",
    unable: "This browser cannot record sound.",
    failed: "Nothing could be recorded.",
  },

  // Animated pictures
  gifs: {
    title: "Animated picture",
    search: (name: string) => `Search ${name}`,
    none: "Nothing was found.",
    failed: (name: string) => `${name} does not answer. Try again later.`,
  },

  // Calls
  call: "Start a call",
  videoCall: "Video call",
  voiceCall: "Voice call",
  /** What is put into the message: others read it. */
  joinVideo: "Join the video call",
  joinVoice: "Join the voice call",

  // Who will be told
  tells: "Who will be notified",
  everybody: (count: number, channel: string) =>
    count === 1 ? `1 person in #${channel}` : `${count} people in #${channel}`,
  wroteHere: (count: number, isAll: boolean) =>
    isAll
      ? count === 0
        ? "nobody else has written in this topic"
        : count === 1
          ? "1 person who wrote in this topic"
          : `${count} people who wrote in this topic`
      : count
        ? `those who wrote in this topic, ${count} or more`
        : "those who wrote in this topic",
  ofGroup: (count: number, absent: number) =>
    absent
      ? `${count} of ${count + absent}; the others are not in this channel`
      : count === 1
        ? "1 person"
        : `${count} people`,

  // Undoing
  undoFor: (seconds: number) => (seconds ? `Undo send for ${seconds} seconds` : "No undo"),
  goesIn: (seconds: number) => `Goes in ${seconds} s`,
  undo: "Undo",
  tooLate: "It has gone already.",
  sendNow: "Send now",

  // Which key sends, asked once
  askEnter: {
    text: "Enter began a new line. Which key is to send?",
    control: "Ctrl Enter sends",
  },
};
