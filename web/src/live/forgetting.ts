/** What was kept for reading without the server goes with the session, and so does its key. */

export const DATABASE = "tertulia-offline";
/** How long is waited for it, in milliseconds: where another window is slow, it goes a little later. */
const PATIENCE = 1000;

export function forgetReading(): Promise<void> {
  return new Promise((done) => {
    setTimeout(done, PATIENCE);
    try {
      const request = indexedDB.deleteDatabase(DATABASE);
      request.onsuccess = request.onerror = () => done();
    } catch {
      // Nothing is kept here for anybody.
      done();
    }
  });
}
