import type { Words } from "../en";

export const media: Words["media"] = {
  // Files in messages
  file: "Datei",
  open: (name) => `${name} öffnen`,
  download: (name) => `${name} herunterladen`,

  // Voice notes
  record: "Sprachnachricht aufnehmen",
  voice: {
    title: "Sprachnachricht",
    name: "Sprachnachricht",
    asking: "Dein Browser fragt, ob das Mikrofon benutzt werden darf.",
    recording: "Aufnahme läuft",
    rest: (seconds) => (seconds === 1 ? "noch 1 Sekunde" : `noch ${seconds} Sekunden`),
    stop: "Stopp",
    add: "Anhängen",
    discard: "Sprachnachricht verwerfen",
    refused:
      "Das Mikrofon ist hier nicht erlaubt. Erlaube es in den Einstellungen des Browsers für diese Seite und versuch es noch einmal.",
    none: "Es gibt kein Mikrofon. Schließ eins an und versuch es noch einmal.",
    busy: "Ein anderes Programm benutzt das Mikrofon.",
    insecure: "Browser nehmen nur auf Seiten mit https-Adresse auf.",
    unable: "Dieser Browser kann keinen Ton aufnehmen.",
    failed: "Es konnte nichts aufgenommen werden.",
  },

  // Animated pictures
  gifs: {
    title: "Animiertes Bild",
    search: (name: string) => `Bei ${name} suchen`,
    none: "Nichts gefunden.",
    failed: (name: string) => `${name} antwortet nicht. Versuche es später noch einmal.`,
  },

  // Calls
  call: "Anruf beginnen",
  videoCall: "Videoanruf",
  voiceCall: "Sprachanruf",
  joinVideo: "Am Videoanruf teilnehmen",
  joinVoice: "Am Sprachanruf teilnehmen",

  // Who will be told
  tells: "Wer benachrichtigt wird",
  everybody: (count, channel) =>
    count === 1 ? `1 Person in #${channel}` : `${count} Personen in #${channel}`,
  wroteHere: (count, isAll) =>
    isAll
      ? count === 0
        ? "sonst hat niemand in diesem Thema geschrieben"
        : count === 1
          ? "1 Person, die in diesem Thema geschrieben hat"
          : `${count} Personen, die in diesem Thema geschrieben haben`
      : count
        ? `alle, die in diesem Thema geschrieben haben, ${count} oder mehr`
        : "alle, die in diesem Thema geschrieben haben",
  ofGroup: (count, absent) =>
    absent
      ? `${count} von ${count + absent}; die anderen sind nicht in diesem Kanal`
      : count === 1
        ? "1 Person"
        : `${count} Personen`,

  // Undoing
  undoFor: (seconds) =>
    seconds ? `Senden ${seconds} Sekunden lang zurücknehmen` : "Nicht zurücknehmen",
  goesIn: (seconds) => `Geht in ${seconds} s`,
  undo: "Zurücknehmen",
  tooLate: "Sie ist schon unterwegs.",
  sendNow: "Jetzt senden",

  // Which key sends, asked once
  askEnter: {
    text: "Die Eingabetaste hat eine neue Zeile begonnen. Welche Taste soll senden?",
    control: "Strg Eingabetaste sendet",
  },
};
