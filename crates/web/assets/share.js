// The address holds the whole run: settings and cursor.

/** @param {any} state */
export function pack(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let text = '';
  bytes.forEach((byte) => { text += String.fromCharCode(byte); });
  return '#' + btoa(text).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

/** The state in an address; null if there is none or it is malformed. @param {string} hash */
export function unpack(hash) {
  try {
    const text = atob(hash.replace(/^#/, '').replace(/-/g, '+').replace(/_/g, '/'));
    const state = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
    if (!state || typeof state !== 'object' || typeof state.scenario !== 'object' || state.scenario === null) return null;
    return state;
  } catch { return null; }
}
