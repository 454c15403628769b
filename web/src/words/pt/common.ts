import type { Words } from "../en";

export const common: Words["common"] = {
  close: "Fechar",
  cancel: "Cancelar",
  save: "Salvar",
  delete: "Excluir",
  edit: "Editar",
  retry: "Tentar de novo",
  loading: "Carregando…",
  back: "Voltar",
  search: "Pesquisar",
  more: "Mais",
  you: "você",
  noTopic: "conversa geral",
  unknownPerson: "Alguém",
  unknownChannel: "canal desconhecido",
  noteToSelf: "Notas para você",
  unread: (count) => (count === 1 ? "1 não lida" : `${count} não lidas`),
  saved: "Salvo",
  undo: "Desfazer",
  notUndone: "Isto mudou desde então: não dá mais para desfazer.",
  takeOut: (name) => `Remover ${name}`,
  nobody: "Ninguém",
  /** `color_scheme`. */
  schemes: { 1: "Como o sistema", 2: "Escuro", 3: "Claro" },
};
