/** Deletes offline data and its key on sign-out. */

export const DATABASE = "tertulia-offline";
/** How long to wait for other windows, in ms; deletion then completes later. */
const PATIENCE = 1000;

export function forgetReading(): Promise<void> {
  return new Promise((done) => {
    setTimeout(done, PATIENCE);
    try {
      const request = indexedDB.deleteDatabase(DATABASE);
      request.onsuccess = request.onerror = () => done();
    } catch {
      // Storage isn't available.
      done();
    }
  });
}
