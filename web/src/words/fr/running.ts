import type { AllWords } from "../en";

export const running: AllWords["manage"]["running"] = {
  pages: { usage: "Utilisation", deliveries: "Distribution", announcements: "Annonces" },

  span: "Jours",
  lastDays: (days) => `${days} derniers jours`,
  usageNote: (at) => `Compté ${at}, par jours UTC.`,
  counting: (percent) => `Les messages déjà écrits sont en cours de comptage : ${percent} %.`,
  notCounted: "Rien n’a encore été compté. Le serveur commence dans quelques minutes.",
  peopleByDay: "Personnes par jour",
  peopleByWeek: "Personnes par semaine",
  messagesByDay: "Messages par jour",
  most: (most) => `jusqu’à ${most}`,
  asTable: "En tableau",
  day: "Jour",
  weekOf: "Semaine du",
  count: "Nombre",
  room: "Place pour les fichiers",
  roomNote: (used) => `Tous les fichiers ensemble occupent ${used}.`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "Fichiers d’une personne" },
    hints: {
      upload_quota_per_user_mib:
        "En Mio, avec ceux de ses bots. Vide : sans limite. Ce qui est déjà là reste.",
    },
    options: {},
  },
  byPerson: "Par personne",
  byChannel: "Par canal",
  byChannelNote:
    "Les fichiers liés dans des messages. Ce qui est lié dans plusieurs canaux compte dans chacun.",
  files: (count) => (count === 1 ? "1 fichier" : `${count} fichiers`),
  noFiles: "Il n’y a pas de fichiers.",
  directMessages: "Messages directs",
  hiddenChannel: "Un canal privé",

  deliveriesNote:
    "Ce qui n’a pas encore pu être distribué. Un nouvel essai a lieu, et cela disparaît d’ici quand il réussit.",
  nothingFails: "Tout est distribué.",
  kinds: { mail: "E-mail", push: "Push", webhook: "Webhook", feed: "Flux" },
  waitingMails: (count) => (count === 1 ? "1 e-mail attend" : `${count} e-mails attendent`),
  waiting: (count) => (count === 1 ? "1 attend" : `${count} attendent`),
  failures: (count) => (count === 1 ? "a échoué une fois" : `a échoué ${count} fois de suite`),
  sinceThen: (ago) => `la première fois ${ago}`,
  mailHelp: "La personne qui gère le serveur en trouve la raison avec « tertulia mail --test ».",

  slow: "Requêtes lentes",
  slowNote:
    "Les dernières qui ont pris plus de temps que le serveur ne l’admet. L’attente du client ne compte pas.",
  slowTime: (all, database, loop) =>
    `${all} : ${database} pour la base de données, ${loop} de retard`,
  noSlow: "Aucune requête n’a été lente récemment.",
  nobody: "sans compte",

  announcementsNote:
    "Tout le monde les voit au-dessus de tout le reste, jusqu’à leur fin ou jusqu’à ce qu’on les ferme.",
  announcementsElsewhere:
    "Les autres clients ne les montrent pas : là, le bot de notification le dit dans le canal des nouvelles du serveur, s’il y en a un.",
  noAnnouncements: "Rien n’est annoncé.",
  newAnnouncement: "Nouvelle annonce",
  announcement: "Texte",
  announce: "Annoncer",
  shownFor: "Visible pendant",
  forHours: (hours) => (hours === 1 ? "1 heure" : `${hours} heures`),
  forDays: (days) => (days === 1 ? "1 jour" : `${days} jours`),
  alsoSay: "Le bot le dit aussi",
  endAnnouncement: (text) => `Terminer « ${text} »`,
  endsThen: (ago) => `se termine ${ago}`,

  quota: "Place pour les fichiers",
  quotaTooSmall: "Une limite est d’au moins 1 Mio.",
  quotaNote: (used) => `Ses fichiers et ceux de ses bots occupent ${used}.`,
  asOrganization: "Comme pour tout le monde",
  ownQuota: "Une autre limite",
  mebibytes: "Mio",
};
