// Small help with the page: elements, and one drawing a frame.

/**
 * @param {string} tag
 * @param {Record<string, any>} [props] properties; `class`, `aria-…`, `data-…` and `role` are attributes
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  const it = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (name === 'class' || name === 'role' || name === 'for' || name === 'list' || name.includes('-')) it.setAttribute(name, value);
    else it[name] = value;
  }
  it.append(.../** @type {(Node|string)[]} */ (children.filter((child) => child !== null && child !== undefined && child !== false)));
  return it;
}

/** @param {string} tag @param {Record<string, any>} attributes @param {...(Node|string)} children */
export function s(tag, attributes = {}, ...children) {
  const it = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, String(value));
  it.append(...children);
  return it;
}

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/** Calls `draw` once a frame at most. @param {() => void} draw */
export function perFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };
}

/** Index of the last of a sorted list that is not after `limit`, or -1. */
export function lastUpTo(list, limit, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) <= limit) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = h('textarea', { value: text });
    document.body.append(box);
    box.select();
    const done = document.execCommand('copy');
    box.remove();
    return done;
  }
}
