import type { Words } from "../en";

export const compose: Words["compose"] = {
  placeholder: (where) => `Écrire à ${where}`,
  send: "Envoyer",
  sendAnyway: "Envoyer quand même",
  sendKeys: (enter) => (enter ? "Envoyer (Entrée)" : "Envoyer (Ctrl Entrée)"),
  enterSends: "Entrée envoie",

  notLoaded: "Le chargement a échoué. Vérifiez la connexion ou rechargez la page.",
  notLoadedNamed: (what) => `Le chargement a échoué : ${what}. Vérifiez la connexion et réessayez.`,
  aWarning: "Un avertissement sur votre message",

  // Marks and tools
  tools: "Mise en forme et pièces jointes",
  attach: "Joindre des fichiers",
  emoji: "Émoji",
  bold: "Gras",
  italic: "Italique",
  strike: "Barré",
  link: "Lien",
  code: "Code",
  quote: "Citation",
  bullets: "Liste",
  numbers: "Liste numérotée",
  math: "Formule",
  spoiler: "Spoiler",
  spoilerTitle: "Titre",
  time: "Heure",
  poll: "Sondage",
  todo: "Liste de tâches",
  snippets: "Extraits enregistrés",
  more: "Plus",
  preview: "Aperçu",
  write: "Continuer à écrire",
  nothingYet: "Rien n’est encore écrit.",
  larger: "Agrandir",
  smaller: "Réduire",
  text: "Texte",
  formatted: "Texte mis en forme",

  // Completing
  suggestions: "Suggestions",
  peopleComing: "Des personnes sont encore en cours de chargement…",
  offered: (count) =>
    count < 2
      ? `${count} suggestion. Choisissez avec les flèches et Entrée.`
      : `${count} suggestions. Choisissez avec les flèches et Entrée.`,
  bot: "bot",
  members: (count) => (count < 2 ? `${count} membre` : `${count} membres`),
  callsAll: "Avertir tout le monde ici",
  callsTopic: "Avertir ceux qui ont écrit dans ce sujet",
  newTopic: "Nouveau sujet",
  commands: {
    me: "Dire ce que vous faites : /me fait signe",
    poll: "Lancer un sondage : une question, puis une option par ligne",
    todo: "Lancer une liste de tâches : un titre, puis une tâche par ligne",
    dark: "Passer au thème sombre",
    light: "Passer au thème clair",
  },

  // To whom
  newMessage: "Nouveau message",
  begin: "Nouveau message",
  beginIn: (channel) => `Nouveau sujet dans #${channel}`,
  beginDirect: "Message direct",
  kind: "Type de message",
  toTopic: "Dans un sujet",
  toPeople: "À des personnes",
  channel: "Canal",
  topic: "Sujet",
  topicOrNone: (none) => `Sujet (ou ${none})`,
  people: "Personnes",
  without: (name) => `Sans ${name}`,
  toWhom: "Indiquez d’abord à qui il s’adresse.",
  closeKeeping: "Fermer (le brouillon est conservé)",
  sentTo: (where) => `Envoyé à ${where}`,
  goThere: "Y aller",
  notHere: (to, here) => `Ce message part vers ${to}, et non vers ${here}.`,
  writeHere: "Écrire plutôt ici",
  kept: (to) => `Votre message pour ${to} est dans les brouillons.`,

  // Files
  files: "Fichiers",
  quotes: "Citations",
  unquote: (who) => `Retirer la citation de ${who}`,
  removeFile: (name) => `Retirer ${name}`,
  attached: "Envoyé",
  uploading: (name) => `Envoi de ${name}…`,
  fileTooLarge: "Ce fichier est trop volumineux.",
  fileFailed: "Le fichier n’a pas pu être envoyé.",
  retryFile: (name) => `Envoyer ${name} à nouveau`,
  cancelFile: (name) => `Abandonner l’envoi de ${name}`,
  filesFailed: "Un fichier n’est pas arrivé. Envoyez-le à nouveau ou retirez-le.",
  waitForFiles:
    "Des fichiers sont encore en route. L’envoi sera possible quand ils seront arrivés.",

  // Length
  left: (count) => (count < 2 ? `${count} caractère restant` : `${count} caractères restants`),
  tooLong: (count) => (count < 2 ? `${count} caractère de trop` : `${count} caractères de trop`),

  // Warnings
  dismiss: "Ignorer",
  subscribe: "S’abonner",
  subscribeThem: "Les abonner",
  unresolve: "Marquer comme non résolu",
  warnings: {
    archived: "Ce canal est archivé : plus personne ne peut y écrire.",
    mayNotPost: "Vous n’avez pas le droit d’écrire dans ce canal.",
    mayNotBegin: "Vous n’avez pas le droit d’écrire directement à ces personnes.",
    emptyTopic: "Ce canal demande un sujet pour chaque message.",
    onlyEmptyTopic: "Ce canal n’a pas de sujets : laissez le sujet vide.",
    topicTooLong: (most) => `Un sujet compte au plus ${most} caractères.`,
    gone: (name) => `Le compte de ${name} est désactivé : les messages ne lui parviennent plus.`,
    mayNotCallAll: (name) =>
      `Vous n’avez pas le droit d’avertir autant de personnes à la fois avec @${name}.`,
    callsMany: (name, count) => `@${name} avertira ${count} personnes.`,
    callsManyNow: (count) => `Envoyez encore une fois pour avertir ${count} personnes.`,
    guests: (names, count) =>
      count < 2 ? `${names} a ici le statut d’invité.` : `${names} ont ici le statut d’invité.`,
    notThere: (name, channel) => `${name} n’est pas dans #${channel} et ne sera pas averti.`,
    notSubscribed: (channel) =>
      `Vous n’êtes pas abonné à #${channel} : vous risquez de manquer les réponses.`,
    resolved: "Ce sujet est résolu.",
  },

  // Later
  later: "Envoyer plus tard",
  when: "Quand",
  times: {
    hour: "Dans une heure",
    threeHours: "Dans trois heures",
    evening: "Ce soir",
    tomorrow: "Demain matin",
    monday: "Lundi matin",
  },
  pickTime: "Une autre heure…",
  schedule: "Programmer",
  scheduledFor: (time) => `Envoi prévu : ${time}`,
  showScheduled: "Afficher",
  notToCome: "Choisissez une heure à venir.",
  timeHint: "Chacun la voit dans son propre fuseau horaire.",

  // Reminders
  remind: "Me le rappeler",
  remindOf: (name) => `Vous recevrez un message direct à propos de ce message de ${name}.`,
  remindedAt: (time) => `Rappel prévu : ${time}`,
  reminderNote: "Note pour vous-même (facultative)",
  showReminders: "Afficher",

  // Quoting: what is put into the message. Others read it, in the writer's language.
  said: (mention, link) => `${mention} [a dit](${link}) :`,

  forward: "Citer ailleurs",

  // Editing
  editing: "Modifier le message",
  editWithin: (clock) => `encore ${clock}`,
  editLeft: "Vos modifications n’ont pas été enregistrées.",
  editedElsewhere:
    "Le message a été modifié ailleurs entre-temps. Copiez votre texte, puis modifiez-le à nouveau.",
  fileUnlinked: (name) => `${name} n’est plus lié dans aucun message.`,
  noEdit: {
    rule: "Vous ne pouvez pas modifier ce message.",
    late: "Le délai pour modifier ce message est écoulé.",
    archived: "Les messages d’un canal archivé ne peuvent pas être modifiés.",
  },

  // Deleting
  remove: "Supprimer le message",
  removeTopic: "Supprimer le sujet",
  removeOwn: "Il disparaît pour tout le monde, définitivement.",
  removeOf: (name) => `Ce message de ${name} disparaît pour tout le monde, définitivement.`,
  removeAllOf: (topic, channel) =>
    `Tous les messages de « ${topic} » dans #${channel} disparaissent pour tout le monde, définitivement.`,
  typeTopic: (topic) => `Saisissez « ${topic} » pour confirmer`,
  removed: "Le message est supprimé.",
  topicRemoved: "Le sujet est supprimé.",
  noRemove: {
    rule: "Vous n’avez pas le droit de supprimer ceci.",
    late: "Le délai pour supprimer ce message est écoulé.",
    archived: "Les messages d’un canal archivé ne peuvent pas être supprimés.",
  },

  // Moving
  move: "Déplacer le message",
  moveTopic: "Déplacer ou renommer le sujet",
  moveNow: "Déplacer",
  renameNow: "Renommer",
  moved: "Déplacé.",
  mayNotMove: "Vous n’avez pas le droit de déplacer les messages de ce canal.",
  onlyWithin: "Vous pouvez changer le sujet ici, mais pas le canal.",
  moveWithin: (days) =>
    days === 1
      ? "Les messages de plus d’un jour restent où ils sont."
      : `Les messages de plus de ${days} jours restent où ils sont.`,
  someLose:
    "Qui rejoint ce canal plus tard ne peut pas lire son historique : certains lecteurs risquent de perdre ces messages.",
  someTooOld: (allowed, all) =>
    `Seuls ${allowed} des ${all} messages peuvent encore être déplacés. Choisissez-en moins.`,
  nothingToMove: "Il n’y a plus de messages dans ce sujet.",
  which: "Quels messages",
  spans: {
    change_one: "Seulement celui-ci",
    change_later: "Celui-ci et tous les suivants",
    change_all: "Tout le sujet",
  },
  notices: "Laisser une note à ce propos",
  tellOld: "là où ils étaient",
  tellNew: "là où ils vont",

  // Polls and lists
  polls: {
    title: "Sondage",
    question: "Question",
    lines: "Options",
    line: (number) => `Option ${number}`,
    add: "Une autre option",
  },
  todos: {
    title: "Liste de tâches",
    question: "Titre",
    lines: "Tâches",
    line: (number) => `Tâche ${number}`,
    add: "Une autre tâche",
  },
  withoutLine: (number) => `Retirer la ligne ${number}`,
  intoMessage: "Insérer dans le message",

  // Snippets
  noSnippets: "Les textes que vous envoyez souvent peuvent attendre ici.",
  newSnippet: "Nouvel extrait",
  keepAsSnippet: "Garder ce qui est écrit comme extrait",
  snippetTitle: "Titre",
  editSnippet: (title) => `Modifier ${title}`,
  removeSnippet: (title) => `Supprimer ${title}`,
  snippetRemoved: (title) => `« ${title} » est supprimé.`,
};
