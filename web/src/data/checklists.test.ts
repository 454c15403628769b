import { expect, it } from "vitest";
import { listMessage } from "./checklists";

it("writes polls and lists", () => {
  expect(listMessage("poll", " Tea or\ncoffee? ", ["tea", "", " coffee "])).toBe(
    "/poll Tea or coffee?\ntea\ncoffee",
  );
  expect(listMessage("todo", "", ["bake"])).toBe("/todo\nbake");
});
