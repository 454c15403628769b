/** Writing. */
export const compose = {
  placeholder: (where: string) => `Write to ${where}`,
  send: "Send",
  sendAnyway: "Send anyway",
  sendKeys: (enter: boolean): string => (enter ? "Send (Enter)" : "Send (Ctrl Enter)"),
  enterSends: "Enter sends",

  notLoaded: "This could not be loaded. Check the connection, or reload the page.",
  notLoadedNamed: (what: string) =>
    `${what} could not be loaded. Check the connection, and try again.`,
  aWarning: "A warning about your message",

  // Marks and tools
  tools: "Formatting and attachments",
  attach: "Attach files",
  emoji: "Emoji",
  bold: "Bold",
  italic: "Italic",
  strike: "Strikethrough",
  link: "Link",
  code: "Code",
  quote: "Quote",
  bullets: "List",
  numbers: "Numbered list",
  math: "Formula",
  spoiler: "Spoiler",
  spoilerTitle: "Title",
  time: "Time",
  poll: "Poll",
  todo: "To-do list",
  snippets: "Saved snippets",
  more: "More",
  preview: "Preview",
  write: "Go on writing",
  nothingYet: "Nothing is written yet.",
  larger: "Larger",
  smaller: "Smaller",
  text: "Text",
  formatted: "Formatted text",

  // Completing
  suggestions: "Suggestions",
  peopleComing: "Some people are still being loaded…",
  offered: (count: number) =>
    count === 1
      ? "1 suggestion. Arrow keys and Enter choose."
      : `${count} suggestions. Arrow keys and Enter choose.`,
  bot: "bot",
  members: (count: number) => (count === 1 ? "1 member" : `${count} members`),
  callsAll: "Notify everybody here",
  callsTopic: "Notify those who wrote in this topic",
  newTopic: "New topic",
  commands: {
    me: "Say what you do: /me waves",
    poll: "Begin a poll: a question, then one option per line",
    todo: "Begin a to-do list: a title, then one task per line",
    dark: "Switch to the dark theme",
    light: "Switch to the light theme",
  },

  // To whom
  newMessage: "New message",
  begin: "New message",
  beginIn: (channel: string) => `New topic in #${channel}`,
  beginDirect: "Direct message",
  kind: "Kind of message",
  toTopic: "To a topic",
  toPeople: "To people",
  channel: "Channel",
  topic: "Topic",
  topicOrNone: (none: string) => `Topic (or ${none})`,
  people: "People",
  without: (name: string) => `Without ${name}`,
  toWhom: "Say first to whom it goes.",
  closeKeeping: "Close (the draft is kept)",
  sentTo: (where: string) => `Sent to ${where}`,
  goThere: "Go there",
  notHere: (to: string, here: string) => `This message goes to ${to}, not to ${here}.`,
  writeHere: "Write here instead",
  kept: (to: string) => `Your message to ${to} is in the drafts.`,

  // Files
  files: "Files",
  quotes: "Quotations",
  unquote: (who: string) => `Leave out what ${who} said`,
  removeFile: (name: string) => `Remove ${name}`,
  attached: "Uploaded",
  uploading: (name: string) => `Uploading ${name}…`,
  fileTooLarge: "This file is too large.",
  fileFailed: "The file could not be uploaded.",
  retryFile: (name: string) => `Upload ${name} again`,
  cancelFile: (name: string) => `Give up uploading ${name}`,
  filesFailed: "A file has not arrived. Upload it again, or take it away.",
  waitForFiles: "Files are still on their way. It can be sent when they have arrived.",

  // Length
  left: (count: number) => (count === 1 ? "1 character left" : `${count} characters left`),
  tooLong: (count: number) =>
    count === 1 ? "1 character too many" : `${count} characters too many`,

  // Warnings
  dismiss: "Dismiss",
  subscribe: "Subscribe",
  subscribeThem: "Subscribe them",
  unresolve: "Unresolve",
  warnings: {
    archived: "This channel is archived: nobody can write here any more.",
    mayNotPost: "You are not allowed to write in this channel.",
    mayNotBegin: "You are not allowed to write to these people directly.",
    emptyTopic: "This channel wants a topic for each message.",
    onlyEmptyTopic: "This channel has no topics: leave the topic empty.",
    topicTooLong: (most: number) => `A topic has at most ${most} characters.`,
    gone: (name: string) => `${name}’s account is deactivated: they get no messages any more.`,
    mayNotCallAll: (name: string) =>
      `You are not allowed to notify so many people at once with @${name}.`,
    callsMany: (name: string, count: number) => `@${name} will notify ${count} people.`,
    callsManyNow: (count: number) => `Send it once more to notify ${count} people.`,
    guests: (names: string, count: number) =>
      count === 1 ? `${names} is a guest here.` : `${names} are guests here.`,
    notThere: (name: string, channel: string) =>
      `${name} is not subscribed to #${channel} and will not be notified.`,
    notSubscribed: (channel: string) =>
      `You are not subscribed to #${channel}: you may miss the answers.`,
    resolved: "This topic is resolved.",
  },

  // Later
  later: "Send later",
  when: "When",
  times: {
    hour: "In one hour",
    threeHours: "In three hours",
    evening: "This evening",
    tomorrow: "Tomorrow morning",
    monday: "Monday morning",
  },
  pickTime: "Another time…",
  schedule: "Schedule",
  scheduledFor: (time: string) => `It will be sent: ${time}`,
  showScheduled: "Show",
  notToCome: "Choose a time to come.",
  timeHint: "Everybody sees it in their own time zone.",

  // Reminders
  remind: "Remind me",
  remindOf: (name: string) => `You get a direct message about this message of ${name}.`,
  remindedAt: (time: string) => `You will be reminded: ${time}`,
  reminderNote: "Note to yourself (optional)",
  showReminders: "Show",

  // Quoting: what is put into the message. Others read it, in the writer's language.
  said: (mention: string, link: string) => `${mention} [said](${link}):`,

  forward: "Quote elsewhere",

  // Editing
  editing: "Edit message",
  editWithin: (clock: string) => `${clock} left`,
  editLeft: "Your changes were not saved.",
  editedElsewhere:
    "The message was changed elsewhere in the meantime. Copy what you wrote, and edit it again.",
  fileUnlinked: (name: string) => `${name} is not linked in any message any more.`,
  noEdit: {
    rule: "You cannot edit this message.",
    late: "The time to edit this message is over.",
    archived: "Messages of an archived channel cannot be edited.",
  },

  // Deleting
  remove: "Delete message",
  removeTopic: "Delete topic",
  removeOwn: "It disappears for everybody, for good.",
  removeOf: (name: string) => `This message of ${name} disappears for everybody, for good.`,
  removeAllOf: (topic: string, channel: string) =>
    `All messages of “${topic}” in #${channel} disappear for everybody, for good.`,
  typeTopic: (topic: string) => `Type “${topic}” to confirm`,
  removed: "The message is deleted.",
  topicRemoved: "The topic is deleted.",
  noRemove: {
    rule: "You are not allowed to delete this.",
    late: "The time to delete this message is over.",
    archived: "Messages of an archived channel cannot be deleted.",
  },

  // Moving
  move: "Move message",
  moveTopic: "Move or rename topic",
  moveNow: "Move",
  renameNow: "Rename",
  moved: "Moved.",
  mayNotMove: "You are not allowed to move messages of this channel.",
  onlyWithin: "You may change the topic here, but not the channel.",
  moveWithin: (days: number) =>
    days === 1
      ? "Messages older than a day stay where they are."
      : `Messages older than ${days} days stay where they are.`,
  someLose:
    "Who joins that channel later cannot read its history: some readers may lose these messages.",
  someTooOld: (allowed: number, all: number) =>
    `Only ${allowed} of the ${all} messages may still be moved. Choose fewer of them.`,
  nothingToMove: "There are no messages in this topic any more.",
  which: "Which messages",
  spans: {
    change_one: "Only this one",
    change_later: "This one and all after it",
    change_all: "All of the topic",
  },
  notices: "Leave a note about it",
  tellOld: "where they were",
  tellNew: "where they go",

  // Polls and lists
  polls: {
    title: "Poll",
    question: "Question",
    lines: "Options",
    line: (number: number) => `Option ${number}`,
    add: "Another option",
  },
  todos: {
    title: "To-do list",
    question: "Title",
    lines: "Tasks",
    line: (number: number) => `Task ${number}`,
    add: "Another task",
  },
  withoutLine: (number: number) => `Remove line ${number}`,
  intoMessage: "Put into the message",

  // Snippets
  noSnippets: "Texts that you send again and again can wait here.",
  newSnippet: "New snippet",
  keepAsSnippet: "Keep what is written as a snippet",
  snippetTitle: "Title",
  editSnippet: (title: string) => `Edit ${title}`,
  removeSnippet: (title: string) => `Delete ${title}`,
  snippetRemoved: (title: string) => `“${title}” is deleted.`,
};
