/** Crops a picture, blurs parts of it, and draws arrows. */

export interface Point {
  x: number;
  y: number;
}

/** One edit, in pixels of the picture as the edits before it left it. */
export interface PictureEdit {
  kind: "crop" | "blur" | "arrow";
  from: Point;
  to: Point;
}

export interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Browsers limit a canvas to about this many pixels per side. */
const MAX_SIDE = 8192;
/** Blurred areas keep at most this many blocks per side, too few to read text. */
const BLUR_BLOCKS = 12;
/** Smaller crops are mistakes, in pixels. */
const MIN_CROP = 8;

/** The whole pixels between two corners, within the picture. */
export function areaOf(
  { from, to }: Omit<PictureEdit, "kind">,
  width: number,
  height: number,
): Area {
  const between = (value: number, most: number) => Math.max(0, Math.min(most, value));
  const left = Math.floor(between(Math.min(from.x, to.x), width));
  const top = Math.floor(between(Math.min(from.y, to.y), height));
  const right = Math.ceil(between(Math.max(from.x, to.x), width));
  const bottom = Math.ceil(between(Math.max(from.y, to.y), height));
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** Whether an edit changes anything. */
export function isEffective(edit: PictureEdit, width: number, height: number): boolean {
  if (edit.kind === "arrow")
    return Math.hypot(edit.to.x - edit.from.x, edit.to.y - edit.from.y) >= MIN_CROP;
  const area = areaOf(edit, width, height);
  const least = edit.kind === "crop" ? MIN_CROP : 1;
  return area.width >= least && area.height >= least;
}

/** The ends of an arrowhead's two lines. */
export function arrowHead({ from, to }: Omit<PictureEdit, "kind">, size: number): [Point, Point] {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const end = (turn: number): Point => ({
    x: to.x - size * Math.cos(angle + turn),
    y: to.y - size * Math.sin(angle + turn),
  });
  return [end(Math.PI / 6), end(-Math.PI / 6)];
}

/** The width of an arrow's line, in pixels. */
export function arrowWidth(width: number, height: number): number {
  return Math.max(4, Math.round(Math.hypot(width, height) / 160));
}

/** Decode a picture, upright and at most `MAX_SIDE` wide and high. Throws if it isn't one. */
export async function decodePicture(file: Blob): Promise<HTMLCanvasElement> {
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(1, MAX_SIDE / Math.max(image.naturalWidth, image.naturalHeight));
    const canvas = surface(
      Math.max(1, Math.round(image.naturalWidth * scale)),
      Math.max(1, Math.round(image.naturalHeight * scale)),
    );
    context(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** The picture after the edits, as a new canvas. */
export function applyEdits(
  picture: HTMLCanvasElement,
  edits: readonly PictureEdit[],
): HTMLCanvasElement {
  let canvas = copy(picture, { x: 0, y: 0, width: picture.width, height: picture.height });
  for (const edit of edits) {
    const area = areaOf(edit, canvas.width, canvas.height);
    if (edit.kind === "crop") canvas = copy(canvas, area);
    else if (edit.kind === "blur") blur(canvas, area);
    else drawArrow(canvas, edit);
  }
  return canvas;
}

/** Encode as a file of the same name and, if browsers can write it, type. */
export function pictureFile(canvas: HTMLCanvasElement, name: string, type: string): Promise<File> {
  const written = /^image\/(jpeg|webp)$/.test(type) ? type : "image/png";
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => {
        if (!blob) return reject(new Error("The picture can't be encoded."));
        const ending = blob.type.slice("image/".length).replace("jpeg", "jpg");
        const base = name.replace(/\.[^.]*$/, "");
        const isSame = fileType(name) === blob.type;
        resolve(new File([blob], isSame ? name : `${base}.${ending}`, { type: blob.type }));
      },
      written,
      0.92,
    );
  });
}

/** The media type that a picture's name implies. */
function fileType(name: string): string {
  const ending = /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return `image/${ending === "jpg" ? "jpeg" : ending}`;
}

function surface(width: number, height: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

function context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const found = canvas.getContext("2d");
  if (!found) throw new Error("This browser can't edit pictures.");
  return found;
}

function copy(source: HTMLCanvasElement, { x, y, width, height }: Area): HTMLCanvasElement {
  const canvas = surface(width, height);
  context(canvas).drawImage(source, x, y, width, height, 0, 0, width, height);
  return canvas;
}

/** Average the pixels of an area in blocks, so that nothing can be restored. */
function blur(canvas: HTMLCanvasElement, { x, y, width, height }: Area): void {
  const block = Math.max(width, height) / BLUR_BLOCKS;
  let small = copy(canvas, { x, y, width, height });
  // Halving averages all pixels; one large step would skip most.
  while (small.width > width / block || small.height > height / block) {
    const next = surface(
      Math.max(1, Math.round(width / block), Math.ceil(small.width / 2)),
      Math.max(1, Math.round(height / block), Math.ceil(small.height / 2)),
    );
    if (next.width === small.width && next.height === small.height) break;
    context(next).drawImage(small, 0, 0, next.width, next.height);
    small = next;
  }
  const target = context(canvas);
  target.clearRect(x, y, width, height);
  target.drawImage(small, 0, 0, small.width, small.height, x, y, width, height);
}

function drawArrow(canvas: HTMLCanvasElement, edit: PictureEdit): void {
  const target = context(canvas);
  const line = arrowWidth(canvas.width, canvas.height);
  const [left, right] = arrowHead(edit, line * 5);
  const path = new Path2D();
  path.moveTo(edit.from.x, edit.from.y);
  path.lineTo(edit.to.x, edit.to.y);
  path.moveTo(left.x, left.y);
  path.lineTo(edit.to.x, edit.to.y);
  path.lineTo(right.x, right.y);
  target.lineCap = target.lineJoin = "round";
  // Visible on light and dark pictures.
  for (const [color, width] of [
    ["white", line * 2],
    ["#d92d20", line],
  ] as const) {
    target.strokeStyle = color;
    target.lineWidth = width;
    target.stroke(path);
  }
}
