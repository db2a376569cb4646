// The workbench: settings, the run that is shown, and the cursor.

import * as api from './api.js';
import { Diagram } from './diagram.js';
import { $, copy, h, perFrame } from './dom.js';
import { form } from './form.js';
import { Graph } from './graph.js';
import { isGerman, setGerman, t } from './i18n.js';
import * as inspector from './inspector.js';
import { Live } from './live.js';
import { Shown } from './model.js';
import { exercises, file, lanes, schedule, sheet, Story } from './pages.js';
import { pack, unpack } from './share.js';

const MODES = ['run', 'race', 'check', 'live'];
const SPEEDS = [0.5, 1, 2, 4, 8, 32];
const FORMS = ['svg', 'png', 'html', 'tikz', 'mermaid', 'plantuml', 'shiviz', 'csv', 'run'];
const TABS = { story: null, schedule, file, sheet, exercises, lanes };

class App {
  constructor(catalog) {
    this.catalog = catalog;
    this.mode = 'run';
    this.settings = { scenario: { algorithm: 'mutex/ricart-agrawala', nodes: 3 }, racers: ['mutex/ricart-agrawala', 'mutex/suzuki-kasami', 'mutex/central'], budgets: {} };
    this.open = new Set();
    this.shown = null;
    this.position = 0;
    this.chosen = null;
    this.lanes = [];
    this.hidden = new Set();
    this.tab = 'story';
    this.speed = 1;
    this.timer = null;
    this.work = null;
    this.story = new Story(this);
    this.live = new Live();
    const acts = {
      onEntry: (track, e) => { this.go(this.shown.tracks[track].entries[e].rank); this.choose({ t: track, node: this.shown.tracks[track].entries[e].node }); },
      onMessage: (track, message) => this.chooseMessage(track, message),
      onNode: (track, node) => this.choose({ t: track, node }),
      onLink: (a, b) => this.choose({ t: this.track().t, link: [a, b] }),
      onPlace: (x) => { this.choose(null); this.go(this.shown.nearest(x)); },
    };
    this.diagram = new Diagram(acts);
    this.graph = new Graph(acts);
    this.showMoment = perFrame(() => this.moment());
    /** The address as it was last read or written here. */
    this.hash = location.hash;
    // A new address is a command that `hashchange` is about to deliver; it must not be overwritten.
    this.remember = debounce(() => { if (location.hash === this.hash) this.save(); }, 300);
  }

  sheetOf(name) { return this.catalog.algorithms.find((a) => a.name === name || a.name.endsWith('/' + name)); }
  sheet() { return this.sheetOf(this.settings.scenario.algorithm) || this.catalog.algorithms[0]; }

  /** The track of the chosen node or message, or of the current step. */
  track() {
    if (!this.shown) return null;
    const now = this.shown.entryAt(this.position);
    return this.shown.tracks[this.chosen ? this.chosen.t : now ? now.t : 0] || this.shown.tracks[0];
  }

  // ——— Settings ———

  /** Changes the settings; a new algorithm keeps only settings that fit every algorithm. */
  change(act, algorithm = false) {
    act(this.settings);
    if (algorithm) {
      const { scenario } = this.settings, { problem } = this.sheet();
      ['topology', 'set', 'mistake'].forEach((key) => delete scenario[key]);
      this.settings.racers = this.settings.racers.filter((name) => name.startsWith(problem + '/'));
      if (this.settings.racers.length < 2) this.settings.racers = this.catalog.algorithms.filter((a) => a.problem === problem).slice(0, 2).map((a) => a.name);
      if (!this.settings.racers.includes(scenario.algorithm)) this.settings.racers = [scenario.algorithm, ...this.settings.racers].slice(0, this.catalog.limits.racers);
    }
    this.showForm();
    if (this.mode !== 'check') this.start(algorithm ? 0 : undefined);
    else this.remember();
  }

  setMode(mode) {
    this.mode = mode;
    this.cancel();
    this.showHead();
    if (mode === 'live') { this.verdict('', ''); this.trouble(''); this.live.start(); this.remember(); return; }
    this.live.stop();
    this.showForm();
    if (mode === 'check') { this.setTab('exercises'); this.trouble(''); } else this.start(0);
  }

  addFault(fault) { this.setFaults([...(this.settings.scenario.faults || []), fault]); }

  setFaults(faults) {
    if (faults.length) this.settings.scenario.faults = faults; else delete this.settings.scenario.faults;
    this.setTab('schedule');
    this.start();
  }

  /** The time just after the cursor, as faults write it. */
  timeAt(track, at = null) {
    const before = track.entries.findLast((entry) => entry.rank <= this.position && entry.rank > 0);
    const ticks = at ?? (before ? before.at : 0);
    return String(Math.round((ticks + (at === null ? 1 : 0)) / track.unit * 1000) / 1000);
  }

  later(time, by) { return String(Math.round((Number(time) + by) * 1000) / 1000); }

  scenarios() {
    const { scenario, racers } = this.settings;
    if (this.mode !== 'race') return [scenario];
    const { mistake, set, ...shared } = scenario;
    return racers.map((algorithm) => ({ ...shared, algorithm }));
  }

  /** Runs the scenario; the cursor stays where it was, or goes to `position`. */
  async start(position = this.position) {
    this.cancel();
    const work = new AbortController();
    this.work = work;
    try {
      if (this.mode === 'race' && this.settings.racers.length < 2) throw new Error(t('racers'));
      const data = await api.run(this.scenarios(), work.signal);
      this.show(data, position);
    } catch (error) {
      if (work.signal.aborted) return;
      this.trouble(error.message);
      if (this.tab === 'schedule' || this.tab === 'file') this.showPage();
    }
    if (this.work === work) this.work = null;
  }

  /** Checks the scenario. */
  async check() {
    this.cancel();
    const work = new AbortController();
    this.work = work;
    const { scenario, budgets } = this.settings;
    this.progress(null);
    try {
      const small = { ...scenario, nodes: scenario.nodes ?? 3 };
      const { report, shown } = await api.check({ scenario: small, budgets }, (news) => this.progress(news), work.signal);
      this.report = report;
      if (shown) {
        this.show(shown, 0);
        this.setTab('story');
        this.go(this.shown.last);
      } else this.trouble('');
      this.verdictOf(report);
    } catch (error) {
      if (work.signal.aborted) return;
      this.verdict('', '');
      this.trouble(error.message);
    }
    if (this.work === work) this.work = null;
    this.showForm();
    this.remember();
  }

  exercise({ scenario, budgets }) {
    this.live.stop();
    this.mode = 'check';
    this.settings = { ...this.settings, scenario: { ...scenario }, budgets: { ...budgets } };
    this.showHead();
    this.showForm();
    this.check();
  }

  cancel() {
    if (this.work) this.work.abort();
    this.work = null;
    this.play(false);
  }

  // ——— The run that is shown ———

  show(data, position) {
    this.trouble('');
    this.shown = new Shown(data);
    this.chosen = null;
    this.lanes = this.lanes.filter((node) => this.shown.tracks.some((track) => track.nodes.includes(node)));
    this.position = Math.max(0, Math.min(this.shown.last, position));
    this.diagram.show(this.shown, this.lanes, this.hidden, this.position);
    this.diagram.choose(null);
    this.graph.show(this.track());
    $('slider').max = String(this.shown.last);
    const count = this.shown.tracks.reduce((sum, track) => sum + track.entries.length, 0);
    $('diagram').setAttribute('aria-label', t('diagram') + ': ' + this.shown.tracks.map((track) => track.name).join(', ') + ', ' + count + ' ' + t('events'));
    if (this.mode !== 'check') this.verdictOf(this.shown.tracks);
    this.showKinds();
    this.showPage();
    this.diagram.go(this.position);
    this.moment();
    this.remember();
    document.documentElement.dataset.ready = String(this.shown.id);
  }

  verdictOf(what) {
    const box = $('verdict');
    const badge = (verdict, text) => h('span', { class: 'badge ' + (verdict === 'ok' || verdict === 'exhausted' ? 'ok' : verdict === 'unfinished' || verdict === 'bounded' ? 'doubt' : 'bad') }, text);
    if (Array.isArray(what)) {
      box.replaceChildren(...what.map((track) => {
        const name = what.length > 1 ? track.name.replace(/.*\//, '') + ': ' : '';
        const stuck = track.report.waiting && track.report.waiting.length ? ' · ' + track.report.waiting.map((n) => 'p' + n).join(', ') + ' ' + t(track.report.waiting.length === 1 ? 'waits-forever' : 'wait-forever') : '';
        const broken = track.report.violations && track.report.violations.length ? ' · ' + track.report.violations[0].property : '';
        return badge(track.verdict, name + t(track.verdict) + broken + (what.length > 1 ? '' : stuck));
      }), what.length === 1 && what[0].verdict === 'ok' ? h('button', { type: 'button', class: 'soft', title: t('check-this'), onclick: () => this.setMode('check') }, t('lucky')) : '');
    } else {
      const { verdict, property, states, depth, witness_length: length, witness_loops_from: loops } = what;
      const text = verdict === 'violated' ? property + ' ' + t('violated') + ' · ' + t('shortest') + ': ' + length + (loops === undefined || loops === null ? '' : ' · ' + t('loops') + ' ' + (loops + 1)) : t(verdict);
      box.replaceChildren(badge(verdict, text), ' ', h('span', { class: 'soft' }, states.toLocaleString() + ' ' + t('states-n') + ', ' + t('depth') + ' ' + depth));
      if (what.detail) box.title = what.detail;
    }
  }

  verdict(kind, text) { $('verdict').replaceChildren(text ? h('span', { class: 'badge ' + kind }, text) : ''); }

  progress(news) {
    const text = news ? news.states.toLocaleString() + ' ' + t('states-n') + ', ' + t('depth') + ' ' + news.depth : '';
    if (!$('progress')) {
      const bar = h('div', { class: 'progress' }, h('i', {}));
      bar.style.width = '120px';
      $('verdict').replaceChildren(h('span', { id: 'progress', class: 'row' }, bar, h('span', { id: 'progress-text' }), h('button', { type: 'button', id: 'cancel', onclick: () => { this.cancel(); this.verdict('doubt', t('unfinished')); } }, t('cancel'))));
    }
    $('progress-text').textContent = t('searching') + ' … ' + text;
  }

  trouble(why) {
    $('trouble').hidden = !why;
    $('trouble').textContent = why;
  }

  /** Everything that depends on the cursor. */
  moment() {
    if (!this.shown) return;
    const { shown, position } = this, now = shown.entryAt(position);
    $('slider').value = String(position);
    $('where').textContent = now ? t('step') + ' ' + position + ' ' + t('of') + ' ' + shown.last + ' · ' + now.track.timeOf(now.entry.at) + ' ' + now.track.time : t('begin') + ' · ' + shown.last + ' ' + t('events');
    for (const [id, off] of /** @type {[string, boolean][]} */ ([['first', position === 0], ['back', position === 0], ['next', position === shown.last], ['last', position === shown.last]])) $(id).disabled = off;
    this.diagram.drawStanding();
    const track = this.track();
    if (this.graph.track !== track) this.graph.show(track);
    this.graph.go(position, this.chosen && this.chosen.node !== undefined ? this.chosen.node : now && now.entry.node >= 0 ? now.entry.node : null);
    this.story.go();
    const box = $('inspector'), { activeElement } = document;
    // Keeps the keyboard focus on its button if the button still exists.
    const key = (it) => it.textContent + it.title, kept = activeElement instanceof HTMLElement && box.contains(activeElement) ? key(activeElement) : null;
    box.replaceChildren(...inspector.message(this), ...inspector.link(this), ...inspector.event(this), ...inspector.lamps(this), ...inspector.meter(this), ...inspector.states(this));
    if (kept !== null) [...box.querySelectorAll('button')].find((it) => key(it) === kept)?.focus();
  }

  // ——— The cursor ———

  go(position) {
    if (!this.shown) return;
    this.position = Math.max(0, Math.min(this.shown.last, Math.round(position) || 0));
    this.diagram.go(this.position);
    this.showMoment();
    this.remember();
  }

  play(on) {
    clearTimeout(this.timer);
    this.timer = null;
    const button = $('play');
    if (on && this.shown) {
      if (this.position === this.shown.last) this.go(0);
      const next = () => {
        if (this.position >= this.shown.last) return this.play(false);
        this.go(this.position + 1);
        this.timer = setTimeout(next, 600 / this.speed);
        return undefined;
      };
      this.timer = setTimeout(next, 600 / this.speed);
    }
    if (button) {
      button.textContent = this.timer ? '⏸' : '▶▶';
      button.title = t(this.timer ? 'stop' : 'play');
      button.setAttribute('aria-label', button.title);
    }
  }

  choose(chosen) {
    this.chosen = chosen;
    this.diagram.choose(chosen && chosen.message ? chosen : null);
    $('inspector').scrollTop = 0;
    this.showMoment();
  }

  chooseMessage(track, message) {
    this.choose({ t: track, message, ...this.shown.tracks[track].cone(message) });
  }

  /** The next message of the current step, for those without a mouse. */
  nextMessage() {
    const now = this.shown && this.shown.entryAt(this.position);
    if (!now) return;
    const list = [now.track.receivedAt.get(now.e), ...(now.track.sentBy.get(now.e) || [])].filter((i) => i !== undefined).map((i) => now.track.messages[i]);
    if (!list.length) return;
    const at = this.chosen && this.chosen.message ? list.indexOf(this.chosen.message) : -1;
    this.chooseMessage(now.t, list[(at + 1) % list.length]);
  }

  laneOrder() {
    const nodes = [...new Set(this.shown.tracks.flatMap((track) => track.nodes))];
    return [...this.lanes.filter((node) => nodes.includes(node)), ...nodes.filter((node) => !this.lanes.includes(node))];
  }

  setLanes(order) {
    this.lanes = order;
    this.diagram.show(this.shown, this.lanes, this.hidden, this.position);
    this.showPage();
    this.remember();
  }

  // ——— The page ———

  showHead() {
    $('modes').replaceChildren(...MODES.map((mode) => h('button', { type: 'button', role: 'tab', 'aria-selected': String(mode === this.mode), 'data-mode': mode, onclick: () => this.setMode(mode) }, t(mode))));
    const dark = document.documentElement.dataset.theme === 'dark';
    const forms = h('select', { id: 'export', 'aria-label': t('export'), onchange: (e) => { const form = e.target.value; e.target.value = ''; if (form) this.export(form); } }, h('option', { value: '', textContent: t('export') }), ...FORMS.map((form) => h('option', { value: form, textContent: form.toUpperCase() })));
    $('tools').replaceChildren(
      h('button', { type: 'button', id: 'share', title: t('share-hint'), onclick: async (e) => { this.save(); const it = e.currentTarget; if (await copy(location.href)) { it.textContent = t('copied') + ' ✓'; setTimeout(() => { it.textContent = t('share'); }, 1500); } } }, t('share')), ' ', forms, ' ',
      h('button', { type: 'button', id: 'language', lang: isGerman() ? 'en' : 'de', title: t('language'), 'aria-label': t('language'), onclick: () => { setGerman(!isGerman()); this.showAll(); } }, isGerman() ? 'EN' : 'DE'), ' ',
      h('button', { type: 'button', id: 'theme', title: t('theme'), 'aria-label': t('theme'), onclick: () => { setTheme(dark ? 'light' : 'dark'); this.showAll(); } }, dark ? '☀' : '☾'), ' ',
      h('button', { type: 'button', id: 'keys', title: t('help'), 'aria-label': t('help'), onclick: () => this.help() }, '?'));
    document.querySelectorAll('[data-t]').forEach((it) => { it.textContent = t(it.getAttribute('data-t') || ''); });
  }

  showForm() {
    const focused = document.activeElement && document.activeElement.id;
    const go = this.mode === 'check' ? h('button', { type: 'button', class: 'main', id: 'go', onclick: () => this.check() }, t('check-now'))
      : h('button', { type: 'button', class: 'main', id: 'go', onclick: () => this.start(0) }, t('run-now'));
    const asRun = this.mode === 'check' ? h('button', { type: 'button', id: 'as-run', onclick: () => this.setMode('run') }, t('as-run')) : null;
    $('settings').replaceChildren(...form(this, (act, algorithm) => this.change(act, algorithm)), h('div', { class: 'row' }, go, asRun), h('p', { class: 'soft' }, this.sheet().idea));
    if (focused && focused.startsWith('setting-') && $(focused)) $(focused).focus();
  }

  showTime() {
    const button = (id, text, act, label = id) => h('button', { type: 'button', id, title: t(label), 'aria-label': t(label), onclick: act }, text);
    $('time').replaceChildren(
      button('first', '|◀', () => this.go(0)), button('prev-event', '◆◀', () => this.go(this.shown.nextInteresting(this.position, -1))), button('back', '◀', () => this.go(this.position - 1)),
      button('play', '▶▶', () => this.play(!this.timer)), button('next', '▶', () => this.go(this.position + 1)), button('next-event', '▶◆', () => this.go(this.shown.nextInteresting(this.position, 1))), button('last', '▶|', () => this.go(this.shown.last)),
      h('select', { id: 'speed', 'aria-label': t('speed'), title: t('speed'), onchange: (e) => { this.speed = Number(e.target.value); } }, ...SPEEDS.map((speed) => h('option', { value: speed, textContent: speed + '×', selected: speed === this.speed }))),
      h('input', { type: 'range', id: 'slider', min: 0, max: this.shown ? this.shown.last : 0, value: this.position, 'aria-label': t('time'), oninput: (e) => this.go(Number(e.target.value)) }),
      h('span', { id: 'where', 'aria-live': 'off' }),
      button('zoom-out', '−', () => this.diagram.zoomBy(0.7)), button('zoom-in', '+', () => this.diagram.zoomBy(1.4)), button('zoom-fit', '⤢', () => this.diagram.fit(true)));
  }

  showKinds() {
    $('kinds').replaceChildren(...this.shown.kinds.map((kind, i) => h('button', {
      type: 'button', 'aria-pressed': String(!this.hidden.has(kind)), 'data-kind': kind, title: t('shown'),
      onclick: () => { if (this.hidden.has(kind)) this.hidden.delete(kind); else this.hidden.add(kind); this.showKinds(); this.diagram.redraw(); this.remember(); },
    }, h('span', { class: 'swatch k' + i % 6 + (i >= 6 ? ' d1' : '') }), kind)));
  }

  setTab(tab) {
    this.tab = tab;
    this.showPage();
  }

  showPage() {
    $('tabs').replaceChildren(...Object.keys(TABS).map((tab) => h('button', { type: 'button', role: 'tab', 'aria-selected': String(tab === this.tab), 'data-tab': tab, onclick: () => this.setTab(tab) }, t(tab) + (tab === 'schedule' && this.settings.scenario.faults ? ' ' + this.settings.scenario.faults.length : ''))));
    this.story.unmount();
    if (this.tab === 'story') { if (this.shown) this.story.mount($('page')); return; }
    $('page').replaceChildren(...(TABS[this.tab](this) || []).filter(Boolean));
  }

  showAll() {
    this.showHead();
    this.showForm();
    this.showTime();
    this.showPage();
    if (this.mode === 'live') { if (this.live.last) this.live.draw(); return; }
    if (!this.shown) return;
    this.verdictOf(this.mode === 'check' && this.report ? this.report : this.shown.tracks);
    this.showKinds();
    this.graph.show(this.track());
    this.diagram.colours();
    this.diagram.redraw();
    this.moment();
  }

  help() {
    const keys = [['←', 'back'], ['→', 'next'], ['Shift ←', 'prev-event'], ['Shift →', 'next-event'], ['Home', 'first'], ['End', 'last'], ['Space', 'play'], ['+', 'zoom-in'], ['−', 'zoom-out'], ['0', 'zoom-fit'], ['M', 'message'], ['N', 'node'], ['Esc', 'close'], ['?', 'help']];
    const box = $('help');
    box.replaceChildren(h('h3', {}, t('help')), h('table', {}, ...keys.map(([key, what]) => h('tr', {}, h('td', {}, h('kbd', {}, key)), h('td', {}, t(what))))), h('p', {}, t('share-hint')), h('p', { class: 'soft' }, 'Konklave ' + this.catalog.version), h('button', { type: 'button', onclick: () => box.close() }, t('close')));
    box.showModal();
  }

  async export(form) {
    const kinds = this.hidden.size ? this.shown.kinds.filter((kind) => !this.hidden.has(kind)) : undefined;
    const request = () => ({ id: this.shown.id, form, lanes: this.lanes, ...(kinds ? { kinds } : {}) });
    try {
      await api.download(request());
    } catch (error) {
      this.trouble(error.message);
    }
  }

  // ——— The address ———

  save() {
    if (!this.shown && this.mode !== 'check' && this.mode !== 'live') return;
    const { mode, settings, position, lanes: order, hidden } = this;
    const state = { v: 1, mode, scenario: settings.scenario, ...(mode === 'race' ? { racers: settings.racers } : {}), ...(mode === 'check' ? { budgets: settings.budgets } : {}), at: position, ...(order.length ? { lanes: order } : {}), ...(hidden.size ? { hidden: [...hidden] } : {}) };
    this.hash = pack(state);
    history.replaceState(null, '', location.pathname + location.search + this.hash);
  }

  load(state) {
    const list = (value) => (Array.isArray(value) ? value : []);
    this.mode = MODES.includes(state.mode) ? state.mode : 'run';
    this.settings.scenario = { ...state.scenario };
    if (!this.sheetOf(String(this.settings.scenario.algorithm))) this.settings.scenario.algorithm = 'mutex/ricart-agrawala';
    if (list(state.racers).length) this.settings.racers = list(state.racers).map(String);
    this.settings.budgets = state.budgets && typeof state.budgets === 'object' ? { ...state.budgets } : {};
    this.lanes = list(state.lanes).filter(Number.isInteger);
    this.hidden = new Set(list(state.hidden).map(String));
    this.showAll();
    const at = Number.isInteger(state.at) ? state.at : 0;
    if (this.mode === 'live') return this.live.start();
    this.live.stop();
    return this.mode === 'check' ? this.check() : this.start(at);
  }
}

function debounce(act, wait) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(act, wait); };
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem('theme', theme); } catch { /* then it is forgotten */ }
}

function keys(app) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || $('help').open) return;
    const target = /** @type {HTMLElement} */ (event.target), typing = target.matches('input:not([type=range]):not([type=checkbox]), textarea, select');
    if (typing) { if (event.key === 'Escape') target.blur(); return; }
    const acts = {
      ArrowRight: () => app.go(event.shiftKey ? app.shown.nextInteresting(app.position, 1) : app.position + 1),
      ArrowLeft: () => app.go(event.shiftKey ? app.shown.nextInteresting(app.position, -1) : app.position - 1),
      Home: () => app.go(0), End: () => app.go(app.shown.last), ' ': () => app.play(!app.timer), Escape: () => app.choose(null),
      '+': () => app.diagram.zoomBy(1.4), '-': () => app.diagram.zoomBy(0.7), 0: () => app.diagram.fit(true), m: () => app.nextMessage(),
      n: () => { const now = app.shown.entryAt(app.position); if (now && now.entry.node >= 0) app.choose({ t: now.t, node: now.entry.node }); }, '?': () => app.help(),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || !app.shown || app.mode === 'live') return;
    if ((event.key === ' ' || event.key === 'Enter') && target.matches('button, summary, [role=button], a, input')) return;
    event.preventDefault();
    act();
  });
}

async function boot() {
  let theme = null;
  try { theme = localStorage.getItem('theme'); } catch { /* none is kept */ }
  document.documentElement.dataset.theme = theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  setGerman(isGerman());
  let catalog;
  try {
    catalog = await api.catalog();
  } catch (error) {
    $('trouble').hidden = false;
    $('trouble').textContent = error.message;
    return;
  }
  const app = new App(catalog);
  Object.assign(window, { konklave: app });
  keys(app);
  app.showAll();
  const state = unpack(location.hash);
  window.addEventListener('hashchange', () => {
    if (location.hash === app.hash) return;
    app.hash = location.hash;
    const next = unpack(app.hash);
    if (next) app.load(next); else app.save();
  });
  if (state) await app.load(state); else await app.start(0);
}

boot();
