import type { Words } from "../en";

export const common: Words["common"] = {
  close: "閉じる",
  cancel: "キャンセル",
  save: "保存",
  delete: "削除",
  edit: "編集",
  retry: "もう一度試す",
  loading: "読み込み中…",
  back: "戻る",
  search: "検索",
  more: "その他",
  you: "あなた",
  noTopic: "一般の会話",
  unknownPerson: "不明な人",
  unknownChannel: "不明なチャンネル",
  noteToSelf: "自分用のメモ",
  unread: (count) => `未読${count}件`,
  saved: "保存しました",
  undo: "元に戻す",
  notUndone: "その後変更されたため、元に戻せません。",
  takeOut: (name) => `${name}を外す`,
  nobody: "なし",
  /** `color_scheme`. */
  schemes: { 1: "システムに合わせる", 2: "ダーク", 3: "ライト" },
};
