import type { AllWords } from "../en";

export const running: AllWords["manage"]["running"] = {
  pages: { usage: "Uso", deliveries: "Entregas", announcements: "Anuncios" },

  span: "Días",
  lastDays: (days) => `Últimos ${days} días`,
  usageNote: (at) => `Contado ${at}, por días de UTC.`,
  counting: (percent) => `Se están contando los mensajes anteriores: ${percent} %.`,
  notCounted: "Aún no se ha contado nada. El servidor empieza en unos minutos.",
  peopleByDay: "Personas por día",
  peopleByWeek: "Personas por semana",
  messagesByDay: "Mensajes por día",
  most: (most) => `hasta ${most}`,
  asTable: "En una tabla",
  day: "Día",
  weekOf: "Semana del",
  count: "Número",
  room: "Espacio para archivos",
  roomNote: (used) => `Todos los archivos juntos ocupan ${used}.`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "Archivos de una persona" },
    hints: {
      upload_quota_per_user_mib:
        "En MiB, con los de sus bots. Vacío: sin límite. Lo que ya hay se queda.",
    },
    options: {},
  },
  byPerson: "Por persona",
  byChannel: "Por canal",
  byChannelNote:
    "Archivos que enlazan los mensajes. Lo que se enlaza en varios canales cuenta en cada uno.",
  files: (count) => (count === 1 ? "1 archivo" : `${count} archivos`),
  noFiles: "No hay archivos.",
  directMessages: "Mensajes directos",
  hiddenChannel: "Un canal privado",

  deliveriesNote:
    "Lo que aún no se ha podido entregar. Se vuelve a intentar, y desaparece de aquí cuando se logra.",
  nothingFails: "Todo se está entregando.",
  kinds: { mail: "Correo", push: "Push", webhook: "Webhook", feed: "Fuente" },
  waitingMails: (count) => (count === 1 ? "1 correo espera" : `${count} correos esperan`),
  waiting: (count) => (count === 1 ? "1 espera" : `${count} esperan`),
  failures: (count) => (count === 1 ? "falló una vez" : `falló ${count} veces seguidas`),
  sinceThen: (ago) => `la primera vez ${ago}`,
  mailHelp: "Quien lleva el servidor averigua por qué con «tertulia mail --test».",

  slow: "Peticiones lentas",
  slowNote:
    "Las últimas que tardaron más de lo que el servidor admite. No cuenta lo que se esperó al programa.",
  slowTime: (all, database, loop) => `${all}: ${database} por la base de datos, ${loop} de retraso`,
  noSlow: "Ninguna petición ha sido lenta últimamente.",
  nobody: "sin cuenta",

  announcementsNote: "Todos los ven por encima de lo demás, hasta que acaban o los cierran.",
  announcementsElsewhere:
    "Otros programas no los muestran: allí lo dice el bot de avisos en el canal de novedades del servidor, si hay uno.",
  noAnnouncements: "No hay nada anunciado.",
  newAnnouncement: "Anuncio nuevo",
  announcement: "Texto",
  announce: "Anunciar",
  shownFor: "Se muestra durante",
  forHours: (hours) => (hours === 1 ? "1 hora" : `${hours} horas`),
  forDays: (days) => (days === 1 ? "1 día" : `${days} días`),
  alsoSay: "También lo dice el bot",
  endAnnouncement: (text) => `Acabar «${text}»`,
  endsThen: (ago) => `acaba ${ago}`,

  quota: "Espacio para archivos",
  quotaTooSmall: "El límite es de 1 MiB como mínimo.",
  quotaNote: (used) => `Sus archivos y los de sus bots ocupan ${used}.`,
  asOrganization: "Como para todos",
  ownQuota: "Otro límite",
  mebibytes: "MiB",
};
