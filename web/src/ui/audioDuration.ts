/** Recordings by browsers have no duration in their header: seek to the end to find it before
 * playback. */
export function findDuration(audio: HTMLMediaElement): () => void {
  const back = () => {
    audio.currentTime = 0;
  };
  const look = () => {
    if (audio.duration !== Infinity) return;
    audio.addEventListener("timeupdate", back, { once: true });
    audio.currentTime = Number.MAX_SAFE_INTEGER;
  };
  if (audio.readyState >= audio.HAVE_METADATA) look();
  else audio.addEventListener("loadedmetadata", look, { once: true });
  return () => {
    audio.removeEventListener("loadedmetadata", look);
    audio.removeEventListener("timeupdate", back);
  };
}
