import type { Words } from "../en";

export const media: Words["media"] = {
  // Files in messages
  file: "ファイル",
  open: (name) => `${name}を開く`,
  download: (name) => `${name}をダウンロード`,

  // Voice notes
  record: "ボイスメモを録音",
  voice: {
    title: "ボイスメモ",
    name: "ボイスメモ",
    asking: "マイクを使ってよいか、ブラウザが確認しています。",
    recording: "録音中",
    rest: (seconds) => `残り${seconds}秒`,
    stop: "停止",
    add: "添付",
    discard: "ボイスメモを破棄",
    refused:
      "ここではマイクが許可されていません。ブラウザの設定でこのページに許可してから、もう一度試してください。",
    none: "マイクがありません。接続してから、もう一度試してください。",
    busy: "マイクはほかのプログラムが使用中です。",
    insecure: "ブラウザはhttpsのページでのみ録音できます。",
    unable: "このブラウザでは録音できません。",
    failed: "何も録音できませんでした。",
  },

  // Animated pictures
  gifs: {
    title: "GIFアニメ",
    search: (name: string) => `${name}で検索`,
    none: "見つかりませんでした。",
    failed: (name: string) => `${name}が応答しません。あとでもう一度お試しください。`,
  },

  // Calls
  call: "通話を始める",
  videoCall: "ビデオ通話",
  voiceCall: "音声通話",
  joinVideo: "ビデオ通話に参加",
  joinVoice: "音声通話に参加",

  // Who will be told
  tells: "通知される人",
  everybody: (count, channel) => `#${channel}の${count}人`,
  wroteHere: (count, isAll) =>
    isAll
      ? count === 0
        ? "ほかにこのトピックに書いた人はいません"
        : `このトピックに書いた${count}人`
      : count
        ? `このトピックに書いた人（${count}人以上）`
        : "このトピックに書いた人",
  ofGroup: (count, absent) =>
    absent ? `${count + absent}人中${count}人（ほかの人はこのチャンネルにいません）` : `${count}人`,

  // Undoing
  undoFor: (seconds) => (seconds ? `送信を${seconds}秒間は取り消せる` : "取り消しなし"),
  goesIn: (seconds) => `${seconds}秒後に送信`,
  undo: "取り消す",
  tooLate: "もう送信されました。",
  sendNow: "今すぐ送信",

  // Which key sends, asked once
  askEnter: {
    text: "Enterで改行しました。どのキーで送信しますか？",
    control: "Ctrl Enterで送信",
  },
};
