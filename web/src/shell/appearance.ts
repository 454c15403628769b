/** Applies appearance settings to the page. */

import type { Data, UserSettings } from "../data/data";

const SCHEMES: Record<number, string> = { 2: "dark", 3: "light" };

export function applyAppearance(settings: UserSettings, realm: Data["realm"]): void {
  const { dataset, style } = document.documentElement;
  dataset["scheme"] = SCHEMES[settings.color_scheme] ?? "";
  dataset["width"] = settings["fluid_layout_width"] ? "full" : "";
  dataset["contrast"] = settings.high_contrast_mode ? "high" : "";
  style.setProperty("--font-size", `${settings.web_font_size_px || 16}px`);
  style.setProperty("--line-height", `${(settings.web_line_height_percent || 140) / 100}`);
  // Size of media in messages.
  style.setProperty("--media", `${Number(realm["realm_media_preview_size"] || 100) / 100}`);
}

let icon: HTMLImageElement | undefined;

/** The favicon, with a dot for unread messages. */
export async function applyBadge(count: number): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (!link) return;
  if (!count) {
    link.type = "image/svg+xml";
    link.href = "/static/icon.svg";
    return;
  }
  const size = 64;
  if (!icon) {
    icon = new Image(size, size);
    icon.src = "/static/icon.svg";
  }
  // Without it, the badge is drawn alone: drawing a broken image throws.
  const isDecoded = await icon.decode().then(
    () => true,
    () => false,
  );
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  if (isDecoded) pen.drawImage(icon, 0, 0, size, size);
  pen.fillStyle = "#c0392b";
  pen.beginPath();
  pen.arc(46, 18, 18, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = "#fff";
  pen.font = "bold 24px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(count > 9 ? "9+" : String(count), 46, 19);
  link.type = "image/png";
  link.href = canvas.toDataURL();
}
