/** Virtual scrolling of rows with equal height. */

export interface ListShape {
  count: number;
  /** Row height, in pixels. */
  row: number;
  /** Row after the divider; 0 for none. */
  divided: number;
  /** Height of the divider. */
  divider: number;
}

export interface RowWindow {
  /** First row, and the row after the last. */
  start: number;
  end: number;
  /** Space above them and in total, in pixels. */
  above: number;
  whole: number;
}

/** Extra rows above and below the viewport. */
const SPARE = 8;

/** Offset of a row's top in the list. */
export function topOf(shape: ListShape, at: number): number {
  return at * shape.row + (shape.divided && at >= shape.divided ? shape.divider : 0);
}

/** The rows to render for a viewport at `from` with `height`. */
export function rowWindow(shape: ListShape, from: number, height: number): RowWindow {
  const first = Math.floor((from - shape.divider) / shape.row) - SPARE;
  const start = Math.max(0, Math.min(first, shape.count - 1));
  const end = Math.min(shape.count, Math.ceil((from + height) / shape.row) + SPARE);
  // The divider belongs to the row below it.
  const isBelow = shape.divided > 0 && start > shape.divided;
  return {
    start,
    end: Math.max(start, end),
    above: start * shape.row + (isBelow ? shape.divider : 0),
    whole: topOf(shape, shape.count),
  };
}
