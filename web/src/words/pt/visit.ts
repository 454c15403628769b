import type { LaterWords } from "../en";

export const visit: LaterWords["visit"] = {
  signIn: "Entrar",
  join: "Criar uma conta",
  channels: "Abertos a todos",
  reading: "Você está lendo sem conta.",
  takePart: "Com uma conta, você pode escrever aqui, reagir e saber das novidades.",
  needsAccount: "Isto precisa de uma conta",
  closed: "Isto não está aberto a todos",
  closedText:
    "Talvez seja só para membros, ou o link seja antigo ou esteja errado. Entre para ver.",
  ofOneself: (operator) => `“${operator}:” procura no que é seu: entre primeiro.`,
  none: "Nenhum canal está aberto a todos no momento.",
};
