// The pages below the diagram: story, schedule, scenario file, data sheet, exercises, lanes.

import { $, copy, h } from './dom.js';
import { t } from './i18n.js';

const ROW = 22;

/** The story; only the visible lines are in the document. */
export class Story {
  constructor(app) {
    this.app = app;
    this.rows = h('div', {});
    this.rows.style.position = 'relative';
    this.box = null;
    this.top = 0;
    this.height = 0;
    this.scroll = () => { this.top = this.box.scrollTop; this.draw(); };
    this.sized = new ResizeObserver(() => { this.height = this.box ? this.box.clientHeight : 0; this.draw(); });
  }

  mount(box) {
    this.box = box;
    box.className = 'story';
    box.replaceChildren(this.rows);
    box.addEventListener('scroll', this.scroll);
    this.sized.observe(box);
    this.rows.style.height = this.app.shown.last * ROW + 'px';
    this.height = box.clientHeight;
    this.top = box.scrollTop;
    this.go();
  }

  unmount() {
    if (this.box) { this.box.removeEventListener('scroll', this.scroll); this.sized.disconnect(); this.box.className = ''; }
    this.box = null;
  }

  go() {
    const { box, app } = this;
    if (!box) return;
    const y = (app.position - 1) * ROW;
    // Its place and size are kept: to ask for them would lay out the page in every frame.
    if (y < this.top || y + ROW > this.top + this.height) {
      this.top = Math.max(0, Math.min(y - this.height / 2, app.shown.last * ROW - this.height));
      box.scrollTop = this.top;
    }
    this.draw();
  }

  draw() {
    const { box, app } = this;
    if (!box) return;
    const from = Math.max(1, Math.floor(this.top / ROW)), to = Math.min(app.shown.last, from + Math.ceil(this.height / ROW) + 2);
    const race = app.shown.tracks.length > 1, items = [];
    for (let p = from; p <= to; p += 1) {
      const { track, entry, e } = app.shown.entryAt(p);
      const bad = entry.cause === 19 || entry.change === '!' ? ' bad' : track.isInteresting(e) ? ' key' : '';
      const it = h('div', { class: 'item' + (p === app.position ? ' now' : '') + bad + (p > app.position ? ' later' : ''), title: entry.lines.join('\n'), 'data-position': p, 'aria-current': p === app.position ? 'step' : null, onclick: () => app.go(p) },
        h('time', {}, track.timeOf(entry.at)), race ? h('span', { class: 'soft' }, track.name.replace(/.*\//, '') + '  ') : null, entry.lines.join('   '));
      it.style.top = (p - 1) * ROW + 'px';
      items.push(it);
    }
    this.rows.replaceChildren(...items);
  }
}

const copying = (text, label) => h('button', { type: 'button', onclick: async (e) => { const it = e.currentTarget; if (await copy(text)) { it.textContent = t('copied') + ' ✓'; setTimeout(() => { it.textContent = label; }, 1500); } } }, label);

/** The faults, to be read and changed. */
export function schedule(app) {
  const faults = app.settings.scenario.faults || [];
  const rows = faults.map((fault, i) => h('div', { class: 'row' },
    h('input', { type: 'text', value: fault, 'aria-label': t('schedule') + ' ' + (i + 1), 'data-fault': i, spellcheck: false, onchange: (e) => app.setFaults(faults.map((old, k) => (k === i ? e.target.value.trim() : old)).filter(Boolean)) }),
    h('button', { type: 'button', 'aria-label': t('remove') + ' ' + fault, title: t('remove'), onclick: () => app.setFaults(faults.filter((_, k) => k !== i)) }, '×')));
  const more = h('input', { type: 'text', id: 'new-fault', placeholder: 'crash:2@3.5', 'aria-label': t('add'), spellcheck: false, onkeydown: (e) => { if (e.key === 'Enter') add(); } });
  const add = () => { if (more.value.trim()) app.addFault(more.value.trim()); };
  return [
    faults.length ? null : h('p', { class: 'soft' }, t('schedule-empty')), ...rows,
    h('div', { class: 'row' }, more, h('button', { type: 'button', onclick: add }, t('add')), faults.length > 1 ? h('button', { type: 'button', onclick: () => app.setFaults([]) }, t('remove-all')) : null),
    h('details', {}, h('summary', {}, t('forms')), h('pre', {}, app.catalog.faults)), ...file(app),
  ];
}

/** The scenario as a file, and as a command. */
export function file(app) {
  const track = app.track();
  if (!track) return [];
  return [h('h2', {}, t('scenario-file'), ' ', copying(track.toml, t('copy'))), h('pre', { id: 'toml' }, track.toml), h('h2', {}, t('command'), ' ', copying(track.command, t('copy'))), h('pre', { id: 'command' }, track.command)];
}

/** The data sheet of the algorithm. */
export function sheet(app) {
  const it = app.sheet(), row = (key, value) => (value && value.length ? h('tr', {}, h('th', {}, t(key)), h('td', {}, value)) : null);
  return [h('h3', {}, it.title), h('p', {}, it.idea), h('table', {}, row('runs-on', it.topologies.join(', ')), row('assumes', it.assumes.join(', ')), row('promises', it.guarantees.join(', ')), row('winner', it.winner), row('fence', it.fence),
    ...it.costs.map((c) => row(c.metric, c.formula + '   (' + c.when + ')')), ...it.switches.map((s) => h('tr', {}, h('th', {}, s.name), h('td', {}, s.values.join(' | ') + ': ' + s.what))), row('source', it.source))];
}

/** The known mistakes as exercises. */
export function exercises(app) {
  const { mistakes } = app.sheet();
  if (!mistakes.length) return [h('p', { class: 'soft' }, t('no-exercise'))];
  return [h('p', { class: 'soft' }, t('exercise-intro')), ...mistakes.map((m) => h('section', { class: 'node' },
    h('div', { class: 'row' }, h('b', {}, m.name), m.exercise ? h('button', { type: 'button', 'data-exercise': m.name, onclick: () => app.exercise(m.exercise) }, t('find')) : null),
    h('details', {}, h('summary', {}, t('solution')), h('p', {}, m.what), h('p', { class: 'soft' }, t('breaks') + ': ' + m.breaks))))];
}

/** The order of lanes, and which kinds of messages are shown. */
export function lanes(app) {
  const order = app.laneOrder();
  const move = (i, by) => { const next = [...order]; const [node] = next.splice(i, 1); next.splice(Math.max(0, i + by), 0, node); app.setLanes(next); };
  return [h('div', { class: 'row' }, ...order.slice(0, 64).map((node, i) => h('span', { class: 'badge' }, 'p' + node + ' ', h('button', { type: 'button', disabled: i === 0, title: t('up') + ' p' + node, 'aria-label': t('up') + ' p' + node, onclick: () => move(i, -1) }, '↑'))))];
}

export const PAGES = { story: null, schedule, sheet, exercises, lanes };
export const pageBox = () => $('page');
