/** Which rows of a long list are in the page, where all are equally high. Pure. */

export interface ListShape {
  count: number;
  /** How high a row is, in pixels. */
  row: number;
  /** The row before which the list is divided; 0 where it is not. */
  divided: number;
  /** How high what divides it is. */
  divider: number;
}

export interface RowWindow {
  /** From this row to that one (without). */
  start: number;
  end: number;
  /** The room above them, and that of all together, in pixels. */
  above: number;
  whole: number;
}

/** Rows that are in the page beyond those in sight, above and below. */
const SPARE = 8;

/** How far a row's top is below that of the list. */
export function topOf(shape: ListShape, at: number): number {
  return at * shape.row + (shape.divided && at >= shape.divided ? shape.divider : 0);
}

/** What is in the page where the window's top is so far below the list's, and so high. */
export function rowWindow(shape: ListShape, from: number, height: number): RowWindow {
  const first = Math.floor((from - shape.divider) / shape.row) - SPARE;
  const start = Math.max(0, Math.min(first, shape.count - 1));
  const end = Math.min(shape.count, Math.ceil((from + height) / shape.row) + SPARE);
  // What divides them belongs to the row below it.
  const isBelow = shape.divided > 0 && start > shape.divided;
  return {
    start,
    end: Math.max(start, end),
    above: start * shape.row + (isBelow ? shape.divider : 0),
    whole: topOf(shape, shape.count),
  };
}
