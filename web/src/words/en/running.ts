/** Running the place from day to day: usage, deliveries, announcements, room for files. */
export const running = {
  pages: { usage: "Usage", deliveries: "Deliveries", announcements: "Announcements" },

  // Usage.
  span: "Days",
  lastDays: (days: number) => `Last ${days} days`,
  usageNote: (at: string) => `Counted ${at}, by days of UTC.`,
  counting: (percent: number) => `The messages so far are being counted: ${percent} %.`,
  notCounted: "Nothing has been counted yet. The server begins within minutes.",
  peopleByDay: "People by day",
  peopleByWeek: "People by week",
  messagesByDay: "Messages by day",
  most: (most: string) => `up to ${most}`,
  asTable: "As a table",
  day: "Day",
  weekOf: "Week of",
  count: "Number",
  room: "Room for files",
  roomNote: (used: string) => `All files together take ${used}.`,
  fields: {
    groups: {},
    labels: { upload_quota_per_user_mib: "Files of one person" },
    hints: {
      upload_quota_per_user_mib:
        "In MiB, with those of their bots. Empty: without a limit. What is there already stays.",
    },
    options: {},
  },
  byPerson: "By person",
  byChannel: "By channel",
  byChannelNote: "Files that messages link. What is linked in several channels counts in each.",
  files: (count: number) => (count === 1 ? "1 file" : `${count} files`),
  noFiles: "There are no files.",
  directMessages: "Direct messages",
  hiddenChannel: "A private channel",

  // What fails.
  deliveriesNote:
    "What could not be delivered so far. It is tried again, and goes from here when it succeeds.",
  nothingFails: "Everything is being delivered.",
  kinds: { mail: "E-mail", push: "Push", webhook: "Webhook", feed: "Feed" },
  waitingMails: (count: number) => (count === 1 ? "1 mail waits" : `${count} mails wait`),
  waiting: (count: number) => (count === 1 ? "1 waits" : `${count} wait`),
  failures: (count: number) => (count === 1 ? "failed once" : `failed ${count} times in a row`),
  sinceThen: (ago: string) => `since ${ago}`,
  mailHelp: "Whoever runs the server finds out why with “tertulia mail --test”.",

  // Slow requests.
  slow: "Slow requests",
  slowNote:
    "The latest that took longer than the server is set to accept. Waiting for the client does not count.",
  slowTime: (all: string, database: string, loop: string) =>
    `${all}: ${database} for the database, ${loop} late`,
  noSlow: "No request was slow lately.",
  nobody: "without an account",

  // Announcements.
  announcementsNote:
    "Everybody sees them above all else, until their end or until they close them.",
  announcementsElsewhere:
    "Other clients do not show them: there the notification bot says it in the channel for news of the server, if one is set.",
  noAnnouncements: "Nothing is announced.",
  newAnnouncement: "New announcement",
  announcement: "Text",
  announce: "Announce",
  shownFor: "Shown for",
  forHours: (hours: number) => (hours === 1 ? "1 hour" : `${hours} hours`),
  forDays: (days: number) => (days === 1 ? "1 day" : `${days} days`),
  alsoSay: "The bot says it too",
  endAnnouncement: (text: string) => `End “${text}”`,
  endsThen: (ago: string) => `ends ${ago}`,

  // Room for one person's files.
  quota: "Room for files",
  quotaTooSmall: "A limit is 1 MiB at least.",
  quotaNote: (used: string) => `Their files, and those of their bots, take ${used}.`,
  asOrganization: "As for everybody",
  ownQuota: "Another limit",
  mebibytes: "MiB",
};
