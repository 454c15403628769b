import type { Words } from "../en";

export const media: Words["media"] = {
  // Files in messages
  file: "Arquivo",
  open: (name) => `Abrir ${name}`,
  download: (name) => `Baixar ${name}`,

  // Voice notes
  record: "Gravar um áudio",
  voice: {
    title: "Mensagem de voz",
    name: "Mensagem de voz",
    asking: "Seu navegador pergunta se o microfone pode ser usado.",
    recording: "Gravando",
    rest: (seconds) => (seconds === 1 ? "Resta 1 segundo" : `Restam ${seconds} segundos`),
    stop: "Parar",
    add: "Anexar",
    discard: "Descartar a mensagem de voz",
    refused:
      "O microfone não está permitido aqui. Permita-o para esta página nas configurações do navegador e tente de novo.",
    none: "Não há microfone. Conecte um e tente de novo.",
    busy: "O microfone está em uso por outro programa.",
    insecure: "Os navegadores só gravam em páginas com endereço https.",
    unable: "Este navegador não consegue gravar som.",
    failed: "Não foi possível gravar nada.",
  },

  // Animated pictures
  gifs: {
    title: "Imagem animada",
    search: (name: string) => `Pesquisar no ${name}`,
    none: "Nada foi encontrado.",
    failed: (name: string) => `O ${name} não responde. Tente de novo mais tarde.`,
  },

  // Calls
  call: "Iniciar uma chamada",
  videoCall: "Chamada de vídeo",
  voiceCall: "Chamada de voz",
  joinVideo: "Entrar na chamada de vídeo",
  joinVoice: "Entrar na chamada de voz",

  // Who will be told
  tells: "Quem será notificado",
  everybody: (count, channel) =>
    count === 1 ? `1 pessoa em #${channel}` : `${count} pessoas em #${channel}`,
  wroteHere: (count, isAll) =>
    isAll
      ? count === 0
        ? "mais ninguém escreveu neste tópico"
        : count === 1
          ? "1 pessoa que escreveu neste tópico"
          : `${count} pessoas que escreveram neste tópico`
      : count
        ? `quem escreveu neste tópico, ${count} ou mais`
        : "quem escreveu neste tópico",
  ofGroup: (count, absent) =>
    absent
      ? `${count} de ${count + absent}; os outros não estão neste canal`
      : count === 1
        ? "1 pessoa"
        : `${count} pessoas`,

  // Undoing
  undoFor: (seconds) => (seconds ? `Desfazer o envio durante ${seconds} segundos` : "Sem desfazer"),
  goesIn: (seconds) => `Sai em ${seconds} s`,
  undo: "Desfazer",
  tooLate: "A mensagem já foi enviada.",
  sendNow: "Enviar agora",

  // Which key sends, asked once
  askEnter: {
    text: "Enter começou uma nova linha. Qual tecla deve enviar?",
    control: "Ctrl Enter envia",
  },
};
