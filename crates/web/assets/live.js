// A running group: the reports of its agents and the events of their flight recorders.

import * as api from './api.js';
import { $, h, s } from './dom.js';
import { t } from './i18n.js';

const EVERY = 700;
/** Seconds of the past in the picture. */
const SPAN = 30;
const LANE = 46, LEFT = 90;
const SOME = 400;

const ago = (seconds) => (seconds === null || seconds === undefined ? '–' : seconds < 1 ? Math.round(seconds * 1000) + ' ms' : seconds.toFixed(1) + ' s');
const cells = (tag, list) => h('tr', {}, ...list.map((it) => h(tag, {}, it)));

/**
 * The grants, messages and other events in the recordings of all agents.
 * @param {any[]} lines
 */
export function history(lines) {
  const bars = [], marks = [], open = new Map(), sent = new Map(), arrows = [];
  for (const line of lines) {
    const { node, at, kind, what } = line, name = what && what.name, key = node + '\n' + name;
    if (kind === 'granted' && name) {
      if (!open.has(key)) { const bar = { node, name, from: at, to: null, token: what.token }; open.set(key, bar); bars.push(bar); }
    } else if ((kind === 'released' || kind === 'lost') && open.has(key)) {
      Object.assign(open.get(key), { to: at, lost: kind === 'lost' });
      open.delete(key);
    } else if (kind === 'sent') {
      sent.set([node, what.to, what.number].join('\n'), line);
    } else if (kind === 'received') {
      const start = sent.get([what.from, node, what.number].join('\n'));
      if (start) arrows.push({ from: what.from, to: node, start: start.at, end: at, what: what.what });
    }
    if (['view', 'suspected', 'blocked', 'excluded', 'left', 'refused', 'revoked'].includes(kind)) marks.push({ node, at, kind, what });
  }
  return { bars, marks, arrows };
}

export class Live {
  constructor() {
    this.timer = null;
    this.round = 0;
    this.last = null;
  }

  start() {
    $('bench').hidden = true;
    $('live').hidden = false;
    this.stop(true);
    this.look();
  }

  stop(stays = false) {
    clearTimeout(this.timer);
    this.timer = null;
    this.round += 1;
    if (!stays) { $('live').hidden = true; $('bench').hidden = false; }
  }

  async look() {
    const { round } = this;
    try {
      this.last = await api.live();
      if (round === this.round) this.draw();
    } catch (error) {
      if (round === this.round) $('live').replaceChildren(h('p', { class: 'badge bad' }, error.message));
    }
    if (round === this.round) this.timer = setTimeout(() => this.look(), EVERY);
  }

  draw() {
    const { agents } = this.last;
    if (!agents.length) {
      $('live').replaceChildren(h('h3', {}, t('live-none')), h('pre', {}, 'konklave agent --dev\nkonklave ui --agent SOCKET'));
      return;
    }
    const best = agents.find((a) => a.status && a.status.standing === 'primary') || agents.find((a) => a.status);
    const lines = agents.flatMap((a) => a.lines || []).sort((a, b) => a.at - b.at || a.number - b.number);
    $('live').replaceChildren(
      h('section', { class: 'row', id: 'agents' }, ...agents.map((agent) => this.agent(agent))),
      ...(best ? [this.members(best.status), this.locks(best.status)] : []),
      h('h2', {}, t('live-history').replace('%', String(SPAN))), this.picture(agents, lines), this.news(lines));
    document.documentElement.dataset.live = String((Number(document.documentElement.dataset.live) || 0) + 1);
  }

  agent({ socket, status, trouble }) {
    if (!status) return h('div', { class: 'node gone', 'data-agent': socket, title: socket }, h('b', {}, socket.replace(/.*\//, '')), ' ', h('span', { class: 'badge bad' }, t('gone')), h('p', { class: 'soft' }, trouble));
    const { view, standing } = status;
    return h('div', { class: 'node', 'data-agent': status.node, title: socket }, h('b', {}, status.node), ' ', h('span', { class: 'badge ' + (standing === 'primary' ? 'ok' : 'bad') }, t('s-' + standing)),
      h('p', { class: 'soft' }, t('view') + ' ' + view.generation + '.' + view.epoch + ' · ' + view.heard + ' ' + t('of') + ' ' + view.members.filter((m) => m.votes).length + ' ' + t('heard') + ', ' + view.quorum + ' ' + t('needed') + ' · ' + status.sessions + ' ' + t('clients')));
  }

  members({ view }) {
    return h('section', {}, h('h2', {}, t('members')), h('table', { id: 'members' }, cells('th', [t('node'), t('leads'), t('connected'), t('last-heard')]),
      ...view.members.map((m) => cells('td', [m.name + (m.votes ? '' : ' (' + t('entering') + ')'), view.coordinator === m.name ? '★' : '', h('span', { class: m.suspected ? 'badge bad' : '' }, m.suspected ? t('suspected') : m.me ? '–' : m.connected ? t('yes') : t('no')), m.me ? '–' : ago(m.heard)]))));
  }

  locks(status) {
    const rows = [...status.locks, ...status.elections].map((lock) => cells('td', [lock.name, t('k-' + lock.kind),
      h('span', {}, ...lock.holders.map((it) => h('div', {}, h('b', {}, it.node), ' ' + it.label + ' · ' + it.mode + ' · ' + t('token') + ' ' + it.token + ' · ' + ago(it.held) + (it.safe === null ? '' : ' · ' + t('safe') + ' ' + ago(it.safe)) + (it.remark ? ' · ' + it.remark : '')))),
      lock.waiters.map((it) => it.node + ' ' + it.label).join(' → ') || '–']));
    const more = status.more ? h('p', { class: 'soft' }, '+ ' + status.more) : null;
    return h('section', {}, h('h2', {}, t('locks')), rows.length ? h('table', { id: 'locks' }, cells('th', [t('name'), '', t('holder'), t('queue')]), ...rows) : h('p', { class: 'soft' }, t('nothing-held')), more);
  }

  /** Lanes by agent, the present at the right. */
  picture(agents, lines) {
    const { bars, marks, arrows } = history(lines);
    const nodes = [...new Set([...agents.filter((a) => a.status).map((a) => a.status.node), ...lines.map((line) => line.node)])].sort();
    const now = this.last.now, width = Math.max(500, $('live').clientWidth - 40), height = 24 + LANE * nodes.length;
    const x = (at) => LEFT + Math.max(0, 1 - (now - at) / SPAN) * (width - LEFT - 10), y = (node) => 30 + nodes.indexOf(node) * LANE;
    const names = [...new Set(bars.map((bar) => bar.name))];
    const items = [];
    for (const node of nodes) items.push(s('text', { x: 4, y: y(node) + 5, class: 'lane-name' }, node), s('line', { x1: LEFT, x2: width - 10, y1: y(node), y2: y(node), class: 'lane' }));
    for (const bar of bars.filter((it) => (it.to ?? now) > now - SPAN).slice(-SOME)) {
      const from = x(bar.from), to = x(bar.to ?? now), colour = 'k' + names.indexOf(bar.name) % 6;
      items.push(s('rect', { x: from, y: y(bar.node) - 8, width: Math.max(2, to - from), height: 16, class: 'held ' + colour + (bar.lost ? ' lost' : ''), 'data-held': bar.name }, s('title', {}, bar.name + ' ' + (bar.token || ''))));
      if (to - from > 40) items.push(s('text', { x: from + 4, y: y(bar.node) + 4, class: 'held-name' }, bar.name));
    }
    for (const arrow of arrows.filter((it) => it.end > now - SPAN).slice(-SOME)) items.push(s('line', { x1: x(arrow.start), y1: y(arrow.from), x2: x(arrow.end), y2: y(arrow.to), class: 'sent', 'data-sent': arrow.what }, s('title', {}, arrow.what)));
    for (const mark of marks.filter((it) => it.at > now - SPAN).slice(-SOME)) items.push(s('path', { d: 'M' + x(mark.at) + ' ' + (y(mark.node) - 14) + 'v28', class: 'mark ' + mark.kind, 'data-mark': mark.kind }, s('title', {}, mark.kind + ' ' + JSON.stringify(mark.what))));
    return s('svg', { id: 'live-picture', width, height, viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': t('diagram') }, ...items);
  }

  news(lines) {
    const told = lines.filter((line) => line.kind !== 'sent' && line.kind !== 'received').slice(-12).reverse();
    return h('table', { id: 'news' }, ...told.map((line) => cells('td', [ago(Math.max(0, this.last.now - line.at)), line.node, line.kind, h('span', { class: 'soft' }, JSON.stringify(line.what))])));
  }
}
