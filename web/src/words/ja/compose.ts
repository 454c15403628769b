import type { Words } from "../en";

export const compose: Words["compose"] = {
  placeholder: (where) => `${where}に書く`,
  send: "送信",
  sendAnyway: "このまま送信",
  sendKeys: (enter) => (enter ? "送信（Enter）" : "送信（Ctrl Enter）"),
  enterSends: "Enterで送信",

  notLoaded: "読み込めませんでした。接続を確認するか、ページを再読み込みしてください。",
  notLoadedNamed: (what) =>
    `${what}を読み込めませんでした。接続を確認して、もう一度お試しください。`,
  aWarning: "メッセージについての警告",

  // Marks and tools
  tools: "書式と添付",
  attach: "ファイルを添付",
  emoji: "絵文字",
  bold: "太字",
  italic: "斜体",
  strike: "取り消し線",
  link: "リンク",
  code: "コード",
  quote: "引用",
  bullets: "箇条書き",
  numbers: "番号付きリスト",
  math: "数式",
  spoiler: "ネタバレ",
  spoilerTitle: "タイトル",
  time: "時刻",
  poll: "アンケート",
  todo: "ToDoリスト",
  snippets: "保存した定型文",
  more: "その他",
  preview: "プレビュー",
  write: "編集に戻る",
  nothingYet: "まだ何も書かれていません。",
  larger: "広げる",
  smaller: "縮める",
  text: "本文",
  formatted: "書式付きテキスト",

  // Completing
  suggestions: "候補",
  peopleComing: "まだ読み込み中の人がいます…",
  offered: (count) => `候補${count}件。矢印キーとEnterで選べます。`,
  bot: "ボット",
  members: (count) => `メンバー${count}人`,
  callsAll: "ここにいる全員に通知",
  callsTopic: "このトピックに書き込んだ人に通知",
  newTopic: "新しいトピック",
  commands: {
    me: "自分の行動を書く：/me 手を振る",
    poll: "アンケートを始める：最初に質問、続けて1行に1つずつ選択肢",
    todo: "ToDoリストを始める：最初にタイトル、続けて1行に1つずつタスク",
    dark: "ダークテーマに切り替える",
    light: "ライトテーマに切り替える",
  },

  // To whom
  newMessage: "新しいメッセージ",
  begin: "新しいメッセージ",
  beginIn: (channel) => `#${channel}に新しいトピック`,
  beginDirect: "ダイレクトメッセージ",
  kind: "メッセージの種類",
  toTopic: "トピックへ",
  toPeople: "人へ",
  channel: "チャンネル",
  topic: "トピック",
  topicOrNone: (none) => `トピック（または${none}）`,
  people: "宛先",
  without: (name) => `${name}さんを外す`,
  toWhom: "先に宛先を指定してください。",
  closeKeeping: "閉じる（下書きは残ります）",
  sentTo: (where) => `${where}に送信しました`,
  goThere: "移動する",
  notHere: (to, here) => `このメッセージの宛先は${here}ではなく、${to}です。`,
  writeHere: "ここに書く",
  kept: (to) => `${to}へのメッセージは下書きにあります。`,

  // Files
  files: "ファイル",
  quotes: "引用",
  unquote: (who) => `${who}さんの引用を外す`,
  removeFile: (name) => `${name}を外す`,
  attached: "アップロード済み",
  uploading: (name) => `${name}をアップロード中…`,
  fileTooLarge: "このファイルは大きすぎます。",
  fileFailed: "ファイルをアップロードできませんでした。",
  retryFile: (name) => `${name}をもう一度アップロード`,
  cancelFile: (name) => `${name}のアップロードを中止`,
  filesFailed:
    "アップロードできなかったファイルがあります。もう一度アップロードするか、外してください。",
  waitForFiles: "ファイルをアップロード中です。完了すると送信できます。",

  // Length
  left: (count) => `あと${count}文字`,
  tooLong: (count) => `${count}文字超過`,

  // Warnings
  dismiss: "閉じる",
  subscribe: "参加する",
  subscribeThem: "参加させる",
  unresolve: "未解決に戻す",
  warnings: {
    archived: "このチャンネルはアーカイブされているため、書き込めません。",
    mayNotPost: "このチャンネルに書き込む権限がありません。",
    mayNotBegin: "この人たちにダイレクトメッセージを送る権限がありません。",
    emptyTopic: "このチャンネルでは、メッセージごとにトピックが必要です。",
    onlyEmptyTopic: "このチャンネルにはトピックがありません。トピックは空のままにしてください。",
    topicTooLong: (most) => `トピックは${most}文字までです。`,
    gone: (name) => `${name}さんのアカウントは無効化されているため、メッセージは届きません。`,
    mayNotCallAll: (name) => `@${name}で一度に大勢へ通知する権限がありません。`,
    callsMany: (name, count) => `@${name}は${count}人に通知します。`,
    callsManyNow: (count) => `もう一度送信すると、${count}人に通知します。`,
    guests: (names, count) =>
      count === 1 ? `${names}さんはゲストです。` : `${names}はゲストです。`,
    notThere: (name, channel) => `${name}さんは#${channel}に参加していないため、通知されません。`,
    notSubscribed: (channel) => `#${channel}に参加していないため、返信を見逃すかもしれません。`,
    resolved: "このトピックは解決済みです。",
  },

  // Later
  later: "あとで送信",
  when: "日時",
  times: {
    hour: "1時間後",
    threeHours: "3時間後",
    evening: "今日の夕方",
    tomorrow: "明日の朝",
    monday: "月曜日の朝",
  },
  pickTime: "別の日時…",
  schedule: "予約する",
  scheduledFor: (time) => `送信予定：${time}`,
  showScheduled: "表示",
  notToCome: "これからの日時を選んでください。",
  timeHint: "それぞれの人のタイムゾーンで表示されます。",

  // Reminders
  remind: "リマインダーを設定",
  remindOf: (name) => `${name}さんのこのメッセージについて、ダイレクトメッセージでお知らせします。`,
  remindedAt: (time) => `お知らせの日時：${time}`,
  reminderNote: "自分へのメモ（任意）",
  showReminders: "表示",

  // Quoting: what is put into the message. Others read it, in the writer's language.
  said: (mention, link) => `${mention}さんの[発言](${link})：`,

  forward: "別の場所で引用",

  // Editing
  editing: "メッセージを編集",
  editWithin: (clock) => `残り${clock}`,
  editLeft: "変更は保存されませんでした。",
  editedElsewhere:
    "編集中に、このメッセージは別の場所で変更されました。書いた内容をコピーして、もう一度編集してください。",
  fileUnlinked: (name) => `${name}へのリンクは、もうどのメッセージにもありません。`,
  noEdit: {
    rule: "このメッセージは編集できません。",
    late: "このメッセージを編集できる時間は過ぎました。",
    archived: "アーカイブされたチャンネルのメッセージは編集できません。",
  },

  // Deleting
  remove: "メッセージを削除",
  removeTopic: "トピックを削除",
  removeOwn: "全員の画面から完全に消えます。",
  removeOf: (name) => `${name}さんのこのメッセージは、全員の画面から完全に消えます。`,
  removeAllOf: (topic, channel) =>
    `#${channel}の「${topic}」のメッセージがすべて、全員の画面から完全に消えます。`,
  typeTopic: (topic) => `確認のため「${topic}」と入力してください`,
  removed: "メッセージを削除しました。",
  topicRemoved: "トピックを削除しました。",
  noRemove: {
    rule: "これを削除する権限がありません。",
    late: "このメッセージを削除できる時間は過ぎました。",
    archived: "アーカイブされたチャンネルのメッセージは削除できません。",
  },

  // Moving
  move: "メッセージを移動",
  moveTopic: "トピックの移動または名前の変更",
  moveNow: "移動",
  renameNow: "名前を変更",
  moved: "移動しました。",
  mayNotMove: "このチャンネルのメッセージを移動する権限がありません。",
  onlyWithin: "ここではトピックは変更できますが、チャンネルは変更できません。",
  moveWithin: (days) => `${days}日より前のメッセージはそのまま残ります。`,
  someLose:
    "そのチャンネルでは、あとから参加した人は履歴を読めません。これらのメッセージを読めなくなる人がいるかもしれません。",
  someTooOld: (allowed, all) =>
    `${all}件のうち、移動できるのは${allowed}件だけです。範囲を狭めてください。`,
  nothingToMove: "このトピックにはもうメッセージがありません。",
  which: "対象のメッセージ",
  spans: {
    change_one: "これだけ",
    change_later: "これ以降すべて",
    change_all: "トピック全体",
  },
  notices: "移動のお知らせを残す",
  tellOld: "元の場所",
  tellNew: "移動先",

  // Polls and lists
  polls: {
    title: "アンケート",
    question: "質問",
    lines: "選択肢",
    line: (number) => `選択肢${number}`,
    add: "選択肢を追加",
  },
  todos: {
    title: "ToDoリスト",
    question: "タイトル",
    lines: "タスク",
    line: (number) => `タスク${number}`,
    add: "タスクを追加",
  },
  withoutLine: (number) => `${number}行目を外す`,
  intoMessage: "メッセージに入れる",

  // Snippets
  noSnippets: "何度も送る文章をここに置いておけます。",
  newSnippet: "新しい定型文",
  keepAsSnippet: "書いた内容を定型文として保存",
  snippetTitle: "タイトル",
  editSnippet: (title) => `${title}を編集`,
  removeSnippet: (title) => `${title}を削除`,
  snippetRemoved: (title) => `「${title}」を削除しました。`,
};
