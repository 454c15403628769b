import type { Words } from "../en";

export const media: Words["media"] = {
  // Files in messages
  file: "Archivo",
  open: (name) => `Abrir ${name}`,
  download: (name) => `Descargar ${name}`,

  // Voice notes
  record: "Grabar una nota de voz",
  voice: {
    title: "Nota de voz",
    name: "Nota de voz",
    asking: "Tu navegador pregunta si se puede usar el micrófono.",
    recording: "Grabando",
    rest: (seconds) => (seconds === 1 ? "Queda 1 segundo" : `Quedan ${seconds} segundos`),
    stop: "Parar",
    add: "Adjuntar",
    discard: "Descartar la nota de voz",
    refused:
      "El micrófono no está permitido aquí. Permítelo en los ajustes del navegador para esta página e inténtalo otra vez.",
    none: "No hay ningún micrófono. Conecta uno e inténtalo otra vez.",
    busy: "Otro programa está usando el micrófono.",
    insecure: "Los navegadores solo graban en páginas con dirección https.",
    unable: "Este navegador no puede grabar sonido.",
    failed: "No se ha podido grabar nada.",
  },

  // Animated pictures
  gifs: {
    title: "Imagen animada",
    search: (name: string) => `Buscar en ${name}`,
    none: "No se ha encontrado nada.",
    failed: (name: string) => `${name} no responde. Inténtalo más tarde.`,
  },

  // Calls
  call: "Iniciar una llamada",
  videoCall: "Videollamada",
  voiceCall: "Llamada de voz",
  joinVideo: "Unirse a la videollamada",
  joinVoice: "Unirse a la llamada de voz",

  // Who will be told
  tells: "A quién se notificará",
  everybody: (count, channel) =>
    count === 1 ? `1 persona en #${channel}` : `${count} personas en #${channel}`,
  wroteHere: (count, isAll) =>
    isAll
      ? count === 0
        ? "nadie más ha escrito en este tema"
        : count === 1
          ? "1 persona que ha escrito en este tema"
          : `${count} personas que han escrito en este tema`
      : count
        ? `quienes han escrito en este tema, ${count} o más`
        : "quienes han escrito en este tema",
  ofGroup: (count, absent) =>
    absent
      ? `${count} de ${count + absent}; los demás no están en este canal`
      : count === 1
        ? "1 persona"
        : `${count} personas`,

  // Undoing
  undoFor: (seconds) =>
    seconds ? `Deshacer el envío durante ${seconds} segundos` : "Sin deshacer",
  goesIn: (seconds) => `Sale en ${seconds} s`,
  undo: "Deshacer",
  tooLate: "Ya se ha enviado.",
  sendNow: "Enviar ya",

  // Which key sends, asked once
  askEnter: {
    text: "Intro empezó una línea nueva. ¿Qué tecla ha de enviar?",
    control: "Ctrl Intro envía",
  },
};
