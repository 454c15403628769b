import { expect, test } from "vitest";
import { manage } from "../words/compiled/en/manage";
import { backupSummary } from "./serverInfo";

const texts = manage.nodes;
const YESTERDAY = Date.now() / 1000 - 100_000;

test.each([
  [null, texts.noBackups],
  [undefined, ""],
  [{ last_at: null, is_old: true }, texts.backupMissing],
  [{ last_at: YESTERDAY, is_old: false }, "Last backup yesterday."],
])("describes backups: %o", (backups, sentence) => {
  expect(backupSummary(backups, texts)).toBe(sentence);
});
