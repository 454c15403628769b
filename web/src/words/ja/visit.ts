import type { LaterWords } from "../en";

export const visit: LaterWords["visit"] = {
  signIn: "ログイン",
  join: "アカウントを作成",
  channels: "公開チャンネル",
  reading: "アカウントなしで閲覧しています。",
  takePart: "アカウントがあれば、書き込みやリアクションができ、新着の通知も受け取れます。",
  needsAccount: "アカウントが必要です",
  closed: "これは一般公開されていません",
  closedText:
    "メンバー限定か、リンクが古いか間違っている可能性があります。ログインして確認してください。",
  ofOneself: (operator) =>
    `「${operator}:」は自分に関するものを探します。先にログインしてください。`,
  none: "現在、公開されているチャンネルはありません。",
};
