import type { AllWords } from "../en";

export const running: AllWords["manage"]["running"] = {
  pages: { usage: "Uso", deliveries: "Entregas", announcements: "Avisos" },

  span: "Dias",
  lastDays: (days) => `Últimos ${days} dias`,
  usageNote: (at) => `Contado ${at}, por dias em UTC.`,
  counting: (percent) => `As mensagens anteriores estão sendo contadas: ${percent} %.`,
  notCounted: "Ainda não se contou nada. O servidor começa em alguns minutos.",
  peopleByDay: "Pessoas por dia",
  peopleByWeek: "Pessoas por semana",
  messagesByDay: "Mensagens por dia",
  most: (most) => `até ${most}`,
  asTable: "Em tabela",
  day: "Dia",
  weekOf: "Semana de",
  count: "Número",
  room: "Espaço para arquivos",
  roomNote: (used) => `Todos os arquivos juntos ocupam ${used}.`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "Arquivos de uma pessoa" },
    hints: {
      upload_quota_per_user_mib:
        "Em MiB, com os dos bots dela. Vazio: sem limite. O que já existe fica.",
    },
    options: {},
  },
  byPerson: "Por pessoa",
  byChannel: "Por canal",
  byChannelNote:
    "Arquivos com link em mensagens. O que tem link em vários canais conta em cada um.",
  files: (count) => (count === 1 ? "1 arquivo" : `${count} arquivos`),
  noFiles: "Não há arquivos.",
  directMessages: "Mensagens diretas",
  hiddenChannel: "Um canal privado",

  deliveriesNote:
    "O que ainda não pôde ser entregue. Há novas tentativas, e some daqui quando uma dá certo.",
  nothingFails: "Tudo está sendo entregue.",
  kinds: { mail: "E-mail", push: "Push", webhook: "Webhook", feed: "Feed" },
  waitingMails: (count) => (count === 1 ? "1 e-mail espera" : `${count} e-mails esperam`),
  waiting: (count) => (count === 1 ? "1 espera" : `${count} esperam`),
  failures: (count) => (count === 1 ? "falhou uma vez" : `falhou ${count} vezes seguidas`),
  sinceThen: (ago) => `a primeira vez ${ago}`,
  mailHelp: "Quem cuida do servidor descobre o motivo com “tertulia mail --test”.",

  slow: "Pedidos lentos",
  slowNote:
    "Os últimos que demoraram mais do que o servidor admite. A espera pelo cliente não conta.",
  slowTime: (all, database, loop) => `${all}: ${database} pelo banco de dados, ${loop} de atraso`,
  noSlow: "Nenhum pedido foi lento ultimamente.",
  nobody: "sem conta",

  announcementsNote: "Todos os veem acima de tudo, até terminarem ou até que sejam fechados.",
  announcementsElsewhere:
    "Outros clientes não os mostram: lá o bot de notificações diz isso no canal de novidades do servidor, se houver um.",
  noAnnouncements: "Não há avisos.",
  newAnnouncement: "Novo aviso",
  announcement: "Texto",
  announce: "Avisar",
  shownFor: "Visível por",
  forHours: (hours) => (hours === 1 ? "1 hora" : `${hours} horas`),
  forDays: (days) => (days === 1 ? "1 dia" : `${days} dias`),
  alsoSay: "O bot também diz",
  endAnnouncement: (text) => `Encerrar “${text}”`,
  endsThen: (ago) => `termina ${ago}`,

  quota: "Espaço para arquivos",
  quotaTooSmall: "Um limite é de pelo menos 1 MiB.",
  quotaNote: (used) => `Os arquivos da pessoa e os dos bots dela ocupam ${used}.`,
  asOrganization: "Como para todos",
  ownQuota: "Outro limite",
  mebibytes: "MiB",
};
