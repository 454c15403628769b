import type { AllWords } from "../en";

export const running: AllWords["manage"]["running"] = {
  pages: { usage: "Nutzung", deliveries: "Zustellung", announcements: "Ankündigungen" },

  span: "Tage",
  lastDays: (days) => `Letzte ${days} Tage`,
  usageNote: (at) => `Gezählt ${at}, nach Tagen in UTC.`,
  counting: (percent) => `Die bisherigen Nachrichten werden gezählt: ${percent} %.`,
  notCounted: "Noch wurde nichts gezählt. Der Server beginnt in einigen Minuten.",
  peopleByDay: "Personen am Tag",
  peopleByWeek: "Personen in der Woche",
  messagesByDay: "Nachrichten am Tag",
  most: (most) => `bis zu ${most}`,
  asTable: "Als Tabelle",
  day: "Tag",
  weekOf: "Woche ab",
  count: "Anzahl",
  room: "Platz für Dateien",
  roomNote: (used) => `Alle Dateien zusammen belegen ${used}.`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "Dateien einer Person" },
    hints: {
      upload_quota_per_user_mib:
        "In MiB, mit denen ihrer Bots. Leer: ohne Grenze. Was schon da ist, bleibt.",
    },
    options: {},
  },
  byPerson: "Nach Personen",
  byChannel: "Nach Kanälen",
  byChannelNote:
    "Dateien, die in Nachrichten verlinkt sind. Was in mehreren Kanälen verlinkt ist, zählt in jedem.",
  files: (count) => (count === 1 ? "1 Datei" : `${count} Dateien`),
  noFiles: "Es gibt keine Dateien.",
  directMessages: "Direktnachrichten",
  hiddenChannel: "Ein privater Kanal",

  deliveriesNote:
    "Was bisher nicht zugestellt werden konnte. Es wird wieder versucht und verschwindet hier, wenn es gelingt.",
  nothingFails: "Alles wird zugestellt.",
  kinds: { mail: "E-Mail", push: "Push", webhook: "Webhook", feed: "Feed" },
  waitingMails: (count) => (count === 1 ? "1 Mail wartet" : `${count} Mails warten`),
  waiting: (count) => (count === 1 ? "1 wartet" : `${count} warten`),
  failures: (count) =>
    count === 1 ? "einmal fehlgeschlagen" : `${count} Mal in Folge fehlgeschlagen`,
  sinceThen: (ago) => `zuerst ${ago}`,
  mailHelp: "Wer den Server betreibt, findet mit „tertulia mail --test“ heraus, warum.",

  slow: "Langsame Anfragen",
  slowNote:
    "Die letzten, die länger dauerten, als der Server eingestellt ist. Das Warten auf das Programm der Person zählt nicht.",
  slowTime: (all, database, loop) => `${all}: ${database} für die Datenbank, ${loop} Verspätung`,
  noSlow: "Zuletzt war keine Anfrage langsam.",
  nobody: "ohne Konto",

  announcementsNote: "Alle sehen sie über allem anderen, bis sie enden oder bis man sie schließt.",
  announcementsElsewhere:
    "Andere Programme zeigen sie nicht: Dort sagt es der Benachrichtigungs-Bot im Kanal für Neues vom Server, wenn es einen gibt.",
  noAnnouncements: "Es ist nichts angekündigt.",
  newAnnouncement: "Neue Ankündigung",
  announcement: "Text",
  announce: "Ankündigen",
  shownFor: "Zu sehen für",
  forHours: (hours) => (hours === 1 ? "1 Stunde" : `${hours} Stunden`),
  forDays: (days) => (days === 1 ? "1 Tag" : `${days} Tage`),
  alsoSay: "Der Bot sagt es auch",
  endAnnouncement: (text) => `„${text}“ beenden`,
  endsThen: (ago) => `endet ${ago}`,

  quota: "Platz für Dateien",
  quotaTooSmall: "Eine Grenze beträgt mindestens 1 MiB.",
  quotaNote: (used) => `Die Dateien der Person und ihrer Bots belegen ${used}.`,
  asOrganization: "Wie für alle",
  ownQuota: "Andere Grenze",
  mebibytes: "MiB",
};
