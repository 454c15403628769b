import type { AllWords } from "../en";

export const running: AllWords["manage"]["running"] = {
  pages: { usage: "利用状況", deliveries: "配信", announcements: "お知らせ" },

  span: "日数",
  lastDays: (days) => `過去${days}日間`,
  usageNote: (at) => `${at}に集計しました（UTC の日付）。`,
  counting: (percent) => `これまでのメッセージを集計しています：${percent}%`,
  notCounted: "まだ集計されていません。サーバーは数分以内に始めます。",
  peopleByDay: "1日ごとの利用者",
  peopleByWeek: "1週間ごとの利用者",
  messagesByDay: "1日ごとのメッセージ",
  most: (most) => `最大${most}`,
  asTable: "表で見る",
  day: "日",
  weekOf: "週の始まり",
  count: "数",
  room: "ファイルの容量",
  roomNote: (used) => `すべてのファイルで${used}を使用しています。`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "1人あたりのファイル" },
    hints: {
      upload_quota_per_user_mib:
        "MiB 単位で、ボットのファイルも含みます。空欄なら無制限です。すでにあるものは残ります。",
    },
    options: {},
  },
  byPerson: "人ごと",
  byChannel: "チャンネルごと",
  byChannelNote:
    "メッセージでリンクされているファイルです。複数のチャンネルでリンクされているものは、それぞれに数えます。",
  files: (count) => `${count}個のファイル`,
  noFiles: "ファイルはありません。",
  directMessages: "ダイレクトメッセージ",
  hiddenChannel: "非公開チャンネル",

  deliveriesNote: "まだ届けられていないものです。再試行され、成功するとここから消えます。",
  nothingFails: "すべて届いています。",
  kinds: { mail: "メール", push: "プッシュ", webhook: "Webhook", feed: "フィード" },
  waitingMails: (count) => `${count}通のメールが待っています`,
  waiting: (count) => `${count}件が待っています`,
  failures: (count) => `${count}回続けて失敗`,
  sinceThen: (ago) => `最初は${ago}`,
  mailHelp: "サーバーの運用者は「tertulia mail --test」で原因を調べられます。",

  slow: "遅いリクエスト",
  slowNote:
    "サーバーの設定より時間のかかった最近のものです。クライアントを待った時間は含みません。",
  slowTime: (all, database, loop) => `${all}：データベース${database}、遅れ${loop}`,
  noSlow: "最近、遅いリクエストはありません。",
  nobody: "アカウントなし",

  announcementsNote: "終了するか閉じるまで、全員の画面の一番上に表示されます。",
  announcementsElsewhere:
    "ほかのクライアントには表示されません。サーバーのお知らせ用チャンネルがあれば、そこで通知ボットが伝えます。",
  noAnnouncements: "お知らせはありません。",
  newAnnouncement: "新しいお知らせ",
  announcement: "本文",
  announce: "知らせる",
  shownFor: "表示期間",
  forHours: (hours) => `${hours}時間`,
  forDays: (days) => `${days}日間`,
  alsoSay: "ボットも伝える",
  endAnnouncement: (text) => `「${text}」を終了`,
  endsThen: (ago) => `${ago}に終了`,

  quota: "ファイルの容量",
  quotaTooSmall: "上限は1 MiB以上にしてください。",
  quotaNote: (used) => `本人とそのボットのファイルで${used}を使用しています。`,
  asOrganization: "全員と同じ",
  ownQuota: "別の上限",
  mebibytes: "MiB",
};
