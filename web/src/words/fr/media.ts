import type { Words } from "../en";

export const media: Words["media"] = {
  // Files in messages
  file: "Fichier",
  open: (name) => `Ouvrir ${name}`,
  download: (name) => `Télécharger ${name}`,

  // Voice notes
  record: "Enregistrer un message vocal",
  voice: {
    title: "Message vocal",
    name: "Message vocal",
    asking: "Votre navigateur demande si le micro peut être utilisé.",
    recording: "Enregistrement en cours",
    rest: (seconds) => (seconds === 1 ? "Encore 1 seconde" : `Encore ${seconds} secondes`),
    stop: "Arrêter",
    add: "Joindre",
    discard: "Abandonner le message vocal",
    refused:
      "Le micro n’est pas autorisé ici. Autorisez-le pour cette page dans les réglages du navigateur, puis réessayez.",
    none: "Il n’y a pas de micro. Branchez-en un, puis réessayez.",
    busy: "Le micro est utilisé par un autre programme.",
    insecure: "Les navigateurs n’enregistrent que sur des pages à l’adresse https.",
    unable: "Ce navigateur ne peut pas enregistrer de son.",
    failed: "Rien n’a pu être enregistré.",
  },

  // Animated pictures
  gifs: {
    title: "Image animée",
    search: (name: string) => `Rechercher sur ${name}`,
    none: "Rien n’a été trouvé.",
    failed: (name: string) => `${name} ne répond pas. Réessayez plus tard.`,
  },

  // Calls
  call: "Démarrer un appel",
  videoCall: "Appel vidéo",
  voiceCall: "Appel vocal",
  joinVideo: "Rejoindre l’appel vidéo",
  joinVoice: "Rejoindre l’appel vocal",

  // Who will be told
  tells: "Qui sera notifié",
  everybody: (count, channel) =>
    count === 1 ? `1 personne dans #${channel}` : `${count} personnes dans #${channel}`,
  wroteHere: (count, isAll) =>
    isAll
      ? count === 0
        ? "personne d’autre n’a écrit dans ce sujet"
        : count === 1
          ? "1 personne qui a écrit dans ce sujet"
          : `${count} personnes qui ont écrit dans ce sujet`
      : count
        ? `celles et ceux qui ont écrit dans ce sujet, ${count} ou plus`
        : "celles et ceux qui ont écrit dans ce sujet",
  ofGroup: (count, absent) =>
    absent
      ? `${count} sur ${count + absent} ; les autres ne sont pas dans ce canal`
      : count === 1
        ? "1 personne"
        : `${count} personnes`,

  // Undoing
  undoFor: (seconds) =>
    seconds ? `Annuler l’envoi pendant ${seconds} secondes` : "Sans annulation",
  goesIn: (seconds) => `Part dans ${seconds} s`,
  undo: "Annuler",
  tooLate: "Le message est déjà parti.",
  sendNow: "Envoyer tout de suite",

  // Which key sends, asked once
  askEnter: {
    text: "Entrée a commencé une nouvelle ligne. Quelle touche doit envoyer ?",
    control: "Ctrl Entrée envoie",
  },
};
