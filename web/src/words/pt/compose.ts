import type { Words } from "../en";

export const compose: Words["compose"] = {
  placeholder: (where) => `Escrever para ${where}`,
  send: "Enviar",
  sendAnyway: "Enviar assim mesmo",
  sendKeys: (enter) => (enter ? "Enviar (Enter)" : "Enviar (Ctrl Enter)"),
  enterSends: "Enter envia",

  notLoaded: "Não foi possível carregar. Verifique a conexão ou recarregue a página.",
  notLoadedNamed: (what) =>
    `Não foi possível carregar: ${what}. Verifique a conexão e tente de novo.`,
  aWarning: "Um aviso sobre sua mensagem",

  // Marks and tools
  tools: "Formatação e anexos",
  attach: "Anexar arquivos",
  emoji: "Emoji",
  bold: "Negrito",
  italic: "Itálico",
  strike: "Tachado",
  link: "Link",
  code: "Código",
  quote: "Citação",
  bullets: "Lista",
  numbers: "Lista numerada",
  math: "Fórmula",
  spoiler: "Spoiler",
  spoilerTitle: "Título",
  time: "Horário",
  poll: "Enquete",
  todo: "Lista de tarefas",
  snippets: "Trechos salvos",
  more: "Mais",
  preview: "Prévia",
  write: "Continuar escrevendo",
  nothingYet: "Nada escrito ainda.",
  larger: "Aumentar",
  smaller: "Diminuir",
  text: "Texto",
  formatted: "Texto formatado",

  // Completing
  suggestions: "Sugestões",
  peopleComing: "Algumas pessoas ainda estão sendo carregadas…",
  offered: (count) =>
    count === 1
      ? "1 sugestão. Escolha com as setas e Enter."
      : `${count} sugestões. Escolha com as setas e Enter.`,
  bot: "bot",
  members: (count) => (count === 1 ? "1 membro" : `${count} membros`),
  callsAll: "Avisar todas as pessoas daqui",
  callsTopic: "Avisar quem escreveu neste tópico",
  newTopic: "Novo tópico",
  commands: {
    me: "Diga o que você faz: /me acena",
    poll: "Começar uma enquete: uma pergunta e depois uma opção por linha",
    todo: "Começar uma lista de tarefas: um título e depois uma tarefa por linha",
    dark: "Mudar para o tema escuro",
    light: "Mudar para o tema claro",
  },

  // To whom
  newMessage: "Nova mensagem",
  begin: "Nova mensagem",
  beginIn: (channel) => `Novo tópico em #${channel}`,
  beginDirect: "Mensagem direta",
  kind: "Tipo de mensagem",
  toTopic: "Para um tópico",
  toPeople: "Para pessoas",
  channel: "Canal",
  topic: "Tópico",
  topicOrNone: (none) => `Tópico (ou ${none})`,
  people: "Pessoas",
  without: (name) => `Sem ${name}`,
  toWhom: "Diga primeiro para quem vai.",
  closeKeeping: "Fechar (o rascunho fica guardado)",
  sentTo: (where) => `Enviada para ${where}`,
  goThere: "Ir para lá",
  notHere: (to, here) => `Esta mensagem vai para ${to}, não para ${here}.`,
  writeHere: "Escrever aqui em vez disso",
  kept: (to) => `Sua mensagem para ${to} está nos rascunhos.`,

  // Files
  files: "Arquivos",
  quotes: "Citações",
  unquote: (who) => `Deixar de fora o que ${who} disse`,
  removeFile: (name) => `Remover ${name}`,
  attached: "Enviado",
  uploading: (name) => `Enviando ${name}…`,
  fileTooLarge: "Este arquivo é grande demais.",
  fileFailed: "Não foi possível enviar o arquivo.",
  retryFile: (name) => `Enviar ${name} de novo`,
  cancelFile: (name) => `Desistir de enviar ${name}`,
  filesFailed: "Um arquivo não chegou. Envie-o de novo ou retire-o.",
  waitForFiles: "Ainda há arquivos a caminho. Será possível enviar quando chegarem.",

  // Length
  left: (count) => (count === 1 ? "Resta 1 caractere" : `Restam ${count} caracteres`),
  tooLong: (count) => (count === 1 ? "1 caractere a mais" : `${count} caracteres a mais`),

  // Warnings
  dismiss: "Dispensar",
  subscribe: "Inscrever-se",
  subscribeThem: "Inscrever essas pessoas",
  unresolve: "Marcar como não resolvido",
  warnings: {
    archived: "Este canal está arquivado: ninguém mais pode escrever aqui.",
    mayNotPost: "Você não tem permissão para escrever neste canal.",
    mayNotBegin: "Você não tem permissão para escrever diretamente a estas pessoas.",
    emptyTopic: "Este canal pede um tópico para cada mensagem.",
    onlyEmptyTopic: "Este canal não tem tópicos: deixe o tópico vazio.",
    topicTooLong: (most) => `Um tópico tem no máximo ${most} caracteres.`,
    gone: (name) => `A conta de ${name} está desativada: as mensagens não chegam mais lá.`,
    mayNotCallAll: (name) =>
      `Você não tem permissão para avisar tanta gente de uma vez com @${name}.`,
    callsMany: (name, count) => `@${name} avisará ${count} pessoas.`,
    callsManyNow: (count) => `Envie mais uma vez para avisar ${count} pessoas.`,
    guests: (names, count) =>
      count === 1 ? `${names} está aqui como convidado.` : `${names} estão aqui como convidados.`,
    notThere: (name, channel) => `${name} não está em #${channel} e não receberá aviso.`,
    notSubscribed: (channel) => `Você não está inscrito em #${channel}: pode perder as respostas.`,
    resolved: "Este tópico está resolvido.",
  },

  // Later
  later: "Enviar depois",
  when: "Quando",
  times: {
    hour: "Em uma hora",
    threeHours: "Em três horas",
    evening: "Hoje à noite",
    tomorrow: "Amanhã de manhã",
    monday: "Segunda de manhã",
  },
  pickTime: "Outro horário…",
  schedule: "Agendar",
  scheduledFor: (time) => `Será enviada: ${time}`,
  showScheduled: "Mostrar",
  notToCome: "Escolha um horário que ainda não passou.",
  timeHint: "Cada pessoa vê no próprio fuso horário.",

  // Reminders
  remind: "Lembrar-me",
  remindOf: (name) => `Você receberá uma mensagem direta sobre esta mensagem de ${name}.`,
  remindedAt: (time) => `Você será lembrado: ${time}`,
  reminderNote: "Nota para você (opcional)",
  showReminders: "Mostrar",

  // Quoting: what is put into the message. Others read it, in the writer's language.
  said: (mention, link) => `${mention} [disse](${link}):`,

  forward: "Citar em outro lugar",

  // Editing
  editing: "Editar mensagem",
  editWithin: (clock) => `restam ${clock}`,
  editLeft: "Suas alterações não foram salvas.",
  editedElsewhere:
    "A mensagem foi alterada em outro lugar nesse meio-tempo. Copie o que escreveu e edite de novo.",
  fileUnlinked: (name) => `${name} não tem mais link em nenhuma mensagem.`,
  noEdit: {
    rule: "Você não pode editar esta mensagem.",
    late: "O prazo para editar esta mensagem acabou.",
    archived: "Mensagens de um canal arquivado não podem ser editadas.",
  },

  // Deleting
  remove: "Excluir mensagem",
  removeTopic: "Excluir tópico",
  removeOwn: "Ela desaparece para todo mundo, para sempre.",
  removeOf: (name) => `Esta mensagem de ${name} desaparece para todo mundo, para sempre.`,
  removeAllOf: (topic, channel) =>
    `Todas as mensagens de “${topic}” em #${channel} desaparecem para todo mundo, para sempre.`,
  typeTopic: (topic) => `Digite “${topic}” para confirmar`,
  removed: "A mensagem foi excluída.",
  topicRemoved: "O tópico foi excluído.",
  noRemove: {
    rule: "Você não tem permissão para excluir isto.",
    late: "O prazo para excluir esta mensagem acabou.",
    archived: "Mensagens de um canal arquivado não podem ser excluídas.",
  },

  // Moving
  move: "Mover mensagem",
  moveTopic: "Mover ou renomear tópico",
  moveNow: "Mover",
  renameNow: "Renomear",
  moved: "Movida.",
  mayNotMove: "Você não tem permissão para mover mensagens deste canal.",
  onlyWithin: "Aqui você pode mudar o tópico, mas não o canal.",
  moveWithin: (days) =>
    days === 1
      ? "Mensagens com mais de um dia ficam onde estão."
      : `Mensagens com mais de ${days} dias ficam onde estão.`,
  someLose:
    "Quem entra depois nesse canal não pode ler o histórico: alguns leitores podem perder estas mensagens.",
  someTooOld: (allowed, all) =>
    `Só ${allowed} das ${all} mensagens ainda podem ser movidas. Escolha menos.`,
  nothingToMove: "Não há mais mensagens neste tópico.",
  which: "Quais mensagens",
  spans: {
    change_one: "Só esta",
    change_later: "Esta e todas as seguintes",
    change_all: "O tópico inteiro",
  },
  notices: "Deixar um aviso sobre isso",
  tellOld: "onde estavam",
  tellNew: "para onde vão",

  // Polls and lists
  polls: {
    title: "Enquete",
    question: "Pergunta",
    lines: "Opções",
    line: (number) => `Opção ${number}`,
    add: "Outra opção",
  },
  todos: {
    title: "Lista de tarefas",
    question: "Título",
    lines: "Tarefas",
    line: (number) => `Tarefa ${number}`,
    add: "Outra tarefa",
  },
  withoutLine: (number) => `Remover a linha ${number}`,
  intoMessage: "Pôr na mensagem",

  // Snippets
  noSnippets: "Textos que você envia sempre podem esperar aqui.",
  newSnippet: "Novo trecho",
  keepAsSnippet: "Guardar o que está escrito como trecho",
  snippetTitle: "Título",
  editSnippet: (title) => `Editar ${title}`,
  removeSnippet: (title) => `Excluir ${title}`,
  snippetRemoved: (title) => `“${title}” foi excluído.`,
};
