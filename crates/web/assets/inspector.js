// The inspector of the moment: properties, cost so far, events, a message, the state of each process.

import { h } from './dom.js';
import { t } from './i18n.js';

/** Guarantees of a data sheet, under the names of the judges. */
const JUDGED = { 'no deadlock': 'deadlock', 'a live leader': 'live leader', 'termination with probability 1': 'termination', 'no starvation': 'starvation' };
const MOST_STATES = 24;

/** Properties, each with when it broke. */
export function lamps(app) {
  const track = app.track(), p = app.position, sheet = app.sheetOf(track.name), { report } = track;
  const lamp = new Map();
  for (const name of sheet ? sheet.guarantees : []) lamp.set(JUDGED[name] || name, { name, broken: null });
  const put = (property, broken) => {
    const known = lamp.get(property) || { name: property, broken: null };
    if (!known.broken) known.broken = broken;
    lamp.set(property, known);
  };
  track.violations.forEach((v) => put(v.property, { rank: v.rank, detail: v.detail }));
  (report.violations || []).forEach((v) => { if (!lamp.get(v.property)?.broken) put(v.property, { rank: app.shown.last, detail: v.detail }); });
  if (report.waiting && report.waiting.length) {
    put('deadlock', { rank: app.shown.last, detail: report.waiting.map((n) => 'p' + n).join(', ') + ' ' + t(report.waiting.length === 1 ? 'waits-forever' : 'wait-forever') });
  }
  const rows = [...lamp.values()].map(({ name, broken }) => {
    const red = broken && broken.rank <= p;
    return h('button', {
      class: 'lamp ' + (red ? 'broken' : 'ok'), type: 'button', disabled: !broken, title: broken ? t('broken-at') + ' ' + t('step') + ' ' + broken.rank : t('holds'),
      onclick: () => app.go(broken.rank),
    }, h('b', {}, red ? '✕' : '✓'), h('span', {}, name, red ? h('small', {}, broken.detail) : null));
  });
  const doubts = (report.broken_assumptions || []).map((text) => h('div', { class: 'lamp doubt' }, h('b', {}, '!'), h('span', {}, t('assumption'), h('small', {}, text))));
  return [h('h2', {}, t('lamps')), h('div', { id: 'lamps' }, ...rows, ...doubts)];
}

/** What was measured so far, against the formulas. */
export function meter(app) {
  const p = app.position, end = p === app.shown.last;
  const parts = [];
  for (const track of app.shown.tracks) {
    const sent = track.sent(p), entries = track.granted(p);
    const rows = (track.report.bounds || []).map((bound) => {
      const live = bound.metric === 'messages' ? sent : bound.metric === 'messages_per_entry' ? (entries ? sent / entries : null) : end ? bound.measured : null;
      const { limit } = bound, over = limit !== null && live !== null && (bound.metric === 'messages' || end) && (live > limit + 1e-6 || (end && bound.holds === false));
      const bar = h('i', {});
      bar.style.width = (limit && live !== null ? Math.min(100, 100 * live / limit) : 0) + '%';
      const value = live === null ? '–' : String(Math.round(live * 100) / 100);
      return h('div', { class: 'meter' + (over ? ' over' : ''), 'data-metric': bound.metric },
        h('div', {}, t(bound.metric) + ': ', h('b', {}, value), limit === null ? '' : (bound.exact ? ' = ' : ' ≤ ') + Math.round(limit * 100) / 100, over ? ' ✕' : end && bound.holds ? ' ✓' : ''),
        h('div', { class: 'bar' }, bar),
        h('small', {}, h('span', {}, bound.formula), h('span', {}, limit === null ? t('not-apply') : '')));
    });
    const title = app.shown.tracks.length > 1 ? h('h3', {}, track.name.replace(/.*\//, '')) : null;
    const plain = h('p', { class: 'soft' }, sent + ' ' + t('messages') + (track.grantRanks.length ? ' · ' + entries + ' × ' + t('inside') : ''));
    parts.push(title, plain, ...rows);
  }
  return [h('h2', {}, t('meter')), h('div', { id: 'meter' }, ...parts.filter(Boolean))];
}

/** What happens at the cursor: why, and what is done about it. */
export function event(app) {
  const now = app.shown.entryAt(app.position);
  if (!now) return [];
  const [cause, ...done] = now.entry.lines;
  return [h('h2', {}, t('what')), h('div', { id: 'event' }, h('p', {}, h('b', {}, cause)), ...done.map((line) => h('p', {}, h('code', {}, line))))];
}

/** The chosen message. */
export function message(app) {
  const { chosen } = app;
  if (!chosen || !chosen.message) return [];
  const track = app.shown.tracks[chosen.t], m = chosen.message, time = (e) => track.timeOf(track.entries[e].at) + ' ' + track.time;
  const fates = m.received.map((e) => t('arrived') + ' ' + time(e));
  if (m.lost >= 0) fates.push(t('lost') + ' ' + time(m.lost));
  if (m.doubled) fates.push(t('doubled'));
  if (!fates.length) fates.push(t('flying'));
  return [h('h2', {}, t('message')), h('div', { id: 'message', class: 'node now' },
    h('div', {}, h('b', {}, 'p' + m.from + ' → p' + m.to), ' ', h('span', { class: 'soft' }, '#' + m.id), ' ', h('button', { type: 'button', title: t('close') + ' (Esc)', onclick: () => app.choose(null) }, '×')),
    h('code', {}, m.text), h('p', { class: 'soft' }, t('sent') + ' ' + time(m.sent) + ' · ' + fates.join(' · ')),
    h('p', {}, h('span', { class: 'k0' }, chosen.past.size + ' ' + t('past')), ' · ', h('span', { class: 'k1' }, chosen.future.size + ' ' + t('future'))),
    track.nodes.length <= 16 ? h('p', { class: 'soft' }, t('vector') + ' ', h('code', {}, '[' + track.vector(chosen.past).join(', ') + ']')) : null,
    breaking(app, chosen.t, [
      ['lose', () => 'lose:' + track.selector(m)], ['late', () => 'delay:' + track.selector(m) + '+5'],
      ['twice', () => 'duplicate:' + track.selector(m)], ['cut', () => 'cut:' + m.from + '>' + m.to + '@' + app.timeAt(track, track.entries[m.sent].at)],
    ], track.kinds[m.kind] === 'application'))];
}

/** Buttons that write a fault into the schedule. */
function breaking(app, at, faults, impossible = false) {
  if (app.shown.tracks[at].world === 'check') return h('p', { class: 'soft' }, t('no-break'));
  if (impossible) return null;
  return h('div', { class: 'row', role: 'group', 'aria-label': t('break') },
    ...faults.map(([name, fault]) => h('button', { type: 'button', class: 'danger', 'data-break': name, title: fault(), onclick: () => app.addFault(fault()) }, t(name))));
}

/** The chosen link. */
export function link(app) {
  const { chosen } = app;
  if (!chosen || !chosen.link) return [];
  const [a, b] = chosen.link, track = app.track(), time = app.timeAt(track);
  const cut = (x, y) => h('button', { type: 'button', class: 'danger', 'data-cut': x + '>' + y, onclick: () => app.addFault('cut:' + x + '>' + y + '@' + time) }, t('cut-link') + ' p' + x + ' → p' + y);
  return [h('h2', {}, t('link')), h('div', { id: 'link', class: 'node now' }, h('b', {}, 'p' + a + ' – p' + b), track.world === 'check' ? h('p', { class: 'soft' }, t('no-break')) : h('div', { class: 'row' }, cut(a, b), cut(b, a)))];
}

/** Everyone's state, and what changed. */
export function states(app) {
  const p = app.position, now = app.shown.entryAt(p), parts = [], chosen = app.chosen;
  for (const track of app.shown.tracks) {
    const title = t('states') + (app.shown.tracks.length > 1 ? ' · ' + track.name.replace(/.*\//, '') : '');
    const first = new Set([chosen && chosen.t === track.t ? chosen.node : undefined, now && now.t === track.t ? now.entry.node : undefined]);
    const nodes = [...track.nodes].sort((a, b) => (a === (chosen && chosen.node) ? -1 : b === (chosen && chosen.node) ? 1 : 0));
    const shown = nodes.length <= MOST_STATES ? nodes : [...nodes.filter((n) => first.has(n)), ...nodes.filter((n) => !first.has(n)).slice(0, MOST_STATES - 4)];
    parts.push(h('h2', {}, title), ...shown.map((node) => card(app, track, node, p, now)));
    if (shown.length < nodes.length) parts.push(h('p', { class: 'soft' }, '… ' + t('and-more')));
  }
  return parts;
}

function card(app, track, node, p, now) {
  const { now: state, before } = track.state(node, p), phase = track.phase(node, p), fresh = state && state.rank === p && p > 0;
  const old = new Map(before ? before.fields : []);
  const fields = state ? state.fields.map(([name, value]) => {
    const changed = fresh && old.get(name) !== value;
    return h('code', { class: changed ? 'changed' : '' }, name ? name + ': ' : '', changed && old.has(name) ? h('del', {}, old.get(name)) : null, value);
  }) : [h('span', { class: 'soft' }, t('nothing-yet'))];
  const chosen = app.chosen && app.chosen.node === node && app.chosen.t === track.t, time = chosen ? app.timeAt(track) : '';
  return h('section', { class: 'node' + ((now && now.t === track.t && now.entry.node === node) || chosen ? ' now' : ''), 'data-state': node },
    h('header', {}, h('button', { type: 'button', 'aria-expanded': String(!!chosen), title: t('break') + ' · ' + t('node') + ' ' + node, onclick: () => app.choose(chosen ? null : { t: track.t, node }) }, 'p' + node + (chosen ? ' ▾' : ' ▸')),
      phase ? h('span', { class: 'badge ' + phase }, t(phase)) : null),
    h('div', {}, ...fields),
    chosen ? breaking(app, track.t, [
      ['crash', () => 'crash:' + node + '@' + time],
      ['pause', () => 'pause:' + node + '@' + time + '-' + app.later(time, 5)],
      ['restart', () => 'restart:' + node + '@' + time],
    ]) : null);
}
