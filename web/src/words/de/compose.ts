import type { Words } from "../en";

export const compose: Words["compose"] = {
  placeholder: (where: string) => `Schreiben an ${where}`,
  send: "Senden",
  sendAnyway: "Trotzdem senden",
  sendKeys: (enter: boolean): string =>
    enter ? "Senden (Eingabetaste)" : "Senden (Strg Eingabetaste)",
  enterSends: "Eingabetaste sendet",

  notLoaded: "Das konnte nicht geladen werden. Prüfe die Verbindung oder lade die Seite neu.",
  notLoadedNamed: (what: string) =>
    `Das konnte nicht geladen werden: ${what}. Prüfe die Verbindung und versuche es noch einmal.`,
  aWarning: "Eine Warnung zu deiner Nachricht",

  // Marks and tools
  tools: "Formatierung und Anhänge",
  attach: "Dateien anhängen",
  emoji: "Emoji",
  bold: "Fett",
  italic: "Kursiv",
  strike: "Durchgestrichen",
  link: "Link",
  code: "Code",
  quote: "Zitat",
  bullets: "Liste",
  numbers: "Nummerierte Liste",
  math: "Formel",
  spoiler: "Spoiler",
  spoilerTitle: "Titel",
  time: "Zeit",
  poll: "Umfrage",
  todo: "Aufgabenliste",
  snippets: "Gespeicherte Bausteine",
  more: "Mehr",
  preview: "Vorschau",
  write: "Weiterschreiben",
  nothingYet: "Noch steht nichts da.",
  larger: "Größer",
  smaller: "Kleiner",
  text: "Text",
  formatted: "Formatierter Text",

  // Completing
  suggestions: "Vorschläge",
  peopleComing: "Einige Personen werden noch geladen …",
  offered: (count: number) =>
    count === 1
      ? "1 Vorschlag. Pfeil- und Eingabetaste wählen."
      : `${count} Vorschläge. Pfeil- und Eingabetaste wählen.`,
  bot: "Bot",
  members: (count: number) => (count === 1 ? "1 Mitglied" : `${count} Mitglieder`),
  callsAll: "Alle hier benachrichtigen",
  callsTopic: "Alle benachrichtigen, die in diesem Thema geschrieben haben",
  newTopic: "Neues Thema",
  commands: {
    me: "Sagen, was du tust: /me winkt",
    poll: "Eine Umfrage beginnen: eine Frage, dann je Zeile eine Möglichkeit",
    todo: "Eine Aufgabenliste beginnen: ein Titel, dann je Zeile eine Aufgabe",
    dark: "Zum dunklen Erscheinungsbild wechseln",
    light: "Zum hellen Erscheinungsbild wechseln",
  },

  // To whom
  newMessage: "Neue Nachricht",
  begin: "Neue Nachricht",
  beginIn: (channel: string) => `Neues Thema in #${channel}`,
  beginDirect: "Direktnachricht",
  kind: "Art der Nachricht",
  toTopic: "An ein Thema",
  toPeople: "An Personen",
  channel: "Kanal",
  topic: "Thema",
  topicOrNone: (none: string) => `Thema (oder ${none})`,
  people: "Personen",
  without: (name: string) => `Ohne ${name}`,
  toWhom: "Sag zuerst, an wen es geht.",
  closeKeeping: "Schließen (der Entwurf bleibt)",
  sentTo: (where: string) => `Gesendet an ${where}`,
  goThere: "Hingehen",
  notHere: (to: string, here: string) => `Diese Nachricht geht an ${to}, nicht an ${here}.`,
  writeHere: "Stattdessen hier schreiben",
  kept: (to: string) => `Deine Nachricht an ${to} liegt in den Entwürfen.`,

  // Files
  files: "Dateien",
  quotes: "Zitate",
  unquote: (who: string) => `Weglassen, was ${who} gesagt hat`,
  removeFile: (name: string) => `${name} entfernen`,
  attached: "Hochgeladen",
  uploading: (name: string) => `${name} wird hochgeladen …`,
  fileTooLarge: "Diese Datei ist zu groß.",
  fileFailed: "Die Datei konnte nicht hochgeladen werden.",
  retryFile: (name: string) => `${name} noch einmal hochladen`,
  cancelFile: (name: string) => `${name} nicht weiter hochladen`,
  filesFailed: "Eine Datei ist nicht angekommen. Lade sie noch einmal hoch oder nimm sie weg.",
  waitForFiles: "Noch sind Dateien unterwegs. Gesendet werden kann, wenn sie angekommen sind.",

  // Length
  left: (count: number) => (count === 1 ? "noch 1 Zeichen" : `noch ${count} Zeichen`),
  tooLong: (count: number) => (count === 1 ? "1 Zeichen zu viel" : `${count} Zeichen zu viel`),

  // Warnings
  dismiss: "Ausblenden",
  subscribe: "Abonnieren",
  subscribeThem: "Hinzufügen",
  unresolve: "Wieder öffnen",
  warnings: {
    archived: "Dieser Kanal ist archiviert: Hier kann niemand mehr schreiben.",
    mayNotPost: "Du darfst in diesem Kanal nicht schreiben.",
    mayNotBegin: "Du darfst diesen Leuten nicht direkt schreiben.",
    emptyTopic: "Dieser Kanal verlangt für jede Nachricht ein Thema.",
    onlyEmptyTopic: "Dieser Kanal hat keine Themen: Lass das Thema leer.",
    topicTooLong: (most: number) => `Ein Thema hat höchstens ${most} Zeichen.`,
    gone: (name: string) =>
      `Das Konto von ${name} ist deaktiviert und bekommt keine Nachrichten mehr.`,
    mayNotCallAll: (name: string) =>
      `Du darfst mit @${name} nicht so viele Leute auf einmal benachrichtigen.`,
    callsMany: (name: string, count: number) => `@${name} benachrichtigt ${count} Personen.`,
    callsManyNow: (count: number) => `Noch einmal senden, um ${count} Personen zu benachrichtigen.`,
    guests: (names: string, count: number) =>
      count === 1 ? `${names} ist hier zu Gast.` : `${names} sind hier zu Gast.`,
    notThere: (name: string, channel: string) =>
      `${name} hat #${channel} nicht abonniert und wird nicht benachrichtigt.`,
    notSubscribed: (channel: string) =>
      `Du hast #${channel} nicht abonniert: Vielleicht entgehen dir die Antworten.`,
    resolved: "Dieses Thema ist erledigt.",
  },

  // Later
  later: "Später senden",
  when: "Wann",
  times: {
    hour: "In einer Stunde",
    threeHours: "In drei Stunden",
    evening: "Heute Abend",
    tomorrow: "Morgen früh",
    monday: "Montag früh",
  },
  pickTime: "Andere Zeit …",
  schedule: "Planen",
  scheduledFor: (time: string) => `Wird gesendet: ${time}`,
  showScheduled: "Zeigen",
  notToCome: "Wähle eine Zeit, die noch kommt.",
  timeHint: "Alle sehen sie in ihrer eigenen Zeitzone.",

  // Reminders
  remind: "Erinnern",
  remindOf: (name: string) => `Du bekommst eine Direktnachricht zu dieser Nachricht von ${name}.`,
  remindedAt: (time: string) => `Du wirst erinnert: ${time}`,
  reminderNote: "Notiz an dich selbst (freiwillig)",
  showReminders: "Zeigen",

  // Quoting: what is put into the message. Others read it, in the writer's language.
  said: (mention: string, link: string) => `${mention} [schrieb](${link}):`,

  forward: "Anderswo zitieren",

  // Editing
  editing: "Nachricht bearbeiten",
  editWithin: (clock: string) => `noch ${clock}`,
  editLeft: "Deine Änderungen wurden nicht gespeichert.",
  editedElsewhere:
    "Die Nachricht wurde inzwischen anderswo geändert. Kopiere, was du geschrieben hast, und bearbeite sie noch einmal.",
  fileUnlinked: (name: string) => `${name} ist in keiner Nachricht mehr verlinkt.`,
  noEdit: {
    rule: "Du kannst diese Nachricht nicht bearbeiten.",
    late: "Die Zeit, diese Nachricht zu bearbeiten, ist vorbei.",
    archived: "Nachrichten eines archivierten Kanals können nicht bearbeitet werden.",
  },

  // Deleting
  remove: "Nachricht löschen",
  removeTopic: "Thema löschen",
  removeOwn: "Sie verschwindet für alle, endgültig.",
  removeOf: (name: string) => `Diese Nachricht von ${name} verschwindet für alle, endgültig.`,
  removeAllOf: (topic: string, channel: string) =>
    `Alle Nachrichten von „${topic}“ in #${channel} verschwinden für alle, endgültig.`,
  typeTopic: (topic: string) => `Zur Bestätigung „${topic}“ eintippen`,
  removed: "Die Nachricht ist gelöscht.",
  topicRemoved: "Das Thema ist gelöscht.",
  noRemove: {
    rule: "Du darfst das nicht löschen.",
    late: "Die Zeit, diese Nachricht zu löschen, ist vorbei.",
    archived: "Nachrichten eines archivierten Kanals können nicht gelöscht werden.",
  },

  // Moving
  move: "Nachricht verschieben",
  moveTopic: "Thema verschieben oder umbenennen",
  moveNow: "Verschieben",
  renameNow: "Umbenennen",
  moved: "Verschoben.",
  mayNotMove: "Du darfst Nachrichten dieses Kanals nicht verschieben.",
  onlyWithin: "Du darfst hier das Thema ändern, aber nicht den Kanal.",
  moveWithin: (days: number) =>
    days === 1
      ? "Nachrichten, die älter als ein Tag sind, bleiben, wo sie sind."
      : `Nachrichten, die älter als ${days} Tage sind, bleiben, wo sie sind.`,
  someLose:
    "Wer später zu jenem Kanal kommt, kann seinen Verlauf nicht lesen: Manche verlieren diese Nachrichten vielleicht.",
  someTooOld: (allowed: number, all: number) =>
    `Nur ${allowed} der ${all} Nachrichten dürfen noch verschoben werden. Wähle weniger davon.`,
  nothingToMove: "In diesem Thema gibt es keine Nachrichten mehr.",
  which: "Welche Nachrichten",
  spans: {
    change_one: "Nur diese",
    change_later: "Diese und alle danach",
    change_all: "Das ganze Thema",
  },
  notices: "Einen Hinweis hinterlassen",
  tellOld: "wo sie waren",
  tellNew: "wo sie hinkommen",

  // Polls and lists
  polls: {
    title: "Umfrage",
    question: "Frage",
    lines: "Möglichkeiten",
    line: (number: number) => `Möglichkeit ${number}`,
    add: "Noch eine Möglichkeit",
  },
  todos: {
    title: "Aufgabenliste",
    question: "Titel",
    lines: "Aufgaben",
    line: (number: number) => `Aufgabe ${number}`,
    add: "Noch eine Aufgabe",
  },
  withoutLine: (number: number) => `Zeile ${number} entfernen`,
  intoMessage: "In die Nachricht einfügen",

  // Snippets
  noSnippets: "Texte, die du immer wieder sendest, können hier warten.",
  newSnippet: "Neuer Baustein",
  keepAsSnippet: "Das Geschriebene als Baustein behalten",
  snippetTitle: "Titel",
  editSnippet: (title: string) => `${title} bearbeiten`,
  removeSnippet: (title: string) => `${title} löschen`,
  snippetRemoved: (title: string) => `„${title}“ ist gelöscht.`,
};
